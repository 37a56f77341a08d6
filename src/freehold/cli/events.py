"""Events as people and machines read them."""

from __future__ import annotations

from typing import Any

import msgspec

from freehold.cli.output import coloured, plain
from freehold.event import Event
from freehold.schema.times import utc


def event_value(event: Event) -> str:
    """Return an event's value as it is printed: of a publish how much it has changed, or what it has failed with."""
    match event.kind, event.data:
        case "publish", {"changes": int(count), "skipped": list(listed), "more": int(more)}:
            return f"{count} change{'' if count == 1 else 's'}, {len(listed) + more} not taken as they were"
        case "publish", {"changes": int(count)}:
            return f"{count} change{'' if count == 1 else 's'}"
        case "publish", {"failed": str(kind), "path": str() | None as path}:
            return coloured(plain(f"failed: {kind}{'' if path is None else f': {path}'}"), "red")
    return plain(_text(event))


def event_line(event: Event) -> str:
    """Return an event as a line: seq, time, kind, name, value."""
    return f"{event.seq:>6}  {utc(event.time)}  {event.kind:<7}  {plain(event.name or '-')}  {event_value(event)}\n"


def _text(event: Event) -> str:
    _ = event.data  # what cannot be read is damage
    return event._record  # noqa: SLF001 - the one text of the value, where a record of ours may be a level deeper than a value


def event_record(event: Event) -> dict[str, Any]:
    """Return everything that an event says, as plain data."""
    return {
        "seq": event.seq,
        "id": event.id,
        "time": utc(event.time),
        "kind": event.kind,
        "name": event.name,
        "data": msgspec.json.decode(_text(event)),
        "execution": event.execution,
        "outcome": event.outcome,
        "root": event.root,
        "hash": event.hash,
    }
