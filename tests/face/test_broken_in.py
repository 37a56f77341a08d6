"""What was broken once by trying hard: interrupted calls, lying subclasses, copies, and errors that are not as others are."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from turns import Busy
from unruly import NAMES, raised_by, refuse, unruly

import freehold
from freehold import DeadlineExceeded, Error, Host, Refused, Run, Transaction, Unavailable, fail_after

PATIENCE_S = 20


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path, timeout=PATIENCE_S) as host:
        yield host


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a") as run:
        yield run


def test_a_block_whose_beginning_was_given_up_holds_nobody_up(run: Run) -> None:
    with Busy(run), fail_after(0.05), pytest.raises(DeadlineExceeded):
        run.transaction(timeout=600).__enter__()

    with fail_after(PATIENCE_S):
        assert run.append("x").seq == 2


def test_a_lease_that_nobody_waited_for_any_more_is_not_open(host: Host, run: Run) -> None:
    with Busy(run), fail_after(0.05), pytest.raises(DeadlineExceeded):
        host.open("a")

    run.append("x")  # by now the owner has seen what was left to it
    run.close()
    host.delete("a")
    assert list(host.runs()) == []


def test_a_creation_whose_time_is_up_creates_nothing(host: Host, tmp_path: Path) -> None:
    for create in (host.create, host.ensure):
        with fail_after(0), pytest.raises(DeadlineExceeded) as caught:
            create("late")
        assert caught.value.executed == "no"
    assert list(tmp_path.iterdir()) == []


def test_a_creation_raced_with_the_end_of_its_host_says_whether_the_run_is_there(tmp_path: Path) -> None:
    for number in range(30):
        host = freehold.open(tmp_path)
        with ThreadPoolExecutor(1) as pool:
            creating = pool.submit(host.create, f"r{number}")
            host.close()
            try:
                creating.result(PATIENCE_S).close()
                executed = "yes"
            except Error as error:
                executed = error.executed
        assert (tmp_path / f"r{number}.sqlite").exists() == (executed == "yes"), executed


def test_a_second_close_waits_for_the_end_that_the_first_did_not_see(host: Host, run: Run) -> None:
    with Busy(run):
        with pytest.raises(Unavailable) as caught:
            host.close(timeout=0.2)
        assert caught.value.code == "still_stopping"
    host.close()
    assert host.tree().state == "stopped"


def test_an_event_is_copied_and_pickled_with_its_data(run: Run) -> None:
    run.append("x", {"a": [1]})
    (event,) = run.history(name="x")
    for twin in (copy.deepcopy(event), pickle.loads(pickle.dumps(event)), copy.copy(event)):
        assert (twin, twin.data) == (event, {"a": [1]})


def test_a_lease_is_not_copied(run: Run) -> None:
    for twin in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            twin(run)
    assert run.append("x").seq == 2


def test_a_text_that_lies_about_its_length_is_measured(host: Host, run: Run) -> None:
    class Short(str):
        __slots__ = ()

        def __len__(self) -> int:
            return 1

    with pytest.raises(Refused) as caught:
        run.append(Short("x" * 5_000))
    assert caught.value.code == "bad_name"
    with pytest.raises(Refused):
        host.create("b", project=Short("x" * 5_000))
    assert [info.id for info in host.runs()] == ["a"]


@dataclass(frozen=True)
class Frozen(Exception):
    """Nothing can be written to it, not even a traceback."""

    reason: str


class Stubborn(Exception):
    """Its class has a method of a name that everybody calls."""

    def with_traceback(self, _trace: Any) -> Any:
        raise AssertionError("nobody may touch this")


@pytest.mark.parametrize("error", [Frozen("tired"), Stubborn()], ids=["frozen", "stubborn"])
def test_an_exception_that_cannot_be_written_to_comes_back_as_itself(run: Run, error: Exception) -> None:
    def work(tx: Transaction) -> None:
        tx.append("x")
        with tx.savepoint():
            raise error

    with pytest.raises(type(error)) as caught:
        run.transact(work)
    assert caught.value is error
    assert run.info.epoch == 1
    assert list(run.history(after=1)) == []


def test_a_turn_that_leaves_a_savepoint_open_is_undone(run: Run) -> None:
    def work(tx: Transaction) -> None:
        tx.savepoint().__enter__()
        tx.append("x")

    with pytest.raises(freehold.Crashed) as caught:
        run.transact(work)
    assert caught.value.executed == "no"
    assert list(run.history(after=1)) == []
    assert run.append("y").seq == 2


def test_a_context_that_was_copied_in_a_turn_may_ask_when_the_turn_has_ended(run: Run) -> None:
    context = run.transact(lambda _tx: copy_context())
    assert context.run(run.append, "x").seq == 2
    block = run.transaction()  # and has a name, by which it is kept
    with block:
        context = copy_context()
        with pytest.raises(freehold.InsideTransaction):
            context.run(run.append, "lost")
    assert context.run(run.append, "y").seq == 3
    assert run.append("z").seq == 4


@pytest.mark.parametrize("name", NAMES)
def test_an_exception_that_may_not_be_touched_comes_back_as_itself(run: Run, name: str) -> None:
    error = unruly(name)

    def work(tx: Transaction) -> None:
        tx.append("x")
        with tx.savepoint():
            raise error

    assert raised_by(run.transact, work) is error
    assert raised_by(lambda: run.transact(work, request_id="once")) is error
    assert run.info.epoch == 1
    assert list(run.history(after=1)) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_value_that_may_not_be_touched_comes_back_as_itself(run: Run, name: str) -> None:
    value = unruly(name)

    assert run.transact(lambda tx: (tx.append("x"), value)[1]) is value
    assert run.info.epoch == 1


@pytest.mark.parametrize("member", ["__index__", "__le__", "__lt__", "__gt__", "__ge__", "__eq__", "__hash__", "__int__", "__repr__"])
def test_a_number_that_may_not_be_touched_harms_no_owner(run: Run, member: str) -> None:
    number = type("Number", (int,), {member: refuse})(2)
    with run.transaction() as tx:
        tx.append("x")
        tx.begin_execution()
        assert tx.settle("failed", event=number) is not None
        tx.begin_execution()
        assert [event.seq for event in tx.history(after=number)] == [3, 4, 5]
    assert run.info.epoch == 1


def test_a_block_that_leaves_a_savepoint_open_is_refused_as_a_turn_is(run: Run) -> None:
    def work(tx: Transaction) -> None:
        tx.savepoint().__enter__()
        tx.append("x")

    in_turn = raised_by(run.transact, work)
    with pytest.raises(freehold.Crashed) as in_block, run.transaction() as tx:
        work(tx)
    assert (str(in_block.value), in_block.value.executed) == (str(in_turn), "no")
    assert list(run.history(after=1)) == []
    assert run.append("y").seq == 2
    assert run.info.epoch == 1


def test_a_savepoint_that_was_not_begun_cannot_end(run: Run) -> None:
    with run.transaction() as tx:
        savepoint = tx.savepoint()
        with savepoint:
            tx.append("x")
        for one in (savepoint, tx.savepoint()):
            with pytest.raises(Refused) as caught:
                one.__exit__(None, None, None)
            assert caught.value.code == "transaction_over"
    assert run.append("y").seq == 3
