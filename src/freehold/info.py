"""What a run says of itself, in one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from freehold.schema.errors import Error
from freehold.schema.rows import RunRow
from freehold.schema.times import utc
from freehold.schema.values import Value, decode, encode

Status = Literal["created", "running", "suspended", "interrupted", "completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One run as it stood when it was asked. *error* is set, and the rest empty, where the file could not be read."""

    id: str
    status: Status | None = None
    workflow: str | None = None
    project: str = field(default="", repr=False)
    props: Mapping[str, Value] = field(default_factory=dict, repr=False)
    events: int = 0
    epoch: int = 0
    generation: int = 0
    stop_code: str | None = field(default=None, repr=False)
    stop_event: int | None = None
    created: datetime | None = None
    updated: datetime | None = None
    txn: int = 0
    """The write transactions so far, take-overs and closes included."""
    error: Error | None = None

    def record(self) -> dict[str, Any]:
        """Return the information as plain data: times in ISO format, values that JSON cannot say tagged as they are stored."""
        return {
            "id": self.id,
            "status": self.status,
            "workflow": self.workflow,
            "project": self.project,
            "props": msgspec.json.decode(encode(dict(self.props))),
            "events": self.events,
            "epoch": self.epoch,
            "generation": self.generation,
            "stop_code": self.stop_code,
            "stop_event": self.stop_event,
            "created": None if self.created is None else utc(self.created),
            "updated": None if self.updated is None else utc(self.updated),
            "txn": self.txn,
            "error": None if self.error is None else self.error.record(),
        }


def run_info(row: RunRow, events: int) -> RunInfo:
    """Return what *row* says."""
    return RunInfo(
        id=row.id,
        status=row.status,  # type: ignore[arg-type]  # the CHECK of v1.sql lists the same words
        workflow=row.workflow,
        project=row.project,
        props=decode(row.props),
        events=events,
        epoch=row.epoch,
        generation=row.generation,
        stop_code=row.stop_code,
        stop_event=row.stop_event,
        created=datetime.fromtimestamp(row.created_at / 1000, UTC),
        updated=datetime.fromtimestamp(row.updated_at / 1000, UTC),
        txn=row.txn,
    )
