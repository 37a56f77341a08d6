"""Which nodes of a level an edit can reach, and what they are cut into anew.

Within a stretch between two natural ends the rule is a recursion: the cuts form a tree in which the smallest draw is
the root. A window is a run of neighbouring nodes that stands for a whole part of that tree, before and after the edit;
then nothing outside of it can change. It grows until that is so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from freehold.schema.hashes import cut
from freehold.schema.limits import CUT_BELOW, LONE_NODE_ENTRIES_MAX, NODE_ENTRIES_MAX
from freehold.schema.nodes import Inner, Item, cut_nodes
from freehold.storage.levels import Levels, Place, name_of

_NATURAL = -1
"""The draw of a natural end, and of the ends of a level: nothing is before it."""
_NEVER = 2**32
"""A draw that is behind all others."""


@dataclass(frozen=True, slots=True)
class Step:
    """What an edit does to one level: nodes that go, nodes that come, or the whole level if it is one node now."""

    before: dict[str, Inner]
    gone: dict[str, None]
    nodes: list[Sequence[Item]]
    whole: list[Item] | None = None


@dataclass(frozen=True, slots=True)
class _Window:
    first: Place
    last: Place
    items: list[Item]  # as they are after the edit
    fewer: int  # how many there were more before
    reshaped: bool  # whether names came or went
    low: int  # the smallest draw of what came into it, and of the cuts within it


def merged(items: Sequence[Item], edits: Mapping[str, Item | None]) -> list[Item]:
    """Return a node's items, in order, after items were set or (None) removed."""
    found = dict(zip(map(name_of, items), items, strict=True))
    for name, item in edits.items():
        if item is None:
            found.pop(name, None)
        else:
            found[name] = item
    return sorted(found.values(), key=name_of)


def edit_level(levels: Levels, level: int, edits: Mapping[str, Item | None]) -> Step:
    """Return what *edits* do to a level that is not the top."""
    places: dict[Place, dict[str, Item | None]] = {}
    for name in sorted(edits):
        places.setdefault(levels.find(level, name), {})[name] = edits[name]
    windows: list[_Window] = []
    for place in places:  # in order, since the names were
        if windows and place <= windows[-1].last:
            continue
        window = _open(levels, level, place, places)
        while (side := _wanting(levels, level, window)) is not None:
            if side < window.first and windows and windows[-1].last == side:
                window = _join(levels, level, windows.pop(), window)
            elif side < window.first:
                window = _join(levels, level, _open(levels, level, side, places), window)
            else:
                window = _join(levels, level, window, _open(levels, level, side, places))
        windows.append(window)
    if sum(window.fewer for window in windows) > 0 and (whole := _if_lone(levels, windows)) is not None:
        return Step({}, {}, [], whole)
    olds = {inner.name: inner for window in windows for inner in map(levels.inner, _places(levels, window))}
    nodes = [node for window in windows for node in (cut_nodes(level, window.items) if window.reshaped else [window.items])]
    return Step(olds, dict.fromkeys(olds), nodes)


def _open(levels: Levels, level: int, place: Place, places: Mapping[Place, Mapping[str, Item | None]]) -> _Window:
    """Return the window of one node."""
    old = levels.node(place).items
    edits = places.get(place)
    if edits is None:
        return _Window(place, place, list(old), 0, reshaped=False, low=_NEVER)
    names = set(map(name_of, old))
    items = merged(old, edits)
    new = [name for name, item in edits.items() if item is not None and name not in names]
    if levels.after(place) is None and new and old[-1].name < items[-1].name:
        # The last one of a level is no place for a cut. It is now, if it is there still.
        new.append(old[-1].name)
    low = min((_draw(level, name) for name in new), default=_NEVER)
    reshaped = len(items) != len(old) or bool(new)
    return _Window(place, place, items, len(old) - len(items), reshaped, low)


def _wanting(levels: Levels, level: int, window: _Window) -> Place | None:
    """Return the neighbour that a window must take in, or None when it stands for itself."""
    if not window.reshaped:
        return None
    after, begin, end = levels.after(window.last), levels.name_before(window.first), levels.inner(window.last).name
    if after is not None and not (window.items and window.items[-1].name == end):
        return after  # what ended it has gone
    left = _NATURAL if begin is None else _draw(level, begin)
    right = _NATURAL if after is None else _draw(level, end)
    edge = max(left, right)
    # A draw within that is not behind both edges would be cut before one of them. And the deeper one of the edges was
    # cut because there was too much on both sides of it.
    if edge > _NATURAL and (window.low <= edge or (window.fewer > 0 and len(window.items) < NODE_ENTRIES_MAX)):
        return levels.before(window.first) if left > right else after
    return None


def _join(levels: Levels, level: int, one: _Window, other: _Window) -> _Window:
    edge = _draw(level, levels.inner(one.last).name)
    return _Window(
        one.first,
        other.last,
        one.items + other.items,
        one.fewer + other.fewer,
        one.reshaped or other.reshaped,
        min(one.low, other.low, edge),
    )


def _draw(level: int, name: str) -> int:
    draw = cut(level, name)
    return _NATURAL if draw < CUT_BELOW else draw


def _if_lone(levels: Levels, windows: Sequence[_Window]) -> list[Item] | None:
    """Return the whole level if it has no more than 64 items now; no more is read than it takes to know."""
    count = sum(len(window.items) for window in windows)
    if count > LONE_NODE_ENTRIES_MAX:
        return None
    for _ in _others(levels, windows):  # each has one at least
        count += 1
        if count > LONE_NODE_ENTRIES_MAX:
            return None
    items = {window.first: window.items for window in windows}
    for place in _others(levels, windows):
        items[place] = list(levels.node(place).items)
        count += len(items[place]) - 1
        if count > LONE_NODE_ENTRIES_MAX:
            return None
    return [item for place in sorted(items) for item in items[place]]


def _others(levels: Levels, windows: Sequence[_Window]) -> Iterator[Place]:
    """Yield the places outside of all windows, the nearest ones first."""
    place = levels.after(windows[-1].last)
    while place is not None:
        yield place
        place = levels.after(place)
    place = levels.before(windows[0].first)
    while place is not None:
        yield place
        place = levels.before(place)
    for one, other in pairwise(windows):
        place = levels.after(one.last)
        while place is not None and place < other.first:
            yield place
            place = levels.after(place)


def _places(levels: Levels, window: _Window) -> Iterator[Place]:
    place: Place | None = window.first
    while place is not None and place <= window.last:
        yield place
        place = levels.after(place)
