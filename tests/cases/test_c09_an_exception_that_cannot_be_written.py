"""C9: whatever an exception holds, it is kept as what it says of itself, and never replaced by an error of whoever writes it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import freehold

PROGRAM = """
import os, signal, socket, sys
import freehold

class E(Exception):
    def __init__(self, code, detail):
        self.code, self.detail = code, detail

def first():
    raise E(7, "disk") from OSError(28)

def second():
    error = ValueError("holds a socket")
    error.socket = socket.socket()
    raise error

host = freehold.open(sys.argv[1])
run = host.ensure("a")
for key, fn in (("first", first), ("second", second)):
    try:
        run.once(key, fn)
    except Exception as error:
        print(type(error).__name__, getattr(error, "code", None), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def failures(root: Path) -> list[dict[str, Any]]:
    view = freehold.view(root / "a.sqlite")
    view.verify()
    return [event.data["failure"] for event in view.history() if event.kind == "step"]


def test_history_tells_of_an_exception_the_same_before_and_after_a_kill(tmp_path: Path) -> None:
    for attempt in (1, 2):
        done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=30, check=False)
        assert (done.returncode, done.stdout) == (-9, "E 7\nValueError None\n"), done.stderr
        told = failures(tmp_path)
        assert len(told) == 2 * attempt
        first, second = told[-2:]
        assert (first["type"], first["message"], first["details"]) == ("__main__.E", "(7, 'disk')", {"code": 7, "detail": "disk"})
        assert (first["cause"]["type"], first["cause"]["message"]) == ("OSError", "28")
        assert (second["type"], second["message"], second["details"]) == ("ValueError", "holds a socket", {})
        json.dumps(told)
    with freehold.open(tmp_path) as host, host.open("a") as run:
        assert run.info.status == "created"
        assert run.once("second", lambda: "done") == "done"
