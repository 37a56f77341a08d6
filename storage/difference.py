"""What is different between two trees, at the cost of what is different: equal nodes and equal directories are not read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush

from freehold.schema.changes import Change, Found, added, altered, listed, paired, removed, renamed
from freehold.schema.hashes import ObjectKind
from freehold.schema.limits import CHANGES_TOLD_MAX, COMPARED_NODES_MAX
from freehold.schema.nodes import Branch, Directory, Entry, Inner, Item, Node
from freehold.schema.paths import Parts, text
from freehold.schema.roots import Object, tree_of
from freehold.storage.nodes import Nodes
from freehold.storage.objects import Objects
from freehold.storage.trees import walk


def changes(objects: Objects, old: bytes, new: bytes) -> list[Change]:
    """Return the changes that lead from one tree to another, in the order of their paths.

    A directory that came or went is told by every file, link and empty directory in it, or as one renamed thing where the
    same directory went or came elsewhere. Where that were more changes than may be told, only the entries of the top are
    told, each as a whole. Raises Damaged where a node that has to be read is not what it must be.
    """
    nodes = Nodes.over(objects)
    try:
        found = _each(nodes, old, new)
        _check_count(len(found))
        return listed(found)
    except _TooMany:
        return listed(_whole(nodes, old, new))


class _TooMany(Exception):
    """There are more changes than may be told."""


def _check_count(changes: int) -> None:
    if changes > CHANGES_TOLD_MAX:
        raise _TooMany


def _whole(nodes: Nodes, old: bytes, new: bytes) -> Iterator[Change]:
    """Yield the changes of the entries of two directories, whatever is in them."""
    for before, after in differing(nodes, old, new):
        if before is not None and after is not None:
            yield Change(after.name, "changed", before.name, after.name)
        elif after is not None:
            yield added((after.name,))
        elif before is not None:
            yield removed((before.name,))


def _each(nodes: Nodes, old: bytes, new: bytes) -> list[Change]:
    found: list[Change] = []
    gone: list[Found] = []
    come: list[Found] = []
    todo: list[tuple[Parts, bytes, bytes]] = [((), old, new)]
    while todo:
        _check_count(len(found) + len(todo) + max(len(gone), len(come)))  # one of each side may be one renamed thing
        above, one, other = todo.pop()
        for before, after in differing(nodes, one, other):
            if isinstance(before, Directory) and isinstance(after, Directory):
                if before.mode != after.mode:
                    found.append(altered((*above, after.name), before, after))
                todo.append(((*above, after.name), before.tree, after.tree))
            elif before is None or after is None or isinstance(before, Directory) or isinstance(after, Directory):
                gone += [] if before is None else [((*above, before.name), before)]
                come += [] if after is None else [((*above, after.name), after)]
            else:
                found.append(altered((*above, after.name), before, after))
    return found + _moved(nodes, gone, come)


def few_changes(objects: Objects, old: bytes, new: bytes) -> list[Change] | None:
    """Return the changes that lead from one root to another; None where more nodes have to be read than one turn should take.

    Raises Damaged as `changes` does.
    """
    few = _Few(objects)
    try:
        return changes(few, *(tree_of(objects.get(root, ObjectKind.ROOT)) for root in (old, new)))
    except _TooFar:
        return None


def _moved(nodes: Nodes, gone: Iterable[Found], come: Iterable[Found]) -> list[Change]:
    """Return the changes of what went and what came; directories are opened only if the same one is not on the other side."""
    found: list[Change] = []
    small: tuple[list[Found], list[Found]] = ([], [])
    # The largest first: what is in a directory is smaller than it, so when one's turn comes all that could be the same are here.
    full: list[tuple[int, bytes, int, int, str, Parts]] = []
    waiting = [0, 0]

    def put(side: int, parts: Parts, entry: Entry) -> None:
        if isinstance(entry, Directory) and entry.entries:
            heappush(full, (-entry.entries, entry.tree, entry.mode, side, text(parts), parts))
            waiting[side] += 1
        else:
            small[side].append((parts, entry))

    for side, entries in enumerate((gone, come)):
        for parts, entry in entries:
            put(side, parts, entry)
    while full:
        key = full[0][:3]
        same: tuple[list[Parts], list[Parts]] = ([], [])
        while full and full[0][:3] == key:
            *_, side, _, parts = heappop(full)
            same[side].append(parts)
            waiting[side] -= 1
        pairs = min(map(len, same))
        found += map(renamed, same[0][:pairs], same[1][:pairs])
        for side, rest in enumerate(same):
            for parts in rest[pairs:]:
                _check_count(len(found) + max(waiting[each] + len(small[each]) for each in (0, 1)))
                for entry in walk(nodes, key[1]):
                    put(side, (*parts, entry.name), entry)
    return found + paired(*small)


def differing(nodes: Nodes, one: bytes, other: bytes) -> Iterator[tuple[Entry | None, Entry | None]]:
    """Yield the entries of two directories that are not equal, side by side where they have one name."""
    if one == other:
        return
    nodes.expect((one, other))
    before, after = _Cursor(nodes, one), _Cursor(nodes, other)
    while before.item is not None or after.item is not None:
        mine, theirs = before.item, after.item
        if mine == theirs:
            # Both stand behind the same name. So what follows is the same, however far, and wherever their nodes begin.
            same = before.equal(after)
            before.skip(same)
            after.skip(same)
        elif (level := max(before.level, after.level)) > 0:
            deep = [cursor for cursor in (before, after) if cursor.level == level]
            nodes.expect([cursor.inner.child for cursor in deep])
            for cursor in deep:
                cursor.open()
        elif theirs is None or (mine is not None and mine.name < theirs.name):
            assert mine is not None
            assert not isinstance(mine, Inner)
            yield mine, None
            before.skip()
        elif mine is None or theirs.name < mine.name:
            assert not isinstance(theirs, Inner)
            yield None, theirs
            after.skip()
        else:
            assert not isinstance(mine, Inner)
            assert not isinstance(theirs, Inner)
            yield mine, theirs
            before.skip()
            after.skip()


class _Cursor:
    """A way through a directory, in order, that can pass whole nodes by."""

    def __init__(self, nodes: Nodes, tree: bytes) -> None:
        self._nodes = nodes
        self._above: list[tuple[Node, int]] = []
        self._stand(nodes.top(tree), 0)

    def skip(self, count: int = 1) -> None:
        """Pass by what it stands at, or by as many items of that node."""
        self._stand(self._node, self._at + count)

    def equal(self, other: _Cursor) -> int:
        """Return how many items of its node, from the one that it stands at on, are those that *other* stands at."""
        mine, theirs = self._node.items[self._at :], other._node.items[other._at :]
        differ = (count for count, pair in enumerate(zip(mine, theirs, strict=False)) if pair[0] != pair[1])
        return next(differ, min(len(mine), len(theirs)))

    @property
    def inner(self) -> Inner:
        """What it stands at, which is a node of the level below."""
        assert isinstance(self.item, Inner)
        return self.item

    def open(self) -> None:
        """Stand at the first of what it stands at."""
        parent = self._node
        assert isinstance(parent, Branch)
        self._above.append((parent, self._at + 1))
        self._stand(self._nodes.child(parent, self.inner), 0)

    def _stand(self, node: Node, at: int) -> None:
        while at == len(node.items) and self._above:
            node, at = self._above.pop()
        self._node, self._at = node, at
        self.item: Item | None = node.items[at] if at < len(node.items) else None
        self.level = -1 if self.item is None else node.level


class _TooFar(Exception):
    """More was to be read than was allowed."""


class _Few:
    """The first of the pieces among *objects* that are asked for; then _TooFar."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._left = COMPARED_NODES_MAX

    def get(self, hash_: bytes, kind: ObjectKind) -> bytes:
        if self._left == 0:
            raise _TooFar
        self._left -= 1
        return self._objects.get(hash_, kind)

    def put(self, piece: Object) -> None:
        self._objects.put(piece)

    def expect(self, hashes: Sequence[bytes], /) -> None:
        self._objects.expect(hashes)
