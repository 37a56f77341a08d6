"""What a disk may hold after the power went, drawn by dice that a seed and an index repeat.

After each step of a record: everything done so far, only what is durable, a random beginning of what is pending, random
parts of it, and the same with one write torn in the middle.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TypeVar

from freehold.storage.vfs.durability import Content, Durability, apply, rename, tears
from freehold.storage.vfs.record import Cut, Marked, Record, Wrote

T = TypeVar("T")
KINDS = ("all", "none", "prefix", "subset", "torn", "torn")
_ROUNDS_TO_SEE_ALL = 10
_FRUITLESS_MAX = 20
"""After so many rounds in which nothing new came up, there is hardly anything left."""
_SHARES = (0.2, 0.5, 0.8)


@dataclass(frozen=True)
class CrashImage:
    """One state of the recorded folder after a power loss. Its repr says which, and nothing of what it holds."""

    seed: int
    index: int
    """With the record and the seed, this repeats it: `crash_image(record, seed, index)`."""
    story: str
    """What had just been done when the power went, and what of the rest was kept."""
    marks: tuple[object, ...] = field(repr=False)
    """What the scenario had marked by then."""
    files: dict[str, bytes] = field(repr=False)
    folders: tuple[str, ...] = field(repr=False)

    def restore(self, folder: str | os.PathLike[str]) -> Path:
        """Write the image into *folder*, which is made if it is missing, and return it."""
        root = Path(folder)
        root.mkdir(parents=True, exist_ok=True)
        for name in self.folders:
            (root / name).mkdir(exist_ok=True)
        for name, content in self.files.items():
            (root / name).write_bytes(content)
        return root


def crash_images(record: Record, *, seed: int, limit: int | None = None) -> Iterator[CrashImage]:
    """Yield different images of *record*: up to *limit*, or one of each kind for each step.

    Two images differ in what they hold or in what had been marked by then. The same record, seed and limit yield the same.
    """
    whole = len(record.steps) * len(KINDS)
    wanted = whole if limit is None else limit
    seen: set[int] = set()
    number = fruitless = 0
    while len(seen) < wanted and fruitless < (1 if limit is None else _FRUITLESS_MAX):
        # The first round is spread over the whole record, however long; those after it look for what is still missing.
        size = min(whole, max(wanted - len(seen), number and whole // _ROUNDS_TO_SEE_ALL + 1))
        chosen = sorted(_dice(seed, "round", number).sample(range(whole), size))
        before = len(seen)
        for image in _draw(record, seed, [number * whole + index for index in chosen]):
            key = hash((tuple(sorted(image.files.items())), image.folders, len(image.marks)))
            if key not in seen and len(seen) < wanted:
                seen.add(key)
                yield image
        number += 1
        fruitless = fruitless + 1 if len(seen) == before or limit is None else 0


def crash_image(record: Record, seed: int, index: int) -> CrashImage:
    """Return the one image that *seed* and *index* mean."""
    return next(_draw(record, seed, [index]))


def _draw(record: Record, seed: int, indices: Sequence[int]) -> Iterator[CrashImage]:
    """Yield the images of ascending *indices* of one round."""
    disk, taken = Durability(record), 0
    marks: list[object] = []
    for index in indices:
        position, kind = divmod(index % (len(record.steps) * len(KINDS)), len(KINDS))
        for step in record.steps[taken : position + 1]:
            disk.take(step)
            if isinstance(step, Marked):
                marks.append(step.fact)
        taken = position + 1
        yield _Draw(record, disk, KINDS[kind], _dice(seed, "image", index)).image(seed, index, position, tuple(marks))


def _dice(seed: int, what: str, number: int) -> Random:
    return Random(f"{seed} {what} {number}")  # noqa: S311 - dice that a seed repeats


class _Draw:
    """One throw: which of the pending steps were kept."""

    def __init__(self, record: Record, disk: Durability, kind: str, dice: Random) -> None:
        self._record = record
        self._disk = disk
        self._kind = kind
        self._dice = dice
        self._tells: list[str] = []

    def image(self, seed: int, index: int, position: int, marks: tuple[object, ...]) -> CrashImage:
        names = dict(self._disk.names)
        changes = self._choose(self._disk.pending)
        for change in changes:
            rename(change, names)
        if self._disk.pending:
            self._tells.append(f"{len(changes)} of {len(self._disk.pending)} names")
        pending = sorted(file for file, content in self._disk.files.items() if content.pending)
        torn = self._dice.choice(pending) if pending and self._kind == "torn" else None
        held = {file: self._content(file, content, tear=file == torn) for file, content in sorted(self._disk.files.items())}
        files, folders = self._reachable(names, held)
        what = "; ".join([self._kind, *self._tells])
        story = f"after step {position + 1} of {len(self._record.steps)} ({self._record.describe(position)}): {what}"
        return CrashImage(seed, index, story, marks, files, folders)

    def _content(self, file: int, content: Content, *, tear: bool) -> bytes:
        found = bytearray(content.durable)
        kept: list[Wrote | Cut] = self._choose(content.pending)
        told = f"{len(kept)} of {len(content.pending)} steps on {self._record.called[file]}"
        places = [place for place, step in enumerate(kept) if isinstance(step, Wrote) and tears(step)]
        if tear and places:
            place = self._dice.choice(places)
            torn = kept[place]
            assert isinstance(torn, Wrote)
            kept[place], how = self._tear(torn)
            told = f"{told}, number {place + 1} of them torn ({how})"
        for step in kept:
            apply(step, found)
        if content.pending:
            self._tells.append(told)
        return bytes(found)

    def _tear(self, write: Wrote) -> tuple[Wrote, str]:
        at = self._dice.choice(tears(write))
        head, tail = write.content[:at], write.content[at:]
        match self._dice.choice(("head", "tail", "zero tail")):
            case "head":
                return write._replace(content=head), f"its first {at} bytes"
            case "tail":
                return Wrote(write.file, write.offset + at, tail), f"all but its first {at} bytes"
            case _:
                return write._replace(content=head + bytes(len(tail))), f"zeros after its first {at} bytes"

    def _choose(self, pending: Sequence[T]) -> list[T]:
        kind = self._kind if self._kind != "torn" else self._dice.choice(("prefix", "subset"))
        match kind:
            case "all":
                return list(pending)
            case "none":
                return []
            case "prefix":
                return list(pending[: self._dice.randint(0, len(pending))])
            case _:
                share = self._dice.choice(_SHARES)
                return [step for step in pending if self._dice.random() < share]

    def _reachable(self, names: dict[str, int], held: dict[int, bytes]) -> tuple[dict[str, bytes], tuple[str, ...]]:
        """Return the files and folders that stand in folders that are there."""
        files: dict[str, bytes] = {}
        folders: list[str] = []
        for name, file in sorted(names.items()):  # a folder comes before what stands in it
            above = os.path.dirname(name)
            if above and above not in folders:
                continue
            if file in self._disk.folders:
                folders.append(name)
            else:
                files[name] = held.get(file, b"")
        return files, tuple(folders)
