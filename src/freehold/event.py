"""Events as users see them: one immutable record of the journal, with the root that was current at that moment."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from freehold.schema.errors import Damaged
from freehold.schema.ids import EventId, Root, event_id_text
from freehold.schema.kinds import EventKind
from freehold.schema.roots import root_text
from freehold.schema.rows import EventRow, Written
from freehold.schema.values import decode
from freehold.storage.objects import malformed

Outcome = Literal["ok", "failed", "unknown"]
_ENDED = re.compile(r'\{"input":(?:null|"[0-9a-f]{64}"),"(result|failure)":')
_UNREAD = msgspec.UNSET  # stays itself when an event is copied or pickled


class Event:
    """One record of the journal.

    `kind` is ours (created, note, publish, began, settled, step), `name` the user's. `data` is the value as every later reader will
    get it. `hash` chains the event to all before it; two events are equal if their hashes are.

    Of a step `name` is its key, and `attempt` the number of the attempt that the event tells of; `outcome` says what came of that ("ok",
    "failed"), or is None where it only begins.

    `durable` is True on what a call returns that has waited for the disk, and False where it has not
    (`options(durable=False)`). An event that was read says None: it is in the journal, and whether the disk has it by now, its
    reader was not told.
    """

    __slots__ = (
        "_data",
        "_hash",
        "_id",
        "_record",
        "_root",
        "_time_ms",
        "attempt",
        "durable",
        "execution",
        "kind",
        "name",
        "outcome",
        "seq",
    )

    def __init__(self, row: EventRow | Written, data: Any = _UNREAD, *, durable: bool | None = None) -> None:
        self.seq: int = row.seq
        self.kind: str = row.kind
        self.name: str | None = row.name
        self.execution: int | None = row.execution
        self.attempt: int | None = None if isinstance(row, Written) else row.attempt
        self.durable: bool | None = row.durable if isinstance(row, Written) else durable
        self._id = row.id
        self._root = row.root_hash
        self._hash = row.hash
        self._time_ms = row.time_ms
        self._record = row.record if isinstance(row, Written) else _text(row)
        self._data = data
        self.outcome: Outcome | None = _outcome(self._record) if self.kind == EventKind.STEP else None

    @property
    def id(self) -> EventId:
        """The event's UUIDv7."""
        return event_id_text(self._id)

    @property
    def root(self) -> Root:
        """The workspace root that was current when the event was recorded."""
        return root_text(self._root)

    @property
    def hash(self) -> str:
        """The event's place in the hash chain, 64 hexadecimal digits."""
        return self._hash.hex()

    @property
    def time(self) -> datetime:
        """When it was recorded, UTC, to the millisecond. Raises Damaged if that is no time."""
        seconds, ms = divmod(self._time_ms, 1000)
        try:
            return datetime.fromtimestamp(seconds, UTC).replace(microsecond=ms * 1000)
        except (ValueError, OverflowError, OSError):
            raise Damaged(
                "an event was recorded at no time of the calendar; the file was left unchanged",
                code="malformed_record",
                table="event",
                column="recorded_at",
            ) from None

    @property
    def data(self) -> Any:
        """The value: what was appended, as it comes back from the file. Raises Damaged if it cannot."""
        if self._data is _UNREAD:
            self._data = decode(self._record)
        return self._data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and self._hash == other._hash

    def __hash__(self) -> int:
        return hash(self._hash)

    def __repr__(self) -> str:
        return f"<Event {self.seq} {self.kind}>"


def _outcome(record: str) -> Outcome | None:
    # By what its record begins with: reading all of it may take long.
    found = _ENDED.match(record)
    return None if found is None else "ok" if found[1] == "result" else "failed"


def _text(row: EventRow) -> str:
    try:
        return row.text
    except UnicodeDecodeError:  # its text quotes what it could not read
        raise malformed() from None
