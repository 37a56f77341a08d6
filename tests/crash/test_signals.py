"""Ctrl-C and SIGTERM with other processes in the picture: the end comes in bounded time, answers are true, nobody is left waiting."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from folder import run_files
from neighbours import Neighbour, Neighbours
from turns import names, senders, until

import freehold
from freehold import Error
from freehold.actors.deadline import monotonic
from freehold.schema.ids import is_socket_name
from freehold.schema.limits import CLOSE_TIMEOUT_S

GUESTS = 6
BOUND_S = 5.0
"""Longer than any end takes that waits for nothing, and shorter than any of the times that would have to run out."""

ASKS = """
import json, os, sys
import freehold
root, way = sys.argv[1:3]
told = {}
def ask(run):
    print("ready", flush=True)
    if way == "append":
        run.append("x", request_id="r")
    elif way == "publish":
        run.publish("x", lambda files: files.write_bytes("f", bytes(200_000)), request_id="r")
    elif way == "block":
        with run.publish("x", request_id="r") as files:
            files.write_bytes("f", bytes(200_000))
    else:
        next(run.follow(after=1))
with freehold.open(root) as host, host.handle("a") as handle:
    own = host.create("mine")
    own.append("kept")
    ask(handle)
"""

SERVES = """
import logging, os, signal, sys, threading
import freehold
logging.basicConfig(format="%(message)s", stream=sys.stdout)
root, how = sys.argv[1:3]

def terminate(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGTERM, terminate)
with freehold.open(root) as host:
    run = host.open("a")
    if how == "stuck":
        begun = threading.Event()
        def stick(tx):
            begun.set()
            threading.Event().wait()
        threading.Thread(target=lambda: run.transact(stick), daemon=True).start()
        begun.wait()
    elif how == "in a block":
        block = run.transaction(timeout=1000)
        block.__enter__().append("never kept")
    print("ready", flush=True)
    while True:  # a signal that comes while Python begins a longer wait is heard when that ends
        threading.Event().wait(0.05)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    with freehold.open(folder) as host:
        host.create("a").close()
    return folder


@contextmanager
def program(text: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Yield a process that has said that it is ready."""
    process = subprocess.Popen([sys.executable, "-c", text, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate(timeout=30)


def said(root: Path) -> list[str]:
    return names(freehold.view(root / "a.sqlite"))


def socket_of(pid: int) -> bool:
    """Return whether a process is connected to an owner: besides the socket that it listens on it has another."""
    try:
        found = [fd.readlink() for fd in Path(f"/proc/{pid}/fd").iterdir()]
    except FileNotFoundError:
        return False
    return sum(str(target).startswith("socket:") for target in found) > 1


# Who asks is interrupted


@pytest.mark.parametrize("state", ["stands still", "is in a block", "is at work"])
@pytest.mark.parametrize("way", ["append", "publish", "block", "follow"])
def test_ctrl_c_ends_who_asks_an_owner_elsewhere_and_closes_its_own_runs(root: Path, village: Neighbours, way: str, state: str) -> None:
    owner = village.new(root)
    owner.do("import threading\nrun = host.open('a')")
    hold(owner, state)
    with program(ASKS, str(root), way) as asker:
        until(lambda: socket_of(asker.pid))
        began = monotonic()
        asker.send_signal(signal.SIGINT)
        out, err = asker.communicate(timeout=30)
        took = monotonic() - began
    release(owner, state)

    assert (asker.returncode, out, took < BOUND_S) == (-signal.SIGINT, "", True), err
    assert err.splitlines()[-1] == "KeyboardInterrupt"
    freehold.view(root / "mine.sqlite").verify()
    assert not (root / "mine.sqlite-wal").exists()  # it was closed, not dropped
    with freehold.open(root) as host, host.handle("a") as handle:
        if way != "follow":  # whatever has become of the request, its id tells it once
            assert [handle.append("other").name, *said(root)].count("x") <= 1
    owner.end()
    freehold.view(root / "a.sqlite").verify()


def hold(owner: Neighbour, state: str) -> None:
    """Keep an owner from answering."""
    if state == "stands still":
        owner.stop()
    elif state == "is in a block":
        owner.do("block = run.transaction(timeout=1000)\nblock.__enter__()")
    else:
        owner.do("go, begun = threading.Event(), threading.Event()")
        owner.do(
            "thread = threading.Thread(target=lambda: run.transact(lambda tx: (begun.set(), go.wait())))\nthread.start()\nbegun.wait()"
        )


def release(owner: Neighbour, state: str) -> None:
    """Let it answer."""
    if state == "stands still":
        owner.go_on()
    elif state == "is in a block":
        owner.do("block.__exit__(None, None, None)")
    else:
        owner.do("go.set()\nthread.join()")


# Who is asked is ended


def asked(root: Path, village: Neighbours, number: int) -> list[Neighbour]:
    """Return guests in the middle of requests: each asks again and again until it is told that it will not be answered."""
    guests = [village.new(root) for _ in range(number)]
    for at, guest in enumerate(guests):
        guest.do("handle = host.handle('a')\nhandle.info")
        guest.tell(
            f"""
from freehold.actors.remote import Remote
from freehold.schema.messages import Append
from freehold.storage.path import resolve
remote, told = Remote(resolve(root, "a"), timeout=20.0), []
for number in range(100_000):
    name = f"{at} {{number}}"
    try:
        told.append([name, "yes", remote.ask(Append(name, "1")).seq])
    except freehold.Error as error:
        told.append([name, error.executed, error.code])
        break
remote.close()
""",
            "told",
        )
    return guests


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_host_that_is_ended_amid_requests_ends_in_time_and_its_answers_are_true(
    root: Path, village: Neighbours, number: signal.Signals
) -> None:
    with program(SERVES, str(root), "at once") as host:
        guests = asked(root, village, GUESTS)
        until(lambda: len(said(root)) > 50)
        began = monotonic()
        host.send_signal(number)
        out, err = host.communicate(timeout=30)
        took = monotonic() - began
    told = [answer for guest in guests for answer in guest.hear()]
    for guest in guests:
        guest.end()

    assert (host.returncode, out, took < BOUND_S) == (-signal.SIGINT, "", True)
    assert err.splitlines()[-1] == "KeyboardInterrupt"
    check(root, told)
    last = [answer for answer in told if answer[1] != "yes"]
    assert (len(last), {(executed, code) for _, executed, code in last} <= {("no", "stopping"), ("no", "not_owner")}) == (GUESTS, True), (
        last
    )
    assert [file.name for file in root.iterdir() if is_socket_name(file.name)] == []
    with freehold.open(root) as again:  # who looked while it closed may have left the siblings of the file
        again.open("a").close()
    assert run_files(root) == ["a.sqlite"]


def check(root: Path, told: list[list[Any]]) -> None:
    """Hold what guests were told against the journal: who was answered is there, who was told no is not."""
    found = {event.name: event.seq for event in freehold.view(root / "a.sqlite").history(after=1)}
    assert {name: seq for name, executed, seq in told if executed == "yes"} == found
    freehold.view(root / "a.sqlite").verify()


@pytest.mark.parametrize("how", ["stuck", "in a block"])
def test_who_waits_behind_what_does_not_end_is_answered_when_its_owner_is_ended(root: Path, how: str) -> None:
    with program(SERVES, str(root), how) as process, freehold.open(root, timeout=60) as host, host.handle("a") as handle, senders(1) as go:
        call = go(handle.append, "x", request_id="r")
        until(lambda: not call.done())
        process.send_signal(signal.SIGTERM)
        if how == "stuck":
            until(lambda: call.done() or _says(process, "still running"))
            process.send_signal(signal.SIGINT)  # the second ends it at once
        began = monotonic()
        process.wait(30)
        assert monotonic() - began < CLOSE_TIMEOUT_S / 2
        error = call.exception(30)
        assert error is None or (isinstance(error, Error) and error.executed in ("no", "unknown"))
        assert handle.append("x", request_id="r").name == "x"
        assert said(root) == ["x"]
    freehold.view(root / "a.sqlite").verify()


def _says(process: subprocess.Popen[str], words: str) -> bool:
    assert process.stdout is not None
    return words in process.stdout.readline()


def test_a_second_ctrl_c_ends_at_once_who_is_ended_amid_requests(root: Path, village: Neighbours) -> None:
    with program(SERVES, str(root), "stuck") as host:
        guests = asked(root, village, 2)
        host.send_signal(signal.SIGINT)
        assert _says(host, "still running")  # one line says what
        began = monotonic()
        host.send_signal(signal.SIGINT)
        out, _ = host.communicate(timeout=30)
        assert (host.returncode, out, monotonic() - began < BOUND_S) == (-signal.SIGINT, "", True)
    told = [answer for guest in guests for answer in guest.hear()]
    for guest in guests:
        guest.end()
    assert {executed for _, executed, _ in told} <= {"no", "unknown"}
    assert said(root) == []
    with freehold.open(root) as again, again.open("a") as run:
        assert run.append("x").seq == 2
    assert run_files(root) == ["a.sqlite"]
