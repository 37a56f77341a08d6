"""A directory seen level by level: its nodes in order, each found from its neighbours without reading the level."""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter

from freehold.schema.nodes import Branch, Inner, Item, Node
from freehold.storage.nodes import Nodes

Place = tuple[int, ...]
"""Where a node stands: the way down from the top, `()`. Places of one level are in the order of their nodes."""

name_of = attrgetter("name")


class Levels:
    """The levels of one directory, for as long as it takes to edit it: what was read stays at hand."""

    def __init__(self, nodes: Nodes, tree: bytes) -> None:
        self._nodes = nodes
        self._read: dict[Place, Node] = {(): nodes.top(tree)}
        self.top = self._read[()].level
        self.known = {tree}
        """Hashes of the nodes that were read: they are there already."""

    def node(self, place: Place) -> Node:
        """Return the node at *place*. Raises Damaged as `Nodes.child` does."""
        if (found := self._read.get(place)) is None:
            inner = self.inner(place)
            found = self._read[place] = self._nodes.child(self._parent(place), inner)
            self.known.add(inner.child)
        return found

    def inner(self, place: Place) -> Inner:
        """Return what the level above says of the node at *place*, which is not the top."""
        return self._parent(place).items[place[-1]]

    def find(self, level: int, name: str) -> Place:
        """Return the node of *level* that holds *name*, or would: the first whose last name is not before it, else the last one."""
        place: Place = ()
        for _ in range(self.top - level):
            items = self.node(place).items
            place += (min(position(items, name), len(items) - 1),)
        return place

    def after(self, place: Place) -> Place | None:
        """Return the next node of the same level, or None at its end."""
        if not place:
            return None
        if place[-1] + 1 < len(self._parent(place).items):
            return (*place[:-1], place[-1] + 1)
        above = self.after(place[:-1])
        return None if above is None else (*above, 0)

    def before(self, place: Place) -> Place | None:
        """Return the node before it of the same level, or None at its beginning."""
        if not place:
            return None
        if place[-1] > 0:
            return (*place[:-1], place[-1] - 1)
        above = self.before(place[:-1])
        return None if above is None else (*above, len(self.node(above).items) - 1)

    def name_before(self, place: Place) -> str | None:
        """Return the last name of the node before it, or None at the beginning of its level; that node is not read."""
        while place and place[-1] == 0:
            place = place[:-1]
        return self.inner((*place[:-1], place[-1] - 1)).name if place else None

    def _parent(self, place: Place) -> Branch:
        parent = self.node(place[:-1])
        assert isinstance(parent, Branch)
        return parent


def position(items: tuple[Item, ...], name: str) -> int:
    """Return where *name* stands in a node, or would."""
    return bisect_left(items, name, key=name_of)
