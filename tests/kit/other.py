"""Another process that works on a run file with SQLite alone, or owns one through a host of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_WRITES = """
import apsw, sys
db = apsw.Connection(sys.argv[1])
db.set_busy_timeout(10_000)
for sql in sys.argv[2:]:
    db.execute(sql).fetchall()
"""
_LOCKS = """
import apsw, sys
db = apsw.Connection(sys.argv[1])
db.execute("BEGIN IMMEDIATE")
print("ready", flush=True)
sys.stdin.readline()
db.execute("ROLLBACK")
db.close()
"""
_READS = """
import sys
from freehold.storage.path import resolve_file
from freehold.storage.reader import reading
with reading(resolve_file(sys.argv[1])):
    print("ready", flush=True)
    sys.stdin.readline()
"""
_OWNS = """
import sys
import freehold
host = freehold.open(sys.argv[1])
run = host.ensure(sys.argv[2])
for name in sys.argv[3:]:
    run.transact(lambda tx: tx.begin_execution() if name == "begin" else tx.append(name))
print("ready", flush=True)
sys.stdin.readline()
host.close()
"""


def write(file: Path, *statements: str) -> None:
    """Run statements in another process, with SQLite alone, and close."""
    subprocess.run([sys.executable, "-c", _WRITES, str(file), *statements], check=True, timeout=30)


@contextmanager
def locks(file: Path) -> Iterator[None]:
    """Hold SQLite's write lock in another process until the block ends."""
    with ready(_LOCKS, str(file)) as process:
        yield
        process.communicate(b"\n", timeout=30)


@contextmanager
def reads(file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Hold a reader's lock on a run that nobody owns in another process, until a line comes or the block ends."""
    with ready(_READS, str(file)) as process:
        yield process


@contextmanager
def owns(root: Path, run_id: str, *notes: str) -> Iterator[subprocess.Popen[bytes]]:
    """Own a run in another process, after *notes* were appended (`begin`: an execution begun), until the block ends.

    It closes cleanly, unless the block has killed it.
    """
    with ready(_OWNS, str(root), run_id, *notes) as process:
        yield process
        process.communicate(b"\n", timeout=30)


@contextmanager
def ready(program: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
    finally:
        process.kill()
        process.communicate(timeout=30)
