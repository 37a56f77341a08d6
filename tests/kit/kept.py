"""Objects in a real file with the schema, in one transaction that is never committed; and how many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from freehold.schema.ddl import statements
from freehold.schema.hashes import ObjectKind, object_hash
from freehold.storage.objects import StoredObjects


class Kept(StoredObjects):
    """The objects of one file, as they are kept; a test may count and forge them."""

    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(db)
        self.db = db

    def count(self) -> Counter[ObjectKind]:
        """Return how many objects there are of each kind."""
        return Counter({ObjectKind(kind): count for kind, count in self.db.execute("SELECT kind, count(*) FROM object GROUP BY kind")})

    def forge(self, kind: ObjectKind, data: bytes) -> bytes:
        """Keep what nobody would write, under its own true hash."""
        hash_ = object_hash(kind, data)
        self.db.execute(
            "INSERT OR REPLACE INTO object (hash, kind, size, codec, data) VALUES (?, ?, ?, 0, ?)", (hash_, int(kind), len(data), data)
        )
        return hash_

    def lose(self, hash_: bytes) -> None:
        """Remove an object that others name."""
        self.db.execute("DELETE FROM object WHERE hash = ?", (hash_,))


@contextmanager
def kept(folder: Path) -> Iterator[Kept]:
    """Yield the objects of a new file in *folder*."""
    db = apsw.Connection(str(folder / "kept.db"))
    try:
        db.pragma("synchronous", "off")
        db.execute(statements())
        db.execute("BEGIN")
        yield Kept(db)
    finally:
        db.close()
