"""Owning writes one small transaction at take-over and one at a clean close, and tells afterwards what had happened."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest
from folder import snapshot
from owned import NOW_MS, SetClock, begin, commit_notes, events, own, seen
from runfile import new_run

from freehold.schema.errors import StorageFailed, Unavailable
from freehold.schema.ids import socket_name
from freehold.storage import connection, platform
from freehold.storage import store as module
from freehold.storage.faults import Poisoned
from freehold.storage.path import RunPath
from freehold.storage.pin import pin
from freehold.storage.store import Store

TENURES = "SELECT count(*), max(epoch), max(first_txn), sum(closed_at IS NOT NULL) FROM tenure"
STANDING = "SELECT status, stop_kind, stop_code, generation FROM run"
EXECUTION = "SELECT status, ended_seq, stop_kind, stop_code, epoch FROM execution ORDER BY id DESC"


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


def txn(path: RunPath) -> int:
    return int(seen(path, "SELECT txn FROM run"))


def rows(path: RunPath) -> dict[str, int]:
    """Return how many rows each table has, and how many rows were ever changed in the open connection's view."""
    tables = ("object", "root", "event", "ref", "run", "tenure", "execution", "request")
    return {table: int(seen(path, f"SELECT count(*) FROM {table}")) for table in tables}


# One small transaction each


def test_a_life_without_turns_writes_two_small_transactions(path: RunPath) -> None:
    before, first = rows(path), txn(path)
    store = own(path)
    assert (txn(path), rows(path)) == (first + 1, before | {"tenure": 1})
    assert store.wal.pages == 0
    store.close(clean=True)

    assert sorted(file.name for file in Path(path.folder).iterdir()) == ["a.sqlite"]
    assert (txn(path), rows(path)) == (first + 2, before | {"tenure": 1})


def test_every_turn_between_counts_one(path: RunPath) -> None:
    first = txn(path)
    store = own(path)
    for _ in range(5):
        commit_notes(store, "1")
    store.close(clean=True)

    assert txn(path) == first + 7


def test_an_unclean_close_writes_nothing(path: RunPath) -> None:
    store = own(path)
    commit_notes(store, "1")
    last = txn(path)
    begin(store)
    store.close(clean=False)

    assert (txn(path), seen(path, TENURES)) == (last, (1, 1, 2, 0))


def test_a_poisoned_close_writes_nothing(path: RunPath) -> None:
    store = own(path)
    commit_notes(store, "1")
    last = txn(path)
    store.transaction.poison(StorageFailed("a sentence"))
    store.close(clean=True)

    assert (txn(path), seen(path, TENURES)) == (last, (1, 1, 2, 0))


def test_a_close_that_finds_the_file_taken_over_writes_nothing(path: RunPath) -> None:
    store = own(path)
    other = apsw.Connection(path.file)
    other.execute("UPDATE run SET epoch = epoch + 1")
    other.close()
    last = txn(path)
    with pytest.raises(Poisoned):
        store.close(clean=True)

    assert (txn(path), seen(path, TENURES)) == (last, (1, 1, 2, 0))
    held = pin(path, exclusive=True)  # and everything was given back
    held.close()


def test_every_tenure_says_who_and_from_when_to_when(path: RunPath) -> None:
    clock = SetClock()
    for epoch in (1, 2, 3):
        clock.now = NOW_MS + 100 * epoch
        store = own(path, clock)
        assert (store.epoch, store.tenure.epoch, store.tenure.continues) == (epoch, epoch, False)
        clock.now += 7
        store.close(clean=True)
    found = seen(path, "SELECT host, boot, pid, pid_ns, pid_start, opened_at, closed_at FROM tenure WHERE epoch = 2")

    us = (platform.hostname(), platform.boot_id(), os.getpid(), platform.pid_namespace(), platform.process_start(os.getpid()))
    assert found == (*us, NOW_MS + 200, NOW_MS + 207)
    assert seen(path, TENURES) == (3, 3, 6, 3)
    assert seen(path, "SELECT epoch, txn FROM run") == (3, 7)


def test_a_tenure_says_where_its_owner_can_be_asked(path: RunPath) -> None:
    name = socket_name(bytes(8))
    Store(pin(path, exclusive=True), SetClock(), socket=lambda: name).close(clean=True)
    Store(pin(path, exclusive=True), SetClock(), socket=lambda: None).close(clean=True)
    own(path).close(clean=True)

    assert seen(path, "SELECT group_concat(coalesce(socket, '-')) FROM tenure") == f"{name},-,-"


# A running execution


@pytest.fixture
def running(path: RunPath) -> Iterator[Store]:
    store = own(path)
    begin(store)
    store.executions.begin(NOW_MS)
    store.commit()
    yield store
    store.close(clean=False)


def test_a_clean_close_interrupts_what_runs(path: RunPath, running: Store) -> None:
    running.close(clean=True)

    assert seen(path, STANDING) == ("interrupted", "host", "host_closed", 0)
    assert seen(path, EXECUTION) == ("interrupted", 2, "host", "host_closed", 1)
    assert events(path) == 2


def test_the_next_owner_interrupts_what_a_lost_one_left_running(path: RunPath, running: Store) -> None:
    running.close(clean=False)
    assert seen(path, STANDING) == ("running", None, None, 0)

    store = own(path)
    assert seen(path, STANDING) == ("interrupted", "host", "owner_lost", 1)
    assert seen(path, EXECUTION) == ("interrupted", 2, "host", "owner_lost", 1)
    begin(store)
    assert store.executions.begin(NOW_MS) == 2
    store.rollback()
    store.close(clean=True)
    assert seen(path, STANDING) == ("interrupted", "host", "owner_lost", 1)


def test_our_own_reopening_leaves_it_running(path: RunPath, running: Store) -> None:
    running.close(clean=False)
    store = own(path, own_epoch=running.epoch)

    assert store.tenure.continues
    assert seen(path, STANDING) == ("running", None, None, 0)
    begin(store)
    store.executions.settle("failed", None, None, NOW_MS)
    store.commit()
    store.close(clean=True)


@pytest.mark.parametrize("between", [1, 2])
def test_a_reopening_after_another_owner_does_not_continue(path: RunPath, running: Store, between: int) -> None:
    running.close(clean=False)
    for _ in range(between):
        own(path).close(clean=False)
    store = own(path, own_epoch=running.epoch)

    assert not store.tenure.continues
    assert seen(path, STANDING)[:3] == ("interrupted", "host", "owner_lost")
    store.close(clean=True)


# Between looking and taking over

COLUMNS = "seq, id, kind, name, record, root, recorded_at, hash"
FOREIGN_EVENT = f"INSERT INTO event ({COLUMNS}) VALUES (2, zeroblob(16), 'note', 'n', '1', 1, 0, zeroblob(32))"


def after_looking(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Let *change* happen when the file was recognised and is not yet taken over."""
    opening = connection.open_live

    def changed(*args: object) -> apsw.Connection:
        change()
        return opening(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "open_live", changed)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE run SET txn = txn + 1",
        "UPDATE run SET epoch = epoch + 1",
        "UPDATE run SET id = 'b'",
        "CREATE TABLE extra (a)",
        "DROP INDEX event_value",
        FOREIGN_EVENT,
    ],
)
def test_a_file_that_was_written_after_it_was_recognised_is_not_taken_over(
    path: RunPath, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    def write() -> None:
        db = apsw.Connection(path.file)
        db.execute(statement)
        db.close()

    after_looking(monkeypatch, write)
    with pytest.raises(Unavailable) as raised:
        own(path)
    monkeypatch.undo()

    assert raised.value.code == "changed_while_reading"
    assert seen(path, TENURES) == (0, None, None, None)
    held = pin(path, exclusive=True)
    held.close()


def test_a_file_that_was_replaced_after_it_was_recognised_is_not_taken_over(
    path: RunPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    other = new_run(tmp_path / "other")
    after_looking(monkeypatch, lambda: Path(other.file).rename(path.file))
    with pytest.raises(Unavailable) as raised:
        own(path)
    monkeypatch.undo()

    assert raised.value.code == "changed_while_reading"
    assert seen(path, TENURES) == (0, None, None, None)


def test_a_locked_file_is_not_taken_over_and_left_as_it_is(path: RunPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own(path).close(clean=True)
    other = apsw.Connection(path.file)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr("freehold.storage.connection.BUSY_TIMEOUT_MS", 0)
    with pytest.raises(Unavailable) as raised:
        own(path)
    other.close()

    assert raised.value.code == "database_busy"
    assert seen(path, TENURES) == (1, 1, 2, 1)


def test_a_refused_take_over_leaves_the_folder_as_it_was(path: RunPath, tmp_path: Path) -> None:
    own(path).close(clean=True)
    db = apsw.Connection(path.file)
    db.execute("UPDATE run SET epoch = 7")
    db.close()
    before = snapshot(tmp_path)
    with pytest.raises(Exception, match="tenure"):
        own(path)

    assert snapshot(tmp_path) == before


# What had happened


def test_a_transaction_of_an_earlier_tenure_happened_or_did_not(path: RunPath) -> None:
    store = own(path)
    commit_notes(store, "1", "2")
    commit_notes(store, "3")
    last, epoch = store.transaction.txn, store.epoch
    store.close(clean=False)

    later = own(path)
    assert [later.happened(number, epoch) for number in (last - 1, last, last + 1, last + 2)] == [True, True, False, False]
    assert not later.happened(last, later.epoch)  # nobody has come after it yet
    commit_notes(later, "4")
    later.close(clean=True)
    much_later = own(path)
    assert [much_later.happened(number, epoch) for number in (last, last + 1)] == [True, False]
    much_later.close(clean=True)
