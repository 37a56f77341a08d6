"""C22: a start that fails is raised where the run was asked for, a failing message ends its actor aloud; nothing looks healthy."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest
from leaks import freehold_threads, open_run_files
from runfile import forge, new_run
from turns import until

import freehold
from freehold import Damaged, Error, Refused
from freehold.actors import Actor, ChildSpec, Down, Supervisor, SupervisorSpec

BROKEN = {
    "empty": b"",
    "garbage": b"x" * 8192,
    "cut": None,
    "forged": None,
    "gone": None,
}


def break_run(folder: Path, how: str) -> None:
    path = new_run(folder, how)
    content = Path(path.file).read_bytes()
    match how:
        case "cut":
            Path(path.file).write_bytes(content[:5000])
        case "forged":
            forge(path, "UPDATE run SET txn = 0")
        case "gone":
            forge(path, "DELETE FROM run")
        case _:
            Path(path.file).write_bytes(BROKEN[how] or b"")


@pytest.mark.parametrize("how", BROKEN)
def test_whoever_opens_a_corrupt_run_gets_the_error_and_no_lease(tmp_path: Path, how: str) -> None:
    break_run(tmp_path, how)
    with freehold.open(tmp_path) as host:
        threads, files = freehold_threads(), open_run_files()
        for _ in range(3):
            with pytest.raises((Damaged, Refused)) as caught:
                host.open(how)
            assert caught.value.code not in ("crashed", "lease_lost", "quarantined")
            assert host.tree().children == ()
        assert open_run_files() == files
        until(lambda: freehold_threads() == threads)
        with host.create("healthy") as run:
            assert run.append("x").seq == 2
        listed = {info.id: info.error for info in host.runs()}
        assert isinstance(listed[how], Error)
        assert listed["healthy"] is None


class Fragile(Actor[str]):
    """Breaks when it is told to."""

    def receive(self, message: str) -> object:
        if message == "break":
            raise ValueError("the secret canary")
        return message


class Watcher(Actor[Down]):
    """Collects what it is told."""

    def __init__(self) -> None:
        self.told: list[Down] = []
        self.come = threading.Event()

    def receive(self, message: Down) -> object:
        self.told.append(message)
        self.come.set()
        return None


def test_a_message_that_fails_with_nobody_waiting_ends_its_actor_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    watcher = Watcher()
    spec = SupervisorSpec("house", [ChildSpec("watcher", lambda: watcher), ChildSpec("fragile", Fragile)])
    with caplog.at_level(logging.ERROR), Supervisor(spec) as house:
        house.monitor("fragile", house["watcher"])
        house["fragile"].tell("break")
        assert watcher.come.wait(20)
        assert (watcher.told[0].child, watcher.told[0].restarting) == ("fragile", True)
        assert isinstance(watcher.told[0].reason, ValueError)
        assert house["fragile"].ask("hello") == "hello"
        assert [child.restarts for child in house.tree().children if child.name == "fragile"] == [1]
    assert "house/fragile crashed: ValueError" in caplog.text
    assert "canary" not in caplog.text
