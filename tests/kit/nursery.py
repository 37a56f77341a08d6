"""Owners that are killed: each is forked by a process that has everything loaded and owns nothing, and ends by SIGKILL.

What an owner was told, it writes to a pipe in one piece, at once: what stands there was acknowledged before it died.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# The lives that an owner can lead. A process without threads forks each, so that the test does not have to.
NURSERY = """
import json, logging, os, signal, sys, threading
logging.disable(logging.CRITICAL)
import freehold, zstandard
from freehold.storage.manifest import expected
expected()
told = int(sys.argv[1])

def tell(*words):
    os.write(told, json.dumps(words).encode() + b"\\n")

def live(order):
    host = freehold.open(order["root"])
    run = host.ensure(order["run"], props={"n": 1})
    if order["execute"]:
        tell("execution", run.transact(lambda tx: tx.begin_execution()))
    tell("open", run.info.epoch)
    def send(sender):
        for number in range(10**6):
            what = (sender + number) % 4
            name = f"{sender}.{number}"
            if what == 0:
                tell("one", name, run.append(name, sender).seq)
            elif what == 1:
                tell("one", name, run.append(name, [name] * 3000).seq)
            elif what == 2:
                tell("request", name, run.append(name, request_id=name).seq)
            else:
                pair = run.transact(lambda tx: [tx.append(name, "first"), tx.append(name, "second")])
                tell("pair", name, pair[0].seq)
    threads = [threading.Thread(target=send, args=(sender,)) for sender in range(order["senders"])]
    for thread in threads:
        thread.start()
    signal.pause()

def one(order):
    root, run_id = order["root"], order["run"]
    with freehold.open(root) as host:
        if order["do"] == "delete":
            host.delete(run_id)
        elif order["do"] == "create":
            host.create(run_id).close()
        else:
            with host.open(run_id) as run:
                for number in range(order.get("notes", 0)):
                    tell("one", f"n{number}", run.append(f"n{number}", "x" * 20_000).seq)
                if order["do"] == "checkpoint":
                    run.transact(lambda tx: None)

def stepped(order):
    # One step, whose effect on the world is a byte in a file; it ends where it is told to.
    from freehold.storage.transaction import Transaction
    where, rule, world = order["where"], order["rule"], order["world"]
    commit, place = Transaction.commit, ["intent"]
    def end_at(there):
        if where == there:
            os.kill(os.getpid(), signal.SIGKILL)
    def committing(transaction):
        end_at("before the commit of the " + place[0])
        commit(transaction)
        end_at("after the commit of the " + place[0])
    def work(number):
        end_at("at its first line")
        with open(world, "ab", 0) as file:
            file.write(b"x")
        end_at("after its effect")
        place[0] = "outcome"
        return {"n": number}
    def probe(number):
        end_at("in its probe")
        return os.path.exists(world)
    def ensured(host):
        while True:
            try:
                return host.ensure(order["run"])
            except freehold.Unavailable:
                os.sched_yield()  # another process has it, and gives it back
    with freehold.open(order["root"]) as host, ensured(host) as run:
        Transaction.commit = committing
        options = {"unknown": rule, "probe": probe} if rule == "probe" else {"unknown": rule}
        try:
            tell("done", run.options(**options).once("step", work, 7))
        except freehold.Refused as error:
            tell("refused", error.code)
        end_at("after it has returned")
        Transaction.commit = commit

def counted(order):
    # Ends at the nth call of any function in any thread, ours or Python's.
    left = order["calls"]
    def count(frame, event, arg):
        nonlocal left
        if event in ("call", "c_call"):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    threading.setprofile(count)
    sys.setprofile(count)
    one(order)
    sys.setprofile(None)
    threading.setprofile(None)
    tell("calls", order["calls"] - left)

for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if child == 0:
        {"live": live, "step": stepped}.get(order["do"], counted)(order)
        os._exit(0)
    print(child, flush=True)
    _, status = os.waitpid(child, 0)
    os.write(told, json.dumps(["end", status]).encode() + b"\\n")
"""


class Nursery:
    """Leads one owner after another through its life."""

    def __init__(self) -> None:
        told, tell = os.pipe()
        command = [sys.executable, "-c", NURSERY, str(tell)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[tell], text=True)
        os.close(tell)
        self._told = os.fdopen(told)

    def lead(self, **order: Any) -> int:
        """Let an owner begin; return its process id."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def hear(self) -> list[Any]:
        """Return the next thing that an owner was told, or `["end", status]`."""
        heard: list[Any] = json.loads(self._told.readline())
        return heard

    def kill(self, pid: int) -> list[list[Any]]:
        """Kill an owner; return what else it was told before."""
        os.kill(pid, signal.SIGKILL)
        return self.rest()

    def rest(self) -> list[list[Any]]:
        """Return what an owner is told until its end, the end included."""
        found = [self.hear()]
        while found[-1][0] != "end":
            found.append(self.hear())
        return found

    def end(self) -> None:
        """End the nursery itself."""
        self._process.communicate(timeout=30)
        self._told.close()


@contextmanager
def nursery() -> Iterator[Nursery]:
    """Yield a nursery until the block ends."""
    found = Nursery()
    try:
        yield found
    finally:
        found.end()


KILLED = int(signal.SIGKILL)
