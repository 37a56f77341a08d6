"""An owned file gives everything back on every exit, keeps what it acknowledged, and a turn costs the same however long its life."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from faulty import Disk
from folder import descriptors, snapshot
from leaks import open_run_files
from owned import NOW_MS, SetClock, begin, begin_step, commit_notes, end_step, events, note, own, seen
from runfile import Owner, forge, new_run

from freehold.schema.errors import Damaged, Error, OwnedElsewhere, RunExists, StorageFailed
from freehold.schema.failure import Failure
from freehold.schema.hashes import request_digest
from freehold.storage.events import read_page, read_run, seq_of_id
from freehold.storage.faults import Poisoned
from freehold.storage.path import RunPath, resolve
from freehold.storage.pin import pin
from freehold.storage.recognise import Recognised
from freehold.storage.store import Store

ACKNOWLEDGED = """
import sys
sys.path[:0] = sys.argv[2:]
from owned import begin, commit_notes, note, own
from freehold.storage.path import resolve
store = own(resolve(sys.argv[1], "a"))
for number in range(1, 1000):
    commit_notes(store, str(number), str(number))
    print(number, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


@pytest.fixture
def store(path: RunPath) -> Iterator[Store]:
    store = own(path)
    yield store
    store.close(clean=False)


# Opened and closed


def test_an_owner_keeps_others_out_until_it_has_closed(store: Store, path: RunPath) -> None:
    with pytest.raises(OwnedElsewhere):
        pin(path, exclusive=True)
    store.close(clean=True)

    pin(path, exclusive=True).close()


def test_closing_twice_changes_nothing(store: Store, path: RunPath) -> None:
    store.close(clean=True)
    before = snapshot(Path(path.folder))
    for clean in (True, False):
        store.close(clean=clean)

    assert snapshot(Path(path.folder)) == before


def test_a_whole_life_gives_every_descriptor_back(path: RunPath) -> None:
    own(path).close(clean=True)
    before = descriptors()
    for clean in (True, False):
        store = own(path)
        commit_notes(store, "1")
        assert descriptors() > before
        store.close(clean=clean)
        assert descriptors() == before


def test_the_lock_can_be_kept_for_whoever_holds_the_pin(path: RunPath) -> None:
    held = pin(path, exclusive=True)
    store = Store(held, SetClock())
    store.close(clean=True, keep_lock=True)
    with pytest.raises(OwnedElsewhere):
        pin(path, exclusive=True)

    held.close()
    pin(path, exclusive=True).close()


def test_a_clean_close_ends_an_open_transaction_by_rollback(store: Store, path: RunPath) -> None:
    begin(store)
    store.savepoints.open()
    note(store)
    store.close(clean=True)

    assert events(path) == 1
    assert seen(path, "SELECT count(*) FROM tenure WHERE closed_at IS NOT NULL") == 1


def test_a_refused_file_is_left_and_given_back(path: RunPath) -> None:
    forge(path, "UPDATE event SET hash = zeroblob(32)")
    before, open_before = snapshot(Path(path.folder)), descriptors()
    with pytest.raises(Damaged):
        own(path)

    assert snapshot(Path(path.folder)) == before
    assert descriptors() == open_before
    pin(path, exclusive=True).close()


def test_nobody_is_asked_for_a_socket_for_a_file_that_is_refused(path: RunPath) -> None:
    forge(path, "UPDATE run SET txn = 0")

    with pytest.raises(Damaged):
        Store(pin(path, exclusive=True), SetClock(), socket=lambda: pytest.fail("it was asked"))


def test_who_finds_the_wrong_file_leaves_it_as_it_was(path: RunPath) -> None:
    before, open_before = snapshot(Path(path.folder)), descriptors()

    def refuse(found: Recognised) -> None:
        assert found.last_seq == 1
        raise RunExists("it is not the one that was looked for")

    with pytest.raises(RunExists):
        Store(pin(path, exclusive=True), SetClock(), recognised=refuse)

    assert (snapshot(Path(path.folder)), descriptors()) == (before, open_before)


def test_the_lock_is_released_after_the_connection_is_closed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    release = store.pin.close
    found: list[set[str]] = []

    def look_first() -> None:
        found.append({Path(name).name for name in open_run_files()})
        release()

    monkeypatch.setattr(store.pin, "close", look_first)
    store.close(clean=True)

    assert found == [{"a.sqlite"}]


def test_a_file_that_was_moved_in_a_transaction_is_left_with_all_that_was_acknowledged(store: Store, path: RunPath) -> None:
    commit_notes(store, "1")
    begin(store)
    note(store)
    Path(path.file).rename(Path(path.folder) / "moved.sqlite")
    store.close(clean=False)

    Path(path.sibling("-wal")).unlink()
    assert events(resolve(path.folder, "moved")) == 2


def test_a_file_that_was_moved_and_whose_disk_refuses_is_told_as_ours_and_given_back(path: RunPath) -> None:
    disk, open_before = Disk(), descriptors()
    store = own(path, vfs=disk.name)
    commit_notes(store, "1")
    Path(path.file).rename(Path(path.folder) / "moved.sqlite")
    disk.arm("write", "", code=apsw.SQLITE_IOERR_WRITE)
    with pytest.raises(StorageFailed) as raised:
        store.close(clean=False)
    disk.unregister()

    assert raised.value.details["phase"] == "close"
    assert descriptors() == open_before


@pytest.mark.parametrize(("operation", "suffix", "nth"), [("sync", "-wal", 1), ("write", "-wal", 1), ("read", "", 1), ("read", "", 3)])
def test_a_disk_that_fails_while_opening_gives_everything_back(path: RunPath, operation: str, suffix: str, nth: int) -> None:
    own(path).close(clean=True)
    disk, open_before = Disk(), descriptors()
    fault = disk.arm(operation, suffix, code=apsw.SQLITE_IOERR_FSYNC if operation == "sync" else apsw.SQLITE_IOERR_READ, nth=nth)
    with pytest.raises(Error) as raised:
        own(path, vfs=disk.name)
    disk.unregister()

    assert fault.fired
    assert isinstance(raised.value, StorageFailed)
    assert descriptors() == open_before
    again = own(path)
    assert again.epoch in (2, 3)
    again.close(clean=True)


@pytest.mark.parametrize("nth", [1, 2])
def test_a_close_whose_disk_fails_raises_ours_and_gives_everything_back(path: RunPath, nth: int) -> None:
    disk, open_before = Disk(), descriptors()
    store = own(path, vfs=disk.name)
    commit_notes(store, "1")
    disk.arm("sync", "-wal" if nth == 1 else "", code=apsw.SQLITE_IOERR_FSYNC)
    with pytest.raises(Poisoned):
        store.close(clean=True)
    disk.unregister()

    assert descriptors() == open_before
    assert events(path) == 2
    own(path).close(clean=True)


def test_a_close_that_breaks_a_rule_of_the_file_raises_ours(store: Store, path: RunPath) -> None:
    # SQLite itself refuses the one statement that ends a tenure.
    store.db.set_authorizer(lambda kind, table, *_: apsw.SQLITE_DENY if (kind, table) == (apsw.SQLITE_UPDATE, "tenure") else apsw.SQLITE_OK)
    with pytest.raises(StorageFailed) as raised:
        store.close(clean=True)

    assert raised.value.details == {"phase": "body", "rolled_back": True, "sqlite_extended_code": apsw.SQLITE_AUTH}
    assert seen(path, "SELECT count(closed_at), txn FROM tenure, run") == (0, 2)
    pin(path, exclusive=True).close()


# Killed


def test_what_was_acknowledged_outlives_a_kill_and_nothing_is_half_there(path: RunPath, tmp_path: Path) -> None:
    command = [sys.executable, "-c", ACKNOWLEDGED, path.folder, *sys.path]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            acknowledged = int(line)
            if acknowledged == 20:
                process.send_signal(signal.SIGKILL)
                break
        acknowledged = int((process.stdout.read().split() or [b"20"])[-1])

    store = own(path)
    found = [int(row.record) for row in read_page(store.db, 1)[0]]
    assert found == [number for number in range(1, len(found) // 2 + 1) for _ in range(2)]
    assert len(found) // 2 in (acknowledged, acknowledged + 1)
    assert store.epoch == 2
    store.close(clean=True)


def test_a_run_that_another_process_owns_is_not_opened(path: RunPath) -> None:
    with Owner(path), pytest.raises(OwnedElsewhere):
        own(path)

    own(path).close(clean=True)


# What a turn costs


def append(store: Store) -> None:
    begin(store)
    note(store)
    store.commit()


def append_once(store: Store) -> None:
    begin(store)
    store.append_once(f"r{store.journal.head.seq}", request_digest("append"), "n", "1", NOW_MS)
    store.commit()


def append_again(store: Store) -> None:
    begin(store)
    store.append_once("known", request_digest("append"), "n", "1", NOW_MS)
    store.commit()


def append_long(store: Store) -> None:
    begin(store)
    note(store, '"' + str(store.journal.head.seq) * 2000 + '"')
    store.commit()


def execute(store: Store) -> None:
    for code, event in (("tired", None), (None, None), (None, 2)):
        begin(store)
        store.executions.begin(NOW_MS)
        store.commit()
        begin(store)
        store.executions.settle("failed", code, event, NOW_MS)
        store.commit()


def transact(store: Store) -> None:
    begin(store)
    with store.savepoints.scope():
        note(store)
        store.requests.keep(f"t{store.journal.head.seq}", request_digest("work"), store.transaction.txn, NOW_MS, reply="1")
    store.commit()


def roll_back(store: Store) -> None:
    begin(store)
    note(store)
    store.rollback()


def read(store: Store) -> None:
    last = store.journal.head.seq
    read_run(store.db)
    store.written(last)
    seq_of_id(store.db, store.written(last).id)
    read_page(store.db, last - 3)
    read_page(store.db, last - 3, name="n")
    read_page(store.db, 4, name="n", reverse=True)


def step(store: Store) -> None:
    """Do a step with an intent that fails, one that leaves its intent, and one that is done; and ask for the last once more."""
    key = str(store.journal.head.seq)
    begin(store)
    begin_step(store, key, "park")
    end_step(store, key, 1, failure=Failure("E", "m").text, final=False)
    begin_step(store, key, "probe")
    end_step(store, key, begin_step(store, key, "repeat").attempt, "1")  # type: ignore[union-attr]
    begin_step(store, key)
    store.commit()


TURNS: list[Callable[[Store], None]] = [append, append_once, append_again, append_long, execute, transact, roll_back, read, step]


def fill(store: Store, number: int) -> None:
    """Let the run have so many events, and requests and executions to match."""
    begin(store)
    while store.journal.head.seq < number:
        seq = store.journal.head.seq
        if seq % 10 == 3:
            store.append_once(f"fill{seq}", request_digest("append"), "n", "1", NOW_MS)
            store.requests.keep(f"reply{seq}", request_digest("work"), store.transaction.txn, NOW_MS, reply="1")
        elif seq % 10 == 6:
            begin_step(store, f"fill{seq}", "park")
        elif seq % 50 == 8:
            store.executions.begin(NOW_MS)
            store.executions.settle("failed", None, None, NOW_MS)
        else:
            note(store)
    store.commit()
    append_again(store)


def statements_of(store: Store, turn: Callable[[Store], None]) -> list[str]:
    """Return what the turn says to SQLite."""
    said: list[str] = []

    def hear(_cursor: apsw.Cursor, sql: str, _bindings: Any) -> bool:
        said.append(sql)
        return True

    store.db.set_exec_trace(hear)
    try:
        turn(store)
    finally:
        store.db.set_exec_trace(None)
    return said


def steps_of(store: Store, turn: Callable[[Store], None]) -> dict[str, int]:
    """Return how many steps SQLite's machine takes for the turn, and how many of them go through rows one by one."""
    steps = {"vm": 0, "scan": 0, "sort": 0}

    def count(event: dict[str, Any]) -> None:
        status = event["stmt_status"]
        steps["vm"] += status["SQLITE_STMTSTATUS_VM_STEP"]
        steps["scan"] += status["SQLITE_STMTSTATUS_FULLSCAN_STEP"]
        steps["sort"] += status["SQLITE_STMTSTATUS_SORT"]

    store.db.trace_v2(apsw.SQLITE_TRACE_PROFILE, count)
    try:
        turn(store)
    finally:
        store.db.trace_v2(0, None)
    return steps


@pytest.mark.parametrize("turn", TURNS)
def test_no_statement_of_a_turn_goes_through_a_table(store: Store, turn: Callable[[Store], None]) -> None:
    fill(store, 30)
    plans = []
    for sql in statements_of(store, turn):
        for statement in filter(None, map(str.strip, sql.split(";"))):
            if re.match(r"BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|PRAGMA", statement):
                continue
            numbered = [int(number) for number in re.findall(r"\?(\d+)", statement)]
            bindings = (None,) * max(numbered, default=statement.count("?"))
            plans += [(statement, str(row[3])) for row in store.db.execute("EXPLAIN QUERY PLAN " + statement, bindings).fetchall()]

    assert plans
    assert [plan for plan in plans if plan[1].startswith("SCAN") and "CONSTANT" not in plan[1]] == []
    assert [plan for plan in plans if "TEMP B-TREE" in plan[1]] == []


def test_a_turn_costs_the_same_after_fifty_thousand_events(store: Store) -> None:
    def costs() -> dict[str, dict[str, int]]:
        for turn in TURNS:
            turn(store)  # once before, so that every statement is prepared and every page at hand
        return {turn.__name__: steps_of(store, turn) for turn in TURNS}

    fill(store, 1_000)
    short = costs()
    fill(store, 50_000)
    long = costs()

    assert long == short
    assert {name: steps["scan"] + steps["sort"] for name, steps in long.items()} == dict.fromkeys(short, 0)
