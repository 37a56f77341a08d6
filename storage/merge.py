"""Bringing changes that were made on an older root to the one that is current: only where nothing they rest on has changed.

What they rest on was noted while they were made: each path that was looked at, and how closely.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from freehold.schema.nodes import Directory
from freehold.schema.paths import Parts, fold
from freehold.storage.difference import differing
from freehold.storage.folder import Folder, Kept
from freehold.storage.sight import Sight, Touch
from freehold.storage.workspace import Workspace


def conflicts(kept: Kept, before: bytes, now: bytes, touched: Mapping[Parts, Touch]) -> Iterator[Parts]:
    """Yield the paths of *touched* that are not in the tree *now* what they were in the tree *before*."""
    one, other = Sight(kept, before), Sight(kept, now)
    newcomers: dict[Parts, set[str] | None] = {}
    for way, touch in touched.items():
        if any(_seen(one, way, each) != _seen(other, way, each) for each in touch if each is not Touch.NAME):
            yield way
        elif Touch.NAME in touch:
            above = way[:-1]
            if above not in newcomers:
                newcomers[above] = _newcomers(kept, one, other, above)
            names = newcomers[above]
            if names is None or fold(way[-1]) in names:
                yield way


def replay(onto: Workspace, changed: Folder, way: Parts = ()) -> None:
    """Make the changes of *changed*, a directory that is still where it was, in another workspace that has it too."""
    folder = onto.opened(way)
    if changed.mode != changed.mode_before:
        folder.mode = changed.mode
    for name, change in changed.changes.items():
        if isinstance(change, Folder) and change.in_place:
            replay(onto, change, (*way, name))
        else:
            folder.put(name, change)


def _seen(sight: Sight, way: Parts, touch: Touch) -> Any:
    found = sight.at(way)
    if found is None:
        return _end(sight, way)
    if not isinstance(found, Directory | Folder):
        return found
    if touch is Touch.LISTING:
        return [(name, type(entry)) for name, entry in sight.children(way)]
    if touch is Touch.WHOLE:
        return found.mode, found.tree
    return found.mode


def _end(sight: Sight, way: Parts) -> tuple[Parts, Any] | None:
    """Return the link or file on a way at which nothing stands, and where it is: a path may lead on from there."""
    for depth in range(len(way) - 1, 0, -1):
        if (found := sight.at(way[:depth])) is not None:
            return None if isinstance(found, Directory | Folder) else (way[:depth], found)
    return None


def _newcomers(kept: Kept, one: Sight, other: Sight, way: Parts) -> set[str] | None:
    """Return the names that came into a directory, as a system that ignores case has them; None where it is not there any more."""
    before, now = one.at(way), other.at(way)
    if not isinstance(before, Directory | Folder):
        return set()  # it is new, and only there if nobody else has made it
    if not isinstance(now, Directory | Folder):
        return None
    return {fold(after.name) for found, after in differing(kept, before.tree, now.tree) if found is None and after is not None}
