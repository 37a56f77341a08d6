"""The command line as its users run it: in a process of its own, or within this one where a hundred calls must be fast."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

COMMAND = [sys.executable, "-m", "freehold"]


class Ended(NamedTuple):
    """How a call ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on standard output; anything before or after it is an error."""
        return json.loads(self.out)

    @property
    def code_in_document(self) -> int:
        """The exit code that the document says: its own, or the gravest of its members'."""
        found = self.document
        return max((row["exit_code"] for row in found), default=0) if isinstance(found, list) else int(found["exit_code"])


Call = Callable[..., Ended]


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment without what would change the output, and with *more*."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FREEHOLD_", "COLUMNS", "NO_COLOR", "FORCE_COLOR", "PYTHONUNBUFFERED"))
    }
    return kept | {"TERM": "xterm"} | more


def run_program(*words: str, cwd: Path | None = None, **more: str) -> Ended:
    """Run the program to its end, with pipes and without a terminal."""
    done = subprocess.run(
        [*COMMAND, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment(**more),
        check=False,
        timeout=50,
    )
    return Ended(done.returncode, done.stdout, done.stderr)
