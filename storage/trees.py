"""Directories as trees of nodes: built whole, searched, walked in order, and edited at the cost of what changes.

A tree depends on its entries alone: whatever edits lead to them, in whatever order, give what `build` gives.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from freehold.schema.errors import PathRefused
from freehold.schema.limits import PATH_DEPTH_MAX, READ_AHEAD_NODES, TREE_BYTES_MAX
from freehold.schema.nodes import Directory, Entry, File, Inner, Item, Leaf, Node, Totals, is_fit, split, totals
from freehold.schema.paths import is_entry_name
from freehold.storage.levels import Levels, name_of, position
from freehold.storage.nodes import Nodes, unfit
from freehold.storage.objects import Objects
from freehold.storage.windows import edit_level, merged


def build(objects: Objects, entries: Iterable[Entry]) -> bytes:
    """Return the tree of a directory of *entries*, in any order, and keep its nodes. Raises as `edit` does."""
    items = sorted(entries, key=name_of)
    assert len({item.name for item in items}) == len(items)
    for item in items:
        _check(item)
    return _close(Nodes.over(objects), 0, items, set())[0]


def find(objects: Objects, tree: bytes, name: str) -> Entry | None:
    """Return the entry of that name, or None. Raises Damaged where a node on the way is not what it must be."""
    nodes = Nodes.over(objects)
    node = nodes.top(tree)
    while True:
        at = position(node.items, name)
        if at == len(node.items):
            return None
        if isinstance(node, Leaf):
            return node.items[at] if node.items[at].name == name else None
        node = nodes.child(node, node.items[at])


def measure(objects: Objects, tree: bytes) -> Totals:
    """Return what stands beneath a directory, as its top node says. Raises Damaged as `find` does."""
    return totals(Nodes.over(objects).top(tree).items)


def walk(objects: Objects, tree: bytes, start: str = "") -> Iterator[Entry]:
    """Yield the entries in the order of their names, from *start* on; no more than one node of each level is held, and a few unread ones.

    Raises Damaged where a node on the way is not what it must be, or a name is not after the one before it.
    """
    nodes = Nodes.over(objects)
    before = ""
    for leaf in _leaves(nodes, nodes.top(tree), start):
        items = leaf.items[position(leaf.items, start) :]
        if items and items[0].name <= before:
            raise unfit()
        yield from items
        before = items[-1].name if items else before


def _leaves(nodes: Nodes, node: Node, start: str) -> Iterator[Leaf]:
    """Yield the leaves in order, from the one that holds *start* on. Those of one parent are expected several at a time."""
    if isinstance(node, Leaf):
        yield node
        return
    for begun in range(position(node.items, start), len(node.items), READ_AHEAD_NODES):
        several = node.items[begun : begun + READ_AHEAD_NODES]
        if node.level == 1:
            nodes.expect([inner.child for inner in several])
        for inner in several:
            yield from _leaves(nodes, nodes.child(node, inner), start)


def edit(objects: Objects, tree: bytes, changes: Mapping[str, Entry | None]) -> tuple[bytes, Totals]:
    """Return a directory's tree, and what it holds, after entries were set or (None) removed; only new nodes are kept.

    At each level the nodes that change are cut anew, with as many of their neighbours as the rule makes depend on them.
    Removing what is not there changes nothing. Raises PathRefused where a path would become too deep, OSError with EFBIG
    where entries or bytes could not be counted any more, and Damaged where a node on the way is not what it must be.
    """
    for name, entry in changes.items():
        assert entry is None or entry.name == name
        _check(entry)
    nodes = Nodes.over(objects)
    levels = Levels(nodes, tree)
    edits: Mapping[str, Item | None] = changes
    for level in range(levels.top):
        step = edit_level(levels, level, edits)
        if step.whole is not None:
            return _close(nodes, level, step.whole, levels.known)
        edits = dict(step.gone)
        for node in step.nodes:
            inner = _keep(nodes, level, node, levels.known)
            edits[inner.name] = inner
        edits = {name: inner for name, inner in edits.items() if step.before.get(name) != inner}
        if not edits:
            return tree, measure(nodes, tree)
    return _close(nodes, levels.top, merged(levels.node(()).items, edits), levels.known)


def _close(nodes: Nodes, level: int, items: Sequence[Item], known: set[bytes]) -> tuple[bytes, Totals]:
    """Return the tree over a whole level, and what it holds: levels are added until one node is left."""
    while True:
        if level > 0 and len(items) == 1:
            (only,) = items
            assert isinstance(only, Inner)
            return only.child, Totals(only.entries, only.size, only.depth)
        cut = split(level, items)
        if len(cut) == 1:
            held = _count(items)
            return nodes.put_node(level, items, known), held
        items = [_keep(nodes, level, node, known) for node in cut]
        level += 1


def _keep(nodes: Nodes, level: int, items: Sequence[Item], known: set[bytes]) -> Inner:
    entries, size, depth = _count(items)
    return Inner(items[-1].name, nodes.put_node(level, items, known), entries, size, depth)


def _count(items: Sequence[Item]) -> Totals:
    held = totals(items)
    if max(held.entries, held.size) > TREE_BYTES_MAX:  # a folder that is copied into itself again and again doubles each time
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return held


def _check(entry: Entry | None) -> None:
    if isinstance(entry, Directory) and entry.depth >= PATH_DEPTH_MAX:
        raise PathRefused(f"a path in a workspace has at most {PATH_DEPTH_MAX} names; nothing was changed")
    assert entry is None or (is_entry_name(entry.name) and is_fit(entry))
    assert not isinstance(entry, File | Directory) or 0 <= entry.mode <= 0o777
