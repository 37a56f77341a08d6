"""The raw limit: a bare apsw loop, one INSERT per BEGIN IMMEDIATE and COMMIT, WAL, synchronous FULL."""

from __future__ import annotations

from pathlib import Path

import apsw
from benchmarks.senders import Pace, one


def raw_commits(folder: Path, name: str, record: str, commits: int, vfs: str | None = None) -> Pace:
    """Return how fast single rows become durable, SQLite's own checkpoints included."""
    db = _table(folder / f"{name}.sqlite", vfs)
    execute = db.execute

    def commit(_number: int) -> None:
        execute("BEGIN IMMEDIATE")
        execute("INSERT INTO entry (record) VALUES (?)", (record,))
        execute("COMMIT")

    try:
        commit(0)
        return one(commit, commits)
    finally:
        db.close()


def raw_bytes(folder: Path, name: str, record: str, rows: int) -> float:
    """Return by how many bytes a row of nothing but a number and *record* makes its file longer."""
    file = folder / f"{name}.sqlite"
    _table(file, None).close()
    before = file.stat().st_size
    db = apsw.Connection(str(file))
    try:
        with db:
            db.executemany("INSERT INTO entry (record) VALUES (?)", ((record,) for _ in range(rows)))
    finally:
        db.close()
    return (file.stat().st_size - before) / rows


def _table(file: Path, vfs: str | None) -> apsw.Connection:
    db = apsw.Connection(str(file), vfs=vfs)
    db.pragma("journal_mode", "wal")
    db.pragma("synchronous", "full")
    db.execute("CREATE TABLE entry (seq INTEGER PRIMARY KEY, record TEXT NOT NULL) STRICT")
    return db
