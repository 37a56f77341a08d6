"""The owner of a run file when the disk or the neighbours fail it: nothing is acknowledged that is not in the file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from faulty import EIO, Disk, put_on
from folder import run_files
from other import owns, reads, write
from runfile import forge, forge_and_die, new_run
from turns import Busy, names, owner, run_nodes, senders, store, txn, until, waiting

import freehold
from freehold import (
    Damaged,
    DeadlineExceeded,
    Error,
    Host,
    LeaseLost,
    OwnedElsewhere,
    Quarantined,
    Refused,
    Run,
    RunNotFound,
    StorageFailed,
    Transaction,
)
from freehold.actors.deadline import monotonic
from freehold.actors.envelope import Envelope, Lane
from freehold.actors.leases import Lease
from freehold.actors.ref import ActorRef
from freehold.actors.reply import Reply
from freehold.actors.run import RunActor
from freehold.actors.seat import Doubt, Seat
from freehold.actors.span import Span, SpanCall, Token
from freehold.schema.messages import Append, Commit, ReadRun, Retire
from freehold.storage.clock import Clock
from freehold.storage.faults import Ended, Poisoned
from freehold.storage.journal import Head
from freehold.storage.path import resolve
from freehold.storage.pin import pin

TAKEN_OVER = (
    "UPDATE run SET epoch = epoch + 1, txn = txn + 1",
    "INSERT INTO tenure SELECT epoch, txn, 'elsewhere', zeroblob(16), 1, 1, 1, 1, 1, NULL FROM run",
)


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


def failure(run: Run, name: str = "lost") -> StorageFailed:
    """Return what an append is answered with that is known not to be kept."""
    with pytest.raises(StorageFailed) as caught:
        run.append(name)
    assert caught.value.executed == "no"
    return caught.value


def in_file(path: Path) -> list[str]:
    """Return the names of the notes that a stranger finds in the file, and what lies beside it."""
    return names(freehold.view(path))


# A COMMIT that fails


def test_after_a_failed_commit_the_answer_is_no_when_the_file_does_not_have_it(host: Host, run: Run, disk: Disk) -> None:
    run.append("before")
    fault = disk.arm("sync")

    error = failure(run)

    assert fault.fired == 1
    assert (error.details["phase"], error.retryable) == ("commit", True)
    assert names(run) == ["before"]
    assert (run.info.epoch, run.append("after").seq) == (2, 3)
    host.close()
    assert in_file(run.path) == ["before", "after"]
    freehold.view(run.path).verify()


def test_after_a_failed_commit_the_answer_is_yes_when_the_file_has_it(host: Host, run: Run, disk: Disk) -> None:
    run.append("before")
    # The sync fails, and then everything by which closing the connection would take the commit back.
    fault = disk.arm("sync", sticky=True, until_closed=True)

    event = run.append("kept")

    assert fault.fired > 1
    assert event == next(iter(run.history(name="kept")))
    assert (event.seq, run.info.epoch) == (3, 2)
    host.close()
    assert in_file(run.path) == ["before", "kept"]
    freehold.view(run.path).verify()


@pytest.mark.parametrize("kept", [False, True])
def test_a_whole_batch_is_answered_the_truth_after_a_failed_commit(run: Run, disk: Disk, monkeypatch: Any, *, kept: bool) -> None:
    monkeypatch.setattr("freehold.actors.batch.BATCH_SECONDS_MAX", 60.0)

    def refused(tx: Transaction) -> None:
        tx.append("undone")
        raise ZeroDivisionError

    with senders() as go:
        with Busy(run):
            turns = [go(run.append, "x") for _ in range(5)]
            turns.append(go(run.transact, lambda tx: tx.append("x")))
            failing = go(run.transact, refused)
            waiting(run, 7)
            disk.arm("sync", sticky=kept, until_closed=kept)
        with pytest.raises(ZeroDivisionError):
            failing.result()
        if kept:
            assert sorted(turn.result().seq for turn in turns) == list(range(2, 8))
        else:
            for turn in turns:
                with pytest.raises(StorageFailed) as caught:
                    turn.result()
                assert caught.value.executed == "no"
    assert names(run) == ["x"] * 6 * kept


def test_a_request_id_tells_the_outcome_after_a_failed_commit(run: Run, disk: Disk) -> None:
    disk.arm("sync", sticky=True, until_closed=True)
    first = run.append("x", request_id="one")
    disk.arm("sync")
    with pytest.raises(StorageFailed):
        run.append("x", request_id="two")

    assert run.append("x", request_id="one") == first
    assert run.append("x", request_id="two").seq == 3
    assert names(run) == ["x", "x"]


def test_a_spanning_transaction_is_told_the_truth_about_its_commit(run: Run, disk: Disk) -> None:
    with run.transaction() as tx:
        tx.append("kept")
        disk.arm("sync", sticky=True, until_closed=True)
    with pytest.raises(StorageFailed) as caught, run.transaction() as tx:
        tx.append("lost")
        disk.arm("sync")
    assert caught.value.executed == "no"
    assert names(run) == ["kept"]
    run.verify()


# A statement that fails


def test_an_io_error_in_a_statement_tells_everybody_no_and_reopens_with_the_next_epoch(
    host: Host, run: Run, disk: Disk, monkeypatch: Any
) -> None:
    monkeypatch.setattr("freehold.actors.batch.BATCH_SECONDS_MAX", 60.0)
    other = host.open("a")
    run.append("before")
    store(host, run).db.pragma("cache_size", 5)
    with senders() as go:
        with Busy(run) as busy:
            turns = [go(run.append, "lost"), go(other.append, "lost")]
            waiting(run, 2)
            # More than the page cache holds, so that pages are written in mid-transaction.
            huge = go(run.append, "lost", os.urandom(300_000))
            waiting(run, 3)
            fault = disk.arm("write", nth=2, code=apsw.SQLITE_IOERR_WRITE)
            # It stands alone, so that it is not in the batch: it is to wait and be served by the next incarnation.
            spanning = go(_span, other)
            waiting(run, 4)
        for turn in [*turns, huge]:
            with pytest.raises(StorageFailed) as caught:
                turn.result()
            assert caught.value.executed == "no"
        assert spanning.result() == 3
    assert fault.fired == 1
    assert (told := busy.outcome()) is not None
    assert told.executed == "no"
    assert names(run) == ["before", "spanned"]
    assert run.info.epoch == 2
    other.close()
    run.verify()


def _span(run: Run) -> int:
    with run.transaction() as tx:
        return tx.append("spanned").seq


def test_a_callable_that_swallows_a_storage_failure_cannot_go_on_writing(host: Host, run: Run, disk: Disk) -> None:
    store(host, run).db.pragma("cache_size", 5)
    seen: list[Error] = []

    def stubborn(tx: Transaction) -> str:
        disk.arm("write", nth=2, code=apsw.SQLITE_IOERR_WRITE)
        for _ in range(3):
            try:
                tx.append("lost", os.urandom(200_000))
            except StorageFailed as error:
                seen.append(error)
        return "all is well"

    with pytest.raises(StorageFailed) as caught:
        run.transact(stubborn)

    assert caught.value.executed == "no"
    assert len(seen) == 3
    assert names(run) == []
    assert run.info.epoch == 2


def test_a_callable_that_swallows_a_full_disk_cannot_go_on_writing(host: Host, run: Run) -> None:
    db = store(host, run).db
    seen: list[str] = []

    def stubborn(tx: Transaction) -> str:
        db.pragma("max_page_count", db.pragma("page_count"))
        for data in ("x" * 4000, "x" * 4000, "small", "small"):
            try:
                with tx.savepoint():
                    tx.append("lost", data)
            except StorageFailed as error:
                seen.append(error.executed)
                db.pragma("max_page_count", 1_000_000)
        return "all is well"

    with pytest.raises(StorageFailed):
        run.transact(stubborn, request_id="one")

    assert set(seen) == {"no"}
    assert names(run) == []
    assert run.transact(lambda _tx: "runs again", request_id="one") == "runs again"
    assert run.append("after").seq == 2
    assert run.info.epoch == 1


def test_a_block_that_a_full_disk_does_not_let_begin_is_told_so_and_the_run_lives_on(host: Host, run: Run, monkeypatch: Any) -> None:
    def full(_store: object, _now_ms: int, **_how: object) -> None:
        raise Ended(StorageFailed("full"))

    monkeypatch.setattr(type(store(host, run)), "begin", full)
    with pytest.raises(StorageFailed, match="full"):
        run.transaction().__enter__()
    monkeypatch.undo()
    assert run.append("after").seq == 2
    assert run.info.epoch == 1


def test_a_callable_whose_transaction_was_ended_neither_reads_nor_is_remembered(host: Host, run: Run) -> None:
    db = store(host, run).db
    seen: list[object] = []

    def stubborn(tx: Transaction) -> str:
        db.pragma("max_page_count", db.pragma("page_count"))
        with pytest.raises(StorageFailed):
            for _ in range(3):
                tx.append("lost", "x" * 3800)
        db.pragma("max_page_count", 1_000_000)
        try:
            seen.extend(tx.history())
        except StorageFailed as error:
            seen.append(error.executed)
        return "all is well"

    with pytest.raises(StorageFailed):
        run.transact(stubborn, request_id="one")

    assert seen == ["no"]
    assert run.transact(lambda _tx: "runs again", request_id="one") == "runs again"
    assert names(run) == []
    assert run.info.epoch == 1


# A file that is not ours any more


def test_a_block_that_finds_the_file_changed_is_told_so(run: Run) -> None:
    write(run.path, "UPDATE run SET updated_at = updated_at + 1")
    with pytest.raises(StorageFailed) as caught:
        run.transaction().__enter__()

    assert caught.value.details["fence"] == "foreign_writer"
    assert run.append("after").seq == 2
    assert run.info.epoch == 2


def test_a_foreign_commit_is_noticed_before_anything_is_acknowledged(run: Run) -> None:
    run.append("before")
    write(run.path, "UPDATE run SET updated_at = updated_at + 1")

    assert failure(run).details["fence"] == "foreign_writer"

    assert run.append("after").seq == 3
    assert run.info.epoch == 2
    run.verify()


def test_a_lease_is_lost_when_another_owner_was_in_between(host: Host, run: Run) -> None:
    run.append("before")
    write(run.path, *TAKEN_OVER)

    assert failure(run).details["fence"] == "epoch"

    with pytest.raises(LeaseLost) as caught:
        run.append("lost")
    assert caught.value.executed == "no"
    with host.open("a") as again:
        assert again.append("after").seq == 3
        assert again.info.epoch == 3
        again.verify()


@pytest.mark.parametrize("removed", [False, True])
def test_a_file_that_was_moved_away_takes_all_acknowledged_with_it(host: Host, run: Run, tmp_path: Path, *, removed: bool) -> None:
    run.append("before")
    moved = tmp_path / "elsewhere" / "a.sqlite"
    moved.parent.mkdir()
    if removed:
        run.path.unlink()
    else:
        run.path.rename(moved)

    assert failure(run).details["fence"] == "file_replaced"

    for _ in range(2):  # who waited for the owner is told, and so is whoever comes later
        with pytest.raises(LeaseLost) as caught:
            run.append("lost")
        assert isinstance(caught.value.__cause__, RunNotFound)
    with pytest.raises(RunNotFound):
        host.open("a")
    if not removed:
        assert in_file(moved) == ["before"]
        freehold.view(moved).verify()


def test_no_callable_runs_on_a_file_that_was_moved_away(run: Run) -> None:
    ran: list[object] = []
    run.path.unlink()
    with pytest.raises(StorageFailed) as caught:
        run.transact(ran.append)
    assert (caught.value.details["fence"], caught.value.executed, ran) == ("file_replaced", "no", [])


def test_a_request_is_not_repeated_from_a_file_that_was_moved_away(run: Run) -> None:
    run.append("x", request_id="r")
    assert run.append("x", request_id="r").seq == 2
    run.path.unlink()
    with pytest.raises(StorageFailed) as caught:
        run.append("x", request_id="r")
    assert (caught.value.details["fence"], caught.value.executed) == ("file_replaced", "no")


def test_a_file_that_was_replaced_by_another_run_is_left_alone(host: Host, run: Run, tmp_path: Path) -> None:
    run.append("before")
    there = new_run(tmp_path / "there", "b")
    before = Path(there.file).read_bytes()
    Path(there.file).replace(run.path)

    assert failure(run).details["fence"] == "file_replaced"

    with pytest.raises(LeaseLost) as caught:
        run.append("lost")
    assert isinstance(caught.value.__cause__, Damaged)
    assert caught.value.__cause__.code == "another_run"
    host.close()
    assert run.path.read_bytes() == before


def test_a_replacement_keeps_the_wal_that_came_with_it(host: Host, run: Run, tmp_path: Path) -> None:
    run.append("before")
    there = new_run(tmp_path / "there", "b")
    forge_and_die(there, "UPDATE run SET project = 'in the wal'")
    for suffix in ("", "-wal"):
        Path(there.file + suffix).replace(f"{run.path}{suffix}")
    wal = Path(f"{run.path}-wal").read_bytes()
    assert wal

    failure(run)

    host.close()
    assert Path(f"{run.path}-wal").read_bytes() == wal


def test_an_older_copy_in_its_place_is_not_taken_for_the_run(host: Host, run: Run, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    run.append("before")
    host.close()
    shutil.copy(run.path, copy)
    with freehold.open(tmp_path, timeout=20) as again, again.open("a") as newer:
        newer.append("acknowledged")
        forge_epoch(copy, newer.info.epoch)
        copy.replace(run.path)
        with pytest.raises(StorageFailed):
            newer.append("lost")
        with pytest.raises(LeaseLost):
            newer.append("lost")


def forge_epoch(file: Path, epoch: int) -> None:
    # As if the copy had been taken during the present tenure.
    forge_file(
        file,
        f"UPDATE run SET epoch = {epoch}, txn = txn + 1",
        f"INSERT INTO tenure SELECT {epoch}, txn, 'here', zeroblob(16), 1, 1, 1, 1, 1, NULL FROM run",
    )


def forge_file(file: Path, *statements: str) -> None:
    db = apsw.Connection(str(file))
    for sql in statements:
        db.execute(sql)
    db.close()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_wal_that_was_removed_or_replaced_loses_nothing_acknowledged(host: Host, run: Run, *, replaced: bool) -> None:
    run.append("before")
    wal = Path(f"{run.path}-wal")
    wal.unlink()
    if replaced:
        wal.write_bytes(b"")

    assert failure(run).details["fence"] == "wal_replaced"

    assert run.append("after").seq == 3
    assert names(run) == ["before", "after"]
    host.close()
    assert in_file(run.path) == ["before", "after"]
    freehold.view(run.path).verify()


# Failing again and again


def test_a_run_that_keeps_failing_is_set_aside_and_the_others_live_on(host: Host, run: Run, disk: Disk) -> None:
    run.append("before")
    put_on(healthy_disk := Disk(), host)
    with host.create("b") as healthy, senders() as go:
        _break_for_good(host, run, disk, go)
        with pytest.raises(LeaseLost):
            run.append("lost")
        with pytest.raises(Quarantined):
            run._ref.call(ReadRun(), None)
        with pytest.raises(Quarantined) as caught:
            host.open("a")
        assert caught.value.__cause__ is not None
        assert {node.name: node.state for node in run_nodes(host)} == {"a": "quarantined", "b": "running"}
        disk.heal()
        assert healthy.append("x").seq == 2
        assert healthy_disk.fault is None
    assert in_file(run.path) in (["before"], ["before", "lost"])  # it was said that this is not known
    host.delete("a")
    host.create("a").close()


def _break_for_good(host: Host, run: Run, disk: Disk, go: Any) -> None:
    disk.arm("sync", sticky=True)
    with pytest.raises(StorageFailed) as caught:
        go(run.append, "lost").result()
    assert caught.value.executed == "unknown"
    until(lambda: {node.name: node.state for node in run_nodes(host)}["a"] == "quarantined")


def test_who_waits_while_the_owner_is_reopened_is_served_by_the_next_incarnation(run: Run, disk: Disk) -> None:
    with senders() as go, disk.hold() as commit:
        first = go(run.append, "lost")
        assert commit.reached.wait(20)
        others = [go(run.append, "kept") for _ in range(5)]
        waiting(run, 5)
        disk.arm("sync")
        commit.release()
        with pytest.raises(StorageFailed):
            first.result()
        assert sorted(other.result().seq for other in others) == list(range(2, 7))
    assert names(run) == ["kept"] * 5


# Nothing to do


def test_a_run_that_nobody_uses_is_given_back_and_comes_again_when_asked_for(tmp_path: Path) -> None:
    with freehold.open(tmp_path, timeout=20, idle_timeout=0.1) as host:
        with host.create("a") as run:
            run.append("before")
            held = owner(host, run)
        until(lambda: not run_nodes(host))
        assert held._store._closed
        assert run_files(tmp_path) == ["a.sqlite"]
        with pytest.raises(freehold.LeaseClosed):
            run.append("lost")
        with host.open("a") as again:
            assert again.append("after").seq == 3
            assert again.info.epoch == 2


def test_a_run_with_an_open_lease_is_not_given_back(tmp_path: Path) -> None:
    with freehold.open(tmp_path, timeout=20, idle_timeout=0) as host, host.create("a") as run, host.create("b") as other:
        other.close()
        until(lambda: [node.name for node in run_nodes(host)] == ["a"])
        assert run.append("x").seq == 2
        assert run.info.epoch == 1


def test_a_run_is_had_even_if_it_would_be_given_back_at_once(tmp_path: Path) -> None:
    with freehold.open(tmp_path, timeout=20, idle_timeout=0) as host:
        for number in range(3):
            with host.ensure("a") as run:
                assert run.append("x").seq == number + 2


def test_opening_and_closing_write_one_transaction_each(tmp_path: Path) -> None:
    with freehold.open(tmp_path, timeout=20) as host, host.create("a") as run:
        created = txn(run)
    with freehold.open(tmp_path, timeout=20) as host, host.open("a") as run:
        assert txn(run) == created + 2


def test_a_full_wal_is_brought_home_and_a_full_disk_then_ends_nothing(host: Host, run: Run, monkeypatch: Any, disk: Disk) -> None:
    monkeypatch.setattr("freehold.storage.wal.CHECKPOINT_PAGES", 5)
    disk.arm("write", "", code=apsw.SQLITE_FULL, sticky=False)
    for _ in range(20):
        run.append("x", "y" * 3000)
    assert disk.fault is not None
    assert disk.fault.fired == 1
    assert run.info.epoch == 1
    run.verify()


def test_a_checkpoint_that_the_disk_refuses_reopens_the_run(run: Run, monkeypatch: Any, disk: Disk) -> None:
    monkeypatch.setattr("freehold.storage.wal.CHECKPOINT_PAGES", 5)
    disk.arm("write", "", code=EIO)
    for _ in range(20):
        run.append("x", "y" * 3000)
    assert run.info.epoch == 2
    assert len(names(run)) == 20
    run.verify()


def test_a_fault_of_ours_answers_everybody_and_reopens_the_run(host: Host, run: Run, monkeypatch: Any) -> None:
    run.append("before")
    monkeypatch.setattr(type(store(host, run)), "commit", _broken)
    with pytest.raises(freehold.Crashed) as caught:
        run.append("lost")
    monkeypatch.undo()
    assert caught.value.executed == "no"
    assert "secret" not in str(caught.value)
    assert run.append("after").seq == 3
    assert run.info.epoch == 2


def _broken(*_: object) -> None:
    raise TypeError("secret")


def test_a_forged_row_far_from_the_end_is_damage_and_not_the_end_of_its_owner(host: Host, run: Run) -> None:
    for number in range(5):
        run.append("x", number)
    host.close()
    forge(run._path, "UPDATE event SET name = CAST(x'ff' AS TEXT) WHERE seq = 3")
    with freehold.open(run.path.parent, timeout=20) as again, again.open("a") as damaged:
        with pytest.raises(Damaged):
            list(damaged.history())
        assert damaged.append("y").seq == 7
        assert damaged.info.epoch == 2
    with pytest.raises(Damaged):
        list(freehold.view(run.path).history())


# What it is asked for


def test_a_request_that_was_abandoned_never_runs(run: Run) -> None:
    with Busy(run), freehold.fail_after(0.05), pytest.raises(DeadlineExceeded) as caught:
        run.append("lost")
    assert caught.value.executed == "no"
    assert names(run) == []


def test_a_deletion_that_was_abandoned_retires_no_run(host: Host, run: Run) -> None:
    with Busy(run):
        run.close()
        with freehold.fail_after(0.05), pytest.raises(DeadlineExceeded):
            host.delete("a")
    with host.open("a") as again:
        assert again.info.epoch == 1


def test_what_the_owner_does_not_know_is_refused(run: Run) -> None:
    with pytest.raises(Refused):
        run._ref.call(SpanCall(Token(), Commit()), run._lease, alone=True)
    assert run.append("x").seq == 2
    assert run.info.epoch == 1


def test_a_callable_is_named_while_it_runs_and_not_afterwards(host: Host, run: Run) -> None:
    said = run.transact(lambda _tx: run_nodes(host)[0].doing)
    assert "transact for" in str(said)
    assert run_nodes(host)[0].doing == "epoch 1, 1 lease"


# An owner without a thread: the test gives it its turns


@pytest.fixture
def lone(tmp_path: Path) -> Iterator[RunActor]:
    actor = sitting(Seat(new_run(tmp_path / "lone"), Clock(), idle_timeout=0.0))
    actor.started()
    yield actor
    actor._store.close(clean=True)


def sitting(seat: Seat) -> RunActor:
    actor = RunActor(seat)
    actor.ref = ActorRef("a")
    return actor


def asked(actor: RunActor, message: Any, lane: Lane = Lane.USER) -> Envelope:
    lease = Lease()
    actor._seat.book.enter(lease)
    return Envelope(message, Reply(), lease, lane=lane)


def open_span(actor: RunActor) -> Token:
    token = Token()
    actor._open_span(Envelope(None), token, 60.0)
    return token


def told(envelope: Envelope) -> Any:
    assert envelope.reply_to is not None
    return envelope.reply_to.get(0)


def test_a_retired_run_refuses_what_comes(lone: RunActor) -> None:
    lone.take_turns([Envelope(Retire(), Reply(), lane=Lane.SYSTEM)])
    with pytest.raises(LeaseLost):
        lone.ref.tell(ReadRun())
    assert lone.ending


def test_a_step_that_was_abandoned_is_not_taken(lone: RunActor) -> None:
    token = open_span(lone)
    step = Envelope(SpanCall(token, Append("lost", "null")), Reply(), lane=Lane.SPAN)
    assert step.reply_to is not None
    step.reply_to.abandon()
    lone.take_turns([step, Envelope(SpanCall(token, Commit()), Reply(), lane=Lane.SPAN)])
    assert lone._store.journal.head.seq == 1
    assert lone._span is None


def test_idle_time_that_comes_early_ends_neither_a_block_nor_the_owner(lone: RunActor) -> None:
    open_span(lone)
    lone._active_at -= 60
    lone.idle()
    assert lone._span is not None
    assert not lone.ending


def test_a_wal_that_waits_is_brought_home_when_nothing_comes(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("freehold.actors.run.IDLE_CHECKPOINT_S", 0.0)
    actor = sitting(Seat(new_run(tmp_path), Clock(), idle_timeout=60.0))
    actor.started()
    append = asked(actor, Append("x", "null"))
    actor.take_turns([append])
    assert told(append).seq == 2
    due, waiting_before = actor.wake_at(), actor._store.wal.is_waiting
    actor.idle()
    waiting_after = actor._store.wal.is_waiting
    actor.stopped(None)
    assert due is not None
    assert due <= monotonic()
    assert (waiting_before, waiting_after) == (True, False)


def test_whoever_came_keeps_the_place_when_what_was_lost_cannot_be_given_back(lone: RunActor, monkeypatch: Any) -> None:
    def broken(_span: object) -> None:
        raise Poisoned(StorageFailed("no"))

    lone.ref.mailbox.post(open_span(lone))
    monkeypatch.setattr(Span, "end", broken)
    append = asked(lone, Append("x", "null"))
    with pytest.raises(Poisoned):
        lone.take_turns([append])
    assert lone.ref.mailbox.take(9, 9_999) == [append]


def test_the_file_is_given_back_although_a_block_cannot_be_undone(lone: RunActor, monkeypatch: Any) -> None:
    open_span(lone)
    monkeypatch.setattr(Span, "end", _broken)
    with pytest.raises(TypeError):
        lone.stopped(None)
    pin(lone._seat.path, exclusive=True).close()


def test_an_end_that_is_not_clean_is_not_noted_as_one(lone: RunActor) -> None:
    lone.stopped(ZeroDivisionError())
    assert freehold.view(lone._seat.path.file).info.txn == 2  # created and taken over


def test_what_runs_too_long_inside_sqlite_is_cut_short(lone: RunActor) -> None:
    db = lone._store.db

    def interrupt() -> bool:
        db.set_progress_handler(None)
        lone.interrupt()  # as another thread does meanwhile
        return False

    db.set_progress_handler(interrupt, 1)
    with pytest.raises(apsw.InterruptError):
        db.execute("SELECT count(*) FROM event a, event b, run c, tenure d").fetchall()


def test_who_was_overwritten_is_owned_again_only_after_all_of_it_was_checked(tmp_path: Path) -> None:
    path = new_run(tmp_path)
    with freehold.open(tmp_path) as host, host.open("a") as run:
        for number in range(9):
            run.append("x", number)
    forge(path, "UPDATE event SET name = 'y' WHERE seq = 3")  # too far from the end for whoever only opens it
    actor = sitting(Seat(path, Clock(), idle_timeout=60.0))
    actor.started()
    actor.stopped(Poisoned(StorageFailed("overwritten", fence="file_rewritten")))
    with pytest.raises(Damaged):
        sitting(actor._seat).started()
    pin(path, exclusive=True).close()


def test_a_start_that_fails_after_the_take_over_holds_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    seat = Seat(new_run(tmp_path), Clock(), idle_timeout=60.0)
    seat.head = Head(1, bytes(32), 1, bytes(32))
    monkeypatch.setattr("freehold.actors.run.hash_of", _broken)
    with pytest.raises(TypeError):
        sitting(seat).started()
    pin(seat.path, exclusive=True).close()


@pytest.mark.parametrize("doubt", [(1, 0), (50, 7)], ids=["of a transaction that it has", "of another owner"])
def test_of_a_file_without_what_was_acknowledged_it_is_not_said_what_a_commit_did(tmp_path: Path, doubt: tuple[int, int]) -> None:
    seat = Seat(new_run(tmp_path), Clock(), idle_timeout=60.0)
    seat.head = Head(1, bytes(32), 1, bytes(32))
    turn = Envelope("turn", Reply())
    seat.doubt = Doubt(*doubt, [turn])
    actor = sitting(seat)
    actor.started()
    actor.stopped(None)
    with pytest.raises(StorageFailed) as caught:
        told(turn)
    assert caught.value.executed == "unknown"


def test_a_commit_that_did_not_happen_is_told_although_the_disk_is_too_full_to_take_the_file_over(tmp_path: Path, disk: Disk) -> None:
    seat = Seat(new_run(tmp_path), Clock(), idle_timeout=60.0, vfs=disk.name)
    turn = Envelope("turn", Reply())
    seat.doubt = Doubt(50, 0, [turn])
    disk.arm("write", code=apsw.SQLITE_FULL, sticky=True)
    with pytest.raises(StorageFailed):
        sitting(seat).started()
    with pytest.raises(StorageFailed) as caught:
        told(turn)
    assert caught.value.executed == "no"


# Waiting for the file


def test_whoever_finds_a_reader_at_the_file_waits_for_it(host: Host, run: Run, monkeypatch: Any) -> None:
    run.append("x")
    host.close()
    with freehold.open(host.root) as again, reads(run.path) as reader:
        monkeypatch.setattr("freehold.actors.patience.pause", lambda: reader.communicate(b"\n", timeout=30))
        with again.open("a") as owned:
            assert owned.info.epoch == 2


def test_whoever_finds_another_owner_at_the_file_does_not_wait_for_it(host: Host, monkeypatch: Any) -> None:
    paused: list[int] = []
    monkeypatch.setattr("freehold.actors.patience.pause", lambda: paused.append(1))
    with owns(host.root, "b"), pytest.raises(OwnedElsewhere):
        host._take(resolve(host.root, "b"))  # as a handle does, which asks the owner then
    assert paused == []
