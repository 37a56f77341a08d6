"""Rows of the run file as plain values, as SQLite returns them."""

from __future__ import annotations

from typing import NamedTuple


class RunRow(NamedTuple):
    """The one row of `run`: what this run is, and where it stands."""

    id: str
    project: str
    workflow: str | None
    definition: bytes | None
    props: str
    status: str
    stop_kind: str | None
    stop_code: str | None
    stop_event: int | None
    epoch: int
    generation: int
    txn: int
    created_at: int
    updated_at: int


class EventRow(NamedTuple):
    """One row of the journal, with the hashes of its value and its root in place of their row ids.

    `record` is the text that stands in the row; `spilled` holds the whole record's bytes where it was too long to stand there.
    """

    seq: int
    id: bytes
    kind: str
    name: str | None
    execution: int | None
    position: str | None
    phase: int | None
    attempt: int | None
    record: str
    value_hash: bytes | None
    root_hash: bytes
    time_ms: int
    hash: bytes
    spilled: bytes | None

    @property
    def text(self) -> str:
        """The whole record, wherever it is kept."""
        return self.record if self.spilled is None else self.spilled.decode()


class Written(NamedTuple):
    """What an append has added, as its caller will see it after the COMMIT; *durable*, if that waits for the disk."""

    seq: int
    id: bytes
    kind: str
    name: str | None
    execution: int | None
    record: str
    root_hash: bytes
    time_ms: int
    hash: bytes
    durable: bool = True


class TenureRow(NamedTuple):
    """Who owned the file from which transaction on."""

    epoch: int
    first_txn: int
    host: str
    boot: bytes
    pid: int
    pid_ns: int
    pid_start: int
    opened_at: int
    closed_at: int | None
    socket: str | None


class PackedObject(NamedTuple):
    """One row of `object` without its row id: `data` is the content as `codec` has packed it, `size` its plain bytes."""

    hash: bytes
    kind: int
    size: int
    codec: int
    data: bytes


class Stamp(NamedTuple):
    """What a run file and its -wal look like from outside: enough to see that they have not been written to. An empty -wal is none."""

    dev: int
    ino: int
    size: int
    mtime_ns: int
    ctime_ns: int
    wal_size: int
    wal_mtime_ns: int


class Known(NamedTuple):
    """What a run file said when it looked like *stamp*. `run` is what the host file calls it.

    *sealed*: its owner has set its time, while it held the lock, to one that no later write repeats. *seen_at*: the wall clock
    before it was looked at.
    """

    run: str
    stamp: Stamp
    sealed: bool
    seen_at: int
    row: RunRow
    events: int


class Process(NamedTuple):
    """A process, so that it is not taken for a later one of its number: machine, boot, pid, pid namespace, start."""

    hostname: str
    boot: bytes
    pid: int
    pid_ns: int
    pid_start: int


class HostRow(NamedTuple):
    """A host that owns runs of the folder. `socket` is the name of its socket there, if it has one."""

    id: bytes
    process: Process
    socket: str | None
    opened_at: int


class DriverRow(NamedTuple):
    """Which host drives a run."""

    run: str
    host: HostRow
    since: int


class WakeupRow(NamedTuple):
    """When a run wants to be looked at, and why."""

    run: str
    why: str
    due_at: int
