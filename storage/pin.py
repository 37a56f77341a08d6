"""A run file held in the hand: its inode pinned by a descriptor, its place in the registry taken, its lock held.

Everything that was taken is given back on every exit. Nothing in the folder is changed, not even a time.
"""

from __future__ import annotations

import os
from contextlib import ExitStack

from freehold.schema.errors import Error, OwnedElsewhere, Refused, RunNotFound, StorageFailed, Unavailable
from freehold.storage import forks, platform
from freehold.storage.path import RunPath
from freehold.storage.platform import Inode
from freehold.storage.registry import REGISTRY

_LOOKS_MAX = 3


class Pin:
    """A pinned run file: the owner's (with its exclusive lock) or one reader's (with a shared one, once it has `share`d).

    Close it only after every SQLite connection on the file was closed: a close drops SQLite's locks.
    """

    def __init__(self, path: RunPath, fd: int, inode: Inode, *, exclusive: bool) -> None:
        self.path = path
        self.fd = fd
        self.inode = inode
        self.exclusive = exclusive
        self._shares = False
        forks.watch(self)

    def share(self) -> bool:
        """Keep owners of other processes out until this pin is closed; return False when one is there already."""
        self._shares = self._shares or REGISTRY.share(self.inode)
        return self._shares

    def names_this(self) -> bool:
        """Return whether the path still names the pinned file."""
        return names(self.path, self.inode)

    def close(self) -> None:
        """Give back lock, descriptor and place. Closing twice changes nothing."""
        fd, self.fd = self.fd, -1
        if fd < 0:
            return
        if not self.exclusive:
            if self._shares:
                REGISTRY.unshare(self.inode)
            REGISTRY.leave(self.inode)
            return
        os.close(fd)  # before the place: as soon as it is free, somebody may open the file
        REGISTRY.release(self.inode)

    def forked(self) -> None:
        """In a forked child: let go of the owner's descriptor, which would keep the run owned for as long as the child lives."""
        fd, self.fd = self.fd, -1
        if fd >= 0 and self.exclusive:
            os.close(fd)


def names(path: RunPath, inode: Inode) -> bool:
    """Return whether *path* names this very file."""
    return platform.find_inode(path.file) == inode


def pin(path: RunPath, *, exclusive: bool, owner: object = None) -> Pin:
    """Return *path* pinned, with the owner's lock or a reader's, without waiting for either.

    Raises RunNotFound; Refused (not_a_file, hard_link, no_permission); OwnedElsewhere, whose detail `shared` says that
    only readers hold it and waiting helps; OwnedHere to a reader of what this process owns.
    """
    if exclusive:
        return _own(path, owner)
    looked = look(path)
    if looked.share():
        return looked
    error = owned_elsewhere(looked.inode)
    looked.close()
    raise error


def look(path: RunPath) -> Pin:
    """Return *path* pinned for a reader who has not asked yet whether another process owns it.

    Raises as `pin` does, but never OwnedElsewhere.
    """
    with ExitStack() as undo:
        path_fd = _open_path(path)
        undo.callback(os.close, path_fd)
        inode = _check_file(path_fd, path)
        fd = REGISTRY.enter(inode, lambda: _reopen(path_fd, path))
        return Pin(path, fd, inode, exclusive=False)


def _own(path: RunPath, owner: object) -> Pin:
    with ExitStack() as undo, ExitStack() as kept:
        path_fd = _open_path(path)
        undo.callback(os.close, path_fd)
        inode = _check_file(path_fd, path)
        REGISTRY.own(inode, owner)
        kept.callback(REGISTRY.release, inode)
        fd = _reopen(path_fd, path)
        kept.callback(os.close, fd)
        if not platform.lock_exclusive(fd):
            raise owned_elsewhere(inode)
        _check_current(fd, path)
        kept.pop_all()
        return Pin(path, fd, inode, exclusive=True)


def _open_path(path: RunPath) -> int:
    try:
        return platform.open_path(path.file)
    except (FileNotFoundError, NotADirectoryError):
        raise RunNotFound(f"there is no run file {path.file}; nothing was created") from None
    except OSError as error:
        raise unopened(error, path) from None


def _check_file(path_fd: int, path: RunPath) -> Inode:
    found = os.fstat(path_fd)
    if not platform.is_regular(found):
        raise Refused(f"{path.file} is not a plain file; it was left unchanged", code="not_a_file")
    if found.st_nlink > 1:
        # Under its other name SQLite would not find its journal.
        raise Refused(f"{path.file} has {found.st_nlink} names (hard links), a run file has one; it was left unchanged", code="hard_link")
    return platform.inode_of(found)


def _reopen(path_fd: int, path: RunPath) -> int:
    try:
        return platform.reopen(path_fd)
    except OSError as error:
        raise unopened(error, path) from None


def _check_current(fd: int, path: RunPath) -> None:
    """Make sure that the file was not deleted or replaced before we had its lock."""
    try:
        if platform.inode_of(os.lstat(path.file)) == platform.inode_of(os.fstat(fd)):
            return
    except FileNotFoundError:
        raise RunNotFound(f"the run file {path.file} was deleted just now; nothing was created") from None
    raise Unavailable(f"{path.file} was replaced by another file just now; nothing was changed", code="changed_while_reading")


def unopened(error: OSError, path: RunPath) -> Error:
    """Return why a run file could not be opened at all."""
    if (none_left := platform.no_descriptors(error)) is not None:
        return none_left
    if isinstance(error, PermissionError):
        return Refused(f"{path.file} may not be read by this user; it was left unchanged", code="no_permission")
    return StorageFailed(
        f"{path.file} cannot be opened ({os.strerror(error.errno or 0)}); it was left unchanged",
        phase="begin",
        rolled_back=True,
        sqlite_extended_code=0,
    )


def owned_elsewhere(inode: Inode) -> OwnedElsewhere:
    """Return that another process holds the run, and whether only readers do, so that waiting helps."""
    holders: list[platform.LockHolder] = []
    for _ in range(_LOOKS_MAX):  # somebody does hold it, but a look at the table may miss a line
        holders = holders or platform.lock_holders(inode)
    pids = [holder.pid for holder in holders if holder.pid > 0]
    shared = bool(holders) and not any(holder.exclusive for holder in holders)
    who = "is being read by" if shared else "is owned by"
    return OwnedElsewhere(f"the run {who} another process; nothing was changed", shared=shared, pids=pids)
