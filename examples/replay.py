"""A run's journal made again in the twin, publish by publish, and each root held against it.

By induction: if a root is as the twin, and the next publish has changed what the twin's has, and nothing else, so is the next.
Twice, besides, a whole root is checked out and compared.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from edits import TREE, edit, is_in, places_in
from twin import Entry, Twin, differences, entries_below

from freehold import Change, Event, ReadFiles, Run


class Replay:
    """How far the twin has come in the journal, and what did not hold on the way."""

    def __init__(self, run: Run, first: int) -> None:
        """Begin with what was imported by the event of this seq."""
        with run.checkout(at=first) as checkout:
            self.twin = Twin(entries_below(checkout.path))
        self.first = dict(self.twin.entries)
        self.places = places_in(self.first, (path for path, entry in self.first.items() if entry.kind == "directory"))
        self.seq = first
        self.events: dict[int, Event] = {}
        self.numbers: set[int] = set()
        self.halves: list[int] = []
        self.wrong: list[str] = []
        self.changed: list[str] = []

    def compare_with_source(self, folder: Path, left_out: Collection[str], since: float) -> None:
        """Hold what was imported against the real folder as it is now; what was changed in it *since* then is only told."""
        imported = {path: entry for path, entry in self.first.items() if path != TREE}
        for path in differences(imported, entries_below(folder, f"{TREE}/", left_out)):
            if changed_since(folder / path.removeprefix(f"{TREE}/"), since):
                self.changed.append(path)
            else:
                self.wrong.append(f"not as it was imported: {path!r}")

    def follow(self, run: Run, whole: Collection[int], advance: Callable[[], None]) -> None:
        """Make every publish that the journal has beyond the last one known; after those of *whole*, compare everything."""
        for event in run.history(after=self.seq):
            self.events[event.seq] = event
            self.seq = event.seq
            number = number_of(event)
            if number is None or number in self.numbers:
                self.halves.append(event.seq)
                continue
            self.numbers.add(number)
            self.twin.touched.clear()
            edit(self.twin, number, self.places)
            if not is_whole(run, event, self.twin):
                self.halves.append(event.seq)
            if event.seq in whole:
                # What lies deep in a renamed directory was not looked at one by one.
                with run.checkout(at=event) as checkout:
                    self.compare(checkout.path)
            advance()

    def compare(self, folder: Path) -> None:
        """Hold a folder that was checked out against the twin."""
        for path in differences(self.twin.entries, entries_below(folder)):
            self.wrong.append(f"after event {self.seq} not as in the twin: {path!r}")

    def compare_changes(self, changes: Sequence[Change]) -> None:
        """Hold the changes from the first root to this one against what is different in the twin."""
        first, last = self.first, self.twin.entries
        named: set[str] = set()
        for change in changes:
            for path, entries in ((change.before, first), (change.after, last)):
                if path is not None:
                    named.add(path)
                    if change.kind == "renamed" and entries[path].kind == "directory":
                        named.update(each for each in entries if is_in(each, path))
        different = {path for path in first.keys() | last.keys() if first.get(path) != last.get(path)}
        # A directory that came or went is told by what is in it.
        for path in named ^ different:
            if not {"directory"}.issuperset(entries[path].kind for entries in (first, last) if path in entries):
                self.wrong.append(f"the difference of first and last root says otherwise: {path!r}")

    def lost(self, promised: Mapping[int, Mapping[str, Any]]) -> list[int]:
        """Return the seqs that were promised and are not in the journal exactly as they were."""
        # The hash covers the whole event, its root's identity too, and all events before it.
        found = {seq: (number_of(event), event.hash, event.root) for seq, event in self.events.items()}
        return [seq for seq, told in promised.items() if found.get(seq) != (told["number"], told["hash"], told["root"])]


def number_of(event: Event) -> int | None:
    """Return which publish of ours an event is."""
    word, _, number = (event.name or "").partition(" ")
    return int(number) if word == "edit" and number.isdecimal() else None


def is_whole(run: Run, event: Event, twin: Twin) -> bool:
    """Return whether a publish has changed all that it should have, and nothing else."""
    files, changes = run.snapshot(event), run.diff(event.seq - 1, event)
    named = {path for change in changes for path in (change.before, change.after) if path is not None}
    return (
        event.data == {"changes": len(changes)}
        and all(look_at(files, path) == twin.entries.get(path) for path in twin.touched)
        and all(any(is_in(path, touched) for touched in twin.touched) for path in named)
    )


def look_at(files: ReadFiles, path: str) -> Entry | None:
    """Return what stands at a path of a run."""
    try:
        mode = files.stat(path, follow_symlinks=False).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(mode):
        return Entry("link", 0o777, os.fsencode(files.readlink(path)))
    kind, content = ("directory", b"") if stat.S_ISDIR(mode) else ("file", files.read_bytes(path))
    return Entry(kind, stat.S_IMODE(mode), content)


def changed_since(path: Path, since: float) -> bool:
    """Return whether a path was changed since then. What came or went has changed its folder."""
    while not os.path.lexists(path):
        path = path.parent
    return path.lstat().st_ctime >= since
