"""Which inodes this process has open, whoever wants to know. The only Lock of the storage layer.

Danger: closing any descriptor of an inode drops every POSIX lock that this process holds on it, SQLite's among them.
So a place here is taken before a file is opened by hand; an owned file is never opened a second time; and all readers
of one file share one descriptor, which is closed when the last of them has left.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock

from freehold.schema.errors import OwnedElsewhere
from freehold.storage import forks, platform

Inode = platform.Inode


class OwnedHere(Exception):
    """Not an error of the caller's: this process owns the file, so its owner is to be asked."""

    def __init__(self, owner: object) -> None:
        super().__init__("owned by this process")
        self.owner = owner


@dataclass(slots=True)
class _Owned:
    owner: object


@dataclass(slots=True)
class _Visited:
    fd: int
    visitors: int = 0
    sharers: int = 0
    wanted: bool = False


class Registry:
    """Owned and visited inodes. An inode is in it while a descriptor on it is open, so its number is not used again."""

    def __init__(self) -> None:
        self._lock = RLock()  # a collection may call in again from the thread that holds it
        self._places: dict[Inode, _Owned | _Visited] = {}

    def own(self, inode: Inode, owner: object) -> None:
        """Take the one place of an owner.

        Raises OwnedElsewhere: with `pid` when this process owns the file already; with `shared` when it reads it just now,
        or when nobody has been handed the place yet (it creates or deletes the file), so that waiting helps.
        """
        with self._lock:
            place = self._places.setdefault(inode, mine := _Owned(owner))
            if isinstance(place, _Visited):
                place.wanted = True
        if place is mine:
            return
        if isinstance(place, _Owned):
            if place.owner is None:
                raise OwnedElsewhere("this process creates or deletes the run just now; nothing was changed", pid=os.getpid(), shared=True)
            raise OwnedElsewhere("another host of this process owns the run; nothing was changed", pid=os.getpid(), shared=False)
        raise OwnedElsewhere("this process is reading the run just now; nothing was changed", pid=os.getpid(), shared=True)

    def hand_over(self, inode: Inode, owner: object) -> None:
        """Make *owner* the owner of a place that is taken already, by whoever created the file."""
        with self._lock:
            place = self._places[inode]
            assert isinstance(place, _Owned), "only an owner's place is handed over"
            place.owner = owner

    def release(self, inode: Inode) -> None:
        """Give the owner's place back, after every descriptor and connection on the file was closed."""
        with self._lock:
            place = self._places.pop(inode)
            assert isinstance(place, _Owned), "a reader's place is left, not released"

    def owner_of(self, inode: Inode) -> object | None:
        """Return what was given as owner of *inode*, or None when this process does not own it."""
        with self._lock:
            place = self._places.get(inode)
            return place.owner if isinstance(place, _Owned) else None

    def holds(self, inode: Inode) -> bool:
        """Return whether this process owns or reads *inode*, so that nobody else may open and close it."""
        with self._lock:
            return inode in self._places

    def enter(self, inode: Inode, open_file: Callable[[], int]) -> int:
        """Take a reader's place; return the descriptor that all readers of this file share. Nobody but `leave` closes it.

        Raises OwnedHere while this process owns the file or one of its owners waits for the readers to leave, and what
        *open_file* raises for the first reader.
        """
        with self._lock:
            place = self._places.get(inode)
            if isinstance(place, _Owned):
                raise OwnedHere(place.owner)
            if place is not None and place.wanted:
                raise OwnedHere(None)  # else readers who follow each other would keep every owner out
            if place is None:
                # Opened under the lock: it does not wait, and no owner may come in between.
                place = self._places[inode] = _Visited(open_file())
            place.visitors += 1
            return place.fd

    def share(self, inode: Inode) -> bool:
        """Keep owners of other processes out for as long as a reader reads; return False if there is one."""
        with self._lock:
            place = self._visited(inode)
            if not place.sharers and not platform.lock_shared(place.fd):
                return False
            place.sharers += 1
            return True

    def unshare(self, inode: Inode) -> None:
        """End what one successful `share` began."""
        with self._lock:
            place = self._visited(inode)
            place.sharers -= 1
            if not place.sharers:
                platform.unlock(place.fd)

    def leave(self, inode: Inode) -> None:
        """Give a reader's place back; the last one closes the descriptor."""
        with self._lock:
            place = self._visited(inode)
            place.visitors -= 1
            if not place.visitors:
                del self._places[inode]
                os.close(place.fd)

    def forked(self) -> None:
        """Begin anew in a forked child, which owns and reads nothing; the parent keeps its locks."""
        self._lock = RLock()
        places, self._places = self._places, {}
        for place in places.values():
            if isinstance(place, _Visited):
                os.close(place.fd)

    def _visited(self, inode: Inode) -> _Visited:
        place = self._places[inode]
        assert isinstance(place, _Visited), "an owner does not share"
        return place


REGISTRY = Registry()
"""The one of this process."""
forks.watch(REGISTRY)
