"""A look at the host file of a folder by somebody who owns nothing there: nothing is created or changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar

import apsw

from freehold.schema.errors import Unavailable
from freehold.schema.limits import BUSY_TIMEOUT_MS
from freehold.storage import forks
from freehold.storage.allowlist import allow_reading
from freehold.storage.clock import Clock
from freehold.storage.connection import check_sqlite, harden
from freehold.storage.hostfile import connect, pin
from freehold.storage.hostform import FILE_NAME, check, said
from freehold.storage.siblings import JOURNAL, WAL
from freehold.storage.stamp import are_settled
from freehold.storage.transaction import snapshot
from freehold.storage.vfs.beside import BESIDE
from freehold.storage.vfs.overlay import OVERLAY, OVERLAYS

T = TypeVar("T")
_BESIDE_FLAGS = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOFOLLOW


def look_at(folder: str, work: Callable[[apsw.Connection], T], clock: Clock) -> T | None:
    """Return what *work* reads of the folder's host file in one snapshot, or None where there is none, or none that is made yet.

    Raises Refused (not_a_host_file, host_file_version, no_permission), Damaged (host_file_damaged), Unavailable (database_busy,
    no_descriptors; changed_while_reading: in a moment), StorageFailed.
    """
    check_sqlite()
    forks.check_sqlite_is_whole()
    file = os.path.join(folder, FILE_NAME)
    if not os.path.lexists(file):
        return None
    with ExitStack() as undo, said(file, BUSY_TIMEOUT_MS):
        _, fd = pin(file, undo)
        if not os.fstat(fd).st_size or os.path.lexists(file + JOURNAL):
            return None
        if os.path.lexists(file + WAL):
            db = connect(file, _BESIDE_FLAGS, BESIDE)
            undo.callback(db.close)
            db.set_busy_timeout(BUSY_TIMEOUT_MS)
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            return _read(db, file, work)
        return _read_alone(file, fd, work, clock, undo)


def _read_alone(file: str, fd: int, work: Callable[[apsw.Connection], T], clock: Clock, undo: ExitStack) -> T:
    """Read a file that nobody has open. That nobody came meanwhile, its time and its -wal say afterwards."""
    before = os.fstat(fd)
    if not are_settled((before.st_mtime_ns,), clock.now_ms()):
        raise _changed(file)  # a write within the same tick would not be seen
    db = connect(undo.enter_context(OVERLAYS.over({"": fd})), apsw.SQLITE_OPEN_READWRITE, OVERLAY)
    undo.callback(db.close)
    db.pragma("locking_mode", "exclusive")  # WAL then needs no shared memory
    try:
        found = _read(db, file, work)
    finally:
        after = os.fstat(fd)
        if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns) or os.path.lexists(file + WAL):
            raise _changed(file) from None
    return found


def _read(db: apsw.Connection, file: str, work: Callable[[apsw.Connection], T]) -> T:
    harden(db)
    with snapshot(db):
        check(db, file)
        allow_reading(db)
        try:
            return work(db)
        finally:
            db.set_authorizer(None)  # before the snapshot ends


def _changed(file: str) -> Unavailable:
    return Unavailable(f"{file} changes just now; it was left alone", code="changed_while_reading")
