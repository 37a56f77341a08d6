"""Version 1's tables take every legal row and refuse every illegal one by themselves, whoever writes it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import apsw
import pytest

from freehold.schema import ddl
from freehold.schema.ddl import statements
from freehold.schema.kinds import EventKind
from freehold.schema.lifecycle import Status

DIGEST = "2fce09c04ca869f2dae510421d296c911b74f02591ce031982c05b852f33b26c"
NUMBER, TEXT, BYTES = 5, "x", b"x"
H, U = bytes(32), bytes(16)

LEGAL: dict[str, dict[str, Any]] = {
    "object": {"id": 1, "hash": H, "kind": 0, "size": 3, "codec": 0, "data": b"abc"},
    "staged": {"object": 1},
    "root": {"id": 1, "hash": H, "object": 1, "dropped_seq": None},
    "event": {
        "seq": 2, "id": U, "kind": "note", "name": "n", "execution": None, "position": None, "phase": None, "attempt": None,
        "record": "{}", "value": None, "root": 1, "recorded_at": 0, "hash": H,
    },
    "ref": {"name": "current", "root": 1, "moved_seq": 1},
    "run": {
        "one": 1, "id": "a", "project": "", "workflow": None, "definition": None, "props": "{}", "status": "created", "stop_kind": None,
        "stop_code": None, "stop_event": None, "epoch": 0, "generation": 0, "txn": 1, "created_at": 0, "updated_at": 0,
    },
    "tenure": {
        "epoch": 1, "first_txn": 2, "host": "h", "boot": U, "pid": 1, "pid_ns": 0, "pid_start": 0, "opened_at": 0, "closed_at": None,
        "socket": None,
    },
    "execution": {
        "id": 1, "generation": 0, "epoch": 1, "definition": b"", "status": "running", "began_seq": 2, "ended_seq": None,
        "stop_kind": None, "stop_code": None, "stop_event": None,
    },
    "intent": {
        "position": "key/a", "attempt": 1, "policy": "park", "idempotency_key": "k", "opened_seq": 2, "settled_seq": None, "state": "open",
    },
    "request": {"id": "r", "digest": H, "txn": 2, "seq": None, "reply": None, "at": 0},
}  # fmt: skip
"""One legal row of each table."""

BIG = 2**63 - 1
TAKEN: dict[str, dict[str, list[Any]]] = {
    "object": {"id": [1, BIG], "kind": [0, 1, 2, 3, 4]},
    "staged": {"object": [BIG]},
    "root": {"id": [BIG]},
    "event": {
        "seq": [2, BIG], "record": ["null", "0", '""', "[]", '{"a":"\\u0000"}', '"é"'], "recorded_at": [BIG], "name": ["x" * 256, "é"],
    },
    "ref": {"name": ["x"], "moved_seq": [1]},
    "run": {
        "id": ["x" * 128], "project": ["x" * 256], "workflow": ["w"], "definition": [H, b""], "props": ['{"a":[1]}'],
        "epoch": [BIG], "generation": [BIG], "txn": [BIG], "created_at": [BIG], "updated_at": [BIG],
    },
    "tenure": {
        "epoch": [BIG], "first_txn": [BIG], "pid": [BIG], "closed_at": [0, 1, BIG], "socket": [".host-0123456789abcdef.sock"],
    },
    "execution": {"id": [BIG], "generation": [BIG], "began_seq": [BIG], "definition": [H]},
    "intent": {
        "position": ["p", "1", "key/" + "x" * 128], "attempt": [BIG], "policy": ["probe"], "idempotency_key": ["x" * 255],
        "opened_seq": [BIG], "state": ["unknown"],
    },
    "request": {"id": ["x" * 128], "txn": [BIG], "seq": [1], "reply": [b"", b"null", bytes(65536)], "at": [BIG]},
}  # fmt: skip
REFUSED: dict[str, dict[str, list[Any]]] = {
    "object": {
        "id": [0, -1], "hash": [b"", bytes(31), bytes(33)], "kind": [-1, 5], "size": [-1, 2, 4], "codec": [-1, 2], "data": [b"", b"abcd"],
    },
    "staged": {"object": [0, -1]},
    "root": {"id": [0, -1], "hash": [b"", bytes(31), bytes(33)]},
    "event": {
        "seq": [0, -1, 1], "id": [b"", bytes(15), bytes(17)], "kind": ["", "Note", "note ", "other"], "name": [""],
        "record": ["", "x", "{", "{}x", "{'a':1}", "{a:1}", "[1,]", "NaN", "//"], "recorded_at": [-1], "hash": [b"", bytes(31), bytes(33)],
        "phase": [0, 1, 2, 3], "attempt": [0, 1], "position": ["", "p"],
    },
    "ref": {"name": [""]},
    "run": {
        "one": [0, 2, -1], "id": ["", "x" * 129], "workflow": [""], "props": ["", "x", "[]", "1", "null", '"a"', "{", "{a:1}"],
        "status": ["", "Created", "other"], "epoch": [-1], "generation": [-1], "txn": [0, -1], "created_at": [-1], "updated_at": [-1],
    },
    "tenure": {
        "epoch": [0, -1], "first_txn": [1, 0, -1], "host": [""], "boot": [b"", bytes(15), bytes(17)], "pid": [0, -1], "pid_ns": [-1],
        "pid_start": [-1], "opened_at": [-1], "closed_at": [-1],
        "socket": ["", "x", ".host-.sock", ".host-0123456789abcde.sock", ".host-0123456789abcdef0.sock", ".host-0123456789abcdeF.sock",
                   ".host-0123456789abc/..sock", "/host-0123456789abcdef.sock", ".host-0123456789abcdef/sock"],
    },
    "execution": {"id": [0, -1], "generation": [-1], "status": ["", "created", "other"], "began_seq": [1, 0, -1], "ended_seq": [2, 3]},
    "intent": {
        "position": [""], "attempt": [0, -1], "policy": ["", "repeat", "Park", "other"], "idempotency_key": ["", "x" * 256],
        "opened_seq": [1, 0, -1], "settled_seq": [1, 2, 3], "state": ["", "Open", "done", "not_done", "other"],
    },
    "request": {
        "id": ["", "x" * 129], "digest": [b"", bytes(31), bytes(33)], "txn": [1, 0, -1], "reply": [bytes(65537)], "at": [-1],
    },
}  # fmt: skip
MAY_BE_NULL = {
    "root": {"object", "dropped_seq"},
    "event": {"name", "execution", "position", "phase", "attempt", "value"},
    "run": {"workflow", "definition", "stop_kind", "stop_code", "stop_event"},
    "tenure": {"closed_at", "socket"},
    "execution": {"ended_seq", "stop_kind", "stop_code", "stop_event"},
    "intent": {"settled_seq"},
    "request": {"seq", "reply"},
}
ROWIDS = {"object": "id", "staged": "object", "root": "id", "event": "seq", "run": "one", "tenure": "epoch", "execution": "id"}
"""Where NULL means the next free number; our own statements always give one."""


@pytest.fixture(scope="module")
def db() -> Iterator[apsw.Connection]:
    """Return the tables, without foreign keys: only what a row says of itself is asked here."""
    db = apsw.Connection(":memory:")
    db.execute(statements())
    yield db
    db.close()


def insert(db: apsw.Connection, table: str, row: dict[str, Any]) -> None:
    db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))


def takes(db: apsw.Connection, table: str, **changes: Any) -> bool:
    """Return whether *table* takes its legal row with some changes, and leave it empty."""
    db.execute("BEGIN")
    try:
        insert(db, table, LEGAL[table] | changes)
    except apsw.ConstraintError:
        return False
    finally:
        db.execute("ROLLBACK")
    return True


def cases(table: dict[str, dict[str, list[Any]]]) -> list[Any]:
    return [
        pytest.param(name, column, value, id=f"{name}-{column}-{str(value)[:20]}")
        for name, columns in table.items()
        for column, values in columns.items()
        for value in values
    ]


@pytest.mark.parametrize("table", LEGAL)
def test_a_legal_row_is_taken(db: apsw.Connection, table: str) -> None:
    assert takes(db, table)


def test_every_column_of_every_table_is_asked_about(db: apsw.Connection) -> None:
    tables = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    found = {str(table): [row[0] for row in db.execute("SELECT name FROM pragma_table_info(?)", (table,))] for (table,) in tables}

    assert found == {table: list(row) for table, row in LEGAL.items()}


@pytest.mark.parametrize(("table", "column", "value"), cases(TAKEN))
def test_a_value_within_its_bounds_is_taken(db: apsw.Connection, table: str, column: str, value: Any) -> None:
    assert takes(db, table, **{column: value})


@pytest.mark.parametrize(("table", "column", "value"), cases(REFUSED))
def test_a_value_out_of_its_bounds_is_refused(db: apsw.Connection, table: str, column: str, value: Any) -> None:
    assert not takes(db, table, **{column: value})


@pytest.mark.parametrize(("table", "column"), [(table, column) for table, row in LEGAL.items() for column in row])
def test_null_is_refused_where_a_value_must_stand(db: apsw.Connection, table: str, column: str) -> None:
    if ROWIDS.get(table) == column:
        # A WITHOUT ROWID table has none of these; here NULL would become the next number, which a CHECK still judges.
        assert takes(db, table, **{column: None}) == (table != "event")
        return
    needed = column not in MAY_BE_NULL.get(table, set())
    alone = {"name", "object"}  # NULL there asks for another change in the same row, told by the products below
    assert takes(db, table, **{column: None}) == (not needed and column not in alone)


@pytest.mark.parametrize(("table", "column"), [(table, column) for table, row in LEGAL.items() for column in row])
def test_a_value_of_another_type_is_refused(db: apsw.Connection, table: str, column: str) -> None:
    declared = next(row[2] for row in db.execute(f"PRAGMA table_info({table})") if row[1] == column)
    # STRICT turns a number into text where text must stand, and takes it.
    wrong: dict[Any, list[Any]] = {"INTEGER": [TEXT, BYTES, 1.5], "TEXT": [BYTES], "BLOB": [TEXT, NUMBER]}
    for value in wrong[declared]:
        db.execute("BEGIN")
        with pytest.raises((apsw.ConstraintError, apsw.MismatchError)):
            insert(db, table, LEGAL[table] | {column: value})
        db.execute("ROLLBACK")


# What must go together, told as sentences and compared over every combination.


@pytest.mark.parametrize("table", ["run", "execution"])
def test_a_stop_has_three_shapes_and_no_fourth(db: apsw.Connection, table: str) -> None:
    statuses = [*Status, "other", None]
    shapes: Iterator[tuple[Any, ...]] = product(statuses, [None, "", "host", "journal", "other"], [None, "", "tired"], [None, 1])
    for status, kind, code, event in shapes:
        known = status in set(Status) - ({Status.CREATED} if table == "execution" else set())
        stopped = status not in (Status.CREATED, Status.RUNNING)
        shape = {
            None: code is None and event is None and not stopped,
            "host": code == "tired" and event is None and stopped,
            "journal": code is None and event == 1 and stopped,
        }.get(kind, False)
        ended = {"ended_seq": 4 if stopped else None} if table == "execution" else {}
        found = takes(db, table, status=status, stop_kind=kind, stop_code=code, stop_event=event, **ended)
        assert found == (known and shape), (status, kind, code, event)


def test_an_execution_ends_when_it_has_stopped_and_not_before_it_began(db: apsw.Connection) -> None:
    for status, ended, kind in product([*Status, None], [None, 0, 1, 2, 3], [None, "host"]):
        stopped = status not in (Status.CREATED, Status.RUNNING, None)
        right = (stopped and ended in (2, 3) and kind == "host") or (status is Status.RUNNING and ended is None and kind is None)
        code = None if kind is None else "tired"
        found = takes(db, "execution", status=status, ended_seq=ended, stop_kind=kind, stop_code=code)
        assert found == right, (status, ended, kind)


def test_an_event_has_the_parts_of_its_kind(db: apsw.Connection) -> None:
    shapes = product([*EventKind, "other", None], [1, 2], [None, "", "n"], [None, 1])
    for kind, seq, name, execution in shapes:
        right = (
            kind in set(EventKind)
            and (kind == EventKind.CREATED) == (seq == 1)
            and (name == "n" if kind in (EventKind.NOTE, EventKind.PUBLISH, EventKind.STEP) else name is None)
            and (execution == 1 or kind not in (EventKind.BEGAN, EventKind.SETTLED))
        )
        place = {"position": "1" if execution else "key/a", "phase": 2, "attempt": 1} if kind == EventKind.STEP else {}
        assert takes(db, "event", kind=kind, seq=seq, name=name, execution=execution, **place) == right, (kind, seq, name, execution)


def test_an_event_has_position_phase_and_attempt_together_and_only_that_of_a_step(db: apsw.Connection) -> None:
    kinds = {EventKind.NOTE: "n", EventKind.PUBLISH: "n", EventKind.STEP: "n", EventKind.BEGAN: None, EventKind.SETTLED: None}
    positions = [None, "", "1", "p", "key", "key/", "key/a", "Key/a", "xkey/a"]
    for kind, position, execution in product(kinds, positions, [None, 1]):
        for phase, attempt in product([None, -1, 0, 1, 2, 3], [None, -1, 0, 1, BIG]):
            none = position is None and phase is None and attempt is None and kind != EventKind.STEP
            whole = phase in (0, 1, 2) and attempt in (1, BIG) and kind == EventKind.STEP and position not in (None, "")
            right = whole and (position == "key/a") == (execution is None)
            right = right or (none and (execution == 1 or kind not in (EventKind.BEGAN, EventKind.SETTLED)))
            found = takes(db, "event", kind=kind, name=kinds[kind], position=position, phase=phase, attempt=attempt, execution=execution)
            assert found == right, (kind, position, phase, attempt, execution)


def test_an_intent_is_settled_by_a_later_event_or_not_at_all(db: apsw.Connection) -> None:
    for state, settled in product(["open", "done", "not_done", "unknown", "other", None], [None, 0, 1, 2, 3, BIG]):
        right = (state in ("open", "unknown") and settled is None) or (state in ("done", "not_done") and settled in (3, BIG))
        assert takes(db, "intent", state=state, settled_seq=settled) == right, (state, settled)


def test_a_root_has_its_object_or_the_moment_at_which_it_was_forgotten(db: apsw.Connection) -> None:
    for content, dropped in product([None, 1], [None, -1, 0, 1]):
        right = (content == 1 and dropped is None) or (content is None and dropped == 1)
        assert takes(db, "root", object=content, dropped_seq=dropped) == right, (content, dropped)


def test_only_a_packed_object_has_another_size_than_its_bytes(db: apsw.Connection) -> None:
    for codec, size in product([0, 1], [-1, 0, 2, 3, 4, 1000]):
        assert takes(db, "object", codec=codec, size=size) == (size == 3 or (codec == 1 and size >= 0)), (codec, size)


def test_a_request_is_answered_by_an_event_or_by_a_reply(db: apsw.Connection) -> None:
    for seq, reply in product([None, 1], [None, b"", b"1", bytes(65536), bytes(65537)]):
        assert takes(db, "request", seq=seq, reply=reply) == (reply is None or (seq is None and len(reply) <= 65536)), (seq, reply)


# What must not be there twice.


def twice(db: apsw.Connection, table: str, first: dict[str, Any], second: dict[str, Any]) -> bool:
    db.execute("BEGIN")
    try:
        insert(db, table, LEGAL[table] | first)
        insert(db, table, LEGAL[table] | second)
    except apsw.ConstraintError:
        return False
    finally:
        db.execute("ROLLBACK")
    return True


OUTCOME: dict[str, Any] = {"kind": "step", "execution": 1, "position": "p", "phase": 2, "attempt": 1}
SETTLED: dict[str, Any] = {"state": "done", "settled_seq": 4}
ENDED: dict[str, Any] = {"status": "failed", "ended_seq": 3, "stop_kind": "host", "stop_code": "tired"}


@pytest.mark.parametrize(
    ("table", "first", "second", "taken"),
    [
        ("run", {}, {"one": 2}, False),
        ("run", {}, {"one": 1, "id": "b"}, False),
        ("object", {}, {"id": 2}, False),
        ("object", {}, {"id": 2, "kind": 1}, False),
        ("object", {}, {"id": 2, "hash": H[:-1] + b"1"}, True),
        ("root", {}, {"id": 2}, False),
        ("root", {}, {"id": 2, "object": None, "dropped_seq": 3}, False),
        ("root", {}, {"id": 2, "hash": H[:-1] + b"1"}, False),
        ("root", {}, {"id": 2, "hash": H[:-1] + b"1", "object": 2}, True),
        ("event", {}, {"seq": 3}, False),
        ("event", {}, {"id": U[:-1] + b"1"}, False),
        ("event", {}, {"seq": 3, "id": U[:-1] + b"1"}, True),
        ("event", OUTCOME, OUTCOME | {"seq": 3, "id": U[:-1] + b"1"}, False),
        ("event", OUTCOME, OUTCOME | {"seq": 3, "id": U[:-1] + b"1", "attempt": 2}, False),
        ("event", OUTCOME, OUTCOME | {"seq": 3, "id": U[:-1] + b"1", "attempt": 2, "execution": 2}, False),
        ("event", OUTCOME, OUTCOME | {"seq": 3, "id": U[:-1] + b"1", "position": "q"}, True),
        ("event", OUTCOME | {"phase": 1}, OUTCOME | {"phase": 1, "seq": 3, "id": U[:-1] + b"1"}, False),
        ("event", OUTCOME | {"phase": 1}, OUTCOME | {"phase": 1, "seq": 3, "id": U[:-1] + b"1", "attempt": 2}, True),
        ("event", OUTCOME | {"phase": 0}, OUTCOME | {"phase": 1, "seq": 3, "id": U[:-1] + b"1"}, True),
        ("event", OUTCOME | {"phase": 1}, OUTCOME | {"seq": 3, "id": U[:-1] + b"1"}, True),
        ("ref", {}, {"root": 2}, False),
        ("tenure", {}, {"first_txn": 3}, False),
        ("tenure", {}, {"epoch": 2}, False),
        ("tenure", {}, {"epoch": 2, "first_txn": 3}, True),
        ("execution", {}, {"id": 2, "began_seq": 3}, False),
        ("execution", ENDED, {"id": 2, "began_seq": 3}, True),
        ("execution", ENDED, ENDED | {"id": 2, "began_seq": 3}, True),
        ("execution", ENDED, {"id": 2}, False),
        ("intent", {}, {"opened_seq": 3}, False),
        ("intent", {}, {"position": "key/b"}, False),
        ("intent", {}, {"position": "key/b", "opened_seq": 3}, True),
        ("intent", {}, {"attempt": 2, "opened_seq": 3}, False),
        ("intent", {}, {"attempt": 2, "opened_seq": 3, "state": "unknown"}, True),
        ("intent", SETTLED, {"attempt": 2, "opened_seq": 3}, True),
        ("intent", SETTLED, SETTLED | {"attempt": 2, "opened_seq": 3}, False),
        ("intent", SETTLED, SETTLED | {"attempt": 2, "opened_seq": 3, "settled_seq": 5}, True),
        ("intent", {"state": "unknown"}, {"attempt": 2, "opened_seq": 3, "state": "unknown"}, True),
        ("request", {}, {"txn": 3}, False),
        ("request", {}, {"id": "s"}, True),
    ],
)
def test_what_may_be_there_once_is_there_once(
    db: apsw.Connection, table: str, first: dict[str, Any], second: dict[str, Any], taken: bool
) -> None:
    assert twice(db, table, first, second) == taken


# The text itself.


def checks() -> list[str]:
    """Return what stands between the parentheses of every CHECK."""
    text, found = statements(), []
    for start in re.finditer(r"\bCHECK \(", text):
        level, end = 1, start.end()
        while level:
            level += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        found.append(text[start.end() : end - 1])
    return found


def test_every_check_ends_in_is_true() -> None:
    assert len(checks()) == statements().count("CHECK") > 20
    assert [check for check in checks() if not re.fullmatch(r"\(.*\) IS TRUE", check, re.DOTALL)] == []


def forbidden(db: apsw.Connection, table: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM {table} WHERE NOT ({ddl.checks()[table]})").get)


def test_the_checks_of_a_table_can_be_asked_of_its_rows(db: apsw.Connection) -> None:
    asked = ddl.checks()
    assert sum(text.count("IS TRUE") for text in asked.values()) == len(checks())
    assert [check for check in checks() if not any(check in text for text in asked.values())] == []

    for table, row in LEGAL.items():
        db.execute("BEGIN")
        insert(db, table, row)
        assert forbidden(db, table) == 0
        db.execute("ROLLBACK")


@pytest.mark.parametrize(("table", "column", "value"), cases(REFUSED))
def test_a_row_that_came_in_all_the_same_is_told_by_the_checks(db: apsw.Connection, table: str, column: str, value: Any) -> None:
    db.pragma("ignore_check_constraints", 1)
    db.execute("BEGIN")
    insert(db, table, LEGAL[table] | {column: value})
    try:
        assert forbidden(db, table) == 1
    finally:
        db.execute("ROLLBACK")
        db.pragma("ignore_check_constraints", 0)


def test_every_table_is_strict_and_no_number_is_given_away() -> None:
    ends = re.findall(r"^\) (.*);$", statements(), re.MULTILINE)

    assert set(ends) == {"STRICT", "STRICT, WITHOUT ROWID"}
    assert len(ends) == len(LEGAL) == statements().count("CREATE TABLE")
    assert "AUTOINCREMENT" not in statements()
    assert "DEFERR" not in statements()  # a foreign key is judged at its statement


def test_every_parent_that_rows_point_to_is_there(db: apsw.Connection) -> None:
    parents = {(table, row[2], row[3], row[4]) for table in LEGAL for row in db.execute(f"PRAGMA foreign_key_list({table})")}

    assert parents == {
        ("staged", "object", "object", "id"),
        ("root", "object", "object", "id"),
        ("event", "execution", "execution", "id"),
        ("event", "object", "value", "id"),
        ("event", "root", "root", "id"),
        ("ref", "root", "root", "id"),
        ("ref", "event", "moved_seq", "seq"),
        ("run", "event", "stop_event", "seq"),
        ("execution", "tenure", "epoch", "epoch"),
        ("execution", "event", "stop_event", "seq"),
        ("intent", "event", "opened_seq", "seq"),
        ("intent", "event", "settled_seq", "seq"),
        ("request", "event", "seq", "seq"),
    }


def test_the_shape_of_the_file_is_changed_knowingly() -> None:
    found = hashlib.sha256(statements().encode()).hexdigest()

    assert found == DIGEST, (
        "The tables have changed. Files of earlier shapes are then refused as incomplete version 1: delete and recreate. "
        f"If that is meant, say so in the changelog under Format and freeze {found} here."
    )
