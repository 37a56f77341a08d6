"""What can be read of a run, as a table: over the owner's connection, or over a reader's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

from freehold.schema import messages
from freehold.schema.messages import Message
from freehold.storage import events
from freehold.storage.difference import few_changes
from freehold.storage.objects import StoredObjects, malformed, read_packed

Read = Callable[[apsw.Connection, Any], Any]


def _legible(read: Read) -> Read:
    def legible(db: apsw.Connection, message: Any) -> Any:
        try:
            return read(db, message)
        except UnicodeDecodeError:  # its text quotes what it could not read
            raise malformed() from None

    return legible


_READS: dict[type[Message], Read] = {
    messages.ReadRun: lambda db, _message: (events.read_run(db), events.last_seq(db)),
    messages.ReadPage: lambda db, message: events.read_page(db, message.after, name=message.name, reverse=message.reverse),
    messages.ReadEvent: lambda db, message: events.read_event(db, message.seq),
    messages.FindId: lambda db, message: events.seq_of_id(db, message.id),
    messages.ReadRoot: lambda db, message: events.root_at(db, message.seq),
    messages.FindRoot: lambda db, message: events.roots_between(db, message.first, message.last),
    messages.ReadObjects: lambda db, message: read_packed(db, message.hashes),
    messages.ReadChanges: lambda db, message: few_changes(StoredObjects(db), message.old, message.new),
    messages.FindTime: lambda db, message: events.seq_at_time(db, message.time_ms),
}
READS = {kind: _legible(read) for kind, read in _READS.items()}
"""None of these changes anything, and each is bounded in what it returns. Each raises Damaged for what cannot be read."""
