"""Hosts in processes of their own, each forked in a moment by one that has everything loaded: told what to do, stopped, killed.

What a neighbour is told is a line of Python; what comes of it, also an error of ours, is heard as plain data.
"""

from __future__ import annotations

import array
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from turns import until

from freehold.schema.errors import from_record

_PATIENCE_S = 40.0
_MOTHER = """
import array, json, logging, os, signal, socket, sys, threading
logging.disable(logging.CRITICAL)
import freehold, zstandard
from freehold import operations as op
from freehold.actors import batch, connection, listener
from freehold.storage import store
from freehold.storage.manifest import expected
expected()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)

def in_the_middle(owner, name, number, *, after=False):
    "Let this process get a signal when this is called next: before it, or after it."
    really = getattr(owner, name)
    def carried_out(*arguments, **options):
        setattr(owner, name, really)
        if not after:
            signal.pthread_kill(threading.get_ident(), number)
        value = really(*arguments, **options)
        if after:
            signal.pthread_kill(threading.get_ident(), number)
        return value
    setattr(owner, name, carried_out)

def note(event):
    return [event.seq, event.hash]

def carried_out(words, known):
    try:
        exec(compile(words["do"], "neighbour", "exec"), known)
        return "ok", eval(words["say"], known)
    except freehold.Error as error:
        return "error", error.record()
    except BaseException as error:
        return "fault", repr(error)

def live(end, root):
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    known = globals() | {"root": root, "host": freehold.open(root, timeout=20, idle_timeout=0.05)}
    lines = end.makefile("rw")
    for line in lines:
        lines.write(json.dumps(carried_out(json.loads(line), known)) + "\\n")
        lines.flush()
    known["host"].close()
    end.send(b"closed\\n")

mother = socket.socket(fileno=int(sys.argv[1]))
children = []
while True:
    order, fds, _, _ = socket.recv_fds(mother, 65536, 1)
    if not order:
        break
    child = os.fork()
    if child == 0:
        mother.close()
        try:
            live(socket.socket(fileno=fds[0]), order.decode())
        finally:
            os._exit(0)
    os.close(fds[0])
    children.append(child)
    mother.send(str(child).encode())
for child in children:  # whoever stands still does not hear that there is nobody left to tell it anything
    try:
        os.kill(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""
"""Who answers to "do" and "say", line by line, until nobody tells it anything any more; then it closes its host."""


class Neighbour:
    """One host on one root, in a process of its own."""

    def __init__(self, pid: int, end: socket.socket) -> None:
        self.pid = pid
        self._death = os.pidfd_open(pid)
        self._end = end
        self._lines = end.makefile("rw")

    def do(self, line: str, say: str = "None") -> Any:
        """Have it do *line*, and return what *say* is then. Raises the error of ours that came of it."""
        self.tell(line, say)
        return self.hear()

    def say(self, words: str) -> Any:
        """Return what *words* are there."""
        return self.do("", words)

    def tell(self, line: str, say: str = "None") -> None:
        """Have it do *line*, and do not wait for it."""
        self._lines.write(json.dumps({"do": line, "say": say}) + "\n")
        self._lines.flush()

    def hear(self) -> Any:
        """Return what came of what it was told; raise it if it was an error of ours, EOFError if it has ended before it said so."""
        try:
            line = self._lines.readline()
        except ConnectionResetError:
            line = ""
        if not line:
            raise EOFError
        how, value = json.loads(line)
        if how == "error":
            raise from_record(value)
        assert how == "ok", value
        return value

    def stop(self) -> None:
        """Stop the whole process where it is."""
        os.kill(self.pid, signal.SIGSTOP)
        self.has_stopped()

    def has_stopped(self) -> None:
        """Wait until it stands still, every thread of it."""
        until(lambda: all(_state(task) == "T" for task in Path(f"/proc/{self.pid}/task").iterdir()))

    def go_on(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End it where it is, and wait for that."""
        if not self.has_ended(0):
            os.kill(self.pid, signal.SIGKILL)
        self.is_killed()

    def is_killed(self) -> None:
        """Wait for its end."""
        assert self.has_ended(_PATIENCE_S)
        self._close()

    def end(self) -> None:
        """Let it close its host and end."""
        self._end.shutdown(socket.SHUT_WR)
        assert self._lines.readline() == "closed\n"
        self.is_killed()

    def has_ended(self, within: float) -> bool:
        """Return whether the process ends within so many seconds."""
        return bool(self._death == -1 or select.select([self._death], [], [], within)[0])

    def _close(self) -> None:
        if self._death != -1:
            os.close(self._death)
            self._death = -1
        self._lines.close()
        self._end.close()


class Neighbours:
    """The process that they are children of."""

    def __init__(self) -> None:
        self._mother, end = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with end:
            command = [sys.executable, "-c", _MOTHER, str(end.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[end.fileno()], stdin=subprocess.DEVNULL)
        self.all: list[Neighbour] = []

    def new(self, root: Path) -> Neighbour:
        """Return another neighbour, whose host is open on *root*."""
        ours, its = socket.socketpair()
        with its:
            self._mother.sendmsg([str(root).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [its.fileno()]))])
        ours.settimeout(None)
        neighbour = Neighbour(int(self._mother.recv(100)), ours)
        self.all.append(neighbour)
        neighbour.say("None")
        return neighbour

    def kill(self) -> None:
        """End all of them, whatever they do."""
        for neighbour in self.all:
            neighbour.kill()
        self.all.clear()

    def end(self) -> None:
        """End all of them, and who has made them."""
        self.kill()
        self._mother.close()
        self._process.communicate(timeout=_PATIENCE_S)


@contextmanager
def neighbours() -> Iterator[Neighbours]:
    """Yield those who make neighbours; afterwards all of them are gone."""
    found = Neighbours()
    try:
        yield found
    finally:
        found.end()


def _state(task: Path) -> str:
    return (task / "stat").read_text().rpartition(")")[2].split()[0]
