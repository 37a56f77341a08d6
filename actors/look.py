"""Looking at a run without owning it: through its owner if that is an actor of this process, else at the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from freehold.actors.aside import Gone, aside
from freehold.actors.deadline import monotonic, pause
from freehold.actors.runs import owner_of
from freehold.schema.errors import Holder, Unavailable
from freehold.schema.limits import OPENER_WAIT_S
from freehold.schema.messages import Message
from freehold.storage.faults import SqliteError, unreadable
from freehold.storage.holder import holder_now, socket_of
from freehold.storage.path import RunPath
from freehold.storage.reader import beside, reading
from freehold.storage.reads import READS
from freehold.storage.registry import OwnedHere
from freehold.storage.verify import Progress, verify

T = TypeVar("T")
Ask = Callable[[Message], Any]
_STEPS = 100_000
"""After so many of its own steps SQLite looks whether to go on: some milliseconds."""
_PASSING = frozenset({"lease_lost", "stopping", "database_busy", "changed_while_reading"})


def look(path: RunPath, message: Message, *, any_filesystem: bool = False) -> Any:
    """Return the answer to *message*, one of the READS, and change nothing.

    Raises RunNotFound, and what `reading` raises of a file that is no healthy run.
    """
    return look_about(path, lambda ask: ask(message), any_filesystem=any_filesystem)


def look_about(path: RunPath, work: Callable[[Ask], T], *, any_filesystem: bool = False) -> T:
    """Return what *work* makes of the answers to any number of READS, and change nothing.

    They are of one snapshot, except where an actor of this process owns the run: it answers each as it stands then.
    *work* may be called again from its beginning. Raises as `look` does.
    """

    def once() -> T:
        if (owner := owner_of(path)) is not None:
            return work(lambda message: owner.call(message, None))
        return aside(read)

    def read(_gone: Gone) -> T:
        try:
            with reading(path, any_filesystem=any_filesystem) as db:
                return work(lambda message: READS[type(message)](db, message))
        except SqliteError as error:
            raise unreadable(error, path) from None

    return _patiently(path, once)


def look_beside(path: RunPath, work: Callable[[Ask], T], *, any_filesystem: bool = False) -> T:
    """Return what *work* makes of the answers to any number of READS, all of one snapshot, beside the owner if the run has one.

    For what would keep an owner of this process from its turns. *work* may be called again from its beginning.
    """

    def read(gone: Gone) -> T:
        here = owner_of(path) is not None
        try:
            with beside(path) if here else reading(path, any_filesystem=any_filesystem) as db, _while_asked(gone, db):
                return work(lambda message: READS[type(message)](db, message))
        except SqliteError as error:
            raise unreadable(error, path) from None

    return _patiently(path, lambda: aside(read))


def look_whole(path: RunPath, progress: Progress | None, *, any_filesystem: bool = False) -> None:
    """Verify the whole file in one snapshot, beside its owner if it has one. Raises Damaged, RunNotFound."""

    def once(gone: Gone) -> None:
        here = owner_of(path) is not None
        with beside(path) if here else reading(path, any_filesystem=any_filesystem) as db, _while_asked(gone, db):
            verify(db, path, progress)

    _patiently(path, lambda: aside(once))


def find_socket(path: RunPath, *, any_filesystem: bool = False) -> str | None:
    """Return the name of the socket on which the owner of *path* in another process can be asked, or None.

    None as well where an actor of this process owns it, or nobody does. Raises as `look` does.
    """

    def once() -> str | None:
        return None if owner_of(path) is not None else aside(lambda _gone: socket_of(path, any_filesystem=any_filesystem))

    return _patiently(path, once)


def find_holder(path: RunPath, *, any_filesystem: bool = False) -> Holder | None:
    """Return who owns *path* now, this process too, or None where nobody does. Raises as `look` does, and never OwnedElsewhere."""

    def read(_gone: Gone) -> Holder | None:
        return holder_now(path, here=owner_of(path) is not None, any_filesystem=any_filesystem)

    return _patiently(path, lambda: aside(read))


@contextmanager
def _while_asked(gone: Gone, db: Any) -> Iterator[None]:
    """Let what reads on *db* end soon after its asker has gone."""
    db.set_progress_handler(gone, _STEPS)
    try:
        yield
    finally:
        db.set_progress_handler(None)


def _patiently(path: RunPath, once: Callable[[], T]) -> T:
    """Call *once*, again while the file changes hands: between its owner's two last or first steps it cannot be read."""
    until = monotonic() + OPENER_WAIT_S
    while True:
        try:
            return once()
        except OwnedHere:
            refusal: Unavailable = _passing(path)
        except Unavailable as error:
            if error.code not in _PASSING:
                raise
            refusal = error
        if monotonic() >= until:
            raise refusal
        pause()


def _passing(path: RunPath) -> Unavailable:
    return Unavailable(f"an owner is opening or closing {path.file} just now; nothing was changed", code="database_busy")
