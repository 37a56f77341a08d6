"""tree shows what lives on the folder, whichever process it lives in; whoever cannot be asked is shown with the reason, in time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from caller import Owner, names_of_sockets, owner
from hosting import host_file
from nobody import nobodys_folder
from other import write
from program import COMMAND, Call, environment, run_program
from turns import until

from freehold.actors.asking import ask_hosts
from freehold.actors.deadline import monotonic
from freehold.actors.knowing import look_at_hosts
from freehold.schema.limits import TREE_TIMEOUT_S


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less long for whoever does not answer."""
    monkeypatch.setattr("freehold.cli.tree.TREE_TIMEOUT_S", 0.3)


def entered(root: Path, count: int) -> None:
    """Wait until so many hosts can be found."""
    until(lambda: len(look_at_hosts(str(root), 5.0) or []) == count)


def pids(out: str) -> list[int]:
    """Return the processes of the lines that name a host."""
    return [int(line.split()[1]) for line in out.splitlines() if not line.startswith(" ")]


def beneath(out: str, other: Owner) -> list[str]:
    """Return the lines beneath the one that names a host."""
    after = out.partition(f"pid {other.process.pid} on ")[2].splitlines()[1:]
    end = next((number for number, line in enumerate(after) if not line.startswith(" ")), len(after))
    return after[:end]


def test_the_trees_of_two_processes_are_shown_each_under_who_it_is(call: Call, root: Path) -> None:
    with owner(root, "a") as one, owner(root, "b") as other:
        entered(root, 2)
        ended = call("tree")

    assert (ended.code, ended.err) == (0, "")
    assert pids(ended.out) == [one.process.pid, other.process.pid]
    for run, host in (("a", one), ("b", other)):
        lines = beneath(ended.out, host)
        assert lines[:2] == ["  runs  running", f"    {run}  running  epoch 1, 1 lease"]
        assert [line.split()[0] for line in lines[2:]] == [".listener", ".registrar"]


def test_a_document_says_of_each_who_it_is_and_its_tree(call: Call, root: Path) -> None:
    with owner(root, "a") as one:
        entered(root, 1)
        (row,) = call("tree", "--json").document
        (name,) = names_of_sockets(root)

    assert list(row) == ["pid", "hostname", "since", "socket", "tree", "gone", "error", "exit_code"]
    assert (row["pid"], row["socket"], row["gone"], row["error"], row["exit_code"]) == (one.process.pid, name, False, None, 0)
    assert row["since"].endswith("Z")
    assert row["tree"]["children"][0] == {
        "name": "a",
        "kind": "RunActor",
        "state": "running",
        "waiting": 0,
        "high_water": row["tree"]["children"][0]["high_water"],
        "restarts": 0,
        "doing": "epoch 1, 1 lease",
        "children": [],
    }


@pytest.mark.usefixtures("quick")
def test_a_host_that_is_stopped_is_told_and_does_not_hold_up_the_others(call: Call, root: Path) -> None:
    with owner(root, "a") as one, owner(root, "b") as other:
        entered(root, 2)
        one.stop()
        ended, rows = call("tree"), call("tree", "--json")

    assert (ended.code, ended.err) == (6, "freehold: 1 of 2 hosts did not answer\n")
    assert beneath(ended.out, one) == ["  it did not answer within 0.3 seconds [deadline_exceeded]"]
    assert beneath(ended.out, other)[1].split()[:2] == ["b", "running"]
    assert (rows.code, rows.code_in_document) == (6, 6)
    hanging, answering = rows.document
    assert (hanging["pid"], hanging["tree"], hanging["error"]["code"], hanging["exit_code"]) == (
        one.process.pid,
        None,
        "deadline_exceeded",
        6,
    )
    assert (answering["pid"], answering["error"], answering["exit_code"]) == (other.process.pid, None, 0)


def test_a_host_that_is_stopped_is_waited_for_as_long_as_was_said(call: Call, root: Path) -> None:
    with owner(root, "a") as one:
        entered(root, 1)
        one.stop()
        ended = call("tree", "--timeout", "0.2")

    assert (ended.code, beneath(ended.out, one)) == (6, ["  it did not answer within 0.2 seconds [deadline_exceeded]"])


def test_a_few_that_are_stopped_take_no_longer_than_one(root: Path) -> None:
    with owner(root, "a") as one, owner(root, "b") as two:
        entered(root, 2)
        one.stop()
        two.stop()
        begun = monotonic()
        ended = run_program("--root", str(root), "tree")
        taken = monotonic() - begun

    assert (ended.code, pids(ended.out)) == (6, [one.process.pid, two.process.pid])
    assert TREE_TIMEOUT_S <= taken < 2 * TREE_TIMEOUT_S


def test_one_that_was_killed_or_has_closed_is_not_there(call: Call, root: Path) -> None:
    with owner(root, "a") as killed, owner(root, "b") as closed, owner(root, "c") as living:
        entered(root, 3)
        killed.kill()
        closed.end()
        ended = call("tree")

    assert (ended.code, pids(ended.out), ended.err) == (0, [living.process.pid], "")


def test_one_that_ends_while_it_is_asked_is_told_and_no_failure(call: Call, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with owner(root, "a") as other:
        entered(root, 1)

        def ask(*arguments: Any) -> Any:
            other.kill()
            return ask_hosts(*arguments)

        monkeypatch.setattr("freehold.hosts.ask_hosts", ask)
        ended = call("tree")

    assert (ended.code, beneath(ended.out, other), ended.err) == (0, ["  it has ended meanwhile"], "")


def test_a_host_whose_socket_was_removed_is_told(call: Call, root: Path) -> None:
    with owner(root, "a") as other:
        entered(root, 1)
        (root / names_of_sockets(root)[0]).unlink()
        ended = call("tree")

    assert ended.code == 6
    assert beneath(ended.out, other) == ["  it cannot be asked: nobody is reached at its socket [not_reached]"]


def test_where_nobody_lives_that_is_said_and_nothing_is_made(call: Call, root: Path) -> None:
    note = f"no host lives on {root}; --root or $FREEHOLD_ROOT names another folder\n"

    assert call("tree") == (0, "", note)
    assert call("tree", "--json").document == []
    assert not root.exists()


def test_a_host_file_that_is_none_is_refused(call: Call, root: Path) -> None:
    root.mkdir()
    host_file(root).write_bytes(b"no database at all" * 100)
    ended = call("tree", "--json")

    assert (ended.code, ended.document["code"]) == (4, "not_a_host_file")


def test_no_control_character_of_a_host_file_is_printed(call: Call, root: Path) -> None:
    with owner(root, "a"):
        entered(root, 1)
        write(host_file(root), "UPDATE host SET hostname = 'x' || char(27) || '[31m' || char(10) || 'pid 1 on y'")
        ended = call("tree")

    assert ended.code == 0
    assert len(pids(ended.out)) == 1
    assert "x\\u001b[31m\\npid 1 on y since" in ended.out


_WITHOUT_RIGHTS = """
import os, sys
import freehold.cli, rich.console, rich.table
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
sys.exit(freehold.cli.main(["--root", sys.argv[1], "tree"]))
"""


def test_a_folder_that_may_not_be_entered_is_refused() -> None:
    with nobodys_folder() as top:
        (top / "runs").mkdir(mode=0)
        command = [sys.executable, "-c", _WITHOUT_RIGHTS, str(top / "runs")]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False, timeout=50)
        (top / "runs").chmod(0o700)

    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == f"freehold: the folder {top / 'runs'} may not be entered by this user; nothing was changed [no_permission]\n"


def test_a_reader_who_has_gone_ends_it_quietly(root: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [*COMMAND, "--root", str(root), "tree", "--json"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, env=environment(), check=False, timeout=50)
    os.close(writing)

    assert (done.returncode, done.stderr) == (141, "")
