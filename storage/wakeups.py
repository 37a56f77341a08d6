"""The table `wakeup`: when runs want to be looked at. The runs themselves know it too, so a lost row is put again by who reads them."""

from __future__ import annotations

import apsw

from freehold.schema.rows import WakeupRow

_PUT = "INSERT INTO wakeup (run, why, due_at) VALUES (?1, ?2, ?3) ON CONFLICT (run, why) DO UPDATE SET due_at = ?3"
_TAKE = "DELETE FROM wakeup WHERE due_at <= ? RETURNING run, why, due_at"


def put_wakeup(db: apsw.Connection, wakeup: WakeupRow) -> None:
    """Have a run looked at then; of the same run and reason the last word counts."""
    db.execute(_PUT, wakeup)


def take_due(db: apsw.Connection, now_ms: int) -> list[WakeupRow]:
    """Remove what is due and return it, the longest due first: each is taken by one host."""
    return sorted((WakeupRow._make(row) for row in db.execute(_TAKE, (now_ms,)).fetchall()), key=lambda row: (row.due_at, row.run, row.why))


def next_due(db: apsw.Connection) -> int | None:
    """Return when something is due next, or None."""
    due: int | None = db.execute("SELECT min(due_at) FROM wakeup").get
    return due
