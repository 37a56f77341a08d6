"""Owned run files for tests of storage: a clock that is set by hand, stores on it, and what others see of their files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
from runfile import new_run

from freehold.schema.failure import Failure
from freehold.schema.hashes import input_hash, request_digest
from freehold.schema.messages import BeginStep, EndStep
from freehold.schema.rows import Written
from freehold.schema.steps import Go, Recorded, position_of
from freehold.storage.clock import Clock
from freehold.storage.path import RunPath
from freehold.storage.pin import pin
from freehold.storage.store import Store

NOW_MS = 1_700_000_000_000

WRITER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
for sql in sys.argv[2:]:
    db.execute(sql)
db.close()
"""


class SetClock(Clock):
    """The machine's randomness and a wall clock that stands still until it is set."""

    def __init__(self, now: int = NOW_MS) -> None:
        self.now = now

    def now_ms(self) -> int:
        """Return what it was set to."""
        return self.now


def own(path: RunPath, clock: Clock | None = None, *, own_epoch: int | None = None, vfs: str | None = None) -> Store:
    """Return the store of an owner of *path*."""
    return Store(pin(path, exclusive=True), clock or SetClock(), own_epoch=own_epoch, vfs=vfs)


def note(store: Store, record: str = "1", name: str = "n") -> Written:
    """Append a note inside the open transaction."""
    return store.journal.append("note", name, record, store.clock.now_ms())


def begin(store: Store) -> None:
    """Begin a transaction now."""
    store.begin(store.clock.now_ms())


def commit_notes(store: Store, *records: str) -> list[Written]:
    """Commit a note for each record in one transaction."""
    begin(store)
    written = [note(store, record) for record in records]
    store.commit()
    return written


def seen(path: RunPath, sql: str, *values: Any) -> Any:
    """Return what a second connection of this process sees; the first row, or the value if it has one column."""
    db = apsw.Connection(path.file, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return db.execute(sql, values).get
    finally:
        db.close()


def events(path: RunPath) -> int:
    """Return how many events a second connection sees."""
    return int(seen(path, "SELECT count(*) FROM event"))


def write_elsewhere(path: RunPath, *statements: str) -> None:
    """Let another process, which knows no rule of ours, write into the file."""
    subprocess.run([sys.executable, "-S", "-E", "-c", WRITER, path.file, *statements], check=True, timeout=30)


def live_richly(folder: Path, *, long: int = 9000) -> RunPath:
    """Return a run with something in every table: six tenures, executions that ended in every way, requests, long records."""
    path, clock = new_run(folder), SetClock()
    store = own(path, clock)
    first = commit_notes(store, "1", '"' + "long " * long + '"', '"' + "é" * long + '"')[0]
    begin(store)
    store.append_once("once", request_digest("append", "n", "7"), "n", "7", clock.now)
    store.requests.keep("work", request_digest("work"), store.transaction.txn, clock.now, reply='"done"')
    store.commit()
    for status, event in (("suspended", None), ("interrupted", first.seq), ("failed", first.seq)):
        settle(store, status, event=event)
    begin(store)
    store.executions.begin(clock.now)
    store.commit()
    store.close(clean=False)  # the owner is lost

    store = own(path, clock)
    begin(store)
    store.executions.begin(clock.now)
    store.commit()
    store.close(clean=True)  # the host closes

    store = own(path, clock)
    settle(store, "failed", code="tired")
    begin(store)
    store.executions.begin(clock.now)
    store.commit()
    epoch = store.epoch
    store.close(clean=False)

    store = own(path, clock, own_epoch=epoch)  # our own reopening: the execution goes on
    begin(store)
    note(store)
    store.executions.settle("suspended", None, None, clock.now)
    store.commit()
    store.close(clean=True)

    store = own(path, clock)
    begin(store)
    store.db.execute("INSERT INTO ref (name, root, moved_seq) SELECT 'pinned', root, moved_seq FROM ref")
    take_steps(store)
    store.executions.begin(clock.now)
    note(store, '{"last":true}')
    store.commit()
    store.close(clean=False)
    own(path, clock).close(clean=True)
    return path


def begin_step(store: Store, key: str, policy: str | None = None, input_: str | None = None) -> Recorded | Go:
    """Ask whether a step may begin, inside the open transaction."""
    return store.steps.begin(BeginStep(position_of(key), key, input_, policy), store.clock.now_ms())


def end_step(
    store: Store,
    key: str,
    attempt: int,
    result: str | None = None,
    failure: str | None = None,
    *,
    final: bool = True,
    input_: str | None = None,
) -> Written:
    """Record what an attempt of a step came to, inside the open transaction."""
    return store.steps.end(EndStep(position_of(key), key, attempt, input_, result, failure, final), store.clock.now_ms())


def take_steps(store: Store) -> None:
    """Leave steps of every kind, inside the open transaction: with and without an intent, failed, done, unknown, and one that is open."""
    failure, deep = Failure("ValueError", "no").text, Failure("E", "SECRET", ("n",), "t", {"a": (1,)}, Failure("F", "x")).text
    end_step(store, "plain", 1, '{"id":7}', input_=input_hash("[[],{}]").hex())
    for attempt in (1, 2):
        end_step(store, "failing", attempt, failure=failure, final=False)
    end_step(store, "failing", 3, failure=deep)
    begin_step(store, "charge", "park", input_hash("[[],{}]").hex())
    end_step(store, "charge", 1, failure=deep, final=False)
    begin_step(store, "charge", "probe")
    end_step(store, "charge", 2, "null")
    begin_step(store, "lost", "probe")
    end_step(store, "lost", 2, f'"{"long " * 9000}"')
    begin_step(store, "left", "park")


def settle(store: Store, status: str, *, code: str | None = None, event: int | None = None) -> None:
    """Begin an execution and settle it, in a transaction each."""
    begin(store)
    store.executions.begin(store.clock.now_ms())
    store.commit()
    begin(store)
    store.executions.settle(status, code, event, store.clock.now_ms())
    store.commit()
