"""A reader's connection reads, and nothing else, even where the file itself could be written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from folder import snapshot
from runfile import new_run

from freehold.storage.allowlist import allow_reading
from freehold.storage.faults import is_storage


@pytest.fixture
def db(tmp_path: Path) -> Iterator[apsw.Connection]:
    db = apsw.Connection(new_run(tmp_path).file)
    db.execute("SELECT 1 FROM run").fetchall()  # so that -wal and -shm are there before the snapshot
    allow_reading(db)
    yield db
    db.set_authorizer(None)
    db.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, json_extract(props, '$.colour') FROM run",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM n",
        "SELECT key FROM run, json_each(run.props)",
        "PRAGMA foreign_key_check",
        "PRAGMA integrity_check",
        "PRAGMA quick_check('event')",
        "PRAGMA schema_version",
        "SELECT name FROM pragma_table_list",
    ],
)
def test_reading_is_allowed(db: apsw.Connection, sql: str) -> None:
    db.execute(sql).fetchall()
    assert db.changes() == 0


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE run SET txn = 9",
        "DELETE FROM request",
        "CREATE TABLE extra (a)",
        "CREATE TEMP TABLE extra (a)",
        "DROP TABLE request",
        "ATTACH ':memory:' AS other",
        "VACUUM INTO '{folder}/copy'",
        "VACUUM",
        "REINDEX ref_root",
        "ANALYZE",
        "BEGIN IMMEDIATE",
        "SAVEPOINT a",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "PRAGMA journal_mode = delete",
        "PRAGMA user_version = 2",
        "PRAGMA schema_version = 2",
        "PRAGMA writable_schema = 1",
        "PRAGMA query_only = 0",
        "PRAGMA optimize",
        "PRAGMA incremental_vacuum",
    ],
)
def test_everything_else_is_denied_and_nothing_changes(db: apsw.Connection, tmp_path: Path, sql: str) -> None:
    before = snapshot(tmp_path)
    with pytest.raises(Exception) as raised:
        db.execute(sql.format(folder=tmp_path)).fetchall()

    assert is_storage(raised.value)
    assert snapshot(tmp_path) == before
