"""Reading the journal and the run row, over any connection: the owner's, or a reader's."""

from __future__ import annotations

import re
from typing import Any

import apsw

from freehold.schema.errors import Damaged
from freehold.schema.limits import HISTORY_PAGE_BYTES, HISTORY_PAGE_EVENTS
from freehold.schema.rows import EventRow, RunRow, TenureRow
from freehold.storage.objects import malformed, unpack

_RUN = (
    "SELECT id, project, workflow, definition, props, status, stop_kind, stop_code, stop_event,"
    " epoch, generation, txn, created_at, updated_at FROM run WHERE one = 1"
)
_EVENT = (
    "SELECT e.seq, e.id, e.kind, e.name, e.execution, e.position, e.phase, e.attempt, e.record, v.hash, r.hash,"
    " e.recorded_at, e.hash, v.codec, v.data, v.size FROM event e JOIN root r ON r.id = e.root LEFT JOIN object v ON v.id = e.value "
)
_SPILLED = re.compile(r'\{"\$object":[0-9]+\}')
"""What no user's record is: a key of its own that begins with `$` is escaped where it stands alone."""
_SCANNED_AT_ONCE = 10_000
"""How many rows one page looks through for a name: a turn stays short however long the journal is."""


def read_run(db: apsw.Connection) -> RunRow:
    """Return the run row."""
    row = db.execute(_RUN).get
    if row is None:
        raise Damaged("the run row is missing; the file was left unchanged", rule="run")
    return RunRow(*row)


def read_tenure(db: apsw.Connection) -> TenureRow | None:
    """Return the last tenure, or None of a file that was never owned."""
    row = db.execute(
        "SELECT epoch, first_txn, host, boot, pid, pid_ns, pid_start, opened_at, closed_at, socket FROM tenure ORDER BY epoch DESC LIMIT 1"
    ).get
    return None if row is None else TenureRow(*row)


def standing(db: apsw.Connection) -> tuple[str, bytes]:
    """Return the run's status, and the id of its first event, which no other run has."""
    status, first = db.execute("SELECT status, (SELECT id FROM event WHERE seq = 1) FROM run WHERE one = 1").get
    return status, first


def last_seq(db: apsw.Connection) -> int:
    """Return the seq of the last event."""
    return int(db.execute("SELECT max(seq) FROM event").get or 0)


def read_event(db: apsw.Connection, seq: int) -> EventRow:
    """Return one event that is known to be there."""
    found = db.execute(_EVENT + "WHERE e.seq = ?", (seq,)).get
    if found is None:
        raise Damaged("an event that others name is missing; the file was left unchanged", rule="journal")
    return _row(found)


def hash_of(db: apsw.Connection, seq: int) -> bytes | None:
    """Return the hash of the event at *seq*, or None where there is none."""
    found: bytes | None = db.execute("SELECT hash FROM event WHERE seq = ?", (seq,)).get
    return found


def read_page(db: apsw.Connection, after: int, *, name: str | None = None, reverse: bool = False) -> tuple[list[EventRow], int | None]:
    """Return the next events beyond *after*, oldest first or in reverse, and where to go on, or None at the end.

    A page is bounded in events, in bytes and, with a name, in the rows it looks through.
    """
    if reverse:
        after = min(after, last_seq(db) + 1)
        window, order = "e.seq < ?1 AND e.seq >= ?1 - ?2", "DESC"
    else:
        window, order = "e.seq > ?1 AND e.seq <= ?1 + ?2", "ASC"
    by_name = "" if name is None else "AND e.name = ?4 "
    sql = f"{_EVENT}WHERE {window} {by_name}ORDER BY e.seq {order} LIMIT ?3"
    values = (after, _SCANNED_AT_ONCE, HISTORY_PAGE_EVENTS) + (() if name is None else (name,))
    rows: list[EventRow] = []
    size = 0
    full = False
    cursor = db.execute(sql, values)
    try:
        for found in cursor:
            rows.append(_row(found))
            size += len(rows[-1].record) + len(rows[-1].spilled or b"")
            if full := size > HISTORY_PAGE_BYTES:
                break
    finally:
        cursor.close(True)  # an open one would hold its snapshot for as long as an error's traceback lives
    if full or len(rows) == HISTORY_PAGE_EVENTS:
        return rows, rows[-1].seq
    beyond = after - _SCANNED_AT_ONCE if reverse else after + _SCANNED_AT_ONCE
    at_end = beyond <= 1 if reverse else beyond >= last_seq(db)
    return rows, None if at_end else beyond


def seq_of_id(db: apsw.Connection, event_id: bytes) -> int | None:
    """Return the seq of the event with this id, or None."""
    seq = db.execute("SELECT seq FROM event WHERE id = ?", (event_id,)).get
    return None if seq is None else int(seq)


def root_at(db: apsw.Connection, seq: int | None) -> bytes | None:
    """Return the hash of the root that the last event up to *seq* names, or the current one; None before event 1."""
    if seq is None:
        return bytes(db.execute("SELECT r.hash FROM ref f JOIN root r ON r.id = f.root WHERE f.name = 'current'").get)
    by = "SELECT r.hash FROM event e JOIN root r ON r.id = e.root WHERE e.seq <= ? ORDER BY e.seq DESC LIMIT 1"
    found: bytes | None = db.execute(by, (seq,)).get
    return found


def roots_between(db: apsw.Connection, first: bytes, last: bytes) -> list[bytes]:
    """Return the hashes of at most two roots from *first* to *last*, both included: two are one too many for a prefix."""
    return [row[0] for row in db.execute("SELECT hash FROM root WHERE hash BETWEEN ? AND ? LIMIT 2", (first, last))]


def seq_at_time(db: apsw.Connection, time_ms: int) -> int:
    """Return the seq of the last event recorded by *time_ms*, or 0. Looks at the events after it, newest first."""
    return int(db.execute("SELECT seq FROM event WHERE recorded_at <= ? ORDER BY seq DESC LIMIT 1", (time_ms,)).get or 0)


def _row(found: Any) -> EventRow:
    *plain, codec, data, size = found
    spilled = None
    if data is not None:
        spilled = unpack(codec, data, size)
    elif _SPILLED.fullmatch(plain[8]):
        raise malformed()
    return EventRow._make((*plain, spilled))
