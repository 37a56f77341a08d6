"""Objects in a real table that count what is asked of them, and directories to put there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import apsw
import msgspec

from freehold.schema.ddl import statements
from freehold.schema.hashes import ObjectKind
from freehold.schema.nodes import Branch, Directory, Entry, File, Inner, Item, Link, decode, totals
from freehold.schema.roots import EMPTY_TREE, Object, make_object
from freehold.storage.objects import StoredObjects
from freehold.storage.trees import build, measure

Folder = Mapping[str, "bytes | str | Folder | Entry"]
"""A directory: bytes are a file, a text is a link."""


class Counted:
    """The objects of a database, and which were read, put and expected since the last `forget`."""

    def __init__(self, db: apsw.Connection) -> None:
        self._stored = StoredObjects(db)
        self.read: list[bytes] = []
        self.written: list[Object] = []
        self.expected: list[list[bytes]] = []

    def get(self, hash_: bytes, kind: ObjectKind) -> bytes:
        """Return the plain content of a piece."""
        self.read.append(hash_)
        return self._stored.get(hash_, kind)

    def put(self, piece: Object) -> None:
        """Keep a piece."""
        self.written.append(piece)
        self._stored.put(piece)

    def expect(self, hashes: Sequence[bytes], /) -> None:
        """Note it."""
        self.expected.append(list(hashes))

    def forget(self) -> None:
        """Count from nothing."""
        self.read, self.written, self.expected = [], [], []


@contextmanager
def counted() -> Iterator[Counted]:
    """Open a database with our tables and, as in every run, the empty directory; and count."""
    db = apsw.Connection(":memory:")
    try:
        db.execute(statements())
        objects = Counted(db)
        objects.put(EMPTY_TREE)
        objects.forget()
        yield objects
    finally:
        db.close()


def plain(name: str, content: bytes = b"", mode: int = 0o644) -> File:
    """Return a small file."""
    return File(name, mode, len(content), content)


def folder(objects: Counted, content: Folder) -> bytes:
    """Return the tree of a directory, and keep it."""
    return build(objects, [entry(objects, name, what) for name, what in content.items()])


def entry(objects: Counted, name: str, what: bytes | str | Folder | Entry) -> Entry:
    """Return one entry of a directory, and keep what is beneath it."""
    match what:
        case bytes():
            return plain(name, what)
        case str():
            return Link(name, what)
        case File() | Link() | Directory():
            return what
        case _:
            tree = folder(objects, what)
            return Directory(name, 0o755, tree, *measure(objects, tree))


def reachable(objects: Counted, tree: bytes) -> set[bytes]:
    """Return the nodes of one directory, without those of the directories in it."""
    node = decode(objects.get(tree, ObjectKind.TREE))
    found = {tree}
    if isinstance(node, Branch):
        for inner in node.items:
            found |= reachable(objects, inner.child)
    return found


def forged(objects: Counted, level: int, items: Iterable[Item]) -> Inner:
    """Keep a node as it is given, and return how the level above would name it."""
    items = list(items)
    piece = make_object(ObjectKind.TREE, msgspec.msgpack.encode((level, items)))
    objects.put(piece)
    return Inner(items[-1].name if items else "", piece.hash, *totals(items))
