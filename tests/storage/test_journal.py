"""Every event is chained to the one before it, and after every kind of rollback the next one is chained to what the file has."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from faulty import Disk
from owned import NOW_MS, SetClock, begin, commit_notes, events, note, own, seen
from runfile import new_run

from freehold.schema.errors import Damaged
from freehold.schema.roots import EMPTY_ROOT, EMPTY_TREE
from freehold.storage.faults import Ended, Poisoned, SqliteError
from freehold.storage.journal import is_long, spilled_record
from freehold.storage.path import RunPath
from freehold.storage.store import Store


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


@pytest.fixture
def store(path: RunPath) -> Iterator[Store]:
    store = own(path)
    commit_notes(store, "1")
    yield store
    store.close(clean=False)


def chain_of(path: RunPath) -> list[bytes]:
    """Return the stored hashes, once it is sure that they are those of a chain as the format describes it."""
    db = apsw.Connection(path.file, flags=apsw.SQLITE_OPEN_READONLY)
    rows: list[Any] = db.execute(
        "SELECT e.seq, e.id, e.kind, e.name, e.execution, e.position, e.phase, e.attempt, e.record, v.hash, r.hash, e.recorded_at, e.hash"
        " FROM event e JOIN root r ON r.id = e.root LEFT JOIN object v ON v.id = e.value ORDER BY e.seq"
    ).fetchall()
    db.close()
    previous, found = bytes(32), []
    for seq, (*fields, right) in enumerate(rows, 1):
        text = b"freehold/event\x00\x01" + previous
        for field in fields:
            raw = struct.pack(">Q", field) if isinstance(field, int) else field.encode() if isinstance(field, str) else field
            text += b"\xff" * 8 if raw is None else struct.pack(">Q", len(raw)) + raw
        previous = hashlib.sha256(text).digest()
        assert (fields[0], right) == (seq, previous)
        found.append(previous)
    return found


def agrees(store: Store, path: RunPath) -> bool:
    """Append once more; return whether memory, our connection and another one agree on the whole chain."""
    commit_notes(store, "7")
    chain = chain_of(path)
    return store.journal.head == store.journal.read_head() and (len(chain), chain[-1]) == (store.journal.head.seq, store.journal.head.hash)


def test_events_are_chained_from_the_first_on(store: Store, path: RunPath) -> None:
    commit_notes(store, "2", '"' + "x" * 5000 + '"', '"é"')
    begin(store)
    store.executions.begin(NOW_MS)
    store.executions.settle("failed", None, None, NOW_MS)
    store.commit()

    assert len(chain_of(path)) == 7
    assert agrees(store, path)


def test_an_event_says_what_it_was_told_and_when(store: Store, path: RunPath) -> None:
    begin(store)
    written = store.journal.append("note", "paid", '{"a":1}', NOW_MS + 5)
    store.commit()
    row = seen(path, "SELECT seq, id, kind, name, execution, record, recorded_at, hash, value FROM event ORDER BY seq DESC LIMIT 1")

    assert row == (written.seq, written.id, "note", "paid", None, '{"a":1}', NOW_MS + 5, written.hash, None)
    assert written[2:6] == ("note", "paid", None, '{"a":1}')


def test_every_event_names_the_root_that_is_current_in_its_transaction(store: Store, path: RunPath) -> None:
    commit_notes(store, "1", "2")
    current = seen(path, "SELECT root FROM ref WHERE name = 'current'")

    assert seen(path, "SELECT group_concat(DISTINCT root) FROM event") == str(current)
    assert store.journal.head.root_hash == seen(path, "SELECT hash FROM root WHERE id = ?", current) == EMPTY_ROOT.hash


def test_a_reopened_file_has_the_head_that_it_was_left_with(store: Store, path: RunPath) -> None:
    head = store.journal.head
    store.close(clean=True)

    again = own(path)
    assert again.journal.head == head
    assert agrees(again, path)
    again.close(clean=True)


# The four kinds of rollback


def test_after_an_undone_savepoint_the_chain_goes_on(store: Store, path: RunPath) -> None:
    begin(store)
    note(store)
    head = store.journal.head
    name = store.savepoints.open()
    note(store)
    note(store)
    store.savepoints.undo(name)
    assert store.journal.head == head
    store.commit()

    assert agrees(store, path)


def test_after_a_rolled_back_transaction_the_chain_goes_on(store: Store, path: RunPath) -> None:
    head = store.journal.head
    begin(store)
    store.savepoints.open()
    note(store)
    store.rollback()

    assert store.journal.head == head == store.journal.read_head()
    assert agrees(store, path)


def test_after_a_failed_commit_the_next_owner_goes_on_from_what_the_file_has(path: RunPath) -> None:
    disk = Disk()
    store = own(path, vfs=disk.name)
    commit_notes(store, "1")
    begin(store)
    note(store)
    disk.arm("sync", "-wal")
    with pytest.raises(Poisoned):
        store.commit()
    with pytest.raises(Poisoned):
        note(store)
    disk.heal()
    store.close(clean=True)

    again = own(path)
    assert agrees(again, path)
    again.close(clean=True)
    disk.unregister()


def test_after_a_transaction_that_sqlite_ended_the_chain_goes_on(store: Store, path: RunPath) -> None:
    head = store.journal.head
    begin(store)
    store.db.pragma("max_page_count", store.db.pragma("page_count"))
    with pytest.raises(SqliteError) as raised:
        for _ in range(50):
            note(store, '"' + "x" * 3000 + '"')
    store.db.pragma("max_page_count", 2**31)
    with pytest.raises(Ended):
        store.transaction.after(raised.value)
    store.rollback()

    assert store.journal.head == head == store.journal.read_head()
    assert agrees(store, path)


def test_a_refused_statement_leaves_the_head_where_it_was(store: Store, path: RunPath) -> None:
    begin(store)
    head = store.journal.head
    wrong: list[tuple[str, str | None, str, int | None]] = [
        ("other", "n", "1", None),
        ("note", None, "1", None),
        ("note", "n", "no json", None),
        ("note", "n", "1", 9),
    ]
    for kind, name, record, execution in wrong:
        with pytest.raises(SqliteError):
            store.journal.append(kind, name, record, NOW_MS, execution)
        assert store.journal.head == head
    store.rollback()

    assert agrees(store, path)


def test_outside_of_a_transaction_nothing_is_appended(store: Store, path: RunPath) -> None:
    head, before = store.journal.head, events(path)
    with pytest.raises(Poisoned):
        note(store)

    assert (store.journal.head, events(path)) == (head, before)


# Long records


@pytest.mark.parametrize(
    ("record", "long"),
    [
        ("x" * 4096, False),
        ("x" * 4097, True),
        ("é" * 2048, False),
        ("é" * 2048 + "x", True),
        ("x" + "é" * 2048, True),
        ("x" * 4095 + "é", True),
        ("🙂" * 1024, False),
        ("🙂" * 1025, True),
        ("x" * 10_000, True),
        ("", False),
    ],
)
def test_a_record_of_more_than_4096_bytes_is_long(record: str, long: bool) -> None:
    assert is_long(record) == long == (len(record.encode()) > 4096)


@pytest.mark.parametrize("text", ["x" * 4094, "x" * 4095, "é" * 2047, "é" * 2048, "x" * 100_000])
def test_a_long_record_is_kept_as_an_object_and_read_back_whole(store: Store, path: RunPath, text: str) -> None:
    record = f'"{text}"'
    size = len(record.encode())
    objects = seen(path, "SELECT count(*) FROM object")
    (written,) = commit_notes(store, record)
    row = seen(path, "SELECT record, value IS NOT NULL FROM event WHERE seq = ?", written.seq)

    assert written.record == record
    assert store.written(written.seq) == written
    assert row == ((spilled_record(size), 1) if size > 4096 else (record, 0))
    assert seen(path, "SELECT count(*) FROM object") == objects + (size > 4096)
    if size > 4096:
        found = seen(path, "SELECT o.hash, o.kind, o.size FROM object o JOIN event e ON e.value = o.id WHERE e.seq = ?", written.seq)
        assert found == (hashlib.sha256(b"freehold/value\x00" + record.encode()).digest(), 4, size)
    assert agrees(store, path)


def test_the_same_long_record_is_kept_once(store: Store, path: RunPath) -> None:
    before = seen(path, "SELECT count(*) FROM object")
    commit_notes(store, *['"' + "x" * 5000 + '"'] * 3)

    assert seen(path, "SELECT count(*) FROM object") == before + 1
    assert agrees(store, path)


def test_an_undone_long_record_leaves_no_object(store: Store, path: RunPath) -> None:
    before = seen(path, "SELECT count(*) FROM object")
    begin(store)
    name = store.savepoints.open()
    note(store, '"' + "x" * 5000 + '"')
    store.savepoints.undo(name)
    store.commit()

    assert seen(path, "SELECT count(*) FROM object") == before


# The first event


@pytest.mark.parametrize("text", ["blue", "x" * 5000, "é" * 3000])
def test_a_new_run_holds_one_event_one_root_and_the_empty_workspace(tmp_path: Path, text: str) -> None:
    props = json.dumps({"colour": text}, ensure_ascii=False, separators=(",", ":"))
    path = new_run(tmp_path, "b", props)
    store = own(path)
    first = store.written(1)

    assert json.loads(first.record) == {"run": "b", "project": "paint", "workflow": None, "props": {"colour": text}}
    assert (first.kind, first.name, first.root_hash) == ("created", None, EMPTY_ROOT.hash)
    assert is_long(first.record) == (seen(path, "SELECT record FROM event") != first.record)
    assert seen(path, "SELECT count(*) FROM object WHERE hash IN (?, ?)", EMPTY_ROOT.hash, EMPTY_TREE.hash) == 2
    assert seen(path, "SELECT name, root, moved_seq FROM ref") == ("current", 1, 1)
    assert seen(path, "SELECT one, id, project, props, status, generation FROM run") == (1, "b", "paint", props, "created", 0)
    assert agrees(store, path)
    store.close(clean=True)


def test_a_file_without_events_is_damaged(store: Store) -> None:
    store.db.pragma("foreign_keys", 0)
    store.db.execute("DELETE FROM event")
    with pytest.raises(Damaged) as raised:
        store.journal.read_head()

    assert raised.value.details["rule"] == "journal"


def test_a_clock_that_steps_back_does_not_disturb_the_order(path: RunPath) -> None:
    clock = SetClock()
    store = own(path, clock)
    for now in (NOW_MS, NOW_MS - 10_000, 0, NOW_MS + 5):
        clock.now = now
        commit_notes(store, "1")

    assert agrees(store, path)
    store.close(clean=True)
