"""The least that an owner of a run can do: a queue, a future and a thread with a loop. No leases, no checks, no batches.

It runs the statements that an append runs, on the same schema, hash and id included, one commit a message.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

import apsw
from benchmarks.files import new_run

from freehold.schema.hashes import event_hash
from freehold.storage.clock import Clock

_HEAD = "SELECT e.seq, e.hash, r.id, r.hash FROM event e JOIN root r ON r.id = e.root ORDER BY e.seq DESC LIMIT 1"
_BUMP = "UPDATE run SET txn = txn + 1, updated_at = ? WHERE one = 1 AND epoch = ? RETURNING txn"
_INSERT = "INSERT INTO event (seq, id, kind, name, execution, record, value, root, recorded_at, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class MinimalRun:
    """A run file behind a minimal loop."""

    def __init__(self, folder: Path, run_id: str, vfs: str | None = None) -> None:
        path, pin = new_run(folder, run_id)
        pin.close()
        self._file = path.file
        self._vfs = vfs
        self._queue: SimpleQueue[tuple[str, str, Future[int]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def append(self, name: str, record: str) -> int:
        """Add a note and return its seq when it is durable."""
        future: Future[int] = Future()
        self._queue.put((name, record, future))
        return future.result(30)

    def _loop(self) -> None:
        clock = Clock()
        db = apsw.Connection(self._file, vfs=self._vfs)
        db.pragma("synchronous", "full")
        db.pragma("foreign_keys", 1)
        execute = db.execute
        seq, chained, root, root_hash = execute(_HEAD).get
        while (message := self._queue.get()) is not None:
            name, record, future = message
            now_ms = clock.now_ms()
            execute("BEGIN IMMEDIATE")
            execute(_BUMP, (now_ms, 0)).get  # noqa: B018 - reading the row is a part of the statement's cost
            seq += 1
            event_id = clock.event_id(now_ms)
            chained = event_hash(chained, seq, event_id, "note", name, None, None, None, None, record, None, root_hash, now_ms)
            execute(_INSERT, (seq, event_id, "note", name, None, record, None, root, now_ms, chained))
            execute("COMMIT")
            future.set_result(seq)
        db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        self._queue.put(None)
        self._thread.join()


class MinimalEcho:
    """A thread that gives back what it is sent."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Any, Future[Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def ask(self, message: Any) -> Any:
        """Send *message* and wait for the answer."""
        future: Future[Any] = Future()
        self._queue.put((message, future))
        return future.result(30)

    def _loop(self) -> None:
        while (sent := self._queue.get()) is not None:
            message, future = sent
            future.set_result(message)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        self._queue.put(None)
        self._thread.join()
