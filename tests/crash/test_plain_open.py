"""User code opens a run file by hand in its owner's process, which drops SQLite's locks: what still protects the run.

The owner's flock is on a descriptor of its own and stays, so nobody else comes to own the run; and a program that knows
nothing of us, and now gets in where it could not before, is noticed before anything else is acknowledged.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from other import write
from ways import read, told

import freehold

OWNER = """
import json, logging, os, shutil, sys
logging.disable(logging.CRITICAL)
import freehold
from freehold.actors.registrar import ReadHosts

root = sys.argv[1]
file = root + "/a.sqlite"
host = freehold.open(root)
run = host.ensure("a")
host._runs.start_registrar().ask(ReadHosts())  # what it says in the host file is there: no name in the folder comes or goes now

def locks():
    # What the kernel says that this process holds on the file and beside it, by kind.
    inodes = {str(os.stat(file + suffix).st_ino) for suffix in ("", "-wal", "-shm")}
    rows = [line.split() for line in open("/proc/locks")]
    mine = [row for row in rows if len(row) > 5 and row[4] == str(os.getpid()) and row[5].rpartition(":")[2] in inodes]
    return sorted({row[1] for row in mine})

def note(name):
    try:
        return ["ok", run.append(name).hash]
    except freehold.Error as error:
        return [error.code, error.details.get("fence")]

def plain(how):
    if how == "open":
        with open(file, "rb") as opened:
            opened.read()
    elif how == "copy":
        shutil.copy(file, root + "/copy")
    else:
        shutil.copytree(root, root + ".copied", ignore=shutil.ignore_patterns(".host-*"), dirs_exist_ok=True)

def inside(how):
    # The transaction is open while the file is opened by hand and somebody else writes.
    try:
        with run.transaction(timeout=30) as tx:
            tx.append("inside")
            plain(how)
            say(locks())
            sys.stdin.readline()
    except freehold.Error as error:
        return [error.code, error.executed]
    return ["ok", "yes"]

def say(what):
    print(json.dumps(what), flush=True)

DO = {"note": note, "plain": plain, "locks": lambda _: locks(), "inside": lambda how: inside(how)}
say(note("first"))
for line in sys.stdin:
    do, what = json.loads(line)
    say(DO[do](what))
host.close()
"""

FOREIGN = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0.2)
try:
    for sql in sys.argv[2:]:
        db.execute(sql).fetchall()
    print("ok", flush=True)
except sqlite3.OperationalError as error:
    print(error, flush=True)
"""

FENCED = [["storage_failed", rule] for rule in ("foreign_writer", "file_rewritten", "wal_replaced")]
"""Which of them is seen first depends on what SQLite has left to do when it closes."""


class Owner:
    """A process that owns the run `a`, and whose code opens its file by hand when it is told to."""

    def __init__(self, root: Path) -> None:
        self._process = subprocess.Popen([sys.executable, "-c", OWNER, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def hear(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def say(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def do(self, do: str, what: str = "") -> Any:
        self.say(json.dumps([do, what]))
        return self.hear()

    def end(self) -> int:
        self._process.communicate(timeout=30)
        return self._process.returncode

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=30)


class Foreigner:
    """A program of somebody else's that tries to write, and stays."""

    def __init__(self, file: Path) -> None:
        command = [sys.executable, "-S", "-E", "-c", FOREIGN + "sys.stdin.readline()", str(file)]
        lines = ["BEGIN IMMEDIATE", "UPDATE run SET updated_at = updated_at + 1", "COMMIT"]
        self._process = subprocess.Popen([*command, *lines], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.got_in = self._process.stdout.readline().strip()

    def leave(self) -> None:
        """Let it close its connection and end."""
        self._process.communicate("\n", timeout=30)


@contextmanager
def foreigner(file: Path) -> Iterator[Foreigner]:
    """Yield such a program, which has left afterwards."""
    found = Foreigner(file)
    yield found
    if found._process.returncode is None:
        found.leave()


@contextmanager
def owner(root: Path) -> Iterator[Owner]:
    """Yield an owner that has appended one note; afterwards it has closed well."""
    found = Owner(root)
    try:
        assert found.hear()[0] == "ok"
        yield found
        assert found.end() == 0
    finally:
        found.kill()


def foreign(file: Path, *lines: str) -> str:
    """Return what a program of somebody else's, with an SQLite of its own, is told."""
    command = [sys.executable, "-S", "-E", "-c", FOREIGN, str(file), *lines]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()


@pytest.mark.parametrize("how", ["open", "copy", "copy of the folder"])
def test_sqlites_locks_go_and_the_owners_stays(tmp_path: Path, how: str) -> None:
    root = tmp_path / "runs"
    with owner(root) as process:
        assert process.do("locks") == ["FLOCK", "POSIX"]
        process.do("plain", how)
        # Those on the -shm go only if it is opened and closed by hand as well.
        assert process.do("locks") == (["FLOCK"] if how == "copy of the folder" else ["FLOCK", "POSIX"])

        with freehold.open(root) as host:
            assert told(lambda: host.open("a")) == "owned_elsewhere"
            assert told(lambda: host.delete("a")) == "owned_elsewhere"
        # Where no lock is left, even a reader's opening is taken for a writer's.
        noted = [process.do("note", name)[0] for name in ("second", "third")]
        assert noted == (["storage_failed", "ok"] if how == "copy of the folder" else ["ok", "ok"])
    view = freehold.view(root / "a.sqlite")
    view.verify()
    acknowledged = [name for name, said in zip(("second", "third"), noted, strict=True) if said == "ok"]
    assert [event.name for event in view.history()] == [None, "first", *acknowledged]


@pytest.mark.parametrize("how", ["open", "copy", "copy of the folder"])
def test_a_writer_that_gets_in_is_noticed_before_anything_else_is_acknowledged(tmp_path: Path, how: str) -> None:
    root = tmp_path / "runs"
    with owner(root) as process:
        process.do("plain", how)
        assert foreign(root / "a.sqlite", "UPDATE run SET updated_at = updated_at + 1") == "ok"

        # A copy of the folder has dropped the locks on the -shm too: whoever closes last takes the -wal away.
        assert process.do("note", "second") in FENCED
        assert process.do("note", "third")[0] in ("ok", "lease_lost")
    freehold.view(root / "a.sqlite").verify()


def test_a_reader_that_takes_the_wal_away_when_it_closes_is_noticed_too(tmp_path: Path) -> None:
    """With no lock left on the -shm, a program that only reads believes to be alone, and tidies up."""
    root = tmp_path / "runs"
    with owner(root) as process:
        process.do("plain", "copy of the folder")
        assert foreign(root / "a.sqlite", "SELECT count(*) FROM event") == "ok"
        assert not (root / "a.sqlite-wal").exists()

        assert process.do("note", "second") in FENCED
        again = [process.do("note", f"again {number}") for number in range(3)]
    view = freehold.view(root / "a.sqlite")
    view.verify()
    there = {row[-1] for row in read(view)}
    assert {hash_ for said, hash_ in again if said == "ok"} <= there
    assert [event.name for event in view.history()][:2] == [None, "first"]


@pytest.mark.parametrize("stays", [True, False], ids=["stays", "leaves"])
@pytest.mark.parametrize("how", ["open", "copy", "copy of the folder"])
def test_inside_a_transaction_what_is_acknowledged_is_in_the_file_whoever_got_in(tmp_path: Path, how: str, stays: bool) -> None:
    root = tmp_path / "runs"
    with owner(root) as process:
        assert "FLOCK" in process.do("inside", how)
        with foreigner(root / "a.sqlite") as other:
            # Only a copy of the -shm lets a writer in while we hold the write lock.
            assert (other.got_in == "ok") is (how == "copy of the folder")
            if not stays:
                other.leave()  # it believes to be alone, brings the -wal home and takes it away
            process.say("")
            ended, executed = process.hear()
        later = process.do("note", "later")
    view = freehold.view(root / "a.sqlite")
    view.verify()
    assert (ended, executed) == (("ok", "yes") if stays else ("storage_failed", "no"))
    assert [event.name for event in view.history()] == [None, "first", *["inside"] * stays, *["later"] * (later[0] == "ok")]


def test_what_reads_a_run_through_us_drops_no_lock(tmp_path: Path) -> None:
    """The safe way to look: a view in the owner's process leaves its locks as they are, and keeps a writer out."""
    with freehold.open(tmp_path) as host, host.create("a") as run:
        with run.transaction() as tx:
            tx.append("inside")
            assert told(lambda: freehold.view(tmp_path / "a.sqlite").verify()) == "ok"
            assert foreign(tmp_path / "a.sqlite", "BEGIN IMMEDIATE").endswith("locked")
        write(tmp_path / "a.sqlite", "SELECT 1")
        assert run.append("after").seq == 3
