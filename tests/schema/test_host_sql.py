"""The host file's tables take every legal row and refuse every illegal one by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw
import pytest

from freehold.schema.ddl import host_statements
from freehold.schema.lifecycle import Status

U = bytes(16)
LEGAL: dict[str, dict[str, Any]] = {
    "known": {
        "run": "a", "dev": 1, "ino": -1, "size": 1, "mtime_ns": -1, "ctime_ns": 0, "wal_size": 0, "wal_mtime_ns": 0, "sealed": 0,
        "seen_at": 0, "events": 1, "project": "", "workflow": None, "definition": None, "props": "{}", "status": "created",
        "stop_kind": None, "stop_code": None, "stop_event": None, "epoch": 0, "generation": 0, "txn": 1, "created_at": 0, "updated_at": 0,
    },
    "host": {"id": U, "hostname": "h", "boot": U, "pid": 1, "pid_ns": 0, "pid_start": 0, "socket": None, "opened_at": 0},
    "driver": {"run": "a", "host": U, "since": 0},
    "wakeup": {"run": "a", "why": "timer", "due_at": 0},
}  # fmt: skip
TAKEN: dict[str, dict[str, list[Any]]] = {
    "known": {"sealed": [1], "status": list(Status), "definition": [b""], "workflow": ["w"], "stop_kind": ["host"], "props": ['{"a":1}']},
    "host": {"socket": [".host-0123456789abcdef.sock"]},
    "driver": {},
    "wakeup": {},
}
REFUSED: dict[str, dict[str, list[Any]]] = {
    "known": {
        "run": [""], "size": [0, -1], "wal_size": [-1], "sealed": [-1, 2], "seen_at": [-1], "events": [0, -1], "status": ["", "other"],
        "props": ["", "[]", "null", "{"], "epoch": [-1], "generation": [-1], "txn": [0], "created_at": [-1], "updated_at": [-1],
    },
    "host": {
        "id": [b"", bytes(15), bytes(17)], "hostname": [""], "boot": [bytes(15)], "pid": [0, -1], "pid_ns": [-1], "pid_start": [-1],
        "socket": [""], "opened_at": [-1],
    },
    "driver": {"run": [""], "since": [-1]},
    "wakeup": {"run": [""], "why": [""], "due_at": [-1]},
}  # fmt: skip
MAY_BE_NULL = {"known": {"workflow", "definition", "stop_kind", "stop_code", "stop_event"}, "host": {"socket"}}


@pytest.fixture(scope="module")
def db() -> Iterator[apsw.Connection]:
    db = apsw.Connection(":memory:")
    db.execute(host_statements())
    yield db
    db.close()


def takes(db: apsw.Connection, table: str, **changes: Any) -> bool:
    """Return whether *table* takes its legal row with some changes, and leave it empty."""
    row = LEGAL[table] | changes
    db.execute("BEGIN")
    try:
        db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))
    except apsw.ConstraintError:
        return False
    finally:
        db.execute("ROLLBACK")
    return True


@pytest.mark.parametrize("table", LEGAL)
def test_legal_rows_are_taken_and_illegal_ones_are_not(db: apsw.Connection, table: str) -> None:
    assert takes(db, table)
    assert [(column, value) for column, values in TAKEN[table].items() for value in values if not takes(db, table, **{column: value})] == []
    assert [(column, value) for column, values in REFUSED[table].items() for value in values if takes(db, table, **{column: value})] == []


@pytest.mark.parametrize("table", LEGAL)
def test_nothing_is_null_that_may_not_be_and_nothing_of_another_type(db: apsw.Connection, table: str) -> None:
    for column, value in LEGAL[table].items():
        assert takes(db, table, **{column: None}) is (column in MAY_BE_NULL.get(table, set())), column
        wrong = 5.5 if isinstance(value, int) else b"x" * 16 if isinstance(value, str) else "x" * 16
        assert value is None or not takes(db, table, **{column: wrong}), column


def test_a_driver_is_a_host_that_is_there_and_goes_with_it(db: apsw.Connection) -> None:
    db.pragma("foreign_keys", 1)
    try:
        with pytest.raises(apsw.ConstraintError):
            db.execute("INSERT INTO driver VALUES ('a', ?, 0)", (U,))
        db.execute("INSERT INTO host VALUES (?, 'h', ?, 1, 0, 0, NULL, 0)", (U, U))
        db.execute("INSERT INTO driver VALUES ('a', ?, 0)", (U,))
        db.execute("DELETE FROM host")
        assert db.execute("SELECT count(*) FROM driver").get == 0
    finally:
        db.pragma("foreign_keys", 0)
