"""The two sides of what opening costs: with Freehold, which recognises and owns, and bare, which only asks for the run row.

Files come from the stock of the whole measurement: they are made once, beside the folder that a side is given.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import apsw
from benchmarks.budget import Sample
from benchmarks.files import new_run
from benchmarks.stock import known_runs, let_die, many_runs, sized_run

import freehold
from freehold.actors.envelope import Lane
from freehold.actors.runs import Runs
from freehold.run import Run
from freehold.schema.messages import Retire
from freehold.schema.secrets import SecretFilter
from freehold.storage.clock import Clock
from freehold.storage.hostform import FILE_NAME
from freehold.storage.path import RunPath


def ours_opened(folder: Path, times: int, size: int) -> Sample:
    """Own a run file of *size* bytes and give it back, each time by a new host."""
    path = sized_run(folder.parent, size)
    return _medians([_own_and_close(path) for _ in range(times)])


def bare_opened(folder: Path, times: int, size: int) -> Sample:
    """Ask a file of *size* bytes for its run row through a bare connection, and close that."""
    path = sized_run(folder.parent, size)
    return _medians([_ask_and_close(path.file) for _ in range(times)])


def ours_taken_over(folder: Path, times: int) -> Sample:
    """Own a run file whose owner has died in the middle of an execution."""
    return _after_deaths(folder, times, _own_and_close)


def bare_taken_over(folder: Path, times: int) -> Sample:
    """Ask such a file for its run row through a bare connection, which brings its -wal home when it closes."""
    return _after_deaths(folder, times, lambda path: _ask_and_close(path.file))


def ours_reopened(folder: Path, times: int) -> Sample:
    """Own a run again that its host has given back because nobody used it."""
    path, held = new_run(folder, "run")
    held.close()
    runs = Runs("benchmarks", Clock())
    spans = []
    try:
        for _ in range(times + 1):
            begun = time.perf_counter()
            ref, lease = runs.lease(path)
            spans.append((time.perf_counter() - begun, 0.0))
            Run(path, ref, lease, SecretFilter(), any_filesystem=False).close()
            ref.call(Retire(), None, lane=Lane.SYSTEM)
            runs.stop_child(ref.name)
    finally:
        runs.stop()
    return _medians(spans[1:])


def bare_reopened(folder: Path, times: int) -> Sample:
    """Ask a small run file for its run row, again and again."""
    path, held = new_run(folder, "run")
    held.close()
    return _medians([_ask_and_close(path.file) for _ in range(times)])


def ours_listed(folder: Path, runs: int) -> Sample:
    """List a folder of runs that nobody owns."""
    with freehold.open(many_runs(folder.parent, runs)) as host:
        begun = time.perf_counter()
        found = sum(info.error is None for info in host.runs())
        spent = time.perf_counter() - begun
    assert found == runs
    return Sample({"list_ms": spent / runs * 1e3})


def bare_listed(folder: Path, runs: int) -> Sample:
    """Ask each of the same files for its run row."""
    root = many_runs(folder.parent, runs)
    begun = time.perf_counter()
    for file in sorted(root.iterdir()):
        _ask_and_close(str(file))
    return Sample({"list_ms": (time.perf_counter() - begun) / runs * 1e3})


def ours_recalled(folder: Path, runs: int) -> Sample:
    """List a folder whose runs the host file knows: the same files, unchanged since."""
    with freehold.open(known_runs(folder.parent, runs)) as host:
        begun = time.perf_counter()
        found = sum(info.error is None for info in host.runs())
        spent = time.perf_counter() - begun
    assert found == runs
    return Sample({"s": spent})


def bare_recalled(folder: Path, runs: int) -> Sample:
    """Read the names of the same folder, look at each file and at its -wal, and read every row of the host file."""
    root = known_runs(folder.parent, runs)
    begun = time.perf_counter()
    with os.scandir(root) as entries:
        names = [entry.path for entry in entries if entry.name.endswith(".sqlite")]
    for name in names:
        os.lstat(name)
        os.path.lexists(f"{name}-wal")
    db = apsw.Connection(str(root / FILE_NAME))
    try:
        found = len(db.execute("SELECT * FROM known").fetchall())
    finally:
        db.close()
    spent = time.perf_counter() - begun
    assert found == runs
    return Sample({"s": spent})


Span = tuple[float, float]
"""Seconds for the opening, and for the closing."""


def _own_and_close(path: RunPath) -> Span:
    host = freehold.open(path.folder)
    try:
        begun = time.perf_counter()
        with host.open(path.id):
            opened = time.perf_counter()
    finally:
        host.close()
    return opened - begun, time.perf_counter() - opened


def _ask_and_close(file: str) -> Span:
    begun = time.perf_counter()
    db = apsw.Connection(file)
    try:
        db.execute("SELECT * FROM run").fetchall()
        opened = time.perf_counter()
    finally:
        db.close()
    return opened - begun, time.perf_counter() - opened


def _after_deaths(folder: Path, times: int, look: Callable[[RunPath], Span]) -> Sample:
    path, held = new_run(folder, "run")
    held.close()
    spans = []
    for _ in range(times):
        let_die(path)
        spans.append(look(path))
    return _medians(spans)


def _medians(spans: list[Span]) -> Sample:
    return Sample({"open_ms": median(opened for opened, _ in spans) * 1e3, "close_ms": median(closed for _, closed in spans) * 1e3})
