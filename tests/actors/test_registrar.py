"""The registrar says what its host is and drives, finds its file again, and stands in nobody's way."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from caller import names_of_sockets
from folder import run_files, snapshot
from hosting import host_file, known
from other import locks, owns, ready
from turns import Busy, senders, settle, until

import freehold
from freehold import Error, Host, Unavailable
from freehold.actors import registrar
from freehold.actors.deadline import monotonic
from freehold.actors.registrar import (
    REGISTRAR,
    ClaimDriver,
    Gone,
    Listens,
    NextDue,
    PutWakeup,
    Ran,
    ReadDriver,
    ReadHosts,
    ReadKnown,
    Registrar,
    ReleaseDriver,
    TakeDue,
)
from freehold.actors.runs import LISTENER
from freehold.schema.limits import CLOSE_TIMEOUT_S
from freehold.schema.rows import WakeupRow
from freehold.storage.clock import Clock
from freehold.storage.hostfile import HostFile

_CLAIMS = """
import sys
import freehold
from freehold.actors.registrar import ClaimDriver
host = freehold.open(sys.argv[1])
host.ensure(sys.argv[2])
host._runs.registrar.ask(ClaimDriver("w"))
print("ready", flush=True)
sys.stdin.readline()
host.close()
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path / "runs", timeout=20) as host:
        yield host


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the file be looked for all the time."""
    monkeypatch.setattr("freehold.actors.registrar.HOST_FILE_LOOK_S", 0.01)


def ask(host: Host, message: Any) -> Any:
    return host._runs.start_registrar().ask(message)


def code(host: Host, message: Any) -> str:
    with pytest.raises(Error) as caught:
        ask(host, message)
    return caught.value.code


def rows(root: Path, table: str = "host") -> int:
    db = apsw.Connection(str(host_file(root)), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(db.execute(f"SELECT count(*) FROM {table}").get)
    finally:
        db.close()


# When there is one


def test_a_host_that_owns_nothing_has_no_registrar_and_makes_no_file(host: Host) -> None:
    host.root.mkdir()
    with pytest.raises(freehold.RunNotFound):
        host.open("a")
    assert list(host.runs()) == []
    _ = host.view("a"), host.tree()
    host.close()
    assert host._runs.registrar is None
    assert list(host.root.iterdir()) == []


@pytest.mark.parametrize("how", ["create", "open", "ensure"])
def test_the_first_run_that_is_owned_enters_the_host_and_its_clean_end_takes_it_out(tmp_path: Path, how: str) -> None:
    with freehold.open(tmp_path) as other:
        other.create("a").close()
    host_file(tmp_path).unlink()
    with freehold.open(tmp_path) as host:
        getattr(host, how)("b" if how == "create" else "a").close()
        (row,) = ask(host, ReadHosts())
        assert row.process.pid == os.getpid()
        assert [row.socket] == names_of_sockets(tmp_path)
    assert rows(tmp_path) == 0


def test_hosts_of_other_processes_are_seen_and_the_killed_are_not(host: Host) -> None:
    host.create("a").close()
    with owns(host.root, "b") as process:
        until(lambda: len(ask(host, ReadHosts())) == 2)
        assert {row.process.pid for row in ask(host, ReadHosts())} == {os.getpid(), process.pid}
        process.send_signal(signal.SIGKILL)
        until(lambda: [row.process.pid for row in ask(host, ReadHosts())] == [os.getpid()])
    host.close()
    with freehold.open(host.root) as again:
        again.open("a").close()
        settle(again)
        assert rows(host.root) == 1  # whoever comes next has removed the dead


def test_it_is_stopped_after_the_runs(host: Host) -> None:
    def watched(name: str) -> None:
        cell = host._runs._runs.children[name].cell
        assert cell is not None
        really = cell.actor.stopped

        def stopped(reason: BaseException | None) -> None:
            ended.append(name)
            really(reason)

        cell.actor.stopped = stopped  # type: ignore[method-assign]

    ended: list[str] = []
    run = host.create("a")
    settle(host)
    for name in ("a", LISTENER, REGISTRAR):
        watched(name)
    with senders(1) as go, Busy(run) as busy:
        closing = go(host.close)
        until(lambda: host.tree().children[0].state == "stopping")
        states = {node.name: node.state for node in host.tree().children}
        busy.release()
        closing.result()
    assert states == {"a": "stopping", LISTENER: "running", REGISTRAR: "running"}
    assert ended == ["a", LISTENER, REGISTRAR]


# What is known of runs


def test_what_a_run_says_at_its_close_is_known_afterwards(host: Host) -> None:
    with host.create("a", props={"x": 1}) as run:
        run.append("n")
    host.close()
    with freehold.open(host.root) as again:
        found = again._runs.known()["a"]
        assert (found.events, found.row.props, found.sealed) == (2, '{"x":1}', True)
        assert again._runs.registrar is None
        assert [info.events for info in again.runs()] == [2]


def test_a_deleted_run_is_forgotten(host: Host) -> None:
    host.create("a").close()
    host.create("b").close()
    ask(host, PutWakeup(WakeupRow("a", "timer", 1)))
    host.delete("a")
    host.delete("b")
    assert ask(host, ReadKnown()) == {}
    assert ask(host, NextDue()) is None


# Drivers and wake-ups


def test_another_living_host_that_drives_a_run_is_named_and_a_dead_one_is_not(host: Host) -> None:
    host.create("a").close()
    with ready(_CLAIMS, str(host.root), "b") as process:
        with pytest.raises(Unavailable) as caught:
            ask(host, ClaimDriver("w"))
        assert caught.value.code == "driven_elsewhere"
        assert caught.value.details["pid"] == process.pid
        assert str(process.pid) in str(caught.value)
        assert ask(host, ReadDriver("w")).host.process.pid == process.pid
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        assert ask(host, ClaimDriver("w")).host.process.pid == os.getpid()
    ask(host, ReleaseDriver("w"))
    assert ask(host, ReadDriver("w")) is None


def test_wakeups_are_put_and_taken(host: Host) -> None:
    host.create("a").close()
    for wakeup in (WakeupRow("a", "timer", 5), WakeupRow("a", "retry", 2**50)):
        ask(host, PutWakeup(wakeup))
    assert ask(host, NextDue()) == 5
    assert ask(host, TakeDue()) == [WakeupRow("a", "timer", 5)]
    assert (ask(host, TakeDue()), ask(host, NextDue())) == ([], 2**50)


def test_a_registrar_that_was_there_before_the_socket_is_told_of_it(host: Host) -> None:
    host.root.mkdir(exist_ok=True)
    host._runs.start_registrar()
    assert [row.socket for row in ask(host, ReadHosts())] == [None]
    host.create("a").close()
    assert [row.socket for row in ask(host, ReadHosts())] == names_of_sockets(host.root)


def test_a_socket_is_told(host: Host) -> None:
    host.create("a").close()
    host._runs.tell_registrar(Listens(".host-0123456789abcdef.sock"))
    assert [row.socket for row in ask(host, ReadHosts())] == [".host-0123456789abcdef.sock"]


# Without the file


@pytest.mark.usefixtures("quick")
def test_a_file_that_is_deleted_under_a_living_host_is_made_anew_with_all_that_it_says(host: Host) -> None:
    host.create("a").close()
    ask(host, ClaimDriver("w"))
    host._runs.tell_registrar(Listens("s"))
    settle(host)
    for path in host.root.glob(".host.sqlite*"):
        path.unlink()
    until(host_file(host.root).exists)
    assert [(row.process.pid, row.socket) for row in ask(host, ReadHosts())] == [(os.getpid(), "s")]
    assert ask(host, ReadDriver("w")).host.process.pid == os.getpid()


def test_deleting_it_loses_nothing(host: Host) -> None:
    for run_id in "abc":
        with host.create(run_id) as run:
            run.append("x")
    host.close()
    with freehold.open(host.root) as again:
        before = [info.record() for info in again.runs()]
    host_file(host.root).unlink()
    with freehold.open(host.root) as again:
        assert [info.record() for info in again.runs()] == before
        assert run_files(host.root) == ["a.sqlite", "b.sqlite", "c.sqlite"]


@pytest.mark.usefixtures("quick")
def test_a_damaged_file_stops_nobody_is_said_once_and_is_healed_by_its_removal(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    host.root.mkdir()
    host_file(host.root).write_bytes(b"no database" * 1000)
    before = snapshot(host.root)[".host.sqlite"]
    with host.create("a") as run:
        assert run.append("x").seq == 2
        assert code(host, ReadHosts()) == "no_host_file"
        with pytest.raises(Unavailable) as caught:
            ask(host, ClaimDriver("w"))
        assert caught.value.details["reason"] == "not_a_host_file"
        assert isinstance(caught.value.__cause__, Error)
        assert [info.id for info in host.runs()] == ["a"]
        assert "without a host file: not_a_host_file" in str(host.tree())
        host.create("b").close()
        host.delete("b")
    assert snapshot(host.root)[".host.sqlite"] == before
    said = [record for record in caplog.records if record.levelno == logging.WARNING and "go on without it" in record.getMessage()]
    assert len(said) == 1
    host_file(host.root).unlink()
    until(host_file(host.root).exists)
    until(lambda: "without" not in str(host.tree()))
    assert len(ask(host, ReadHosts())) == 1


def test_a_file_that_is_found_damaged_later_is_left_alone_and_left_out(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*_arguments: object) -> None:
        raise apsw.exception_for(apsw.SQLITE_CORRUPT)

    host.create("a").close()
    settle(host)
    monkeypatch.setattr("freehold.actors.registrar.claim_driver", damaged)
    with pytest.raises(Unavailable) as caught:
        ask(host, ClaimDriver("w"))
    assert caught.value.details["reason"] == "host_file_damaged"
    assert code(host, ReadHosts()) == "no_host_file"  # until it is looked for again
    with host.create("b") as run:
        assert run.append("x").seq == 2
    assert host_file(host.root).exists()


def test_a_file_that_is_locked_delays_no_run_and_is_used_again_afterwards(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.create("a").close()
    settle(host)
    monkeypatch.setattr(registrar, "BUSY_TIMEOUT_MS", 50)
    with locks(host_file(host.root)):
        with host.open("a") as run:
            assert run.append("x").seq == 2
        host._runs.tell_registrar(Ran([known("b")]))
        assert code(host, ClaimDriver("w")) == "database_busy"
        assert [info.id for info in host.runs()] == ["a"]
    assert ask(host, ClaimDriver("w")).run == "w"
    host._runs.tell_registrar(Gone(["b"]))
    assert ask(host, ReadKnown()).keys() <= {"a"}


@pytest.mark.parametrize("known_before", [True, False])
def test_a_file_that_somebody_holds_does_not_hold_up_the_end_of_a_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, known_before: bool
) -> None:
    with freehold.open(tmp_path) as other:
        other.create("b").close()
    monkeypatch.setattr(registrar, "HOST_FILE_TELL_BUSY_MS", 500)
    host = freehold.open(tmp_path)
    if known_before:
        host.create("a").close()
        settle(host)
    with locks(host_file(tmp_path)):
        for number in range(8):
            host.create(f"{number}").close()
        began = monotonic()
        host.close()
        assert monotonic() - began < 2  # not half a second for each of them
    assert "never taken up" not in caplog.text  # nor does it leave anything: it comes to its end by itself
    with freehold.open(tmp_path) as host:
        assert len(list(host.runs())) == 9 + known_before


def test_whoever_held_the_file_and_has_gone_is_waited_for_again(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.create("a").close()
    settle(host)
    monkeypatch.setattr(registrar, "HOST_FILE_TELL_BUSY_MS", 0)
    actor = host._runs._runs.children[REGISTRAR].cell.actor  # type: ignore[union-attr]
    assert isinstance(actor, Registrar)
    with locks(host_file(host.root)):
        host._runs.tell_registrar(Gone(["a"]))
        until(lambda: actor._is_held)
    host._runs.tell_registrar(Gone(["a"]))
    until(lambda: not actor._is_held)
    assert "a" not in ask(host, ReadKnown())


def test_a_registrar_that_crashes_is_started_again_with_the_same_entry(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.create("a").close()
    (before,) = ask(host, ReadHosts())
    ask(host, ClaimDriver("w"))
    with pytest.raises(TypeError):
        ask(host, "no message of ours")
    until(lambda: host._runs._runs.children[REGISTRAR].restarts == 1)
    assert ask(host, ReadHosts()) == [before]
    assert ask(host, ClaimDriver("w")).host == before


def test_a_host_ends_though_its_registrar_is_held_up_inside_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held, go = threading.Event(), threading.Event()

    def look(_file: HostFile) -> None:
        held.set()
        assert go.wait(30)

    monkeypatch.setattr(HostFile, "look", look)
    with freehold.open(tmp_path) as host:
        with host.create("a") as run:
            run.append("x")
        assert held.wait(30)
        cell = host._runs._runs.children[REGISTRAR].cell
        assert cell is not None
        began = monotonic()
        host.close()
    assert monotonic() - began < CLOSE_TIMEOUT_S
    go.set()
    assert cell.join(30)
    assert freehold.view(tmp_path / "a.sqlite").info.events == 2


def test_an_interrupted_registrar_that_has_no_file_is_none_the_worse() -> None:
    from freehold.storage.entry import Entry

    registrar = Registrar("/nowhere", Clock(), Entry(Clock()))
    registrar.interrupt()
    registrar.stopped(None)
    assert registrar.doing() is None


def test_a_host_on_another_disk_keeps_none(tmp_path: Path) -> None:
    from freehold.host import open_on
    from freehold.storage.disk import Disk

    with open_on(Disk(), tmp_path) as host:
        host.create("a").close()
        with pytest.raises(Unavailable) as caught:
            host._runs.start_registrar()
        assert caught.value.code == "no_host_file"
    assert [path.name for path in tmp_path.iterdir()] == ["a.sqlite"]
