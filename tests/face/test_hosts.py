"""The hosts that live on a folder, in whatever process, are found without a trace; who cannot be asked is told with the reason."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from caller import Owner, names_of_sockets, owner
from folder import snapshot
from hosting import host_file
from nobody import nobodys_folder
from other import write
from turns import until

import freehold
from freehold import Damaged, DeadlineExceeded, Refused, hosts
from freehold.actors.asking import ask_hosts
from freehold.actors.knowing import look_at_hosts
from freehold.hosts import LivingHost, living_hosts

NO_SOCKET = "def none(*_): raise OSError(28, 'no')\nlistener.listen = none"
NO_PICTURE = "import freehold.actors.runs as runs\nruns.RunsActor.picture = lambda self: {'name': 'hunter2'}"


def found(root: Path, timeout: float = 20.0, *, entered: int = 0) -> list[LivingHost]:
    """Return the hosts, when so many have entered themselves."""
    until(lambda: len(look_at_hosts(str(root), 5.0) or []) >= entered)
    return living_hosts(str(root), timeout)


def runs(host: LivingHost) -> list[str]:
    assert host.tree is not None
    return [node.name for node in host.tree.children if node.name[0] != "."]


def code_of(host: LivingHost) -> str | None:
    assert host.tree is None
    return None if host.error is None else host.error.code


def test_where_there_is_no_folder_or_no_host_file_there_are_none_and_nothing_is_made(tmp_path: Path) -> None:
    assert found(tmp_path) == found(tmp_path / "runs") == []
    (tmp_path / "file").touch()
    assert found(tmp_path / "file") == []
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_the_hosts_of_all_processes_are_found_the_eldest_first_also_this_ones(tmp_path: Path) -> None:
    with owner(tmp_path, "a") as first, freehold.open(tmp_path) as here, here.create("b"), owner(tmp_path, "c") as last:
        hosts = found(tmp_path, entered=3)
        before = {file.name: file.lstat().st_mtime_ns for file in tmp_path.iterdir()}
        assert [host.pid for host in found(tmp_path)] == [host.pid for host in hosts]
        assert {file.name: file.lstat().st_mtime_ns for file in tmp_path.iterdir()} == before
        assert [host.pid for host in hosts] == [first.process.pid, os.getpid(), last.process.pid]
        assert [runs(host) for host in hosts] == [["a"], ["b"], ["c"]]
        assert {host.hostname for host in hosts} == {os.uname().nodename}
        assert sorted(str(host.socket) for host in hosts) == names_of_sockets(tmp_path)
        first.end()
        last.kill()
        assert [host.pid for host in found(tmp_path)] == [os.getpid()]
    assert found(tmp_path) == []


def test_a_host_finds_all_of_them_itself_among_them(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as here, owner(tmp_path, "a") as other:
        until(lambda: [host.pid for host in here.hosts()] == [other.process.pid])  # it owns nothing yet
        with here.create("b") as run:
            until(lambda: len(here.hosts()) == 2)
            ours, theirs = here.hosts(timeout=20)
            assert isinstance(ours, freehold.LivingHost)
            assert (theirs.pid, ours.pid, runs(theirs), runs(ours)) == (other.process.pid, os.getpid(), ["a"], ["b"])
            other.stop()
            assert [(host.pid, type(host.error)) for host in here.hosts(0.3)] == [
                (os.getpid(), type(None)),
                (other.process.pid, DeadlineExceeded),
            ]
            assert run.append("x").seq == 2
        for wrong in (-1, "3", None):
            with pytest.raises(Refused) as caught:
                here.hosts(wrong)  # type: ignore[arg-type]
            assert caught.value.code == "bad_option"
    with pytest.raises(Refused) as caught:
        here.hosts()
    assert caught.value.code == "host_closed"


def test_one_that_hangs_is_told_in_time_and_the_others_are_shown(tmp_path: Path) -> None:
    with owner(tmp_path, "a") as one, owner(tmp_path, "b"):
        found(tmp_path, entered=2)
        one.stop()
        hanging, other = found(tmp_path, 0.3)

    assert runs(other) == ["b"]
    assert isinstance(hanging.error, DeadlineExceeded)
    assert str(hanging.error) == "it did not answer within 0.3 seconds"


def test_one_whose_socket_was_removed_is_not_reached(tmp_path: Path) -> None:
    with owner(tmp_path):
        for name in names_of_sockets(tmp_path):
            (tmp_path / name).unlink()
        (host,) = found(tmp_path, entered=1)

    assert (code_of(host), str(host.error)) == ("not_reached", "it cannot be asked: nobody is reached at its socket")


def test_one_without_a_socket_cannot_be_asked(tmp_path: Path) -> None:
    with owner(tmp_path, first=NO_SOCKET):
        (host,) = found(tmp_path, entered=1)

    assert (code_of(host), str(host.error)) == ("not_reached", "it cannot be asked: it has no socket")


def test_what_is_no_picture_is_refused_and_not_quoted(tmp_path: Path) -> None:
    with owner(tmp_path, first=NO_PICTURE):
        (host,) = found(tmp_path, entered=1)

    assert code_of(host) == "malformed_frame"
    assert "hunter2" not in str(host.error)


def ending(other: Owner, then: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """End *other* after it was found and before it is asked."""
    really = ask_hosts

    def ask(*arguments: Any) -> Any:
        getattr(other, then)()
        return really(*arguments)

    monkeypatch.setattr(hosts, "ask_hosts", ask)


@pytest.mark.parametrize("then", ["kill", "end"])
def test_one_that_ends_while_it_is_asked_is_gone_and_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str) -> None:
    with owner(tmp_path) as other, freehold.open(tmp_path) as here, here.create("b"):
        ending(other, then, monkeypatch)
        gone, living = found(tmp_path, entered=2)

    assert (gone.pid, gone.is_gone, code_of(gone)) == (other.process.pid, True, None)
    assert (living.is_gone, runs(living)) == (False, ["b"])


def test_one_that_hung_up_and_lives_is_told_so(tmp_path: Path) -> None:
    with owner(tmp_path, first="connection.Connection._answer = lambda self, body: False"):
        (host,) = found(tmp_path, entered=1)

    assert (code_of(host), str(host.error)) == ("no_answer", "it hung up before it answered")


def test_a_host_file_that_goes_meanwhile_says_of_nobody_that_he_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with owner(tmp_path, first=NO_SOCKET + "\nimport freehold.actors.registrar as r\nr.HOST_FILE_LOOK_S = 100.0") as other:
        really = ask_hosts

        def ask(*arguments: Any) -> Any:
            for file in tmp_path.glob(".host.sqlite*"):
                file.unlink()
            return really(*arguments)

        monkeypatch.setattr(hosts, "ask_hosts", ask)
        (host,) = found(tmp_path, entered=1)
        assert (host.pid, code_of(host)) == (other.process.pid, "not_reached")


def test_a_host_file_leads_to_no_socket_but_those_of_its_folder(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    with owner(root), socket.socket(socket.AF_UNIX) as trap:
        trap.bind(str(tmp_path / "x.sock"))
        trap.listen()
        trap.setblocking(False)
        found(root, entered=1)
        write(host_file(root), "UPDATE host SET socket = '../x.sock'")
        (host,) = found(root, 0.3)
        with pytest.raises(BlockingIOError):
            trap.accept()

    assert code_of(host) == "not_reached"


def test_a_time_that_is_none_ends_nothing(tmp_path: Path) -> None:
    with owner(tmp_path):
        found(tmp_path, entered=1)
        write(host_file(tmp_path), f"UPDATE host SET opened_at = {2**62}")
        (host,) = found(tmp_path, entered=1)

    assert (host.since.year, runs(host)) == (1970, ["a"])


def test_a_host_file_that_cannot_be_read_is_said_to_and_left_alone(tmp_path: Path) -> None:
    host_file(tmp_path).write_bytes(b"no database at all" * 100)
    before = snapshot(tmp_path)
    with pytest.raises(Refused) as caught:
        found(tmp_path)
    assert caught.value.code == "not_a_host_file"
    assert snapshot(tmp_path) == before


def test_a_damaged_host_file_is_said_to_be(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as host:
        host.create("a").close()
    content = host_file(tmp_path).read_bytes()
    host_file(tmp_path).write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    with pytest.raises(Damaged):
        found(tmp_path)


_WITHOUT_RIGHTS = """
import os, sys
import freehold, freehold.storage.hostlook
from freehold.hosts import living_hosts
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
try:
    print(living_hosts(sys.argv[1], 5.0))
except freehold.Error as error:
    print(error.code)
"""


def test_a_folder_that_may_not_be_entered_is_not_taken_for_an_empty_one() -> None:
    with nobodys_folder() as top:
        (top / "runs").mkdir(mode=0)
        done = subprocess.run(
            [sys.executable, "-c", _WITHOUT_RIGHTS, str(top / "runs")], capture_output=True, text=True, check=True, timeout=50
        )
        (top / "runs").chmod(0o700)

    assert done.stdout == "no_permission\n"
