"""Finding paths by a pattern, as pathlib's glob does: `*`, `?` and `[…]` inside a name, `**` for any number of directories.

Links are followed where a name of the pattern stands for one, and not by `**`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import translate

from freehold.schema.errors import PathRefused
from freehold.schema.nodes import Directory, Link
from freehold.schema.paths import Parts, text
from freehold.storage.folder import Folder
from freehold.storage.sight import Found, Sight

_ANY = "**"
_Step = re.Pattern[str] | None


def matching(sight: Sight, pattern: str) -> list[str]:
    """Return the paths that match, in the order of their names. Raises PathRefused for what is no pattern of a relative path."""
    if not isinstance(pattern, str) or not pattern or pattern.startswith("/"):
        raise PathRefused("a pattern is text that is not empty and does not begin with a slash; nothing was changed")
    steps = [step for step in pattern.split("/") if step not in ("", ".")]
    if ".." in steps:
        raise PathRefused("a pattern has no '..' in it; nothing was changed")
    steps = [step for step, before in zip(steps, ["", *steps], strict=False) if not step == before == _ANY]
    folders_only = pattern.endswith("/") or steps[-1:] == [_ANY]
    compiled: list[_Step] = [None if step == _ANY else re.compile(translate(step)) for step in steps]
    found = {way for way, entry in _below(sight, (), sight.top, compiled) if not folders_only or _is_folder(sight, way, entry)}
    return [text(way) for way in sorted(found)]


def _below(sight: Sight, way: Parts, entry: Found, steps: list[_Step]) -> Iterator[tuple[Parts, Found]]:
    if not steps:
        yield way, entry
        return
    if not _is_folder(sight, way, entry):
        return
    step, rest = steps[0], steps[1:]
    if step is None:
        yield from _below(sight, way, entry, rest)
    for name, child in sight.children(way):
        if step is None:
            if not isinstance(child, Link):
                yield from _below(sight, (*way, name), child, steps)
        elif step.fullmatch(name):
            yield from _below(sight, (*way, name), child, rest)


def _is_folder(sight: Sight, way: Parts, entry: Found) -> bool:
    if isinstance(entry, Link):
        try:
            entry = sight.get(way)
        except (OSError, PathRefused):
            return False  # it leads nowhere, or out
    return isinstance(entry, Directory | Folder)
