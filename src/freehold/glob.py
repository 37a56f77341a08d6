"""Finding paths by a pattern, as pathlib's glob does: `*`, `?` and `[…]` inside a name, `**` for any number of directories.

Links are followed where a name of the pattern stands for one, and not by `**`. At its end `**` finds directories alone, as
pathlib's does before Python 3.13, whatever Python this is.
"""

from __future__ import annotations

import re
from fnmatch import translate
from typing import NamedTuple

from freehold.schema.errors import PathRefused
from freehold.schema.nodes import Directory, Link
from freehold.schema.paths import Parts, text
from freehold.storage.folder import Folder
from freehold.storage.sight import Found, Sight

_ANY = "**"
_Step = re.Pattern[str] | None


class Place(NamedTuple):
    """A path on the way, what stands there (None: the top), and where in the pattern it may be: one bit for each step."""

    way: Parts
    entry: Found | None
    live: int


class Pattern:
    """A pattern, and how far a path has come in it. Raises PathRefused for what is no pattern of a relative path."""

    def __init__(self, pattern: str) -> None:
        if not isinstance(pattern, str) or not pattern or pattern.startswith("/"):
            raise PathRefused("a pattern is text that is not empty and does not begin with a slash; nothing was changed")
        steps = [step for step in pattern.split("/") if step not in ("", ".")]
        if ".." in steps:
            raise PathRefused("a pattern has no '..' in it; nothing was changed")
        self._folders_only = pattern.endswith("/") or steps[-1:] == [_ANY]
        self._steps: list[_Step] = [None if step == _ANY else re.compile(translate(step)) for step in steps]
        self._end = 1 << len(steps)
        self.start = Place((), None, self._closed(1))

    def step(self, sight: Sight, place: Place) -> tuple[str | None, list[Place]]:
        """Return the path of *place* if it matches, and the places in it at which anything still can, in the order of their names."""
        way, entry, live = place
        is_folder = _is_folder(sight, way, sight.top if entry is None else entry)
        found = text(way) if live & self._end and (is_folder or not self._folders_only) else None
        if not is_folder or live == self._end:
            return found, []
        inside = [Place((*way, name), child, self._next(live, name, child)) for name, child in sight.children(way)]
        return found, [each for each in inside if each.live]

    def _next(self, live: int, name: str, child: Found) -> int:
        found = 0
        for number, step in enumerate(self._steps):
            if live >> number & 1:
                if step is None:
                    found |= 0 if isinstance(child, Link) else 1 << number
                elif step.fullmatch(name):
                    found |= 2 << number
        return self._closed(found)

    def _closed(self, live: int) -> int:
        """Return *live* with what `**` adds to it, which stands for no directory, too."""
        for number, step in enumerate(self._steps):
            if step is None and live >> number & 1:
                live |= 2 << number
        return live


def _is_folder(sight: Sight, way: Parts, entry: Found) -> bool:
    if isinstance(entry, Link):
        try:
            entry = sight.get(way)
        except (OSError, PathRefused):
            return False  # it leads nowhere, or out
    return isinstance(entry, Directory | Folder)
