"""An execution is begun and settled whole, with its event and the run's own standing, or nothing has changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from owned import NOW_MS, begin, commit_notes, own, seen, settle
from runfile import new_run

from freehold.schema.errors import Error, Refused, RunEnded
from freehold.schema.lifecycle import SETTLING, Status
from freehold.storage.faults import SqliteError, code_of
from freehold.storage.path import RunPath
from freehold.storage.store import Store

STANDING = "SELECT status, stop_kind, stop_code, stop_event FROM run"
EXECUTION = "SELECT id, generation, epoch, status, began_seq, ended_seq, stop_kind, stop_code, stop_event FROM execution ORDER BY id DESC"
ALL = (
    "SELECT count(*), (SELECT group_concat(status || coalesce(stop_code, stop_event, '')) FROM execution),"
    " (SELECT status || coalesce(stop_code, stop_event, '') FROM run) FROM event"
)


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


@pytest.fixture
def store(path: RunPath) -> Iterator[Store]:
    store = own(path)
    commit_notes(store, "1", "2")
    yield store
    store.close(clean=False)


def begun(store: Store) -> int:
    begin(store)
    number = store.executions.begin(NOW_MS)
    store.commit()
    return number


def refused(store: Store, path: RunPath, code: str, *call: Any) -> Error:
    """Make the call in a transaction, commit it all the same, and show that nothing but `txn` has changed."""
    before, head = seen(path, ALL), store.journal.head
    begin(store)
    with pytest.raises(Refused) as raised:
        call[0](*call[1:])
    assert store.journal.head == head
    store.commit()
    assert (raised.value.code, seen(path, ALL)) == (code, before)
    return raised.value


def test_a_beginning_is_one_event_one_row_and_a_running_run(store: Store, path: RunPath) -> None:
    number = begun(store)
    event = store.written(store.journal.head.seq)

    assert (number, event.kind, event.name, event.execution) == (1, "began", None, 1)
    assert json.loads(event.record) == {"execution": 1, "generation": 0, "epoch": 1, "definition": ""}
    assert seen(path, EXECUTION) == (1, 0, 1, "running", event.seq, None, None, None, None)
    assert seen(path, STANDING) == ("running", None, None, None)


def test_executions_are_numbered_in_order(store: Store) -> None:
    numbers = []
    for _ in range(3):
        numbers.append(begun(store))
        begin(store)
        store.executions.settle("suspended", None, None, NOW_MS)
        store.commit()

    assert numbers == [1, 2, 3]


def test_a_second_execution_does_not_begin_while_one_runs(store: Store, path: RunPath) -> None:
    begun(store)

    refused(store, path, "execution_running", store.executions.begin, NOW_MS)


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_nothing_begins_or_settles_after_the_end(store: Store, path: RunPath, status: str) -> None:
    settle(store, status)

    error = refused(store, path, "run_ended", store.executions.begin, NOW_MS)
    assert isinstance(error, RunEnded)
    refused(store, path, "run_ended", store.executions.settle, "failed", None, None, NOW_MS)


@pytest.mark.parametrize("status", sorted(SETTLING))
def test_an_execution_is_settled_for_the_event_that_says_so(store: Store, path: RunPath, status: str) -> None:
    begun(store)
    begin(store)
    settled = store.executions.settle(status, None, None, NOW_MS)
    store.commit()

    assert settled is not None
    assert (settled.kind, settled.execution, settled.seq) == ("settled", 1, store.journal.head.seq)
    assert json.loads(settled.record) == {"execution": 1, "status": status, "reason": settled.seq}
    assert seen(path, EXECUTION)[3:] == (status, settled.seq - 1, settled.seq, "journal", None, settled.seq)
    assert seen(path, STANDING) == (status, "journal", None, settled.seq)


def test_an_execution_is_settled_for_an_earlier_event(store: Store, path: RunPath) -> None:
    begun(store)
    begin(store)
    settled = store.executions.settle(Status.FAILED, None, 2, NOW_MS)
    store.commit()

    assert settled is not None
    assert json.loads(settled.record)["reason"] == 2
    assert seen(path, EXECUTION)[3:] == ("failed", settled.seq - 1, settled.seq, "journal", None, 2)
    assert seen(path, STANDING) == ("failed", "journal", None, 2)


def test_a_code_settles_without_an_event(store: Store, path: RunPath) -> None:
    begun(store)
    last = store.journal.head.seq
    begin(store)
    assert store.executions.settle("interrupted", "tired", None, NOW_MS) is None
    store.commit()

    assert store.journal.head.seq == last
    assert seen(path, EXECUTION)[3:] == ("interrupted", last, last, "host", "tired", None)
    assert seen(path, STANDING) == ("interrupted", "host", "tired", None)


def test_the_next_execution_leaves_no_reason_to_stop(store: Store, path: RunPath) -> None:
    for code, event in (("tired", None), (None, 2)):
        settle(store, "failed", code=code, event=event)
        begun(store)
        assert seen(path, STANDING) == ("running", None, None, None)
        begin(store)
        store.executions.settle("failed", None, None, NOW_MS)
        store.commit()


@pytest.mark.parametrize("event", [99, 6, 5, 0, -1, 2**62])
def test_a_reason_that_is_not_in_the_run_is_an_unknown_event(store: Store, path: RunPath, event: int) -> None:
    begun(store)
    assert store.journal.head.seq == 4

    refused(store, path, "unknown_event", store.executions.settle, "failed", None, event, NOW_MS)
    begin(store)
    assert store.executions.settle("failed", None, 4, NOW_MS) is not None
    store.commit()


@pytest.mark.parametrize(
    ("status", "code", "event", "told"),
    [
        ("failed", "tired", 2, "bad_option"),
        ("failed", "", None, "bad_option"),
        ("failed", "x" * 65, None, "bad_option"),
        ("failed", "a\n", None, "bad_option"),
        ("failed", 7, None, "bad_option"),
        ("running", None, None, "bad_option"),
        ("SECRET", None, None, "bad_option"),
        (None, None, None, "bad_option"),
    ],
)
def test_what_is_no_way_to_stop_is_refused(store: Store, path: RunPath, status: object, code: object, event: int | None, told: str) -> None:
    begun(store)

    error = refused(store, path, told, store.executions.settle, status, code, event, NOW_MS)
    assert "SECRET" not in str(error)


def test_without_a_running_execution_nothing_is_settled(store: Store, path: RunPath) -> None:
    refused(store, path, "no_execution", store.executions.settle, "failed", None, None, NOW_MS)
    refused(store, path, "no_execution", store.executions.settle, "failed", "tired", None, NOW_MS)


# Only the two statements that write a reason are interpreted.


def test_the_interpreted_statements_assign_one_foreign_key_each(store: Store) -> None:
    module = type(store.executions).__init__.__globals__
    for sql, table in ((module["_STOP_EXECUTION"], "execution"), (module["_STOP_RUN"], "run")):
        keys = {str(row[3]) for row in store.db.execute(f"PRAGMA foreign_key_list({table})")}
        assigned = {part.split("=")[0].strip() for part in sql.split("SET")[1].split("WHERE")[0].split(",")}
        assert keys & assigned == {"stop_event"}


def test_another_broken_foreign_key_is_a_storage_failure(store: Store, path: RunPath) -> None:
    before, head = seen(path, ALL), store.journal.head
    store.executions._epoch = 99  # no such tenure: the INSERT breaks its key
    begin(store)
    with pytest.raises(SqliteError) as raised:
        store.executions.begin(NOW_MS)
    assert code_of(raised.value) == apsw.SQLITE_CONSTRAINT_FOREIGNKEY
    told = store.transaction.after(raised.value)
    assert (told.code, store.journal.head) == ("storage_failed", head)
    store.commit()

    assert seen(path, ALL) == before


def test_another_broken_foreign_key_while_settling_is_a_storage_failure(store: Store, path: RunPath) -> None:
    begun(store)
    before = seen(path, ALL)
    begin(store)
    store.journal.head = store.journal.head._replace(root=99)  # the event's own key breaks
    with pytest.raises(SqliteError) as raised:
        store.executions.settle("failed", None, 2, NOW_MS)

    assert store.transaction.after(raised.value).code == "storage_failed"
    store.rollback()
    assert seen(path, ALL) == before


def test_another_constraint_of_an_interpreted_statement_is_a_storage_failure(store: Store, path: RunPath) -> None:
    begun(store)
    before = seen(path, ALL)
    begin(store)
    store.db.execute("UPDATE execution SET began_seq = 1000")  # so that its end comes before its beginning
    with pytest.raises(SqliteError) as raised:
        store.executions.settle("failed", None, 2, NOW_MS)

    assert store.transaction.after(raised.value).details["sqlite_extended_code"] == apsw.SQLITE_CONSTRAINT_CHECK
    store.rollback()
    assert seen(path, ALL) == before


def test_a_beginning_that_half_fails_is_undone_whole(store: Store, path: RunPath) -> None:
    before, head = seen(path, ALL), store.journal.head
    begin(store)

    def fail(_cursor: apsw.Cursor, sql: str, _bindings: Any) -> bool:
        if sql.startswith("UPDATE run "):
            error = apsw.NoMemError("out of memory")
            error.result = error.extendedresult = apsw.SQLITE_NOMEM  # type: ignore[attr-defined]
            raise error
        return True

    store.db.set_exec_trace(fail)
    with pytest.raises(apsw.NoMemError):
        store.executions.begin(NOW_MS)
    store.db.set_exec_trace(None)
    assert store.journal.head == head
    store.commit()

    assert seen(path, ALL) == before


@pytest.mark.parametrize("table", ["execution", "run"])
def test_a_stop_for_a_code_that_half_fails_is_undone_whole(store: Store, path: RunPath, table: str) -> None:
    begun(store)
    before = seen(path, ALL)
    begin(store)

    def fail(_cursor: apsw.Cursor, sql: str, _bindings: Any) -> bool:
        # A statement that cannot get memory fails alone and leaves the transaction open, as one on a full disk may do.
        if sql.startswith(f"UPDATE {table} ") and "stop_code" in sql:
            error = apsw.NoMemError("out of memory")
            error.result = error.extendedresult = apsw.SQLITE_NOMEM  # type: ignore[attr-defined]
            raise error
        return True

    store.db.set_exec_trace(fail)
    with pytest.raises(apsw.NoMemError):
        store.executions.settle("failed", "tired", None, NOW_MS)
    store.db.set_exec_trace(None)
    store.commit()

    assert seen(path, ALL) == before
