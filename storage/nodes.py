"""Directory nodes by their hash, decoded: the last ones that were read or written are kept at hand."""

from __future__ import annotations

from collections.abc import Sequence

from freehold.schema.errors import Damaged
from freehold.schema.hashes import ObjectKind
from freehold.schema.limits import NODE_CACHE_BYTES_MAX
from freehold.schema.nodes import Branch, Inner, Item, Leaf, Node, decode, make_node
from freehold.schema.roots import Object
from freehold.storage.objects import Objects


class Nodes:
    """The nodes among *objects*; itself a place where objects are kept, so it can stand for them everywhere.

    A node never changes under its hash, so what is at hand is never stale; but it may be gone: whoever rolls a transaction
    back must `forget` what was read or written in it.
    """

    def __init__(self, objects: Objects, bytes_max: int = NODE_CACHE_BYTES_MAX) -> None:
        self._objects = objects
        self._bytes_max = bytes_max
        self._bytes = 0
        self._kept: dict[bytes, tuple[Node, int]] = {}

    @classmethod
    def over(cls, objects: Objects) -> Nodes:
        """Return *objects* if they keep nodes at hand already, else new nodes over them."""
        return objects if isinstance(objects, cls) else cls(objects)

    def get(self, hash_: bytes, kind: ObjectKind) -> bytes:
        """Return the plain content of a piece; see `Objects`."""
        return self._objects.get(hash_, kind)

    def put(self, piece: Object) -> None:
        """Keep *piece*; see `Objects`."""
        self._objects.put(piece)

    def expect(self, hashes: Sequence[bytes], /) -> None:
        """Be told which nodes are asked for next; see `Objects`."""
        if unread := [hash_ for hash_ in hashes if hash_ not in self._kept]:
            self._objects.expect(unread)

    def node(self, hash_: bytes) -> Node:
        """Return a node. Raises Damaged when it is missing or not written as the format says."""
        if (found := self._kept.pop(hash_, None)) is None:
            raw = self._objects.get(hash_, ObjectKind.TREE)
            found = decode(raw), len(raw)
            self._bytes += len(raw)
        self._keep(hash_, found)
        return found[0]

    def top(self, tree: bytes) -> Node:
        """Return the top node of a directory. Raises Damaged as `node` does, and where it names a single child."""
        node = self.node(tree)
        if isinstance(node, Branch) and len(node.items) == 1:
            raise unfit()
        return node

    def child(self, parent: Branch, inner: Inner) -> Node:
        """Return a node as its parent names it. Raises Damaged where its level or its last name is another."""
        node = self.node(inner.child)
        if node.level != parent.level - 1 or not node.items or node.items[-1].name != inner.name:
            raise unfit()
        return node

    def put_node(self, level: int, items: Sequence[Item], known: set[bytes]) -> bytes:
        """Keep a node, unless it is one of those that are *known* to be there, and return its hash."""
        piece = make_node(level, items)
        if piece.hash not in known:
            self._objects.put(piece)
            if piece.hash not in self._kept:
                node = Branch(level, tuple(items)) if level else Leaf(0, tuple(items))  # type: ignore[arg-type]
                self._bytes += len(piece.data)
                self._keep(piece.hash, (node, len(piece.data)))
        return piece.hash

    def forget(self) -> None:
        """Drop everything at hand."""
        self._kept.clear()
        self._bytes = 0

    def _keep(self, hash_: bytes, found: tuple[Node, int]) -> None:
        self._kept[hash_] = found
        while self._bytes > self._bytes_max and len(self._kept) > 1:
            _, size = self._kept.pop(next(iter(self._kept)))  # the one that was asked for longest ago
            self._bytes -= size


def unfit() -> Damaged:
    """Return what is said of a directory whose nodes are not those of one directory."""
    return Damaged("a directory's nodes are not all there, or do not fit together; the file was left unchanged", rule="tree")
