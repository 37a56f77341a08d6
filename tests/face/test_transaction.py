"""Executions in a transaction: each legal move, each illegal one, the reasons for an end, and what a crash leaves."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faulty import Disk, put_on
from other import owns
from turns import names

import freehold
from freehold import Host, Refused, Run, RunEnded, StorageFailed, Transaction
from freehold.schema.lifecycle import STEPS, Move, Status

SETTLED = ("suspended", "interrupted", "completed", "failed", "cancelled")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path, timeout=20) as host:
        yield host


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a") as run:
        yield run


def begin(run: Run) -> int:
    return run.transact(lambda tx: tx.begin_execution())


def settle(run: Run, status: Any = "suspended", **how: Any) -> Any:
    return run.transact(lambda tx: tx.settle(status, **how))


def bring_to(run: Run, status: Status) -> None:
    """Bring a new run to *status*."""
    if status is not Status.CREATED:
        begin(run)
    if status not in (Status.CREATED, Status.RUNNING):
        settle(run, str(status))


@pytest.mark.parametrize("move", list(Move))
@pytest.mark.parametrize("status", list(Status))
def test_every_move_from_every_status_is_made_or_refused_as_the_table_says(run: Run, status: Status, move: Move) -> None:
    bring_to(run, status)
    before = run.info
    make: Callable[[], object] = (lambda: begin(run)) if move is Move.BEGIN else (lambda: settle(run, str(move)))

    to = STEPS[status].get(move)
    if to is None:
        with pytest.raises(Refused) as caught:
            make()
        ended = not STEPS[status]
        assert isinstance(caught.value, RunEnded) is ended
        assert caught.value.code == ("run_ended" if ended else "execution_running" if status is Status.RUNNING else "no_execution")
        assert (run.info.status, run.info.events, run.info.txn) == (before.status, before.events, before.txn)
    else:
        make()
        assert run.info.status == to
    run.verify()


def test_executions_are_numbered_and_their_events_carry_the_number(run: Run) -> None:
    assert begin(run) == 1
    settled = settle(run, "failed")
    assert begin(run) == 2
    assert (settled.kind, settled.execution, settled.data) == ("settled", 1, {"execution": 1, "status": "failed", "reason": 3})
    assert [(event.kind, event.execution) for event in run.history(after=1)] == [("began", 1), ("settled", 1), ("began", 2)]
    assert (run.info.status, run.info.stop_event, run.info.stop_code) == ("running", None, None)
    run.verify()


@pytest.mark.parametrize("status", SETTLED)
def test_an_end_has_a_code_of_the_hosts_an_event_or_its_own_record(host: Host, status: str) -> None:
    for number, (how, expected) in enumerate(((None, (None, 4)), ("event", (None, 2)), ("seq", (None, 2)), ("code", ("tired", None)))):
        with host.create(f"r{number}") as run:
            reason = run.append("reason")
            begin(run)
            hows: dict[str | None, dict[str, Any]] = {"event": {"event": reason}, "seq": {"event": 2}, "code": {"code": "tired"}, None: {}}
            chosen = hows[how]
            settled = settle(run, status, **chosen)
            assert (run.info.status, run.info.stop_code, run.info.stop_event) == (status, *expected)
            assert (settled is None) is (how == "code")
            run.verify()


def test_an_end_may_have_a_reason_from_its_own_transaction(run: Run) -> None:
    def work(tx: Transaction) -> Any:
        tx.begin_execution()
        reason = tx.append("reason")
        return reason, tx.settle("failed", event=reason)

    reason, settled = run.transact(work)
    assert (run.info.stop_event, settled.data["reason"]) == (reason.seq, reason.seq)
    run.verify()


def test_a_reason_that_is_not_in_the_run_is_refused(host: Host, run: Run) -> None:
    begin(run)
    run.append("x")
    with host.create("b") as other:
        foreign = other.append("y")

    def undone(tx: Transaction) -> None:
        with pytest.raises(ZeroDivisionError), tx.savepoint():
            event = tx.append("lost")
            raise ZeroDivisionError
        tx.append("lost too")
        tx.settle("failed", event=event)

    before = run.info
    for call in (
        lambda: settle(run, event=foreign),
        lambda: settle(run, event=4),
        lambda: settle(run, event=99),
        lambda: settle(run, event=2**63 - 1),
        lambda: run.transact(undone),
    ):
        with pytest.raises(Refused) as caught:
            call()
        assert (caught.value.code, caught.value.executed) == ("unknown_event", "no")
    assert (run.info.txn, run.info.events, run.info.status) == (before.txn, before.events, "running")
    run.verify()


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "created"},
        {"status": "running"},
        {"status": "begin"},
        {"status": ""},
        {"status": None},
        {"status": 1},
        {"code": ""},
        {"code": "x" * 65},
        {"code": "a\nb"},
        {"code": 1},
        {"code": "x", "event": 1},
        {"event": 0},
        {"event": -1},
        {"event": 2**63},
        {"event": True},
        {"event": "2"},
        {"event": 1.0},
    ],
    ids=repr,
)
def test_a_wrong_end_is_refused_and_changes_nothing(run: Run, wrong: dict[str, Any]) -> None:
    begin(run)
    before = run.info
    with pytest.raises(Refused) as caught:
        settle(run, **{"status": "failed", **wrong})
    assert caught.value.code == "bad_option"
    assert run.info == before


def test_a_refused_begin_leaves_the_rest_of_its_turn(run: Run) -> None:
    def work(tx: Transaction) -> None:
        tx.begin_execution()
        with pytest.raises(Refused):
            tx.begin_execution()
        tx.append("kept")

    run.transact(work)
    assert names(run) == ["kept"]
    assert run.info.status == "running"
    run.verify()


def test_an_undone_begin_leaves_nothing(run: Run) -> None:
    def work(tx: Transaction) -> None:
        with pytest.raises(ZeroDivisionError), tx.savepoint():
            tx.begin_execution()
            raise ZeroDivisionError
        assert tx.begin_execution() == 1

    run.transact(work)
    run.verify()


def test_when_its_owner_was_killed_an_execution_is_found_interrupted(tmp_path: Path) -> None:
    with owns(tmp_path, "a", "begin") as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    view = freehold.view(tmp_path / "a.sqlite")
    assert (view.info.status, view.info.generation) == ("running", 0)
    view.verify()
    with freehold.open(tmp_path) as host, host.open("a") as run:
        info = run.info
        assert (info.status, info.stop_code, info.stop_event, info.generation) == ("interrupted", "owner_lost", None, 1)
        run.verify()
        assert begin(run) == 2
        settle(run, "completed")
        run.verify()


def test_an_execution_that_runs_when_its_host_closes_is_interrupted(host: Host, run: Run) -> None:
    begin(run)
    host.close()
    with freehold.open(host.root) as again, again.open("a") as later:
        info = later.info
        assert (info.status, info.stop_code, info.generation) == ("interrupted", "host_closed", 0)
        later.verify()


def test_an_execution_goes_on_through_a_reopening_by_its_own_host(tmp_path: Path) -> None:
    disk = Disk()
    with freehold.open(tmp_path, timeout=20) as host:
        put_on(disk, host)
        with host.create("a") as run:
            begin(run)
            disk.arm("sync")
            with pytest.raises(StorageFailed):
                run.append("lost")
            info = run.info
            assert (info.status, info.generation, info.epoch) == ("running", 0, 2)
            settle(run, "completed")
            run.verify()
            assert begin_is_refused(run)


def begin_is_refused(run: Run) -> bool:
    with pytest.raises(RunEnded):
        begin(run)
    return True


def test_a_run_that_has_ended_still_takes_notes(run: Run) -> None:
    bring_to(run, Status.COMPLETED)
    assert run.append("x").seq == 4
    assert run.info.status == "completed"
    run.verify()
