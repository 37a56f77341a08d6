"""Run files for tests: made by `create`, then forged by a plain connection that knows no rule of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import apsw

from freehold.storage.clock import Clock
from freehold.storage.create import create
from freehold.storage.path import RunPath, resolve

FORGER = """
import apsw, os, signal, sys
db = apsw.Connection(sys.argv[1])
db.wal_autocheckpoint(0)
db.pragma("ignore_check_constraints", 1)
for sql in sys.argv[2:]:
    db.execute(sql).fetchall()
os.kill(os.getpid(), signal.SIGKILL)
"""
OWNER = """
import sys
from freehold.storage.connection import open_live
from freehold.storage.path import resolve_file
from freehold.storage.pin import pin
path = resolve_file(sys.argv[1])
held = pin(path, exclusive=True)
if len(sys.argv) > 2:
    db = open_live(path)
    for sql in sys.argv[2:]:
        db.execute(sql).fetchall()
print("owned", flush=True)
sys.stdin.readline()
"""


def new_run(folder: Path, run_id: str = "a", props: str = '{"colour":"blue"}') -> RunPath:
    """Create a run, own it for no longer than that, and return where it is."""
    path = resolve(folder, run_id)
    create(path, project="paint", props=props, clock=Clock()).close()
    return path


def forge(path: RunPath, *statements: str, writable_schema: bool = False) -> None:
    """Run statements on a file without foreign keys and CHECKs, and close it cleanly: one file is left."""
    db = apsw.Connection(path.file, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        db.pragma("ignore_check_constraints", 1)
        if writable_schema:
            db.pragma("writable_schema", 1)
        for sql in statements:
            db.execute(sql).fetchall()
    finally:
        db.close()


def forge_and_die(path: RunPath, *statements: str) -> None:
    """Run statements in a process that is killed with its connection open: what it wrote is left in the -wal."""
    subprocess.run([sys.executable, "-c", FORGER, path.file, *statements], check=False, timeout=30)


class Owner:
    """Another process that owns a run, with a live connection if it has statements to run, until the block ends."""

    def __init__(self, path: RunPath, *statements: str) -> None:
        self._command = [sys.executable, "-c", OWNER, path.file, *statements]

    def __enter__(self) -> subprocess.Popen[bytes]:
        self.process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"owned\n"
        return self.process

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=30)
