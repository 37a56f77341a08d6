"""Freehold as it is measured: a lease on a run on any SQLite file system, and an actor that answers what it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
from benchmarks.files import new_run

from freehold.actors import Actor, ActorRef, ChildSpec, Supervisor, SupervisorSpec
from freehold.actors.runs import Runs
from freehold.actors.seat import PinBox
from freehold.run import Run
from freehold.schema.secrets import SecretFilter
from freehold.storage.clock import Clock
from freehold.storage.path import RunPath


@contextmanager
def runs_of_ours(folder: Path, run_ids: list[str], vfs: str | None = None) -> Iterator[list[Run]]:
    """Create runs and yield a lease on each, as a host gives them out; only, a host knows no other file system."""
    runs = Runs("benchmarks", Clock(), vfs=vfs)
    leases: list[Run] = []
    try:
        for run_id in run_ids:
            path, pin = new_run(folder, run_id)
            ref, lease = runs.lease(path, PinBox(pin))
            leases.append(Run(path, ref, lease, SecretFilter(), any_filesystem=False))
        yield leases
    finally:
        for run in leases:
            run.close()
        runs.stop()


@contextmanager
def run_of_ours(path: RunPath, vfs: str | None = None) -> Iterator[Run]:
    """Yield a lease on a run that is there already."""
    runs = Runs("benchmarks", Clock(), vfs=vfs)
    try:
        ref, lease = runs.lease(path, None)
        with Run(path, ref, lease, SecretFilter(), any_filesystem=False) as run:
            yield run
    finally:
        runs.stop()


def commits_of(file: Path) -> int:
    """Return the number of the last transaction of a run file that is closed."""
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(db.execute("SELECT txn FROM run").get)
    finally:
        db.close()


class Echo(Actor[int]):
    """Gives back what it is sent."""

    def receive(self, message: int) -> int:
        """Return *message*."""
        return message


@contextmanager
def echo_of_ours() -> Iterator[ActorRef[int]]:
    """Start an Echo under a supervisor and yield how to reach it."""
    with Supervisor(SupervisorSpec("benchmarks", [ChildSpec("echo", Echo)])) as tree:
        yield tree["echo"]
