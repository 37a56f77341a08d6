"""A host's rows stand for as long as its process lives, and one host at a time drives a run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosting import host, host_of, other_host

from freehold.storage import platform
from freehold.storage.clock import Clock
from freehold.storage.entry import Entry
from freehold.storage.hostfile import HostFile
from freehold.storage.living import (
    claim_driver,
    driven_elsewhere,
    enter_host,
    is_living,
    leave_host,
    read_driver,
    read_hosts,
    release_driver,
    this_process,
)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[HostFile]:
    file = HostFile(str(tmp_path))
    yield file
    file.close()


def test_a_process_lives_until_it_has_ended_whether_it_was_waited_for_or_not() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    row = host_of(process.pid)
    assert is_living(row.process)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert platform.process_start(process.pid) == row.process.pid_start  # a zombie
    assert not is_living(row.process)
    process.communicate()
    assert not is_living(row.process)


def test_a_later_process_of_the_same_number_and_one_of_another_boot_are_others() -> None:
    me = this_process()
    assert is_living(me)
    assert not is_living(me._replace(pid_start=me.pid_start - 1))
    assert not is_living(me._replace(boot=bytes(16)))
    assert is_living(me._replace(pid=4_000_000, pid_ns=me.pid_ns + 1))  # whether it has ended cannot be seen from here


def test_whoever_enters_removes_the_dead_and_nobody_else(file: HostFile) -> None:
    me, dead = host(), host(this_process()._replace(pid_start=1))
    with other_host() as other:
        for row in (other, dead, me, me):
            file.write(lambda db, row=row: enter_host(db, row))  # type: ignore[misc]
        assert {row.id for row in file.read(read_hosts)} == {other.id, me.id}
        assert file.read(lambda db: db.execute("SELECT count(*) FROM host").get) == 2
        file.write(lambda db: enter_host(db, me._replace(socket=".host-0123456789abcdef.sock")))
        assert [row.socket for row in file.read(read_hosts) if row.id == me.id] == [".host-0123456789abcdef.sock"]
    assert [row.id for row in file.read(read_hosts)] == [me.id]


def test_one_host_drives_a_run_until_it_lets_go_or_ends(file: HostFile) -> None:
    me = host()
    with other_host() as other:
        won = file.write(lambda db: claim_driver(db, "a", other, 1))
        assert (won.host.id, won.since) == (other.id, 1)
        lost = file.write(lambda db: claim_driver(db, "a", me, 2))
        assert lost == won
        error = driven_elsewhere(lost)
        assert (error.code, error.details["pid"]) == ("driven_elsewhere", other.process.pid)
        assert str(other.process.pid) in str(error)
        file.write(lambda db: release_driver(db, "a", me.id))  # not his to release
        assert file.read(lambda db: read_driver(db, "a")) == won
    mine = file.write(lambda db: claim_driver(db, "a", me, 3))
    assert (mine.host.id, mine.since) == (me.id, 3)
    assert file.write(lambda db: claim_driver(db, "a", me, 4)) == mine
    file.write(lambda db: release_driver(db, "a", me.id))
    assert file.read(lambda db: read_driver(db, "a")) is None


def test_with_a_host_goes_all_that_it_drives(file: HostFile) -> None:
    me = host()
    file.write(lambda db: claim_driver(db, "a", me, 1))
    file.write(lambda db: leave_host(db, me.id))
    assert file.read(lambda db: read_driver(db, "a")) is None


def test_an_entry_says_again_what_it_said_but_takes_nothing_from_others(file: HostFile) -> None:
    entry = Entry(Clock())
    entry.driven = {"a": 1, "b": 2}
    with other_host() as other:
        file.write(lambda db: claim_driver(db, "a", other, 9))
        file.write(entry.say)
        found = [file.read(lambda db, run=run: read_driver(db, run)) for run in "ab"]  # type: ignore[misc]
        assert [(row.host.id, row.since) for row in found if row] == [(other.id, 9), (entry.host.id, 2)]
