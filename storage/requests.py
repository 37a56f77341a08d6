"""Requests that were answered before: the same id returns the stored reply and runs nothing again."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from freehold.schema.errors import Refused, RequestExpired
from freehold.schema.limits import REQUEST_KEEP_S

_DROPPED_AT_ONCE = 16


class Answered(NamedTuple):
    """The reply of an earlier request: the seq of the event it appended, or the text of a transaction's value."""

    seq: int | None
    reply: str | None


class Requests:
    """The table `request` of an owned file, inside its owner's open transaction."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def find(self, request_id: str, digest: bytes) -> Answered | None:
        """Return what *request_id* was answered with, or None if it never came.

        Raises Refused (request_conflict) when the id stood for something else, RequestExpired when its reply is gone.
        """
        row = self._db.execute("SELECT digest, seq, reply FROM request WHERE id = ?", (request_id,)).get
        if row is None:
            return None
        known, seq, reply = row
        if known != digest:
            raise _conflict(seq)
        if seq is None and reply is None:
            raise RequestExpired("this request was carried out, but its reply is no longer kept; it is not run again", executed="yes")
        return Answered(seq, None if reply is None else reply.decode())

    def keep(self, request_id: str, digest: bytes, txn: int, now_ms: int, *, seq: int | None = None, reply: str | None = None) -> None:
        """Remember the reply in the transaction that makes it true, and drop some whose time is over."""
        self._db.execute(
            "INSERT INTO request (id, digest, txn, seq, reply, at) VALUES (?, ?, ?, ?, ?, ?)",
            (request_id, digest, txn, seq, None if reply is None else reply.encode(), now_ms),
        )
        if reply is not None:
            self._db.execute(
                "UPDATE request SET reply = NULL"
                " WHERE id IN (SELECT id FROM request WHERE reply IS NOT NULL AND at < ? ORDER BY at LIMIT ?)",
                (now_ms - REQUEST_KEEP_S * 1000, _DROPPED_AT_ONCE),
            )


def _conflict(seq: int | None) -> Refused:
    done = "it was a transaction or a publish" if seq is None else f"event {seq} is what was done then"
    return Refused(
        f"this request id was used before with other content ({done}); if it is the same piece of work, take that result, "
        "else use another id. Nothing was changed",
        code="request_conflict",
        seq=seq,
    )
