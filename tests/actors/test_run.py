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
from other import write
from runfile import forge, forge_and_die, new_run
from turns import Busy, names, owner, senders, store, txn, until, waiting

import freehold
from freehold import Damaged, Error, Host, LeaseLost, Quarantined, Run, RunNotFound, StorageFailed, Transaction

TAKEN_OVER = (
    "UPDATE run SET epoch = epoch + 1, txn = txn + 1",
    "INSERT INTO tenure SELECT epoch, txn, 'elsewhere', zeroblob(16), 1, 1, 1, 1, 1 FROM run",
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


# A file that is not ours any more


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

    with pytest.raises(LeaseLost) as caught:
        run.append("lost")
    assert isinstance(caught.value.__cause__, RunNotFound)
    with pytest.raises(RunNotFound):
        host.open("a")
    if not removed:
        assert in_file(moved) == ["before"]
        freehold.view(moved).verify()


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
        f"INSERT INTO tenure SELECT {epoch}, txn, 'here', zeroblob(16), 1, 1, 1, 1, 1 FROM run",
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
        with pytest.raises((LeaseLost, Quarantined)):
            run.append("lost")
        with pytest.raises(Quarantined) as caught:
            host.open("a")
        assert caught.value.__cause__ is not None
        assert {node.name: node.state for node in host.tree().children} == {"a": "quarantined", "b": "running"}
        disk.heal()
        assert healthy.append("x").seq == 2
        assert healthy_disk.fault is None
    assert in_file(run.path) in (["before"], ["before", "lost"])  # it was said that this is not known
    host.delete("a")
    host.create("a").close()


def _break_for_good(host: Host, run: Run, disk: Disk, go: Any) -> None:
    disk.arm("sync", sticky=True)
    with pytest.raises(Error) as caught:
        go(run.append, "lost").result()
    assert caught.value.executed == "unknown"
    until(lambda: {node.name: node.state for node in host.tree().children}["a"] == "quarantined")


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
        until(lambda: not host.tree().children)
        assert held._store._closed
        assert [file.name for file in tmp_path.iterdir()] == ["a.sqlite"]
        with pytest.raises(freehold.LeaseClosed):
            run.append("lost")
        with host.open("a") as again:
            assert again.append("after").seq == 3
            assert again.info.epoch == 2


def test_a_run_with_an_open_lease_is_not_given_back(tmp_path: Path) -> None:
    with freehold.open(tmp_path, timeout=20, idle_timeout=0) as host, host.create("a") as run, host.create("b") as other:
        other.close()
        until(lambda: [node.name for node in host.tree().children] == ["a"])
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


def _broken(_store: object) -> None:
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
