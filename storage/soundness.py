"""Whether a whole tree is the one that its entries make: every node, every level, every directory beneath."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from freehold.schema.errors import Damaged
from freehold.schema.hashes import cut
from freehold.schema.limits import (
    CHECKED_NODES_MAX,
    CUT_BELOW,
    ENTRY_NAME_BYTES_MAX,
    INLINE_BYTES_MAX,
    LONE_NODE_ENTRIES_MAX,
    PATH_BYTES_MAX,
)
from freehold.schema.nodes import Branch, Directory, File, Inner, Leaf, Node, Totals, cut_nodes, split, totals
from freehold.storage.nodes import Nodes, unfit
from freehold.storage.objects import Objects
from freehold.storage.trees import walk

CheckFile = Callable[[File], None]
"""Looks at the content of a file that stands in objects of its own, and raises Damaged where it is not what it must be."""


def check_tree(objects: Objects, tree: bytes, check_file: CheckFile) -> Totals:
    """Check one tree and return what it holds; see `Soundness.check`."""
    return Soundness(objects, check_file).check(tree)


class _Piece(NamedTuple):
    """What is remembered of a node."""

    first: str
    last: str
    items: int
    held: Totals
    is_cut: bool  # a name other than its last would end a node


class Soundness:
    """Checks trees, one after the other. What was seen in one is not read again in the next."""

    def __init__(self, objects: Objects, check_file: CheckFile) -> None:
        self._nodes = Nodes.over(objects)
        self._check_file = check_file
        self._leaves: dict[bytes, _Piece] = {}
        self._trees: dict[bytes, Totals] = {}
        self._longest: dict[bytes, int] = {}
        self._todo: list[tuple[bytes, Totals]] = []

    def check(self, tree: bytes) -> Totals:
        """Return what a tree holds.

        Raises Damaged (rule `tree`) where a node is missing or not written as the format says, a level is not cut where the
        rule says, names are not in order, totals are not those of what stands beneath, or a path is too long; and what *check_file* raises.
        """
        if len(self._leaves) + len(self._trees) + len(self._longest) > CHECKED_NODES_MAX:
            self._forget()
        try:
            held = self._directory(tree)
            while self._todo:
                # Each is less deep than the one it stands in, by what the latter says of itself: there is no way round.
                beneath, said = self._todo.pop()
                if self._directory(beneath) != said:
                    raise unfit()
            # Only beneath many levels a path can become too long; then it is looked for.
            if held.depth * (ENTRY_NAME_BYTES_MAX + 1) > PATH_BYTES_MAX and self._path_bytes(tree) > PATH_BYTES_MAX:
                raise unfit()
        except BaseException:
            self._forget()  # what was seen is not seen to its end
            raise
        return held

    def _forget(self) -> None:
        self._leaves.clear()
        self._trees.clear()
        self._longest.clear()
        self._todo.clear()

    def _path_bytes(self, tree: bytes) -> int:
        """Return how long the longest path in a tree is, which is one: each directory in it once, those beneath it first."""
        todo = [tree]
        while todo:
            longest, unknown = 0, []
            for entry in walk(self._nodes, todo[-1]) if todo[-1] not in self._longest else ():
                beneath = 0
                if isinstance(entry, Directory) and entry.entries:
                    if entry.tree not in self._longest:
                        unknown.append(entry.tree)
                        continue
                    beneath = 1 + self._longest[entry.tree]
                longest = max(longest, len(entry.name.encode()) + beneath)
            if not unknown:
                self._longest.setdefault(todo.pop(), longest)
            todo += unknown
        return self._longest[tree]

    def _directory(self, tree: bytes) -> Totals:
        if (held := self._trees.get(tree)) is None:
            top = self._node(tree)
            if isinstance(top, Branch):
                if len(top.items) == 1:
                    raise unfit()
                levels = [_Level(level, self._names) for level in range(top.level)]
                self._branch(top, levels)
                for level in levels:
                    level.end()
            else:
                self._entries(top)
            if len(split(top.level, top.items)) > 1:
                raise unfit()
            held = self._trees[tree] = totals(top.items)
        return held

    def _branch(self, branch: Branch, levels: list[_Level]) -> None:
        for inner in branch.items:
            piece = self._leaves.get(inner.child) if branch.level == 1 else None
            if piece is None:
                node = self._node(inner.child)
                if node.level != branch.level - 1 or not node.items:
                    raise unfit()
                piece = _piece(node)
                if isinstance(node, Branch):
                    self._branch(node, levels)
                else:
                    self._entries(node)
                    self._leaves[inner.child] = piece
            if piece.last != inner.name or piece.held != (inner.entries, inner.size, inner.depth):
                raise unfit()
            levels[branch.level - 1].add(inner, piece)

    def _entries(self, leaf: Leaf) -> None:
        for entry in leaf.items:
            if isinstance(entry, Directory):
                self._todo.append((entry.tree, Totals(entry.entries, entry.size, entry.depth)))
            elif isinstance(entry, File) and entry.size > INLINE_BYTES_MAX:
                self._check_file(entry)

    def _node(self, hash_: bytes) -> Node:
        try:
            return self._nodes.node(hash_)
        except Damaged:
            raise unfit() from None

    def _names(self, inner: Inner) -> Node:
        return self._node(inner.child)


class _Level:
    """One level below the top, as its nodes come by in order."""

    def __init__(self, level: int, read: Callable[[Inner], Node]) -> None:
        self._level = level
        self._read = read
        self._count = 0
        self._before = ""
        self._stretch: list[tuple[Inner, _Piece]] = []

    def add(self, inner: Inner, piece: _Piece) -> None:
        """Take the next node."""
        if piece.first <= self._before or piece.is_cut:
            raise unfit()
        self._before = piece.last
        self._count += piece.items
        self._stretch.append((inner, piece))
        if cut(self._level, piece.last) < CUT_BELOW:
            self._close()

    def end(self) -> None:
        """Look back at the level when all its nodes have come."""
        self._close()
        if self._count <= LONE_NODE_ENTRIES_MAX:
            raise unfit()

    def _close(self) -> None:
        """Look at the nodes between two natural ends. One alone is right: it is not too large, and nothing in it is an end."""
        if len(self._stretch) > 1:
            items = [item for inner, _ in self._stretch for item in self._read(inner).items]
            if [len(node) for node in cut_nodes(self._level, items)] != [piece.items for _, piece in self._stretch]:
                raise unfit()
        self._stretch = []


def _piece(node: Node) -> _Piece:
    items = node.items
    is_cut = any(cut(node.level, item.name) < CUT_BELOW for item in items[:-1])
    return _Piece(items[0].name, items[-1].name, len(items), totals(items), is_cut)
