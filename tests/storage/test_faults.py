"""What SQLite says is judged by its extended code alone; real faults are provoked and told as they are."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from runfile import new_run

from freehold.schema.errors import Damaged, Error, Refused, StorageFailed, Unavailable
from freehold.storage import faults
from freehold.storage.faults import Ended, Poisoned, code_of, failed, unreadable
from freehold.storage.path import RunPath

SCHEMA = """
CREATE TABLE parent (id INTEGER PRIMARY KEY);
CREATE TABLE child (
    id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parent (id), only TEXT UNIQUE, must TEXT NOT NULL, small INTEGER CHECK (small < 9)
) STRICT;
CREATE TRIGGER lies BEFORE INSERT ON parent WHEN new.id = 1 BEGIN SELECT raise(ABORT, 'FOREIGN KEY constraint failed'); END;
CREATE TRIGGER ends BEFORE INSERT ON parent WHEN new.id = 2 BEGIN SELECT raise(ROLLBACK, 'SECRET'); END;
INSERT INTO parent VALUES (9);
INSERT INTO child VALUES (1, 9, 'SECRET', '', 1);
"""

CONSTRAINTS = [
    ("INSERT INTO child VALUES (2, 8, NULL, '', 1)", apsw.SQLITE_CONSTRAINT_FOREIGNKEY),
    ("INSERT INTO child VALUES (2, 9, 'SECRET', '', 1)", apsw.SQLITE_CONSTRAINT_UNIQUE),
    ("INSERT INTO child VALUES (1, 9, NULL, '', 1)", apsw.SQLITE_CONSTRAINT_PRIMARYKEY),
    ("INSERT INTO child VALUES (2, 9, NULL, NULL, 1)", apsw.SQLITE_CONSTRAINT_NOTNULL),
    ("INSERT INTO child VALUES (2, 9, NULL, '', 9)", apsw.SQLITE_CONSTRAINT_CHECK),
    ("INSERT INTO child VALUES (2, 9, NULL, '', 'SECRET')", apsw.SQLITE_CONSTRAINT_DATATYPE),
    ("INSERT INTO parent VALUES (1)", apsw.SQLITE_CONSTRAINT_TRIGGER),
]


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


def provoked(sql: str) -> apsw.Error:
    db = apsw.Connection(":memory:")
    db.pragma("foreign_keys", 1)
    db.execute(SCHEMA)
    with pytest.raises(apsw.Error) as raised:
        db.execute(sql).fetchall()
    db.close()
    return raised.value


@pytest.mark.parametrize(("sql", "code"), CONSTRAINTS)
def test_a_constraint_is_harmless_and_known_by_its_code(sql: str, code: int) -> None:
    error = provoked(sql)

    assert (code_of(error), faults.is_harmless(error), faults.is_busy(error), faults.is_storage(error)) == (code, True, False, True)
    assert faults.is_foreign_key(error) == (code == apsw.SQLITE_CONSTRAINT_FOREIGNKEY)


def test_a_trigger_that_speaks_of_foreign_keys_is_not_believed() -> None:
    error = provoked("INSERT INTO parent VALUES (1)")

    assert str(error) == "FOREIGN KEY constraint failed"
    assert not faults.is_foreign_key(error)


def coded(result: int, extended: int | None = None) -> apsw.Error:
    error = apsw.Error("SECRET")
    error.result, error.extendedresult = result, extended or result  # type: ignore[attr-defined]
    return error


HARMLESS = {"BUSY", "LOCKED", "CONSTRAINT", "FULL", "INTERRUPT", "MISMATCH", "NOMEM", "TOOBIG"}
PRIMARY = sorted(str(name).removeprefix("SQLITE_") for name in apsw.mapping_result_codes if isinstance(name, str))


@pytest.mark.parametrize("name", PRIMARY)
def test_after_every_code_but_these_the_connection_is_not_trusted(name: str) -> None:
    assert faults.is_harmless(coded(getattr(apsw, f"SQLITE_{name}"))) == (name in HARMLESS)


def extended_codes() -> dict[str, int]:
    found = {name: getattr(apsw, name) for name in dir(apsw) if name.startswith("SQLITE_") and name in apsw.mapping_extended_result_codes}
    assert len(found) > 50
    return found


@pytest.mark.parametrize("name", sorted(extended_codes()))
def test_an_extended_code_is_judged_by_its_kind_and_named_in_full(name: str) -> None:
    code = extended_codes()[name]
    error = coded(code & 0xFF, code)
    told = failed(error, "body", rolled_back=True)

    assert faults.is_harmless(error) == faults.is_harmless(coded(code & 0xFF))
    assert name in str(told)
    assert told.details["sqlite_extended_code"] == code


@pytest.mark.parametrize("error", [ValueError("SECRET"), apsw.ThreadingViolationError("SECRET"), KeyboardInterrupt("SECRET"), apsw.Error()])
def test_what_has_no_code_is_never_harmless(error: BaseException) -> None:
    told = failed(error, "body", rolled_back=False)

    assert (code_of(error), faults.is_harmless(error), faults.is_busy(error), faults.is_foreign_key(error)) == (0, False, False, False)
    assert "no SQLite code" in str(told)
    assert "SQLITE_OK" not in str(told)


@pytest.mark.parametrize(("phase", "rolled_back", "executed"), [("begin", True, "no"), ("commit", False, "unknown"), ("body", True, "yes")])
def test_a_failure_tells_phase_outcome_and_code_and_no_text_of_sqlites(phase: str, rolled_back: bool, executed: str) -> None:
    error = provoked("INSERT INTO parent VALUES (2)")
    told = failed(error, phase, rolled_back=rolled_back, executed=executed)  # type: ignore[arg-type]

    assert "SECRET" in str(error)
    assert isinstance(told, StorageFailed)
    assert told.executed == executed
    assert told.details == {"phase": phase, "rolled_back": rolled_back, "sqlite_extended_code": apsw.SQLITE_CONSTRAINT_TRIGGER}
    assert "SECRET" not in f"{told!r}{told.record()}{told.__cause__}"
    assert {"no": "nothing", "unknown": "not known", "yes": "was kept"}[executed] in str(told)


def garbage(path: RunPath) -> apsw.Error:
    Path(path.file).write_bytes(b"SECRET" * 1000)
    return opened(path)


def torn(path: RunPath) -> apsw.Error:
    raw = bytearray(Path(path.file).read_bytes())
    raw[4096:] = os.urandom(len(raw) - 4096)
    Path(path.file).write_bytes(raw)
    return opened(path)


def missing(path: RunPath) -> apsw.Error:
    Path(path.file).unlink()
    return opened(path)


def locked(path: RunPath) -> apsw.Error:
    other = apsw.Connection(path.file)
    other.execute("BEGIN IMMEDIATE")
    try:
        return opened(path)
    finally:
        other.close()


def opened(path: RunPath) -> apsw.Error:
    with pytest.raises(apsw.Error) as raised:
        db = apsw.Connection(path.file, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            db.execute("BEGIN IMMEDIATE; UPDATE run SET txn = txn; ROLLBACK")
        finally:
            db.close()
    return raised.value


def read_only(path: RunPath) -> apsw.Error:
    db = apsw.Connection(path.file, flags=apsw.SQLITE_OPEN_READONLY)
    with pytest.raises(apsw.Error) as raised:
        db.execute("UPDATE run SET txn = 7")
    db.close()
    return raised.value


def raced(_path: RunPath) -> apsw.Error:
    error = apsw.exception_for(apsw.SQLITE_PROTOCOL)
    assert isinstance(error, apsw.Error)
    return error


@pytest.mark.parametrize(
    ("spoil", "kind", "code"),
    [
        (raced, Unavailable, "database_busy"),
        (garbage, Damaged, "damaged"),
        (torn, Damaged, "damaged"),
        (locked, Unavailable, "database_busy"),
        (read_only, Refused, "read_only"),
        (missing, StorageFailed, "storage_failed"),
    ],
)
def test_why_a_file_cannot_be_looked_at(path: RunPath, spoil: Callable[[RunPath], apsw.Error], kind: type[Error], code: str) -> None:
    told = unreadable(spoil(path), path)

    assert (type(told), told.code) == (kind, code)
    assert "SECRET" not in f"{told}{told.details}"
    assert (told.details.get("rule") == "sqlite") == (kind is Damaged)


def test_what_ends_a_transaction_shows_a_code_and_nothing_else() -> None:
    failure = StorageFailed("a sentence")

    assert (str(Ended(failure)), str(Poisoned(failure))) == ("storage_failed", "storage_failed")
    assert Poisoned(failure).unknown_txn is None
    assert Poisoned(failure, unknown_txn=7).unknown_txn == 7
