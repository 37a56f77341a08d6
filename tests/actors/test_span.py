"""A transaction that spans messages: its holder works from its own thread, everybody else waits and is then served in order."""

from __future__ import annotations

import gc
import math
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from faulty import Disk, put_on
from turns import names, owner, senders, store, until, waiting

import freehold
from freehold import DeadlineExceeded, Host, InsideTransaction, Refused, Run, StorageFailed
from freehold.actors.deadline import DEADLINE, monotonic
from freehold.actors.ref import ActorRef
from freehold.actors.span import SpanCall, Token
from freehold.schema.messages import OpenTransaction
from freehold.storage.journal import Journal


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
def other(host: Host, run: Run) -> Iterator[Run]:
    with host.open("a") as other:
        yield other


def test_all_of_the_block_is_kept_in_one_transaction(run: Run) -> None:
    before = run.info.txn
    with run.transaction() as tx:
        first, second = tx.append("one"), tx.append("two", [1])
        assert tx.now.tzinfo is not None
    assert (first.seq, second.seq) == (2, 3)
    assert [first, second] == list(run.history(after=1))
    assert run.info.txn == before + 1
    run.verify()


def test_everybody_else_waits_and_is_then_served_in_the_order_of_arrival(run: Run, other: Run) -> None:
    with senders() as go:
        with run.transaction() as tx:
            tx.append("first")
            waiters: list[Any] = []
            for number in range(6):
                waiters.append(go(other.append if number % 2 else run.append, f"waited {number}"))
                waiting(run, number + 1)
            tx.append("second")
            assert not any(waiter.done() for waiter in waiters)
        assert [waiter.result().seq for waiter in waiters] == list(range(4, 10))
    assert names(run) == ["first", "second", *(f"waited {number}" for number in range(6))]


def test_two_who_want_a_transaction_get_one_after_the_other(run: Run, other: Run) -> None:
    def both(mine: Run) -> None:
        for _ in range(20):
            with mine.transaction() as tx:
                tx.append("a")
                tx.append("b")

    with senders(4) as go:
        for done in [go(both, run), go(both, other), go(both, run)]:
            done.result()
    assert names(run) == ["a", "b"] * 60


def test_what_was_in_the_mailbox_before_is_committed_first(run: Run, other: Run, disk: Disk) -> None:
    with senders() as go, disk.hold() as commit:
        appending = go(other.append, "before")
        assert commit.reached.wait(20)
        spanning = go(_span, run)
        waiting(run, 1)
        commit.release()
        assert (appending.result().seq, spanning.result()) == (2, 3)


def _span(run: Run) -> int:
    with run.transaction() as tx:
        return tx.append("spanned").seq


def test_an_exception_undoes_the_block_and_comes_back_as_itself(run: Run) -> None:
    error = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError) as caught, run.transaction() as tx:
        tx.append("lost")
        raise error
    assert caught.value is error
    assert run.append("after").seq == 2


def test_a_refused_step_ends_no_block(run: Run) -> None:
    with run.transaction() as tx:
        tx.append("kept")
        with pytest.raises(Refused):
            tx.settle("failed", code="x")  # nothing is running
        tx.append("kept too")
    assert names(run) == ["kept", "kept too"]


def test_a_block_that_has_ended_is_dead_inside_the_next(run: Run) -> None:
    with run.transaction() as earlier:
        earlier.append("kept")
    with run.transaction() as tx:
        with pytest.raises(Refused) as caught:
            earlier.append("lost")
        assert caught.value.code == "transaction_over"
        tx.append("kept too")
    assert names(run) == ["kept", "kept too"]


def test_an_earlier_block_that_was_lost_does_not_end_the_present_one(run: Run) -> None:
    with run.transaction() as tx:
        tx.append("kept")
        run._ref.mailbox.post(Token())
        tx.append("kept too")
    assert names(run) == ["kept", "kept too"]


def test_a_block_that_nobody_waits_for_any_more_does_not_begin(run: Run) -> None:
    token = Token()
    token.given_up = True
    with pytest.raises(Refused) as caught:
        run._ref.call(SpanCall(token, OpenTransaction(60.0)), run._lease, alone=True)
    assert caught.value.code == "transaction_over"
    assert run.append("kept").seq == 2


def test_a_block_whose_holder_was_interrupted_as_it_began_holds_nobody_up(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: ActorRef[Any], *arguments: Any, **options: Any) -> Any:
        really(self, *arguments, **options)
        raise KeyboardInterrupt

    really = ActorRef.call
    monkeypatch.setattr(ActorRef, "call", interrupted)
    block = run.transaction(timeout=60)  # and has a name, by which it is kept
    with pytest.raises(KeyboardInterrupt):
        block.__enter__()
    monkeypatch.undo()
    with freehold.fail_after(10):
        assert run.append("kept").seq == 2


def test_the_error_of_a_block_comes_back_though_its_owner_is_gone(host: Host, run: Run) -> None:
    with senders() as go, pytest.raises(ZeroDivisionError), run.transaction(timeout=60) as tx:
        tx.append("lost")
        go(host.close, 0.05).exception()  # there is no time to let it come to its end
        raise ZeroDivisionError
    host.close()
    assert names(freehold.view(run.path)) == []


def test_a_block_whose_end_came_too_late_holds_nobody_up(run: Run, other: Run) -> None:
    block = run.transaction(timeout=60)  # and has a name, by which it is kept
    with pytest.raises(DeadlineExceeded), freehold.fail_after(0.02), block as tx:
        tx.append("lost")
        end = DEADLINE.get()
        assert end is not None
        until(lambda: monotonic() > end)
    with freehold.fail_after(10):
        assert other.append("kept").seq == 2


def test_a_block_that_was_never_entered_is_lost_without_a_word(run: Run) -> None:
    run.transaction()
    gc.collect()
    assert run.append("kept").seq == 2


def test_a_savepoint_inside_undoes_only_its_own_part(run: Run) -> None:
    with run.transaction() as tx:
        tx.append("kept")
        with pytest.raises(ZeroDivisionError), tx.savepoint():
            tx.append("lost")
            with tx.savepoint():
                tx.append("lost too")
            raise ZeroDivisionError
        tx.append("kept too")
    assert names(run) == ["kept", "kept too"]
    run.verify()


def test_a_step_that_was_cut_short_ends_its_block_and_not_its_owner(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_short(self: Journal, *arguments: Any) -> Any:
        really(self, *arguments)
        raise RecursionError

    really = Journal.append
    with pytest.raises(Refused) as caught, run.transaction() as tx:
        tx.append("lost")
        monkeypatch.setattr(Journal, "append", cut_short)
        with pytest.raises(RecursionError):
            tx.append("half")
        monkeypatch.undo()
        tx.append("more")
    assert caught.value.code == "transaction_over"
    assert names(run) == []
    assert run.append("after").seq == 2
    assert run.info.epoch == 1


def test_when_its_time_is_up_it_is_rolled_back_and_its_holder_is_told(run: Run, other: Run) -> None:
    with senders() as go, pytest.raises(DeadlineExceeded) as at_the_end, run.transaction(timeout=0.05) as tx:
        tx.append("lost")
        assert go(other.append, "kept").result().seq == 2
        with pytest.raises(DeadlineExceeded) as inside:
            tx.append("lost")
    assert inside.value.executed == at_the_end.value.executed == "no"
    assert names(run) == ["kept"]


def test_a_holder_that_never_rests_runs_out_of_time_too(run: Run) -> None:
    count = 0
    with pytest.raises(DeadlineExceeded) as caught, run.transaction(timeout=timedelta(milliseconds=50)) as tx:
        while True:
            tx.append("lost")
            count += 1
    assert caught.value.executed == "no"
    assert count
    assert names(run) == []


def test_leases_that_come_and_go_do_not_prolong_it(host: Host, run: Run) -> None:
    with pytest.raises(DeadlineExceeded), run.transaction(timeout=0.1) as tx:
        stop = threading.Event()
        with senders(2) as go:
            busy = go(_open_and_close, host, stop)
            with pytest.raises(DeadlineExceeded):
                while True:
                    tx.append("lost")
            stop.set()
            busy.result()
    assert names(run) == []


def _open_and_close(host: Host, stop: threading.Event) -> None:
    while not stop.is_set():
        host.open("a").close()


def test_a_time_without_end_is_no_obstacle(run: Run) -> None:
    with run.transaction(timeout=math.inf) as tx:
        tx.append("one")
    with run.transaction(timeout=timedelta.max) as tx:
        tx.append("two")
    assert names(run) == ["one", "two"]
    assert run.info.epoch == 1


def test_when_the_holders_own_deadline_passes_nobody_waits_for_the_rest(run: Run, other: Run) -> None:
    entered = False
    with pytest.raises(DeadlineExceeded) as caught, freehold.fail_after(0.05), run.transaction(timeout=60) as tx:
        entered = True
        while True:
            tx.append("lost")
    assert entered
    assert caught.value.executed in ("no", "unknown")  # a step may have been under way; none of them is kept
    # With the holder's sixty seconds still running, this would not be answered in time.
    with freehold.fail_after(10):
        assert other.append("kept").seq == 2
    assert names(other) == ["kept"]


def test_closing_its_lease_from_another_thread_ends_it(run: Run, other: Run) -> None:
    with senders() as go, pytest.raises(Refused) as caught, run.transaction(timeout=60) as tx:
        tx.append("lost")
        waiter = go(other.append, "kept")
        waiting(run, 1)
        go(run.close).result()
        assert waiter.result().seq == 2
        tx.append("lost")
    assert caught.value.code == "transaction_over"
    assert names(other) == ["kept"]


def test_closing_another_lease_does_not(run: Run, other: Run) -> None:
    with run.transaction() as tx:
        tx.append("kept")
        other.close()
        tx.append("kept too")
    assert names(run) == ["kept", "kept too"]


def test_other_calls_of_its_holder_are_refused_at_once(host: Host, run: Run, other: Run) -> None:
    with run.transaction(timeout=60) as tx:
        for call in (
            lambda: run.append("lost"),
            lambda: other.append("lost"),
            lambda: run.transact(lambda tx: tx.append("lost")),
            lambda: run.info,
            lambda: list(run.history()),
            lambda: host.view("a").info,
            lambda: host.open("a"),
            lambda: host.delete("a"),
            host.close,
            lambda: run.transaction().__enter__(),
        ):
            with pytest.raises(InsideTransaction) as caught:
                call()
            assert caught.value.executed == "no"
        tx.append("kept")
    assert names(run) == ["kept"]
    assert run.append("after").seq == 3


def test_its_holder_may_work_on_other_runs(host: Host, run: Run) -> None:
    with host.create("b") as another, run.transaction() as tx:
        tx.append("here")
        assert another.append("there").seq == 2
        with another.transaction() as inner:
            inner.append("there too")
        with pytest.raises(Refused) as caught:
            another.transact(lambda _tx: run.append("lost"))
        assert caught.value.code == "ask_cycle"
        assert caught.value.details["chain"] == ["a", "b", "a"]
    assert names(run) == ["here"]


def test_the_block_belongs_to_the_thread_that_entered_it(run: Run) -> None:
    with senders() as go, run.transaction() as tx:
        with pytest.raises(Refused) as caught:
            go(tx.append, "lost").result()
        assert caught.value.code == "transaction_over"
        tx.append("kept")
    with pytest.raises(Refused) as after:
        tx.append("lost")
    assert after.value.code == "transaction_over"
    assert names(run) == ["kept"]


def test_another_thread_cannot_end_the_block(run: Run) -> None:
    block = run.transaction(timeout=60)
    with block as tx:
        tx.append("kept")
        with senders() as go, pytest.raises(Refused) as caught:
            go(block.__exit__, None, None, None).result()
        assert caught.value.code == "transaction_over"
        tx.append("kept too")
    assert names(run) == ["kept", "kept too"]


def test_a_block_keeps_its_lease_alive(host: Host, run: Run) -> None:
    with pytest.warns(ResourceWarning, match="a lease on a was never closed"):  # noqa: PT031 - the end of a life
        with host.open("a").transaction() as tx:
            gc.collect()
            tx.append("kept")
        gc.collect()
    assert names(run) == ["kept"]


def test_what_the_collector_finds_is_rolled_back_and_given_back(host: Host, other: Run) -> None:
    mine = host.open("a")
    with senders() as go:
        with pytest.warns(ResourceWarning) as warned:  # noqa: PT031 - what is lost must have no other name
            block = mine.transaction(timeout=60)
            block.__enter__().append("lost")
            waiter = go(other.append, "kept")
            waiting(other, 1)
            del block, mine
            gc.collect()
        assert waiter.result().seq == 2
    until(lambda: len(owner(host, other)._seat.book.open) == 2)
    assert {str(warning.message) for warning in warned} == {"a transaction was never ended", "a lease on a was never closed"}
    assert other.append("this thread is free again").seq == 3


def test_a_block_that_was_lost_is_rolled_back_though_its_lease_is_kept(run: Run) -> None:
    with pytest.warns(ResourceWarning, match="a transaction was never ended"):  # noqa: PT031 - one does the other
        run.transaction(timeout=60).__enter__()
        gc.collect()
    with freehold.fail_after(10):
        assert run.append("kept").seq == 2


def test_what_another_threads_collector_finds_does_not_block_it(host: Host, other: Run) -> None:
    class Ring:
        def __init__(self) -> None:
            self.me = self
            self.run = host.open("a")
            self.block = self.run.transaction(timeout=60)
            self.tx = self.block.__enter__()

    def make_ring() -> None:
        Ring()

    gc.disable()
    try:
        with senders() as go, pytest.warns(ResourceWarning):  # noqa: PT031 - and to be found while it is looked for
            go(make_ring).result()
            gc.collect()
            with freehold.fail_after(10):
                assert other.append("kept").seq == 2
    finally:
        gc.enable()


def test_a_lost_lease_is_given_back_although_nobody_calls(host: Host, run: Run) -> None:
    lost = host.open("a")
    book = owner(host, run)._seat.book
    assert len(book.open) == 2
    with pytest.warns(ResourceWarning, match="a lease on a was never closed"):  # noqa: PT031 - one does the other
        del lost
        gc.collect()
    until(lambda: len(book.open) == 1)
    assert run.append("x").seq == 2


def test_an_io_error_in_a_step_is_told_and_the_run_lives_on(host: Host, run: Run, disk: Disk) -> None:
    store(host, run).db.pragma("cache_size", 5)
    with pytest.raises(Refused) as caught, run.transaction(timeout=60) as tx:
        tx.append("lost")
        disk.arm("write", nth=2, code=apsw.SQLITE_IOERR_WRITE)
        with pytest.raises(StorageFailed) as told:
            tx.append("lost", noise(300_000))
        assert told.value.executed == "no"
    assert caught.value.executed == "no"
    assert run.append("kept").seq == 2
    assert run.info.epoch == 2


def test_a_full_disk_ends_it_and_the_run_lives_on(host: Host, run: Run) -> None:
    db = store(host, run).db
    with pytest.raises(Refused), run.transaction(timeout=60) as tx:
        tx.append("lost")
        db.pragma("max_page_count", db.pragma("page_count"))
        with pytest.raises(StorageFailed) as told:
            for _ in range(3):
                tx.append("lost", "x" * 4000)
        assert told.value.executed == "no"
    db.pragma("max_page_count", 1_000_000)
    assert run.append("kept").seq == 2
    assert run.info.epoch == 1


def noise(length: int) -> bytes:
    import os

    return os.urandom(length)


def test_closing_the_host_lets_it_come_to_its_end(host: Host, run: Run) -> None:
    with senders() as go:
        with run.transaction() as tx:
            tx.append("kept")
            closing = go(host.close)
            until(lambda: host._closed)
            tx.append("kept too")
        closing.result()
    assert names(freehold.view(run.path)) == ["kept", "kept too"]


@pytest.mark.parametrize("timeout", ["1", None, -1, math.nan, True, [1]], ids=repr)
def test_what_is_no_duration_is_refused(run: Run, timeout: Any) -> None:
    with pytest.raises(Refused) as caught:
        run.transaction(timeout=timeout).__enter__()
    assert caught.value.code == "bad_option"
    assert run.append("x").seq == 2
