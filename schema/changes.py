"""What is different between two moments of a workspace, path by path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from freehold.schema.nodes import Directory, Entry, File, Link
from freehold.schema.paths import Parts, text

ChangeKind = Literal["added", "removed", "changed", "renamed", "mode"]
Found = tuple[Parts, Entry]
"""An entry and where it stands."""


class Change(Struct, frozen=True):
    """One path that is different.

    `before` and `after` say where it stands before and after: None where it does not, equal unless it was renamed; `path`
    is the one after, or where there is none the one before. `changed` is other content, or a file for a link or a
    link for a file; or, where there are more changes than may be told and only the top is, a directory in which anything is
    different. `mode` is the mode of a file, and nothing else of it, or of a directory, whatever is different in it. A
    directory that is no longer empty, or is now, is no change by itself: what came or went in it is.
    """

    path: str
    kind: ChangeKind
    before: str | None
    after: str | None


def added(parts: Parts) -> Change:
    """Return the change that something stands where nothing stood."""
    return Change(text(parts), "added", None, text(parts))


def removed(parts: Parts) -> Change:
    """Return the change that nothing stands where something stood."""
    return Change(text(parts), "removed", text(parts), None)


def renamed(before: Parts, after: Parts) -> Change:
    """Return the change that what stood at *before* stands, the same, at *after*."""
    return Change(text(after), "renamed", text(before), text(after))


def altered(parts: Parts, before: Entry, after: Entry) -> Change:
    """Return the change of a file or link into another one under the same path, or of a directory's mode."""
    same = isinstance(before, Directory) or (
        isinstance(before, File) and isinstance(after, File) and (before.size, before.content) == (after.size, after.content)
    )
    return Change(text(parts), "mode" if same else "changed", text(parts), text(parts))


def listed(changes: Iterable[Change]) -> list[Change]:
    """Return changes in the order of their paths; what went from a path before what came there."""
    return sorted(changes, key=lambda change: (change.path, change.kind != "removed"))


def paired(gone: Iterable[Found], come: Iterable[Found]) -> list[Change]:
    """Return files, links and empty directories that went and came as changes.

    A file or link that went and one that came are one renamed thing if they are the same but for their paths and
    not empty; where several are the same they are paired in the order of their paths.
    """
    found: list[Change] = []
    waiting: dict[Entry, list[Parts]] = {}
    for parts, entry in sorted(gone, key=_by_path, reverse=True):
        if (key := _sameness(entry)) is None:
            found.append(removed(parts))
        else:
            waiting.setdefault(key, []).append(parts)
    for parts, entry in sorted(come, key=_by_path):
        key = _sameness(entry)
        found.append(renamed(waiting[key].pop(), parts) if key is not None and waiting.get(key) else added(parts))
    return found + [removed(parts) for several in waiting.values() for parts in several]


def _by_path(found: Found) -> str:
    return text(found[0])


def _sameness(entry: Entry) -> Entry | None:
    """Return what is equal for entries that could be one and the same under two names."""
    if isinstance(entry, File):
        return File("", entry.mode, entry.size, entry.content) if entry.size else None
    return Link("", entry.target) if isinstance(entry, Link) else None
