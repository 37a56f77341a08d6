"""Looking at a run without owning it: through its owner if that is an actor of this process, else at the file."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from freehold.actors.ref import ActorRef
from freehold.actors.runs import owner_of
from freehold.schema.errors import LeaseLost, Unavailable
from freehold.schema.messages import Message
from freehold.storage.faults import SqliteError, unreadable
from freehold.storage.path import RunPath
from freehold.storage.reader import beside, reading
from freehold.storage.reads import READS
from freehold.storage.registry import OwnedHere
from freehold.storage.verify import Progress, verify

_TRIES_MAX = 10


def look(path: RunPath, message: Message, *, any_filesystem: bool = False) -> Any:
    """Return the answer to *message*, one of the READS, and change nothing.

    Raises RunNotFound, and what `reading` raises of a file that is no healthy run.
    """
    for _ in range(_TRIES_MAX):
        if (owner := owner_of(path)) is not None:
            try:
                return owner.call(message, None)
            except (LeaseLost, Unavailable) as error:
                if error.code not in ("lease_lost", "stopping"):
                    raise
                continue  # it is giving the file back just now
        try:
            with reading(path, any_filesystem=any_filesystem) as db:
                return READS[type(message)](db, message)
        except SqliteError as error:
            raise unreadable(error, path) from None
        except OwnedHere as here:
            if isinstance(here.owner, ActorRef):
                continue
            break
    raise _passing(path)


def look_whole(path: RunPath, progress: Progress | None, *, any_filesystem: bool = False) -> None:
    """Verify the whole file in one snapshot, beside its owner if it has one. Raises Damaged, RunNotFound."""
    for _ in range(_TRIES_MAX):
        with ExitStack() as undo:
            if owner_of(path) is not None:
                db = undo.enter_context(beside(path))
            else:
                try:
                    db = undo.enter_context(reading(path, any_filesystem=any_filesystem))
                except OwnedHere:
                    continue
            verify(db, path, progress)
            return
    raise _passing(path)


def _passing(path: RunPath) -> Unavailable:
    return Unavailable(f"an owner is opening or closing {path.file} just now; nothing was changed", code="database_busy")
