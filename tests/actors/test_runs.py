"""The runs of one host: one actor a file whatever its spelling, none waits for another, and nothing is held after a refusal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from other import owns
from runfile import forge, new_run
from troupe import PATIENCE_S
from turns import Busy, names, owner, run_nodes, senders, until

import freehold
from freehold import Damaged, DeadlineExceeded, Host, OwnedElsewhere, Refused, StorageFailed
from freehold.actors.ref import ActorRef
from freehold.actors.run import RunActor
from freehold.actors.runs import Runs, owner_of
from freehold.actors.seat import PinBox
from freehold.schema.messages import ReadRun
from freehold.storage.clock import Clock
from freehold.storage.create import create
from freehold.storage.faults import Poisoned
from freehold.storage.path import resolve, resolve_file
from freehold.storage.pin import Pin, pin
from freehold.storage.platform import hostname


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path / "runs", timeout=20) as host:
        yield host


def test_two_leases_share_one_owner(host: Host) -> None:
    with host.create("a") as one, host.open("a") as two:
        assert one._ref is two._ref
        assert len(run_nodes(host)) == 1
        assert one.append("x").seq == 2
        assert two.append("x").seq == 3


def test_a_stuck_turn_in_one_run_delays_no_other(host: Host) -> None:
    with host.create("a") as stuck, host.create("b") as other, Busy(stuck), freehold.fail_after(15):
        assert other.append("x").seq == 2
        with host.create("c") as new:
            assert new.append("x").seq == 2
        other.transact(lambda tx: tx.append("y"))
        with host.open("b") as again:
            assert names(again) == ["x", "y"]
        host.delete("c")
        states = {node.name: node for node in run_nodes(host)}
        assert "transact for" in (states["a"].doing or "")
        assert "transact for" in str(host.tree())


def test_many_threads_that_open_one_run_get_one_owner(host: Host) -> None:
    host.create("a").close()
    with senders(8) as go:
        leases = [call.result() for call in [go(host.open, "a") for _ in range(16)]]
    assert len({id(lease._ref) for lease in leases}) == 1
    assert len(owner(host, leases[0])._seat.book.open) == 16
    for lease in leases:
        lease.close()


@pytest.mark.parametrize("how", ["create", "open"])
def test_whoever_has_no_time_left_leaves_nothing_held(host: Host, how: str) -> None:
    if how == "open":
        new_run(host.root, "a")
    with pytest.raises(DeadlineExceeded), freehold.fail_after(0):
        getattr(host, how)("a")
    with host.ensure("a") if how == "create" else host.open("a") as run:
        assert run.append("x").seq == 2


def test_what_keeps_a_run_from_being_owned_is_raised_as_itself_and_nothing_is_held(host: Host) -> None:
    path = new_run(host.root, "a")
    forge(path, "UPDATE run SET epoch = 5")
    for _ in range(2):
        with pytest.raises(Damaged):
            host.open("a")
        assert run_nodes(host) == []
        assert owner_of(path) is None
    with host.create("b") as other:
        assert other.append("x").seq == 2


def test_another_process_that_owns_the_run_is_named(host: Host) -> None:
    with owns(host.root, "a", "theirs") as process:
        with pytest.raises(OwnedElsewhere) as caught:
            host.open("a")
        holder = caught.value.holder
        assert holder is not None
        assert (holder.pid, holder.hostname) == (process.pid, hostname())
        assert holder.since.tzinfo is not None
        assert abs((holder.since - freehold.view(host.root / "a.sqlite").info.created).total_seconds()) < 60  # type: ignore[operator]
        assert str(process.pid) in str(caught.value)
        with pytest.raises(OwnedElsewhere) as deleting:
            host.delete("a")
        assert deleting.value.holder == holder
    with host.open("a") as run:
        assert names(run) == ["theirs"]


def test_another_process_is_refused_while_we_own_it(host: Host) -> None:
    with host.create("a") as run, pytest.raises(AssertionError), owns(host.root, "a"):
        pass
    assert run.id == "a"


def test_two_hosts_of_one_process_do_not_share_a_run(host: Host, tmp_path: Path) -> None:
    with host.create("a") as run, freehold.open(tmp_path / "others") as other:
        (tmp_path / "others").mkdir()
        (tmp_path / "others" / "b.sqlite").symlink_to(run.path)
        with pytest.raises(OwnedElsewhere) as caught:
            other.open("b")
        assert caught.value.details["pid"] == os.getpid()
        assert run.append("x").seq == 2


def test_a_run_of_another_host_is_not_taken_for_the_one_of_the_same_name(host: Host, tmp_path: Path) -> None:
    with host.create("a") as theirs, freehold.open(tmp_path / "others") as other, other.create("a") as mine:
        (tmp_path / "others" / "b.sqlite").symlink_to(theirs.path)
        with pytest.raises(OwnedElsewhere):
            other.open("b")
        with pytest.raises(OwnedElsewhere):
            other.delete("b")
        assert mine.append("x").seq == theirs.append("x").seq == 2


def test_a_file_that_was_renamed_is_still_its_owners(host: Host) -> None:
    with host.create("a") as run:
        run.path.rename(host.root / "b.sqlite")
        assert host._runs.owned(resolve(host.root, "b")) is run._ref


def test_a_hard_link_of_an_owned_run_is_refused(host: Host) -> None:
    with host.create("a") as run:
        os.link(run.path, host.root / "b.sqlite")
        for call in (lambda: host.open("b"), lambda: host.view("b").info, lambda: host.delete("b")):
            with pytest.raises(Refused) as caught:
                call()
            assert caught.value.code == "hard_link"
        assert run.append("x").seq == 2


def test_a_file_that_was_removed_and_created_anew_is_a_new_run(host: Host) -> None:
    old = host.create("a")
    old.append("old")
    for suffix in ("", "-wal", "-shm"):
        Path(f"{old.path}{suffix}").unlink()
    host.create("a").close()
    with pytest.raises(freehold.StorageFailed):
        old.append("lost")
    with pytest.raises(freehold.LeaseLost):
        old.append("lost")
    with host.open("a") as new:
        assert new.append("new").seq == 2
        assert names(new) == ["new"]


def test_a_run_that_has_been_given_back_is_had_by_whoever_asks_just_then(tmp_path: Path) -> None:
    with freehold.open(tmp_path, timeout=20, idle_timeout=0) as host:
        host.create("a").close()
        with senders(4) as go:
            for call in [go(_append, host) for _ in range(40)]:
                call.result()
        until(lambda: not run_nodes(host))
        with host.open("a") as run:
            assert len(names(run)) == 40
            run.verify()


def _append(host: Host) -> None:
    with host.open("a") as run:
        run.append("x")


def test_the_owner_of_a_file_is_found_under_every_spelling(host: Host, tmp_path: Path) -> None:
    with host.create("a") as run:
        link = tmp_path / "link.sqlite"
        link.symlink_to(run.path)
        assert owner_of(resolve_file(link)) is owner_of(resolve(host.root, "a")) is run._ref
    assert owner_of(resolve(host.root, "nobody")) is None


def test_whoever_saw_a_new_file_before_its_creator_came_shares_its_owner_with_it(tmp_path: Path) -> None:
    runs = Runs(str(tmp_path), Clock())
    path = resolve(tmp_path, "a")
    box = PinBox(create(path, project="", props="{}", clock=Clock()))
    with senders() as go:
        earlier = go(runs.lease, path)
        until(lambda: runs.owned(path) is not None)
        ref, lease = runs.lease(path, box)
        assert earlier.result()[0] is ref
    assert box.take() is None
    assert ref.call(ReadRun(), lease)[0].epoch == 1
    runs.stop()


def test_whoever_creates_a_run_that_another_has_looked_for_in_vain_just_before_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(*arguments: Any, **options: Any) -> Pin:
        try:
            return pin(*arguments, **options)
        except freehold.RunNotFound:
            looked.set()
            assert go_on.wait(PATIENCE_S)
            raise

    runs, path = Runs(str(tmp_path), Clock()), resolve(tmp_path, "a")
    looked, go_on = Event(), Event()
    monkeypatch.setattr("freehold.actors.run.pin", slowly)
    with senders() as go:
        earlier = go(runs.lease, path)
        assert looked.wait(PATIENCE_S)
        box = PinBox(create(path, project="", props="{}", clock=Clock()))
        creator = go(runs.lease, path, box)
        until(lambda: len(runs._runs.children["a"].starters) == 2)  # it has joined the one that looked too early
        go_on.set()
        with pytest.raises(freehold.RunNotFound):
            earlier.result()
        ref, lease = creator.result()
    assert ref.call(ReadRun(), lease)[0].epoch == 1
    runs.stop()


def test_whoever_still_asks_a_run_that_is_owned_no_longer_is_told_so(host: Host) -> None:
    with host.create("a") as run:
        host.close()
        with pytest.raises(freehold.LeaseLost):
            run._ref.call(ReadRun(), None)


def test_a_run_that_is_being_given_back_is_asked_for_again(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def pause() -> None:
        busy.release()
        until(lambda: not run_nodes(host))

    with host.create("a") as run, senders() as go, Busy(run) as busy:
        stopping = go(host._runs.stop_child, "a")
        until(lambda: run_nodes(host)[0].state == "stopping")
        monkeypatch.setattr("freehold.actors.runs.pause", pause)
        with host.open("a") as again:
            assert again.info.epoch == 2
        stopping.result()


def test_nobody_asks_for_ever_for_a_run_that_is_being_given_back(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.actors.runs.OPENER_WAIT_S", 0.0)
    monkeypatch.setattr("freehold.actors.runs.pause", lambda: pytest.fail("its time was up"))
    with host.create("a") as run, senders() as go, Busy(run) as busy:
        stopping = go(host._runs.stop_child, "a")
        until(lambda: run_nodes(host)[0].state == "stopping")
        with pytest.raises(freehold.Unavailable) as caught:
            host.open("a")
        assert caught.value.code == "stopping"
        busy.release()
        stopping.result()


def test_a_lease_whose_asker_was_interrupted_is_given_back(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: ActorRef[Any], *arguments: Any, **options: Any) -> Any:
        really(self, *arguments, **options)
        raise KeyboardInterrupt

    host.create("a").close()
    really = ActorRef.call
    monkeypatch.setattr(ActorRef, "call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        host.open("a")
    monkeypatch.undo()
    host.delete("a")  # which is refused while a lease is open
    assert list(host.runs()) == []


def test_runs_that_have_stopped_take_nobody_in_and_let_nobody_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.actors.runs.pause", lambda: pytest.fail("there is nothing to wait for"))
    runs = Runs(str(tmp_path), Clock())
    runs.stop()
    with pytest.raises(freehold.Unavailable):
        runs.lease(new_run(tmp_path, "a"))


def test_the_listener_stops_after_the_runs(host: Host) -> None:
    with host.create("a") as run, senders() as go, Busy(run) as busy:
        closing = go(host.close)
        until(lambda: [node.state for node in host.tree().children] == ["stopping", "running", "running"])
        busy.release()
        closing.result()
    assert [node.state for node in host.tree().children] == ["stopped", "stopped"]


def test_whoever_opens_a_run_whose_owner_gives_up_is_told_why_and_that_nothing_was_done(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def give_up(_actor: RunActor) -> None:
        raise Poisoned(StorageFailed("the disk", executed="unknown"))

    host.create("a").close()
    host._runs.stop_child("a")
    monkeypatch.setattr(RunActor, "started", give_up)
    with pytest.raises(StorageFailed, match="the disk") as caught:
        host.open("a")
    assert caught.value.executed == "no"
    monkeypatch.undo()
    with host.open("a") as run:
        assert run.append("x").seq == 2
