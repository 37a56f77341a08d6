"""Reading a run file that this process does not own: one call, one snapshot, nothing changed.

Nobody owns it: the overlay, under a reader's lock that keeps owners out for that one call. Another process owns it: a
connection that may read and nothing else, beside the owner's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import apsw

from freehold.schema.errors import Error, RunNotFound, Unavailable
from freehold.schema.limits import BUSY_TIMEOUT_MS
from freehold.storage import platform
from freehold.storage.allowlist import allow_reading
from freehold.storage.connection import check_sqlite, connect, harden
from freehold.storage.faults import SqliteError, is_unopenable, unreadable
from freehold.storage.filesystem import check_filesystem
from freehold.storage.frontier import check_identity, read_run
from freehold.storage.path import RunPath
from freehold.storage.pin import Pin, look, names
from freehold.storage.platform import Inode
from freehold.storage.recognise import check_structure, overlay
from freehold.storage.siblings import WAL
from freehold.storage.transaction import snapshot
from freehold.storage.vfs.beside import BESIDE

_TRIES_MAX = 5


@contextmanager
def reading(path: RunPath, *, any_filesystem: bool = False) -> Iterator[apsw.Connection]:
    """Yield a recognised connection in one read transaction, on which only reading is allowed.

    Raises OwnedHere (registry) when this process owns the run: its owner is to be asked. Else as `pin` and `recognise`
    do, and Unavailable (database_busy) while an owner is just opening or closing the file.
    """
    platform.check_platform()
    check_sqlite()
    check_filesystem(path.folder, any_filesystem=any_filesystem)
    with ExitStack() as undo:
        yield _open(path, undo)


@contextmanager
def beside(path: RunPath) -> Iterator[apsw.Connection]:
    """Yield such a connection on a run that this very process owns, for what would hold its owner up too long.

    SQLite keeps the locks of both connections apart; nothing is opened or closed by hand. Raises RunNotFound, and as
    `reading` does.
    """
    try:
        inode = platform.inode_of(os.lstat(path.file))
    except FileNotFoundError:
        raise RunNotFound(f"there is no run file {path.file}; nothing was created") from None
    with ExitStack() as undo:
        try:
            db = _open_beside(path, inode, undo)
        except SqliteError as error:
            # The owner may have gone since: there is no -wal, and none can be created.
            raise _refusal(error, path) from None
        allow_reading(db)
        undo.callback(db.set_authorizer, None)
        yield db


def is_owned(db: apsw.Connection) -> bool:
    """Return whether the run had an owner when this connection was opened to read it. Beside nobody, owners are kept out until it ends."""
    return db.open_vfs == BESIDE


def _open(path: RunPath, undo: ExitStack) -> apsw.Connection:
    refusal: Error | None = None
    for _ in range(_TRIES_MAX):
        with ExitStack() as mine:
            pin = look(path)
            mine.callback(pin.close)
            try:
                db = _open_unowned(pin, mine) if pin.share() else _open_beside(path, pin.inode, mine)
            except SqliteError as error:
                # Between our two looks the owner may have gone, or come: there is no -wal, and none can be created.
                refusal = _refusal(error, path)
                continue
            allow_reading(db)
            mine.callback(db.set_authorizer, None)  # before the snapshot ends
            undo.push(mine.pop_all())
            return db
    assert refusal is not None
    raise refusal


def _open_unowned(pin: Pin, undo: ExitStack) -> apsw.Connection:
    db = undo.enter_context(overlay(pin))
    undo.enter_context(snapshot(db))
    return db


def _open_beside(path: RunPath, inode: Inode, undo: ExitStack) -> apsw.Connection:
    db = connect(path.file, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOFOLLOW, BESIDE)
    undo.callback(db.close)
    db.set_busy_timeout(BUSY_TIMEOUT_MS)
    harden(db)
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # if the owner has gone, the last to close would remove the -wal
    undo.enter_context(snapshot(db))
    check_structure(db, path)
    check_identity(read_run(db, path), path, inode)
    if not names(path, inode):
        raise Unavailable(f"{path.file} was replaced by another file just now; nothing was changed", code="changed_while_reading")
    return db


def _refusal(error: SqliteError, path: RunPath) -> Error:
    found = unreadable(error, path)
    if found.code == "no_descriptors":
        return found
    wal = path.sibling(WAL)
    if is_unopenable(error):
        # One that could not be opened, and may be read, has come since; or it comes and goes: it is looked at twice to see that it stays.
        comes = not all(os.path.lexists(wal) and not os.access(wal, os.R_OK) for _ in range(2))
        return _passing(path) if comes else found
    return found if os.path.lexists(wal) else _passing(path)


def _passing(path: RunPath) -> Unavailable:
    return Unavailable(f"an owner is opening or closing {path.file} just now; nothing was changed", code="database_busy")
