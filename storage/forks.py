"""The only fork hook. After a fork the child must neither use nor close what it inherited.

Closing an inherited SQLite connection in the child drops the parent's locks and may delete its journal. So the child
keeps every connection alive for ever, without using it, and gives back only the owner's flock descriptors, which
otherwise would keep the runs owned for as long as the child lives.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

from freehold.schema.errors import Refused


class Inherited(Protocol):
    """Something that a forked child must not use."""

    def forked(self) -> None:
        """Give up, in the child, without touching a lock, a connection or a file."""


_inherited: WeakSet[Inherited] = WeakSet()


def watch(thing: Inherited) -> None:
    """Call *thing.forked()* in every child that this process forks while *thing* lives."""
    _inherited.add(thing)


def forked_process() -> Refused:
    """Return what a forked child is told."""
    return Refused(
        "this process was forked from the one that owns the run; open the run in a process of its own (multiprocessing: spawn). "
        "Nothing was changed",
        code="forked_process",
    )


def _after_in_child() -> None:
    for thing in list(_inherited):
        thing.forked()


os.register_at_fork(after_in_child=_after_in_child)
