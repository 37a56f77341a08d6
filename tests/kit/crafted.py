"""A run whose files are a tree that no writer of ours makes, every hash computed anew: only what is wrong with the tree is wrong."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import independent_tree
from independent_hashes import event_hash, object_hash

import freehold

Put = Callable[[bytes, bytes], None]
_CHAINED = "SELECT e.*, v.hash, r.hash FROM event e JOIN root r ON r.id = e.root LEFT JOIN object v ON v.id = e.value ORDER BY e.seq"


def crafted(folder: Path, make: Callable[[Put], list[Any]]) -> Path:
    """Make a run "a" whose last event, a note, names the directory of the entries that *make* returns; return its file."""
    with freehold.open(folder) as host, host.create("a") as run:
        run.append("note")
        file = run.path
    with closing(sqlite3.connect(file)) as db, db:

        def put(hash_: bytes, raw: bytes, kind: int = 1) -> None:
            db.execute("INSERT OR IGNORE INTO object (hash, kind, size, codec, data) VALUES (?, ?, ?, 0, ?)", (hash_, kind, len(raw), raw))

        entries = make(put)
        root = independent_tree.pack([1, independent_tree.tree(entries, put), *independent_tree.held(entries), 0])
        put(object_hash("root", root), root, 3)
        db.execute("INSERT INTO root (hash, object) SELECT hash, id FROM object WHERE hash = ?", (object_hash("root", root),))
        db.execute("UPDATE event SET root = (SELECT max(id) FROM root) WHERE seq = 2")
        db.execute("UPDATE ref SET root = (SELECT max(id) FROM root), moved_seq = 2")
        previous = bytes(32)
        for *fields, _value, _root, at, _old, value_hash, root_hash in db.execute(_CHAINED).fetchall():
            previous = event_hash(previous, [*fields, value_hash, root_hash, at])
            db.execute("UPDATE event SET hash = ? WHERE seq = ?", (previous, fields[0]))
    return file


def beneath(names: list[str], put: Put, said: tuple[int, int, int] | None = None) -> list[Any]:
    """Return a directory that holds one that holds one…, with an empty file at the end; *said* is what each says of itself."""
    entries = [independent_tree.file(names[-1], b"")]
    for name in reversed(names[:-1]):
        one = independent_tree.directory(name, entries, put)
        entries = [one if said is None else [*one[:4], *said]]
    return entries
