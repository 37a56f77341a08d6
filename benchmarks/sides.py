"""The two sides of each comparison: what is done with Freehold, and the least that does the same.

A side makes what it measures anew for each round, in a folder of its own, and closes it before it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.budget import Sample
from benchmarks.minimal import MinimalEcho, MinimalRun
from benchmarks.ours import commits_of, echo_of_ours, runs_of_ours
from benchmarks.process import import_ms
from benchmarks.raw import raw_bytes, raw_commits
from benchmarks.senders import Pace, many, one

from freehold.run import Run
from freehold.transaction import Transaction

NAME = "e"
RECORD = '{"n":1}'
EVENT = {"n": 1}
SENDERS = 64
RUNS = 8
_EVENTS_A_TURN = 500

Side = Callable[[Path, int], Sample]


def ours_alone(folder: Path, messages: int, vfs: str | None = None) -> Sample:
    """One sender on one run of ours."""
    with runs_of_ours(folder, ["run"], vfs) as (run,):
        run.append(NAME, EVENT)
        return _sample(one(partial(_append, run), messages))


def minimal_alone(folder: Path, messages: int, vfs: str | None = None) -> Sample:
    """One sender on a minimal loop."""
    with MinimalRun(folder, "run", vfs) as run:
        run.append(NAME, RECORD)
        return _sample(one(lambda _number: run.append(NAME, RECORD), messages))


def raw_alone(folder: Path, messages: int, vfs: str | None = None) -> Sample:
    """A bare loop of commits."""
    return _sample(raw_commits(folder, "raw", RECORD, messages, vfs))


def ours_crowded(folder: Path, messages: int, vfs: str | None = None) -> Sample:
    """Many senders on one run of ours."""
    with runs_of_ours(folder, ["run"], vfs) as (run,):
        run.append(NAME, EVENT)
        pace = many([partial(_append, run)] * SENDERS, messages)
        file = run.path
    # Of the transactions of a file, four are not ours: its creation, its take-over, the first append, its close.
    together = SENDERS * messages / (commits_of(file) - 4)
    sample = _sample(pace)
    sample.figures["records_per_commit"] = together
    return sample


def minimal_crowded(folder: Path, messages: int, vfs: str | None = None) -> Sample:
    """Many senders on a minimal loop, one commit a message. Fewer messages: its pace does not depend on how many."""
    with MinimalRun(folder, "run", vfs) as run:
        run.append(NAME, RECORD)
        return _sample(many([lambda _number: run.append(NAME, RECORD)] * SENDERS, max(1, messages // 8)))


def ours_asked(_folder: Path, messages: int) -> Sample:
    """An actor of ours that gives back what it is sent."""
    with echo_of_ours() as ref:
        ref.ask(0)
        return _sample(one(ref.ask, messages))


def minimal_asked(_folder: Path, messages: int) -> Sample:
    """A bare queue, thread and future."""
    with MinimalEcho() as echo:
        echo.ask(0)
        return _sample(one(echo.ask, messages))


def ours_weighed(folder: Path, messages: int) -> Sample:
    """How much longer a run file is for each event that it holds, beside one that holds none of them."""
    with runs_of_ours(folder, ["heavy", "empty"]) as (run, empty):
        for begun in range(0, messages, _EVENTS_A_TURN):
            run.transact(partial(_append_several, numbers=range(begun, min(begun + _EVENTS_A_TURN, messages))))
        heavy, light = run.path, empty.path
    return Sample({"bytes": (heavy.stat().st_size - light.stat().st_size) / messages})


def raw_weighed(folder: Path, messages: int) -> Sample:
    """The same records in a table of nothing else."""
    return Sample({"bytes": raw_bytes(folder, "raw", RECORD, messages)})


def ours_imported(folder: Path, _times: int) -> Sample:
    """`import freehold` in a fresh process."""
    return _imported(folder, "freehold")


def others_imported(folder: Path, _times: int) -> Sample:
    """What it stands on, alone."""
    return _imported(folder, "apsw msgspec pykka")


def ours_beside(folder: Path, messages: int, vfs: str | None = None) -> Sample:
    """Eight runs of ours at once, one sender each."""
    with runs_of_ours(folder, [f"run-{number}" for number in range(RUNS)], vfs) as runs:
        for run in runs:
            run.append(NAME, EVENT)
        return _sample(many([partial(_append, run) for run in runs], messages))


def _append(run: Run, _number: int) -> None:
    run.append(NAME, EVENT)


def _append_several(tx: Transaction, numbers: range) -> None:
    for number in numbers:
        tx.append(NAME, {"n": number})


def _imported(folder: Path, modules: str) -> Sample:
    import_ms(folder.parent, modules)  # compiles what is not compiled yet
    wall, cpu, heavy = import_ms(folder.parent, modules)
    return Sample({"ms": wall, "cpu_ms": cpu}, [f"loads {name}" for name in heavy])


def _sample(pace: Pace) -> Sample:
    return Sample({"per_second": pace.per_second, "cpu_us": pace.cpu_us, "p50_us": pace.p50_us, "p99_ms": pace.p99_ms})
