"""What tests of the host file share: processes that use one at the same moment, rows that are known, and hosts of other processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from other import ready

from freehold.schema.rows import HostRow, Known, Process, RunRow, Stamp
from freehold.storage.clock import Clock
from freehold.storage.hostform import FILE_NAME
from freehold.storage.living import this_process

_USER = """
import json, os, sys
from freehold.schema.errors import Error
from freehold.storage.clock import Clock
from freehold.storage.entry import Entry
from freehold.storage.hostfile import HostFile
from freehold.storage.living import claim_driver, driven_elsewhere, read_hosts

entry = Entry(Clock())
file = None

def open_it(root):
    global file
    file = HostFile(root, entry.say)
    file.write(entry.say)
    return file.read(lambda db: db.pragma("journal_mode"))

def close():
    file.close()

def hosts():
    return file.read(lambda db: len(read_hosts(db)))

def claim(first, last):
    won = lost = 0
    for number in range(first, last):
        found = file.write(lambda db: claim_driver(db, f"run-{number}", entry.host, 1))
        if found.host.id == entry.host.id:
            won += 1
        else:
            lost += 1
            assert driven_elsewhere(found).details["pid"] not in (None, os.getpid())
    return [won, lost]

DO = {"open": open_it, "close": close, "hosts": hosts, "claim": claim, "is there": lambda: file.is_there(), "look": lambda: file.look()}
print("ready", flush=True)
for line in sys.stdin:
    word, *arguments = json.loads(line)
    try:
        print(json.dumps(["ok", DO[word](*arguments)]), flush=True)
    except Error as error:
        print(json.dumps([error.code, str(error)]), flush=True)
"""


class Users:
    """Processes that each have one host file, and all do the same at once."""

    def __init__(self, number: int) -> None:
        self._all = [
            subprocess.Popen([sys.executable, "-c", _USER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(number)
        ]
        assert [self._line(user) for user in self._all] == ["ready\n"] * number

    def all(self, word: str, *arguments: Any) -> list[Any]:
        """Tell all of them at the same moment; return what each answers."""
        for user in self._all:
            assert user.stdin is not None
            user.stdin.write(json.dumps([word, *arguments]) + "\n")
        for user in self._all:
            assert user.stdin is not None
            user.stdin.flush()
        return [json.loads(self._line(user)) for user in self._all]

    @staticmethod
    def _line(user: subprocess.Popen[str]) -> str:
        assert user.stdout is not None
        return user.stdout.readline()

    def end(self) -> None:
        """Let all of them end."""
        for user in self._all:
            user.kill()
            user.communicate(timeout=30)


@contextmanager
def users(number: int) -> Iterator[Users]:
    """Yield *number* processes until the block ends."""
    them = Users(number)
    try:
        yield them
    finally:
        them.end()


_LIVES = 'import sys; print("ready", flush=True); sys.stdin.readline()'


@contextmanager
def other_host() -> Iterator[HostRow]:
    """Yield the row of a host of another process, which lives until the block ends."""
    with ready(_LIVES) as process:
        yield host_of(process.pid)


def host_of(pid: int) -> HostRow:
    """Return the row that a host of process *pid* has."""
    from freehold.storage import platform

    mine = this_process()
    return host(mine._replace(pid=pid, pid_start=platform.process_start(pid)))


def host(process: Process | None = None) -> HostRow:
    """Return the row of a new host."""
    return HostRow(os.urandom(16), process or this_process(), None, Clock().now_ms())


def known(run: str = "a", **changes: Any) -> Known:
    """Return a row that a run may have."""
    row = RunRow(run, "paint", None, None, '{"colour":"blue"}', "created", None, None, None, 1, 0, 3, 5, 6)
    return Known(run, Stamp(1, 2, 3, 4, 5, 0, 0), sealed=True, seen_at=7, row=row, events=1)._replace(**changes)


def host_file(root: Path) -> Path:
    """Return the host file of *root*."""
    return root / FILE_NAME
