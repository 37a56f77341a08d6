"""Runs with files for tests of the face: everything that is in them, and what the journal says of their publishes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from freehold import RunView
from freehold.files import ReadFiles
from freehold.schema.hashes import ObjectKind
from freehold.schema.nodes import Directory, File, Inner, Link, decode
from freehold.schema.paths import Parts, text
from freehold.schema.roots import tree_of
from freehold.storage.content import Content, Piece, read
from freehold.storage.content import pieces as each_piece
from freehold.storage.objects import Objects, StoredObjects, read_packed, unpack
from freehold.storage.sight import Sight


def contents(files: ReadFiles) -> dict[str, bytes | str]:
    """Return what is in a workspace, seen in one look: a file's bytes, `>` and what a link says, `/` for a directory."""
    return files._using(lambda sight: dict(beneath(sight)))


def beneath(sight: Sight, way: Parts = ()) -> Iterator[tuple[str, bytes | str]]:
    """Yield what is in a directory and in all beneath it, as `contents` returns it."""
    for name, entry in sight.children(way):
        here = (*way, name)
        if isinstance(entry, File):
            yield text(here), b"".join(read(sight.kept, Content(entry.size, entry.content)))
        elif isinstance(entry, Link):
            yield text(here), f">{entry.target}"
        else:
            yield text(here), "/"
            yield from beneath(sight, here)


def publishes(run: RunView) -> list[tuple[str | None, Any]]:
    """Return the names and records of all publishes."""
    return [(event.name, event.data) for event in run.history() if event.kind == "publish"]


def staged(run: RunView) -> int:
    """Return how many objects are listed as written ahead of their publish."""
    return _count(run, "staged")


def whole(objects: Objects, root: bytes) -> frozenset[bytes]:
    """Return the hashes of everything that a root's content names, at whatever depth."""
    found = set[bytes]()
    pieces: set[Piece] = set()
    todo = [tree_of(root)]
    while todo:
        found.add(hash_ := todo.pop())
        for item in decode(objects.get(hash_, ObjectKind.TREE)).items:
            if isinstance(item, Inner):
                todo.append(item.child)
            elif isinstance(item, Directory):
                todo.append(item.tree)
            elif isinstance(item, File):
                found |= {piece.hash for piece in each_piece(objects, Content(item.size, item.content), pieces)}
    return frozenset(found)


def astray(run: RunView) -> int:
    """Return how many objects of the current root are listed as written ahead of their publish."""
    import apsw

    db = apsw.Connection(str(run.path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        (root,) = read_packed(db, [bytes.fromhex(run.files.root)])
        assert root is not None
        listed = {hash_ for (hash_,) in db.execute("SELECT o.hash FROM staged s JOIN object o ON o.id = s.object")}
        return len(listed & {root.hash, *whole(StoredObjects(db), unpack(root.codec, root.data, root.size))})
    finally:
        db.close()


def objects(run: RunView) -> int:
    """Return how many objects there are."""
    return _count(run, "object")


def _count(run: RunView, table: str) -> int:
    import apsw

    db = apsw.Connection(str(run.path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(db.execute(f"SELECT count(*) FROM {table}").get)
    finally:
        db.close()
