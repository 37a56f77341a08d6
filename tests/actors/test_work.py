"""A callable that runs in the owner's thread: in its caller's context, whole or not at all, and dead when its turn is over."""

from __future__ import annotations

import asyncio
import gc
import threading
import traceback
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import apsw
import pytest
from turns import names, senders

import freehold
from freehold import DeadlineExceeded, Host, InsideTransaction, Refused, Run, Transaction
from freehold.actors.deadline import DEADLINE
from freehold.storage.journal import Journal

COLOUR: ContextVar[str] = ContextVar("colour", default="none")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path, timeout=20) as host:
        yield host


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a") as run:
        yield run


def test_it_runs_in_the_owners_thread_and_returns_its_value(run: Run) -> None:
    thread = run.transact(lambda _tx: threading.current_thread())
    assert thread is not threading.current_thread()
    assert thread.name == "freehold-a"
    value = object()
    assert run.transact(lambda _tx: value) is value


def test_an_exception_shows_its_own_frames_and_none_of_the_owners(run: Run) -> None:
    def deep() -> None:
        raise LookupError("mine")

    def work(tx: Transaction) -> None:
        tx.append("lost")
        with tx.savepoint():
            deep()

    with pytest.raises(LookupError) as caught:
        run.transact(work)

    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    files = {Path(frame.filename).name for frame in traceback.extract_tb(caught.value.__traceback__)}
    assert frames[-1] == "deep"
    assert "work" in frames
    assert files.isdisjoint({"batch.py", "work.py", "cell.py", "span.py", "store.py"})
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("kind", [apsw.SQLError, apsw.IOError, apsw.FullError, apsw.CorruptError, apsw.ConstraintError])
def test_an_error_of_their_own_database_says_nothing_about_the_run(run: Run, kind: type[apsw.Error]) -> None:
    error = kind("theirs")

    def work(tx: Transaction) -> None:
        tx.append("lost")
        raise error

    with pytest.raises(kind) as caught:
        run.transact(work)

    assert caught.value is error
    assert names(run) == []
    assert run.append("after").seq == 2
    assert run.info.epoch == 1


def test_it_sees_its_callers_context_and_its_changes_stay_inside(run: Run) -> None:
    COLOUR.set("blue")

    def work(_tx: Transaction) -> str:
        seen = COLOUR.get()
        COLOUR.set("red")
        return seen

    assert run.transact(work) == "blue"
    assert COLOUR.get() == "blue"
    with senders(1) as go:
        assert go(run.transact, lambda _tx: COLOUR.get()).result() == "none"
    assert run.transact(lambda _tx: COLOUR.get()) == "blue"


def test_a_coroutine_is_refused_and_closed(run: Run) -> None:
    async def work(tx: Transaction) -> None:
        tx.append("lost")

    with pytest.raises(Refused) as caught:
        run.transact(work)  # type: ignore[unused-coroutine]

    gc.collect()  # a coroutine that was not closed would warn now
    assert caught.value.code == "awaitable_refused"
    assert names(run) == []


def test_every_other_awaitable_is_refused_and_all_is_undone(run: Run) -> None:
    class Later:
        def __await__(self) -> Iterator[None]:
            yield

    loop = asyncio.new_event_loop()
    try:
        for made in (Later, loop.create_future):
            with pytest.raises(Refused) as caught:
                run.transact(lambda tx, made=made: tx.append("lost") and made())  # type: ignore[misc]
            assert caught.value.code == "awaitable_refused"
    finally:
        loop.close()
    assert names(run) == []


def test_a_transaction_that_was_kept_is_dead(run: Run) -> None:
    kept: list[Transaction] = []
    run.transact(kept.append)
    tx = kept[0]
    for call in (
        lambda: tx.append("lost"),
        tx.begin_execution,
        lambda: tx.settle("failed", code="x"),
        lambda: tx.savepoint().__enter__(),
    ):
        with pytest.raises(Refused) as caught:
            call()
        assert caught.value.code == "transaction_over"
    assert names(run) == []


def test_a_transaction_is_dead_in_the_turn_of_another(run: Run) -> None:
    kept: list[Transaction] = []
    run.transact(kept.append)
    with pytest.raises(Refused) as caught:
        run.transact(lambda _tx: kept[0].append("lost"))
    assert caught.value.code == "transaction_over"


def test_a_transaction_is_dead_in_another_thread(run: Run) -> None:
    def work(tx: Transaction) -> str:
        with senders(1) as go:
            error = go(tx.append, "lost").exception()
        tx.append("kept")
        assert isinstance(error, Refused)
        return error.code

    assert run.transact(work) == "transaction_over"
    assert names(run) == ["kept"]


def test_the_run_is_refused_at_once_inside_its_own_turn(host: Host, run: Run) -> None:
    other = host.open("a")

    def work(tx: Transaction) -> None:
        for call in (
            lambda: run.append("lost"),
            lambda: other.append("lost"),
            lambda: run.transact(lambda _tx: None),
            lambda: run.transaction().__enter__(),
            lambda: run.info,
            lambda: list(run.history()),
            lambda: freehold.view(run.path).info,
            lambda: host.open("a"),
            lambda: host.delete("a"),
            host.close,
        ):
            with pytest.raises(InsideTransaction):
                call()
        tx.append("kept")

    with freehold.fail_after(10):
        run.transact(work)
    other.close()
    assert names(run) == ["kept"]


def test_a_lease_may_be_closed_inside_its_own_turn(host: Host, run: Run) -> None:
    with host.open("a") as mine:

        def work(tx: Transaction) -> None:
            mine.close()
            tx.append("kept")

        mine.transact(work)
        with pytest.raises(freehold.LeaseClosed):
            mine.append("lost")
    assert names(run) == ["kept"]


def test_the_deadline_is_looked_at_between_statements(run: Run) -> None:
    def work(tx: Transaction) -> None:
        while True:
            tx.append("lost")

    with pytest.raises(DeadlineExceeded), freehold.fail_after(0.05):
        run.transact(work)

    assert names(run) == []
    assert run.append("after").seq == 2


def test_its_own_calls_stand_under_the_deadline_of_its_call(run: Run) -> None:
    until = run.transact(lambda _tx: DEADLINE.get())
    assert until is not None  # the host's own time; its caller has set none
    assert DEADLINE.get() is None


def test_a_callable_that_goes_on_after_a_step_was_cut_short_keeps_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_short(self: Journal, *arguments: Any) -> Any:
        really(self, *arguments)
        raise RecursionError

    really = Journal.append

    def work(tx: Transaction) -> str:
        monkeypatch.setattr(Journal, "append", cut_short)
        with pytest.raises(RecursionError):
            tx.append("half")
        monkeypatch.undo()
        tx.append("more")
        return "all is well"

    with pytest.raises(RecursionError):
        run.transact(work)
    assert names(run) == []
    assert run.append("after").seq == 2


def test_savepoints_that_end_in_the_wrong_order_are_refused_and_harm_nobody(run: Run) -> None:
    def work(tx: Transaction) -> None:
        outer, inner = tx.savepoint(), tx.savepoint()
        outer.__enter__()
        inner.__enter__()
        tx.append("lost")
        outer.__exit__(None, None, None)
        inner.__exit__(None, None, None)

    with pytest.raises(Refused) as caught:
        run.transact(work)

    assert caught.value.code == "transaction_over"
    assert names(run) == []
    assert run.append("after").seq == 2
    assert run.info.epoch == 1


def test_a_savepoint_that_was_undone_leaves_no_gap(run: Run) -> None:
    def work(tx: Transaction) -> list[int]:
        seqs = [tx.append("one").seq]
        for _ in range(3):
            with pytest.raises(ZeroDivisionError), tx.savepoint():
                tx.append("lost", "x" * 10_000)
                with tx.savepoint():
                    tx.append("lost")
                raise ZeroDivisionError
        with tx.savepoint():
            seqs.append(tx.append("two", "x" * 10_000).seq)
        return seqs

    assert run.transact(work) == [2, 3]
    assert run.append("three").seq == 4
    run.verify()


def test_two_runs_that_ask_each_other_are_refused_with_both_names(host: Host, run: Run) -> None:
    with host.create("b") as other:
        with pytest.raises(Refused) as caught:
            run.transact(lambda _tx: other.transact(lambda _tx: run.append("lost")))
        assert caught.value.code == "ask_cycle"
        assert "a asks b asks a" in str(caught.value)
        assert run.append("x").seq == other.append("x").seq == 2


@pytest.mark.parametrize("wrong", [None, 1, "work", [print]], ids=repr)
def test_what_is_no_function_is_refused(run: Run, wrong: Any) -> None:
    with pytest.raises(Refused) as caught:
        run.transact(wrong)
    assert caught.value.code == "bad_option"
