"""What one drain of the mailbox commits together: whole turns, one fsync, and nothing answered before it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest
from faulty import FULL, Disk, put_on
from other import locks
from turns import Busy, names, senders, store, txn, until, waiting
from unruly import NAMES, unruly

import freehold
from freehold import Host, Refused, Run, StorageFailed, Transaction, Unavailable
from freehold.actors.envelope import Envelope
from freehold.actors.reply import Reply
from freehold.schema.messages import Append, ReadRun, Settle
from freehold.storage.requests import Requests
from freehold.storage.store import Store

Tx = Transaction


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def host(tmp_path: Path, disk: Disk) -> Iterator[Host]:
    with freehold.open(tmp_path, timeout=20) as host:
        put_on(disk, host)
        yield host


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a") as run:
        yield run


@pytest.fixture
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.actors.batch.BATCH_SECONDS_MAX", 60.0)


def fail(error: BaseException) -> Callable[[Tx], None]:
    def work(tx: Tx) -> None:
        tx.append("lost")
        raise error

    return work


def raised(error: BaseException) -> None:
    raise error


def test_the_turns_of_sixteen_threads_on_one_run_never_interleave(run: Run) -> None:
    def three(number: int) -> Callable[[Tx], None]:
        def work(tx: Tx) -> None:
            for part in range(3):
                tx.append("part", [number, part])

        return work

    with senders(16) as go:
        for turn in [go(run.transact, three(number)) for number in range(80)]:
            turn.result()
    parts = [event.data for event in run.history(name="part")]
    assert [part for _, part in parts] == [0, 1, 2] * 80
    assert all(parts[at][0] == parts[at + 1][0] == parts[at + 2][0] for at in range(0, 240, 3))
    assert sorted({number for number, _ in parts}) == list(range(80))
    run.verify()


@pytest.mark.usefixtures("no_hurry")
def test_appends_that_wait_together_are_committed_together(run: Run, disk: Disk) -> None:
    before = txn(run)
    with senders(40) as go:
        with Busy(run):
            appends = [go(run.append, "x", number) for number in range(40)]
            waiting(run, 40)
            disk.syncs = 0
        assert sorted(append.result().seq for append in appends) == list(range(2, 42))
    assert txn(run) == before + 1
    assert disk.syncs == 1


@pytest.mark.usefixtures("no_hurry")
@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), KeyboardInterrupt(), StopIteration(), GeneratorExit()], ids=repr)
def test_a_turn_that_fails_loses_only_itself(run: Run, error: BaseException) -> None:
    before = txn(run)
    with senders() as go:
        with Busy(run):
            first = go(run.append, "first")
            waiting(run, 1)
            failing = go(_outcome, run, fail(error))
            waiting(run, 2)
            last = go(run.append, "last")
            waiting(run, 3)
        assert failing.result() is error
        assert (first.result().seq, last.result().seq) == (2, 3)
    assert names(run) == ["first", "last"]
    assert txn(run) == before + 1
    run.verify()


@pytest.mark.usefixtures("no_hurry")
@pytest.mark.parametrize("name", NAMES)
def test_an_exception_that_may_not_be_touched_takes_no_other_turn_with_it(run: Run, name: str) -> None:
    test_a_turn_that_fails_loses_only_itself(run, unruly(name))
    assert run.info.epoch == 1


def _outcome(run: Run, work: Callable[[Tx], Any]) -> object:
    # A future would stop its pool for a SystemExit.
    try:
        return run.transact(work)
    except BaseException as error:  # noqa: BLE001 - it is what the test asks for
        return error


@pytest.mark.usefixtures("no_hurry")
@pytest.mark.parametrize(
    "wrong",
    [Append("", "null"), Append("", f'"{"x" * 10_000}"'), Append("lost", "null", "request", bytes(31))],
    ids=["its only statement", "the second, after its object", "the second, after its event"],
)
def test_a_turn_that_a_constraint_refuses_loses_only_itself(host: Host, run: Run, wrong: Append) -> None:
    # The face would let none of these through; a CHECK of the table is the last to say no.
    objects = store(host, run).db.execute("SELECT count(*) FROM object").get
    with senders() as go:
        with Busy(run):
            first = go(run.append, "first")
            waiting(run, 1)
            refused = go(run._ref.call, wrong, run._lease)
            waiting(run, 2)
            last = go(run.append, "last")
            waiting(run, 3)
        with pytest.raises(StorageFailed) as caught:
            refused.result()
        assert (first.result().seq, last.result().seq) == (2, 3)
    assert (caught.value.executed, caught.value.details["phase"]) == ("no", "body")
    assert caught.value.details["sqlite_extended_code"] == apsw.SQLITE_CONSTRAINT_CHECK
    assert names(run) == ["first", "last"]
    assert store(host, run).db.execute("SELECT count(*) FROM object").get == objects
    assert run.info.epoch == 1
    run.verify()


@pytest.mark.usefixtures("no_hurry")
def test_who_comes_while_a_batch_is_at_work_joins_it(run: Run) -> None:
    before = txn(run)
    with senders() as go:
        late: list[Any] = []

        def work(tx: Tx) -> None:
            tx.append("early")
            late.append(go(run.append, "late"))
            waiting(run, 1)

        run.transact(work)
        late[0].result()
    assert txn(run) == before + 1


@pytest.mark.parametrize(
    ("bound", "value", "commits"), [("BATCH_SECONDS_MAX", 0.0, 5), ("BATCH_TURNS_MAX", 3, 2), ("BATCH_BYTES_MAX", 500, 2)]
)
def test_whoever_would_be_too_much_for_a_batch_does_not_join_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, bound: str, value: float, commits: int
) -> None:
    monkeypatch.setattr("freehold.actors.batch.BATCH_SECONDS_MAX", 60.0)
    monkeypatch.setattr(f"freehold.actors.batch.{bound}", value)
    before = txn(run)
    with senders() as go:
        late: list[Any] = []

        def work(tx: Tx) -> None:
            tx.append("early")
            late.extend(go(run.append, "late") for _ in range(4))
            waiting(run, 4)

        run.transact(work)
        for turn in late:
            turn.result()
    assert txn(run) == before + commits
    assert names(run) == ["early"] + ["late"] * 4


def test_a_batch_ends_when_its_time_is_up(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.actors.batch.BATCH_SECONDS_MAX", 0.0)
    before = txn(run)
    with senders() as go:
        with Busy(run):
            turns = [go(run.transact, lambda tx: tx.append("x")) for _ in range(5)]
            waiting(run, 5)
        for turn in turns:
            turn.result()
    assert txn(run) == before + 5  # the turn that only waited left nothing to commit
    assert names(run) == ["x"] * 5


def test_a_batch_whose_turns_were_all_refused_is_rolled_back(run: Run, disk: Disk) -> None:
    run.append("x")
    before = txn(run)
    disk.syncs = 0

    with pytest.raises(ZeroDivisionError):
        run.transact(fail(ZeroDivisionError()))

    assert txn(run) == before
    assert disk.syncs == 0
    assert run.append("y").seq == 3


@pytest.mark.usefixtures("no_hurry")
def test_a_read_beside_refused_turns_does_not_make_them_a_commit(run: Run) -> None:
    before = txn(run)
    with senders() as go:
        failing, reading = _fail_and_read(run, go)
        assert isinstance(failing.result(), ZeroDivisionError)
        assert reading.result().events == 1
    assert txn(run) == before


def _fail_and_read(run: Run, go: Callable[..., Any]) -> tuple[Any, Any]:
    def work(tx: Tx) -> None:
        tx.append("lost")
        reading.append(go(lambda: run.info))
        waiting(run, 1)
        raise ZeroDivisionError

    reading: list[Any] = []
    failing = go(_outcome, run, work)
    until(lambda: reading)
    return failing, reading[0]


@pytest.mark.usefixtures("no_hurry")
def test_a_read_that_saw_uncommitted_rows_is_answered_after_the_commit(run: Run, disk: Disk) -> None:
    appending, reading = Reply(), Reply()
    with disk.hold() as commit:
        with Busy(run):
            run._ref.mailbox.put(Envelope(Append("new", "null"), appending, run._lease))
            run._ref.mailbox.put(Envelope(ReadRun(), reading, run._lease))
        assert commit.reached.wait(20)
        assert not reading.is_set
        assert not appending.is_set
        commit.release()
        assert reading.get(20)[1] == appending.get(20).seq == 2


def test_a_read_that_saw_uncommitted_rows_says_so_when_the_commit_fails(run: Run, disk: Disk) -> None:
    with senders() as go:
        disk.arm("sync")
        appending, reading = _append_and_read(run, go)
        for turn in (appending, reading):
            with pytest.raises(StorageFailed) as caught:
                turn.result()
            assert caught.value.executed == "no"
    assert names(run) == []


def _append_and_read(run: Run, go: Callable[..., Any]) -> tuple[Any, Any]:
    with Busy(run):
        appending = go(run.append, "new")
        waiting(run, 1)
        reading = go(lambda: list(run.history()))
        waiting(run, 2)
    return appending, reading


def test_a_read_of_an_idle_run_waits_for_no_write_lock(host: Host, run: Run) -> None:
    store(host, run).db.set_busy_timeout(20)
    with locks(run.path):
        assert run.info.events == 1


def test_a_read_of_an_idle_run_takes_no_transaction(run: Run, disk: Disk) -> None:
    before = txn(run)
    disk.syncs = 0
    assert len(list(run.history())) == 1
    assert (txn(run), disk.syncs) == (before, 0)


@pytest.mark.usefixtures("no_hurry")
def test_callables_and_typed_turns_are_served_in_the_order_of_their_arrival(run: Run) -> None:
    with senders(20) as go:
        with Busy(run):
            for number in range(0, 20, 2):
                go(run.append, f"n{number}")
                waiting(run, number + 1)
                go(run.transact, lambda tx, number=number: tx.append(f"n{number + 1}"))
                waiting(run, number + 2)
        until(lambda: len(names(run)) == 20)
    assert names(run) == [f"n{number}" for number in range(20)]


@pytest.mark.usefixtures("no_hurry")
def test_a_full_disk_lets_typed_turns_run_again_alone_and_tells_callables_that_nothing_was_kept(host: Host, run: Run) -> None:
    run.append("before")
    db = store(host, run).db
    ran: list[str] = []

    def callable_turn(tx: Tx) -> None:
        ran.append("callable")
        tx.append("callable")

    with senders() as go:
        with Busy(run) as busy:
            small = [go(run.append, "small", number) for number in range(3)]
            waiting(run, 3)
            called = go(run.transact, callable_turn)
            waiting(run, 4)
            reading = go(lambda: run.info)
            waiting(run, 5)
            huge = go(run.append, "huge", "x" * 3800)
            waiting(run, 6)
            db.pragma("max_page_count", db.pragma("page_count"))
        for turn in (called, huge):
            with pytest.raises(StorageFailed) as caught:
                turn.result()
            assert (caught.value.executed, caught.value.retryable) == ("no", True)
            assert caught.value.details["sqlite_extended_code"] == FULL
        assert sorted(turn.result().seq for turn in small) == [3, 4, 5]
        assert 2 <= reading.result().events <= 5
    assert (told := busy.outcome()) is not None
    assert told.executed == "no"
    assert ran == ["callable"]
    assert names(run) == ["before"] + ["small"] * 3
    assert run.info.epoch == 1
    db.pragma("max_page_count", 1_000_000)
    assert run.append("after").seq == 6
    run.verify()


@pytest.mark.usefixtures("no_hurry")
def test_a_disk_that_stays_full_answers_every_typed_turn(host: Host, run: Run) -> None:
    db = store(host, run).db
    db.pragma("max_page_count", db.pragma("page_count"))
    with senders() as go:
        with Busy(run):
            turns = [go(run.append, "x", "x" * 3900) for _ in range(8)]
            waiting(run, 8)
        for turn in turns:
            with pytest.raises(StorageFailed) as caught:
                turn.result()
            assert caught.value.executed == "no"
    assert names(run) == []
    assert run.info.epoch == 1


def test_a_busy_write_lock_refuses_the_batch_and_leaves_the_run_usable(host: Host, run: Run) -> None:
    store(host, run).db.set_busy_timeout(20)
    with locks(run.path), senders() as go:
        turns = [go(run.append, "x") for _ in range(4)]
        for turn in turns:
            with pytest.raises(Unavailable) as caught:
                turn.result()
            assert (caught.value.code, caught.value.executed) == ("database_busy", "no")
    assert names(run) == []
    assert run.append("y").seq == 2
    assert run.info.epoch == 1


def test_of_those_who_come_together_only_the_first_waits_for_a_busy_lock(host: Host, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    def begin(self: Store, now_ms: int, **how: bool) -> None:
        begun.append(now_ms)
        really(self, now_ms, **how)

    really = Store.begin
    monkeypatch.setattr(Store, "begin", begin)
    store(host, run).db.set_busy_timeout(50)  # longer than a batch may take
    replies = [Reply() for _ in range(4)]
    with locks(run.path):
        with run._ref.mailbox._lock:
            for reply in replies:
                run._ref.mailbox.put(Envelope(Append("lost", "null"), reply, run._lease))
        for reply in replies:
            with pytest.raises(Unavailable) as caught:
                reply.get(20)
            assert caught.value.code == "database_busy"
    assert len(begun) == 1
    assert names(run) == []


@pytest.mark.usefixtures("no_hurry")
@pytest.mark.parametrize("full", [True, False])
def test_a_turn_that_had_failed_by_itself_keeps_its_error_when_the_others_fail_with_the_disk(
    host: Host, run: Run, disk: Disk, *, full: bool
) -> None:
    error = unruly("__bool__")
    run.append("before", "x" * 3000)
    db = store(host, run).db
    db.pragma("cache_size", 5)
    with senders() as go:
        with Busy(run):
            failing = go(_outcome, run, lambda _tx: raised(error))
            waiting(run, 1)
            # What ends the transaction is a statement alone; what the disk refuses, more than the page cache holds.
            huge = go(run.append, "huge", "x" * 3800 if full else os.urandom(300_000))
            waiting(run, 2)
            if full:
                db.pragma("max_page_count", db.pragma("page_count"))
            else:
                disk.arm("write", nth=2, code=apsw.SQLITE_IOERR_WRITE)
        assert failing.result() is error
        with pytest.raises(StorageFailed) as caught:
            huge.result()
    assert caught.value.executed == "no"
    assert names(run) == ["before"]


@pytest.mark.usefixtures("no_hurry")
@pytest.mark.parametrize("kept", [False, True])
def test_a_turn_that_runs_alone_is_told_the_truth_about_its_commit(host: Host, run: Run, disk: Disk, *, kept: bool) -> None:
    db = store(host, run).db
    with senders() as go:
        with Busy(run):
            small = [go(run.append, "small") for _ in range(3)]
            waiting(run, 3)
            huge = go(run.append, "huge", "x" * 3800)
            waiting(run, 4)
            db.pragma("max_page_count", db.pragma("page_count"))
            disk.arm("sync", sticky=kept, until_closed=kept)
        told = [_told(turn) for turn in [*small, huge]]
    assert sorted(told) == ["no"] * 3 + ["yes" if kept else "no"]
    assert names(run) == ["small"] * kept
    assert run.info.epoch == 2


def test_of_a_turn_that_ends_its_transaction_when_it_runs_alone_nothing_is_left_in_memory(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keep(self: Requests, request_id: str, *arguments: Any, **options: Any) -> None:
        if request_id == "lost":
            self._db.execute("ROLLBACK")  # as SQLite does by itself, after the event was written
            error = apsw.FullError("full")
            error.extendedresult = FULL  # type: ignore[attr-defined] # as apsw sets it
            raise error
        really(self, request_id, *arguments, **options)

    really = Requests.keep
    monkeypatch.setattr(Requests, "keep", keep)
    monkeypatch.setattr("freehold.actors.batch.BATCH_SECONDS_MAX", 60.0)
    with senders() as go:
        with Busy(run):
            kept = go(partial(run.append, "kept", request_id="kept"))
            waiting(run, 1)
            lost = go(partial(run.append, "lost", request_id="lost"))
            waiting(run, 2)
        with pytest.raises(StorageFailed):
            lost.result()
        assert kept.result().seq == 2
    assert run.append("after").seq == 3
    run.verify()


def _told(turn: Any) -> str:
    error = turn.exception()
    return "yes" if error is None else str(error.executed)


@pytest.mark.usefixtures("no_hurry")
def test_a_turn_that_is_refused_when_it_runs_alone_is_undone_before_the_next(host: Host, run: Run) -> None:
    db = store(host, run).db
    with senders() as go:
        with Busy(run):
            beginning = go(run.transact, lambda tx: tx.begin_execution())
            waiting(run, 1)
            # There is an execution to settle as long as the callable before it is kept, and it is not.
            settling = go(run._ref.call, Settle("failed", "x"), run._lease)
            waiting(run, 2)
            small = go(run.append, "small")
            waiting(run, 3)
            huge = go(run.append, "huge", "x" * 3800)
            waiting(run, 4)
            db.pragma("max_page_count", db.pragma("page_count"))
        for turn, kind in ((beginning, StorageFailed), (settling, Refused), (huge, StorageFailed)):
            assert isinstance(turn.exception(), kind)
        assert small.result().seq == 2
    assert names(run) == ["small"]
    assert run.info.epoch == 1


def test_a_read_that_the_disk_refuses_is_answered_and_the_run_lives_on(host: Host, tmp_path: Path, disk: Disk) -> None:
    with host.create("b") as run:
        for _ in range(40):
            run.append("x", "y" * 3000)
    host.close()
    with freehold.open(tmp_path, timeout=20) as again:
        put_on(disk, again)
        with again.open("b") as run:
            disk.arm("read", "", code=apsw.SQLITE_IOERR_READ)
            with pytest.raises(StorageFailed) as caught:
                list(run.history())
            disk.heal()
            assert caught.value.executed == "no"
            assert len(list(run.history())) == 41


def test_a_statement_that_was_interrupted_outside_of_a_transaction_loses_only_itself(host: Host, run: Run) -> None:
    db = store(host, run).db
    for _ in range(20):
        run.append("x", "y" * 2000)
    db.set_progress_handler(lambda: True, 1)
    with pytest.raises(StorageFailed) as caught:
        list(run.history())
    db.set_progress_handler(None)
    assert caught.value.executed == "no"
    assert run.append("z").seq == 22
    assert run.info.epoch == 1
