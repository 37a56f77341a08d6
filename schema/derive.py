"""What the journal alone says of a run: a fold over its events, from which status and executions can be told anew."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import msgspec

from freehold.schema.kinds import EventKind
from freehold.schema.lifecycle import SETTLING, STEPS
from freehold.schema.limits import COUNT_MAX
from freehold.schema.ours import Underivable, members
from freehold.schema.rows import EventRow
from freehold.schema.told import Steps
from freehold.schema.values import is_canonical_object

_HEX = re.compile(r"(?:[0-9a-f]{2})*")
_FINAL = frozenset(status for status, moves in STEPS.items() if not moves)


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
    steps: Steps = field(default_factory=Steps)
    root: bytes = b""
    root_since_seq: int = 0

    def add(self, event: EventRow) -> None:
        """Fold in the next event. Raises Underivable."""
        moves = event.root_hash != self.root
        if moves:
            self.root, self.root_since_seq = event.root_hash, event.seq
        if event.kind == EventKind.NOTE:
            return
        if event.kind == EventKind.STEP:
            if moves:
                raise Underivable
            self.steps.add(event)
            return
        record = members(event.text)
        if event.kind == EventKind.PUBLISH:
            check_publish(record, moves=moves)
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
        if list(record) != ["run", "project", "workflow", "props"]:
            raise Underivable
        if not is_canonical_object(msgspec.json.encode(record["props"]).decode()):
            raise Underivable
        self.created = record

    def _began(self, event: EventRow, record: dict[str, Any]) -> None:
        number = len(self.executions) + 1
        if list(record) != ["execution", "generation", "epoch", "definition"]:
            raise Underivable
        execution, generation, epoch, definition = record.values()
        if not _is_number(execution, number) or event.execution != number or type(generation) is not int or type(epoch) is not int:
            raise Underivable
        if type(definition) is not str or _HEX.fullmatch(definition) is None:
            raise Underivable
        if self.executions and self.executions[-1].status in _FINAL:
            raise Underivable
        self.executions.append(Execution(generation, epoch, bytes.fromhex(definition), event.seq))

    def _settled(self, event: EventRow, record: dict[str, Any]) -> None:
        number = len(self.executions)
        if list(record) != ["execution", "status", "reason"]:
            raise Underivable
        execution, status, reason = record.values()
        if not number or not _is_number(execution, number) or event.execution != number or self.executions[-1].status is not None:
            raise Underivable
        if not isinstance(status, str) or status not in SETTLING:
            raise Underivable
        if type(reason) is not int or not 0 < reason <= event.seq:
            raise Underivable
        ended = self.executions[-1]
        ended.status, ended.ended_seq, ended.stop_event = status, event.seq, reason


def check_publish(record: dict[str, Any], *, moves: bool) -> None:
    """Raise Underivable unless this is a record of a publish: how many changes led to its root, or the file error for which there are none.

    *moves* says whether another root is the current one with it.
    """
    match record:
        case {"failed": str(), "errno": str() | None, "path": str() | None} if list(record) == ["failed", "errno", "path"]:
            right = not moves
        case {"changes": changes} if list(record) in (["changes"], ["changes", "skipped", "more"]):
            right = _is_count(changes) and (changes > 0) == moves and _is_list(record.get("skipped", []), record.get("more", 0))
        case _:
            right = False
    if not right:
        raise Underivable


def _is_list(skipped: Any, more: Any) -> bool:
    """Whether this is a list of paths with a reason each, and how many more there were."""
    return isinstance(skipped, list) and _is_count(more) and all(map(_is_skip, skipped))


def _is_skip(pair: Any) -> bool:
    return isinstance(pair, list) and list(map(type, pair)) in ([str, str], [type(None), str])


def _is_count(found: Any) -> bool:
    return type(found) is int and 0 <= found <= COUNT_MAX


def _is_number(found: Any, number: int) -> bool:
    # To Python 1 is equal to true and to 1.0, which are other texts.
    return type(found) is int and found == number
