"""Whoever asks a host over its socket: by the book, over a line of its own, or with whatever bytes a test wants to send."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from freehold.actors.deadline import monotonic
from freehold.actors.remote import Line, connect
from freehold.schema.ids import is_socket_name
from freehold.schema.messages import Message, ShowTree
from freehold.schema.wire import HEAD_BYTES, Request, decode_reply, encode_hello, encode_request
from freehold.storage import sockets
from freehold.storage.path import resolve
from freehold.storage.platform import inode_of

PATIENCE_S = 30.0


def names_of_sockets(root: Path) -> list[str]:
    """Return the names of the hosts' sockets in a folder."""
    return sorted(file.name for file in root.iterdir() if is_socket_name(file.name))


def request(root: Path, message: Message, run_id: str = "a", timeout: float = PATIENCE_S) -> bytes:
    """Return the frame that asks this of a run."""
    if isinstance(message, ShowTree):
        return encode_request(Request(message))
    return encode_request(Request(message, run_id, inode_of(Path(resolve(root, run_id).file).stat()), timeout))


class Caller:
    """A connection to the one host of *root*."""

    def __init__(self, root: Path) -> None:
        self._root = root
        (name,) = names_of_sockets(root)
        self.line: Line = connect([str(root)], name, monotonic() + PATIENCE_S)

    def ask(self, message: Message, run_id: str = "a", timeout: float = PATIENCE_S) -> Any:
        """Ask the owner of a run, and return the answer or raise it."""
        return self.line.ask(request(self._root, message, run_id, timeout), message, monotonic() + timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.line.close()


@contextmanager
def wire(root: Path, *, greet: bool = True) -> Iterator[socket.socket]:
    """Yield a bare connection to the one host of *root*, after hello unless told not to."""
    (name,) = names_of_sockets(root)
    with sockets.connect(str(root), name) as end:
        end.settimeout(PATIENCE_S)
        if greet:
            end.sendall(encode_hello())
            assert read_frame(end)
        yield end


def read_frame(end: socket.socket) -> bytes:
    """Return the body of the next frame, or nothing at the end."""
    try:
        head = end.recv(HEAD_BYTES, socket.MSG_WAITALL)
    except ConnectionResetError:  # it ended before it had read all that was sent
        return b""
    return end.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL) if head else b""


def code_in(body: bytes) -> str:
    """Return the code of the error that a frame tells, or "answer"."""
    _, error = decode_reply(body, ShowTree)
    return "answer" if error is None else error.code


_OWNER = """
import logging, os, signal, sys
logging.disable(logging.CRITICAL)
import freehold
import freehold.actors.connection as connection, freehold.actors.listener as listener, freehold.actors.batch as batch
import freehold.storage.store as store

def die(*_arguments, **_options):
    os.kill(os.getpid(), signal.SIGKILL)

def after(owner, name):
    really = getattr(owner, name)
    def carried_out(*arguments, **options):
        really(*arguments, **options)
        die()
    setattr(owner, name, carried_out)

exec(sys.argv[3])
host = freehold.open(sys.argv[1])
run = host.ensure(sys.argv[2])
print("ready", flush=True)
for line in sys.stdin:
    exec(line)
    print("ready", flush=True)
host.close()
"""


class Owner:
    """A run owned by a host in another process, which does what it is told line by line."""

    def __init__(self, root: Path, run_id: str = "a", first: str = "") -> None:
        command = [sys.executable, "-c", _OWNER, str(root), run_id, first]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._hear()

    def do(self, line: str) -> None:
        """Have it do *line*, and wait until it is done."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        self._hear()

    def stop(self) -> None:
        """Stop the whole process where it is."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def go_on(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it where it is."""
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def end(self) -> None:
        """Let it close its host and end."""
        self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0

    def _hear(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"


@contextmanager
def owner(root: Path, run_id: str = "a", first: str = "") -> Iterator[Owner]:
    """Yield such an owner; afterwards it is gone. *first* is done before it opens its host."""
    found = Owner(root, run_id, first)
    try:
        yield found
    finally:
        found.process.kill()
        found.process.communicate(timeout=PATIENCE_S)
