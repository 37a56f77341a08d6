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


class PackedObject(NamedTuple):
    """One row of `object` without its row id: `data` is the content as `codec` has packed it, `size` its plain bytes."""

    hash: bytes
    kind: int
    size: int
    codec: int
    data: bytes
