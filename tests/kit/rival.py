"""Other processes that want the same runs: each waits at a gate, and all of them go through it at the same moment."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# It does one thing at a time: waits at the gate, opens a host, does it, keeps what it got until it is told to go on.
RIVAL = """
import fcntl, json, logging, os, sys
logging.disable(logging.CRITICAL)
import freehold

def ensure_until_had(host, run_id):
    # Owned elsewhere means the same call later: whoever has it gives it back.
    while True:
        try:
            return host.ensure(run_id)
        except freehold.Unavailable as error:
            if error.code != "owned_elsewhere":
                raise

DO = {
    "create": lambda host, run_id: host.create(run_id),
    "ensure": lambda host, run_id: host.ensure(run_id),
    "open": lambda host, run_id: host.open(run_id),
    "turn": ensure_until_had,
    "look": lambda host, run_id: (host.view(run_id).info, list(host.view(run_id).history()), host.view(run_id).verify()) and None,
}

def told(call):
    try:
        return "ok", call()
    except freehold.Error as error:
        return error.code, None

for line in sys.stdin:
    order = json.loads(line)
    gate = os.open(order["gate"], os.O_RDONLY)
    print("ready", flush=True)
    fcntl.flock(gate, fcntl.LOCK_SH)
    os.close(gate)
    with freehold.open(order["root"]) as host:
        code, run = told(lambda: DO[order["do"]](host, order["run"]))
        seq = None
        if run is not None and order["note"]:
            code, event = told(lambda: run.append(order["note"]))
            seq = event and event.seq
        if run is not None and not order["keep"]:
            run.close()
        print(json.dumps([code, seq]), flush=True)
        if order["keep"]:
            sys.stdin.readline()
            if run is not None:
                run.close()
    print("closed", flush=True)
"""


class Rivals:
    """So many processes."""

    def __init__(self, number: int, gate: Path) -> None:
        self._gate = gate
        gate.touch()
        command = [sys.executable, "-c", RIVAL]
        self._all = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(number)]

    def race(self, orders: list[dict[str, Any]], *, meanwhile: Callable[[], None] = lambda: None, keep: bool = False) -> list[list[Any]]:
        """Give each rival its order, let all go at once, and return what each was told: a code and the seq of its note.

        With *keep* each keeps what it has until all have been told.
        """
        fd = os.open(self._gate, os.O_RDONLY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            for rival, order in zip(self._all, orders, strict=False):
                self._say(rival, json.dumps({"gate": str(self._gate), "note": None, "keep": keep, **order}))
            for rival, _ in zip(self._all, orders, strict=False):
                assert self._hear(rival) == "ready"
        finally:
            os.close(fd)
        meanwhile()
        answers = [json.loads(self._hear(rival)) for rival, _ in zip(self._all, orders, strict=False)]
        for rival, _ in zip(self._all, orders, strict=False):
            if keep:
                self._say(rival, "")
            assert self._hear(rival) == "closed"
        return answers

    def end(self) -> None:
        """End the processes; one that does not come to its end by itself has failed."""
        for rival in self._all:
            _, _ = rival.communicate(timeout=30)
        assert {rival.returncode for rival in self._all} == {0}

    def kill(self) -> None:
        """End them whatever they do."""
        for rival in self._all:
            rival.kill()
            rival.communicate(timeout=30)

    @staticmethod
    def _say(rival: subprocess.Popen[str], line: str) -> None:
        assert rival.stdin is not None
        rival.stdin.write(line + "\n")
        rival.stdin.flush()

    @staticmethod
    def _hear(rival: subprocess.Popen[str]) -> str:
        assert rival.stdout is not None
        return rival.stdout.readline().strip()


@contextmanager
def rivals(number: int, folder: Path) -> Iterator[Rivals]:
    """Yield so many processes, with their gate in *folder*; afterwards all have ended well."""
    found = Rivals(number, folder / "gate")
    try:
        yield found
        found.end()
    finally:
        found.kill()
