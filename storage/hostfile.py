"""The host file, `.host.sqlite`: one connection of this process on what the hosts of a folder tell each other.

A cache, shared by several processes: whatever is wrong with it is said by name and left alone, and nobody who works on runs is
held up by it. It may be deleted at any time, also under living hosts; they find that out before they write, and make a new one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar

import apsw

from freehold.schema.errors import Unavailable
from freehold.schema.limits import BUSY_TIMEOUT_MS, WAL_SWITCH_TRIES_MAX
from freehold.storage import connection, faults, forks, platform
from freehold.storage.connection import SYNCHRONOUS_NORMAL, Connection, check_sqlite, harden, keep_foreign_keys
from freehold.storage.faults import SqliteError
from freehold.storage.header import HEADER_BYTES, ids_in
from freehold.storage.hostform import FILE_NAME, check, check_ids, fill, not_a_host_file, removed, said
from freehold.storage.path import SIBLINGS
from freehold.storage.platform import Inode
from freehold.storage.registry import REGISTRY, OwnedHere
from freehold.storage.transaction import immediate, snapshot

_READ_WRITE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
_TRIES_MAX = 5
T = TypeVar("T")
Work = Callable[[apsw.Connection], T]


class HostFile:
    """The host file of one folder, open for reading and writing. Used by one thread.

    `replaced` is called after the file was gone and has been made anew, with the connection, inside its first transaction: what this
    process has said there is to be said again.
    """

    def __init__(self, folder: str, replaced: Work[None] | None = None, *, busy_ms: int = BUSY_TIMEOUT_MS) -> None:
        """Open the file, or make it, if the folder is there.

        Raises Refused (not_a_host_file, host_file_version, no_permission, bad_root), Damaged (host_file_damaged), Unavailable
        (database_busy, no_descriptors), StorageFailed. Whatever was there is there as it was.
        """
        self.file = os.path.join(folder, FILE_NAME)
        self._replaced = replaced
        self._busy_ms = busy_ms
        self._undo = ExitStack()
        self._db: apsw.Connection | None = None
        self._inode: Inode | None = None
        self._open()
        forks.watch(self)

    def read(self, work: Work[T]) -> T:
        """Return what *work* reads, in one snapshot. Raises as the constructor does."""
        db = self._current()
        with said(self.file, self._busy_ms), snapshot(db):
            return work(db)

    def write(self, work: Work[T]) -> T:
        """Run *work* in one short transaction of its own, and return what it returns. Raises as the constructor does.

        If the file was deleted meanwhile, it is run again on a new one: what it returns is what the file at the path says.
        """
        for _ in range(_TRIES_MAX):
            db = self._current()
            with said(self.file, self._busy_ms):
                with immediate(db):
                    answer = work(db)
                if platform.find_inode(self.file) == self._inode:
                    return answer
        raise Unavailable(f"{self.file} keeps being removed just now; nothing of this was kept", code="changed_while_reading")

    def wait_at_most(self, busy_ms: int) -> None:
        """Wait no longer than this for others who write into it."""
        self._busy_ms = busy_ms
        if self._db is not None:
            self._db.set_busy_timeout(busy_ms)

    def is_there(self) -> bool:
        """Return whether the path still names the file that is open."""
        return self._db is not None and platform.find_inode(self.file) == self._inode

    def look(self) -> None:
        """Make sure that the file is still there, and make a new one if it is not. Raises as the constructor does."""
        self._current()

    def interrupt(self) -> None:
        """Cut short a statement that runs too long. May be called from another thread."""
        if (db := self._db) is not None:
            db.interrupt()

    def close(self) -> None:
        """Give the file back. Closing twice changes nothing."""
        db, self._db = self._db, None
        if db is None:
            return
        self._undo.close()  # of a file that is gone SQLite brings no -wal home, and removes none of that name

    def forked(self) -> None:
        """In a forked child: never use, never close what the parent goes on using."""
        if self._db is not None:
            platform.keep_for_ever(self._db)
        self._db = None
        self._undo.pop_all()

    def _current(self) -> apsw.Connection:
        """Return the connection on the file that is at the path now."""
        if self._db is not None and self.is_there():
            return self._db
        self.close()
        db = self._open()
        if self._replaced is not None:
            with said(self.file, self._busy_ms), immediate(db):
                self._replaced(db)
        return db

    def _open(self) -> apsw.Connection:
        """Open what is at the path, or make it; again while somebody removes it in between."""
        for _ in range(_TRIES_MAX - 1):
            try:
                return self._try_open()
            except Unavailable as error:
                if error.code != "changed_while_reading":
                    raise
        return self._try_open()

    def _try_open(self) -> apsw.Connection:
        check_sqlite()
        forks.check_sqlite_is_whole()
        with ExitStack() as undo, said(self.file, self._busy_ms):
            if not os.path.lexists(self.file):
                _create(self.file)
            self._inode, fd = pin(self.file, undo)
            db = connect(self.file, _READ_WRITE)
            undo.callback(db.close)
            db.set_busy_timeout(self._busy_ms)  # before the first statement that could meet a lock
            harden(db)
            # What a power loss takes is found again in the folder; that the file is whole afterwards, NORMAL is enough for.
            db.pragma("synchronous", SYNCHRONOUS_NORMAL)
            keep_foreign_keys(db)
            with immediate(db):
                if not os.fstat(fd).st_size:
                    fill(db)
                check(db, self.file)
            _enter_wal(db, self.file)
            if platform.find_inode(self.file) != self._inode:
                raise removed(self.file)
            self._undo = undo.pop_all()
            self._db = db
            return db


def pin(file: str, undo: ExitStack) -> tuple[Inode, int]:
    """Take a place for the file in the registry, so that nobody of this process opens and closes it under SQLite; look at its header.

    SQLite would play a journal back, or delete a -wal, before it says that a file is none of ours. Returns the descriptor too.
    """
    path_fd = platform.open_path(file)
    undo.callback(os.close, path_fd)
    inode = platform.inode_of(found := os.fstat(path_fd))
    if not platform.is_regular(found) or found.st_nlink != 1:
        raise not_a_host_file(file) if found.st_nlink else removed(file)
    try:
        fd = REGISTRY.enter(inode, lambda: platform.reopen(path_fd))
    except OwnedHere:
        raise not_a_host_file(file) from None  # a run file of this process's, under this name
    undo.callback(REGISTRY.leave, inode)
    if (ids := ids_in(os.pread(fd, HEADER_BYTES, 0))) is not None:
        check_ids(*ids, file)
    elif found.st_size:
        raise not_a_host_file(file)
    return inode, fd


def connect(file: str, flags: int, vfs: str | None = None) -> Connection:
    """Return a connection on the file. Raises what `removed` says when it has gone meanwhile."""
    try:
        return connection.connect(file, flags, vfs)
    except SqliteError as error:
        if faults.is_unopenable(error) and not os.path.lexists(file):
            raise removed(file) from None
        raise


def _create(file: str) -> None:
    """Make an empty file. What an earlier one has left beside it goes first: it would be taken for the new one's own."""
    left = {sibling: platform.find_inode(sibling) for sibling in (file + suffix for suffix in SIBLINGS)}
    if platform.find_inode(file) is not None:
        return  # somebody was faster, and what is beside it is in use
    for sibling, inode in left.items():
        if inode is not None and platform.find_inode(sibling) == inode:
            os.unlink(sibling)
    try:
        os.close(platform.create_new(file))
    except FileExistsError:
        return


def _enter_wal(db: apsw.Connection, file: str) -> None:
    """Switch to WAL mode, which several may try at once: that switch is refused as busy at once where a statement would wait."""
    for _ in range(WAL_SWITCH_TRIES_MAX):
        if db.pragma("journal_mode") == "wal":
            return
        try:
            if db.pragma("journal_mode", "wal") == "wal":
                return
        except SqliteError as error:
            if not faults.is_busy(error):
                raise
        with immediate(db):  # wait for whoever it is, as long as for any other write
            pass
    raise Unavailable(f"{file} could not be put into WAL mode while others use it; nothing was changed", code="database_busy")
