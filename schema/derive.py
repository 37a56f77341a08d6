"""What the journal alone says of a run: a fold over its events, from which status and executions can be told anew."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from freehold.schema.kinds import EventKind
from freehold.schema.lifecycle import SETTLING, STEPS
from freehold.schema.rows import EventRow

_FINAL = frozenset(status for status, moves in STEPS.items() if not moves)


class Underivable(Exception):
    """The event that was added does not follow from those before it."""


@dataclass(slots=True)
class Execution:
    """An execution as the journal tells it; without `status` no event has ended it."""

    generation: int
    epoch: int
    definition: bytes
    began_seq: int
    ended_seq: int | None = None
    status: str | None = None
    stop_event: int | None = None


@dataclass(slots=True)
class Derived:
    """Add the events in order; what they say then stands in the attributes."""

    created: dict[str, Any] = field(default_factory=dict)
    created_at: int = 0
    executions: list[Execution] = field(default_factory=list)
    root: bytes = b""
    root_since_seq: int = 0

    def add(self, event: EventRow) -> None:
        """Fold in the next event. Raises Underivable."""
        moves = event.root_hash != self.root
        if moves:
            self.root, self.root_since_seq = event.root_hash, event.seq
        if event.kind == EventKind.NOTE:
            return
        record = _members(event.text)
        if event.kind == EventKind.PUBLISH:
            _published(record, moves=moves)
            return
        if moves and event.kind != EventKind.CREATED:
            raise Underivable
        if event.kind == EventKind.CREATED:
            self._created(record)
            self.created_at = event.time_ms
        elif event.kind == EventKind.BEGAN:
            self._began(event, record)
        else:
            self._settled(event, record)

    def _created(self, record: dict[str, Any]) -> None:
        if list(record) != ["run", "project", "workflow", "props"] or not isinstance(record["props"], dict):
            raise Underivable
        self.created = record

    def _began(self, event: EventRow, record: dict[str, Any]) -> None:
        number = len(self.executions) + 1
        try:
            began = Execution(record["generation"], record["epoch"], bytes.fromhex(record["definition"]), event.seq)
        except (KeyError, TypeError, ValueError):
            raise Underivable from None
        if record.get("execution") != number or event.execution != number:
            raise Underivable
        if list(record) != ["execution", "generation", "epoch", "definition"]:
            raise Underivable
        if self.executions and self.executions[-1].status in _FINAL:
            raise Underivable
        self.executions.append(began)

    def _settled(self, event: EventRow, record: dict[str, Any]) -> None:
        number = len(self.executions)
        reason = record.get("reason")
        if not number or record.get("execution") != number or event.execution != number or self.executions[-1].status is not None:
            raise Underivable
        status = record.get("status")
        if not isinstance(status, str) or status not in SETTLING or list(record) != ["execution", "status", "reason"]:
            raise Underivable
        if not isinstance(reason, int) or not 0 < reason <= event.seq:
            raise Underivable
        ended = self.executions[-1]
        ended.status, ended.ended_seq, ended.stop_event = status, event.seq, reason


def _published(record: dict[str, Any], *, moves: bool) -> None:
    """Check the record of a publish: how many changes led to its root, or the file error for which there are none."""
    match record:
        case {"changes": int(changes)} if len(record) == 1 and not isinstance(changes, bool) and changes >= 0 and (changes > 0) == moves:
            return
        case {"changes": int(changes), "skipped": list(), "more": int()} if list(record) == ["changes", "skipped", "more"]:
            if not isinstance(changes, bool) and changes >= 0 and (changes > 0) == moves:
                return
        case {"failed": str(), "errno": str() | None, "path": str() | None} if list(record) == ["failed", "errno", "path"] and not moves:
            return
    raise Underivable


def _members(text: str) -> dict[str, Any]:
    try:
        record = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise Underivable from None
    if not isinstance(record, dict) or msgspec.json.encode(record).decode() != text:
        raise Underivable
    return record
