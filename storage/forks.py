"""The only fork hook. After a fork the child must neither use nor close what it inherited.

Closing an inherited SQLite connection in the child drops the parent's locks and may delete its journal. So the child
keeps every connection alive for ever, without using it, and gives back only the owner's flock descriptors, which
otherwise would keep the runs owned for as long as the child lives.

A thread of the parent's that was inside SQLite at the fork holds a mutex there that in the child nobody ever releases, and what
SQLite remembers of locks on open files is the parent's. So a child of a process that had a connection opens none.
"""

from __future__ import annotations

import os
from itertools import count
from typing import Protocol
from weakref import ref

from freehold.schema.errors import Refused


class Inherited(Protocol):
    """Something that a forked child must not use."""

    def forked(self) -> None:
        """Give up, in the child, without touching a lock, a connection or a file."""


_inherited: dict[int, ref[Inherited]] = {}
"""What lives, and some of what has gone: a callback at its end would be the place where a signal's exception is swallowed."""
_numbers = count()
_sweep_at = 1_000
_connections: set[object] = set()
"""One ticket for each connection, from before it is opened until after it is closed. A set takes and gives without a lock."""
_parents: set[object] = set()
"""The tickets of the connections that there were in the process that this one was forked from, or in one before it."""


def watch(thing: Inherited) -> None:
    """Call *thing.forked()* in every child that this process forks while *thing* lives."""
    global _sweep_at  # noqa: PLW0603 - it grows with what lives
    _inherited[next(_numbers)] = ref(thing)
    if len(_inherited) >= _sweep_at:
        # The numbers alone: pairs would be made one by one, and a collection in between may bring new ones.
        for number in list(_inherited):
            if (watched := _inherited.get(number)) is not None and watched() is None:
                _inherited.pop(number, None)
        _sweep_at = 2 * len(_inherited) + 1_000


def forked_process() -> Refused:
    """Return what a forked child is told that uses what is its parent's."""
    return Refused(
        "this process was forked from the one that owns the run; open the run in a process of its own (multiprocessing: spawn). "
        "Nothing was changed",
        code="forked_process",
    )


def check_sqlite_is_whole() -> None:
    """Raise Refused (forked_process) in a child that was forked while a run file was open: SQLite could hang in it for ever."""
    if _parents:
        raise Refused(
            "this process was forked from one that had run files open, and SQLite cannot be used in it; start it anew (multiprocessing: "
            "spawn or forkserver, or subprocess), or fork before the first run is opened. Nothing was changed",
            code="forked_process",
        )


def enter_sqlite() -> object:
    """Return the ticket of a connection that is about to be opened. Raises as `check_sqlite_is_whole` does."""
    check_sqlite_is_whole()
    ticket = object()
    _connections.add(ticket)
    return ticket


def leave_sqlite(ticket: object) -> None:
    """Give back the ticket of a connection that is closed, or was never opened. Giving it back twice changes nothing."""
    _connections.discard(ticket)


def _after_in_child() -> None:
    _parents.update(_connections)
    for watched in list(_inherited.values()):
        if (thing := watched()) is not None:
            thing.forked()


os.register_at_fork(after_in_child=_after_in_child)
