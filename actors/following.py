"""Waiting for a run to go on, whoever owns it: its owner says so if it can be asked, and any other file is looked at."""

from __future__ import annotations

import os
from collections.abc import Callable

from freehold.actors.deadline import check_deadline, deadline_in, monotonic, pause
from freehold.actors.leases import Lease
from freehold.actors.ref import ActorRef
from freehold.actors.remote import Remote
from freehold.actors.runs import owner_of
from freehold.schema.errors import DeadlineExceeded, Error, RunNotFound, Unavailable
from freehold.schema.limits import WAIT_BEYOND_S
from freehold.schema.messages import WaitBeyond
from freehold.storage.path import RunPath
from freehold.storage.siblings import WAL

_LOOK_S = 0.1
"""How often a file is looked at; more than the grain of its times, so that a second look after a change sees what the first could miss."""
_PASSING = frozenset({"lease_lost", "stopping", "quarantined"})

Stamp = tuple[tuple[int, ...] | None, ...]


class Watch:
    """Waits, again and again, until a run may have gone on. It holds nothing, and keeps no owner from giving the run back."""

    def __init__(self, path: RunPath, meanwhile: Callable[[], object] | None = None, *, remote: Remote | None = None) -> None:
        """Look at the file of an owner in another process, unless it can be asked over *remote*.

        *meanwhile* is called again and again while a file of another process is looked at; what it raises ends the wait.
        """
        self._path = path
        self._meanwhile = meanwhile
        self._remote = remote
        self._seen: Stamp | None = None
        self._settled = False

    def wait(self, seen: WaitBeyond) -> None:
        """Return when what was *seen* may be over: to be looked at then. Raises DeadlineExceeded under `fail_after`."""
        owner = owner_of(self._path)
        if owner is None:
            if self._remote is None or not _told(self._remote, seen):
                self._look()
            return
        self._seen = None
        try:
            wait_beyond(owner, None, seen)
        except Unavailable as error:
            if error.code not in _PASSING:
                raise
            _rest()  # it is going, or comes again

    def _look(self) -> None:
        if self._seen is not None:
            _rest()
        while (found := _stamp(self._path)) == self._seen and self._settled and owner_of(self._path) is None:
            check_deadline()
            if self._meanwhile is not None:
                self._meanwhile()
            _rest()
        check_deadline()
        # A write in the same tick of the file's clock as the last one leaves no trace: after each change it is read once more.
        self._settled = found == self._seen
        self._seen = found


def _rest() -> None:
    """Wait until it is time to look again, or the deadline has come."""
    until = deadline_in(_LOOK_S)
    assert until is not None
    pause(max(0.0, until - monotonic()))


def wait_beyond(owner: ActorRef[object], lease: Lease | None, seen: WaitBeyond) -> None:
    """Wait until the owner says that what was *seen* is over, or that nothing has come for a while. Raises as `ask` does."""
    try:
        owner.call(seen, lease, timeout=WAIT_BEYOND_S)
    except DeadlineExceeded:
        check_deadline()


def _told(remote: Remote, seen: WaitBeyond) -> bool:
    """Wait for what the owner in another process says; return False where there is none that can be asked."""
    try:
        remote.ask(seen, timeout=WAIT_BEYOND_S)
    except DeadlineExceeded:
        check_deadline()
    except RunNotFound:
        return True  # whoever looks will find that out
    except Error:
        return False  # nobody owns it, it has gone, or has too many who wait: its file says the same
    return True


def _stamp(path: RunPath) -> Stamp:
    return tuple(_one(file) for file in (path.file, path.sibling(WAL)))


def _one(file: str) -> tuple[int, ...] | None:
    try:
        found = os.lstat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
