"""Where a tree is written before it is in its place: a folder of our own, whose lock proves that its maker lives.

Its name ends with the number of its own inode. So no copy, no checkout and nobody who only likes the name is taken for one.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import ExitStack, suppress
from itertools import count
from types import TracebackType
from typing import Self

from freehold.storage import forks, platform
from freehold.storage.folders import empty, is_folder, look, move_new, names_in, open_folder

_COUNTER = count(1)
_TRIES_MAX = 100
_NAME = re.compile(r"\.freehold-[0-9]+-([0-9]+)\.staging")


def is_staging(name: str) -> bool:
    """Return whether *name* is one that a staging folder may have."""
    return name[:1] == "." and _NAME.fullmatch(name) is not None


def is_ours(name: str, found: os.stat_result) -> bool:
    """Return whether what is called so was made here: a folder for its user alone, whose number stands in its name."""
    number = _NAME.fullmatch(name)
    is_private = is_folder(found) and found.st_uid == os.geteuid() and found.st_mode & 0o777 == 0o700
    return number is not None and is_private and number[1] == str(found.st_ino)


class Staging:
    """A new folder in the folder that *parent_fd* holds: only its user may enter it, and it is gone after the block."""

    def __init__(self, parent_fd: int) -> None:
        with ExitStack() as undo:
            self._parent_fd = os.dup(parent_fd)
            undo.callback(os.close, self._parent_fd)
            self.name, self.fd = _make(self._parent_fd)
            undo.pop_all()
        forks.watch(self)

    def close(self) -> None:
        """Remove it with all that is in it. Closing twice changes nothing."""
        fd, self.fd = self.fd, -1
        if fd < 0:
            return
        try:
            _remove(self.name, self._parent_fd, fd)
        finally:
            os.close(fd)
            os.close(self._parent_fd)

    def forked(self) -> None:
        """In a forked child: let it be; it is the parent's."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)
            os.close(self._parent_fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def sweep(parent_fd: int) -> list[str]:
    """Remove what makers that died left in a folder; return the names. One in use, or another user's, is left alone."""
    removed = []
    for name in filter(is_staging, names_in(parent_fd)):
        try:
            fd = open_folder(name, parent_fd)
        except OSError:
            continue  # another sweeper's, or not ours to look into
        try:
            if is_ours(name, os.fstat(fd)) and platform.lock_exclusive(fd):
                _remove(name, parent_fd, fd)
                removed.append(name)
        finally:
            os.close(fd)
    return removed


def _make(parent_fd: int) -> tuple[str, int]:
    """Return a new folder that is ours: by its lock first, then by its name."""
    # What is passed over goes at the end: the number of one that has gone might come again.
    with ExitStack() as passed_over:
        for _ in range(_TRIES_MAX):
            first = f".freehold-{os.getpid()}-{next(_COUNTER)}.staging"
            try:
                os.mkdir(first, 0o700, dir_fd=parent_fd)
            except FileExistsError:
                continue
            with ExitStack() as undo:
                undo.callback(_drop, first, parent_fd)
                fd = open_folder(first, parent_fd)
                undo.callback(os.close, fd)
                name = f".freehold-{os.getpid()}-{os.fstat(fd).st_ino}.staging"
                locked = platform.lock_exclusive(fd)
                try:
                    move_new(first, parent_fd, name, parent_fd)
                except FileExistsError:  # somebody thought of just that
                    passed_over.enter_context(undo.pop_all())
                    continue
                if locked and _names(name, parent_fd, fd):
                    undo.pop_all()
                    return name, fd
    raise FileExistsError(errno.EEXIST, "no staging folder could be kept from others", name)


def _drop(name: str, parent_fd: int) -> None:
    with suppress(FileNotFoundError):  # it has its other name by now, or another sweeper was faster
        os.rmdir(name, dir_fd=parent_fd)


def _remove(name: str, parent_fd: int, fd: int) -> None:
    empty(fd)
    if _names(name, parent_fd, fd):
        _drop(name, parent_fd)


def _names(name: str, parent_fd: int, fd: int) -> bool:
    found = look(name, parent_fd)
    return found is not None and platform.inode_of(found) == platform.inode_of(os.fstat(fd))
