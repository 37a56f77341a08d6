"""How a connection to a run file is opened and what it may not do. The only place that sets pragmas for good."""

from __future__ import annotations

import os
from contextlib import ExitStack

import apsw

from freehold.schema.errors import Refused, StorageFailed, UnsupportedPlatform
from freehold.schema.limits import BUSY_TIMEOUT_MS
from freehold.schema.version import SQLITE_MIN
from freehold.storage import forks
from freehold.storage.faults import SqliteError, unreadable
from freehold.storage.header import broken
from freehold.storage.path import SIBLINGS, RunPath

SYNCHRONOUS_NORMAL, SYNCHRONOUS_FULL, SYNCHRONOUS_EXTRA = 1, 2, 3

# Triggers and views are off because version 1 has none: a forged one never runs. A name in double quotes is never text.
_SWITCHES = (
    (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
    (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
    (apsw.SQLITE_DBCONFIG_DQS_DML, 0),
    (apsw.SQLITE_DBCONFIG_DQS_DDL, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
)
_NEWER_SWITCHES = ("SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE", "SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE")


class Connection(apsw.Connection):
    """A connection that whoever forks knows of, from before it is opened until after it is closed."""

    _ticket: object = None

    def close(self, force: bool = False) -> None:  # noqa: FBT001, FBT002 - apsw's way
        """Close it; with *force* whatever error there is."""
        super().close(force)
        forks.leave_sqlite(self._ticket)


def connect(file: str, flags: int, vfs: str | None = None) -> Connection:
    """Return a new connection. No other place of ours opens one. Raises Refused (forked_process), and what SQLite raises."""
    ticket = forks.enter_sqlite()
    try:
        db = Connection(file, flags=flags, vfs=vfs)
    except BaseException:
        forks.leave_sqlite(ticket)
        raise
    db._ticket = ticket  # noqa: SLF001 - its own
    return db


def check_sqlite(found: str = apsw.sqlite_lib_version()) -> None:
    """Raise UnsupportedPlatform (unsupported_sqlite) for a SQLite that may lose a WAL."""
    if tuple(int(part) for part in found.split(".")[:3]) < SQLITE_MIN:
        needed = ".".join(str(part) for part in SQLITE_MIN)
        raise UnsupportedPlatform(
            f"SQLite {needed} or newer is needed, this is {found}; nothing was opened or created", code="unsupported_sqlite", found=found
        )


def harden(db: apsw.Connection) -> None:
    """Take from *db* what a forged schema could use against us, and what we never do."""
    for switch, value in _SWITCHES:
        db.config(switch, value)
    for name in _NEWER_SWITCHES:
        if (newer := getattr(apsw, name, None)) is not None:
            db.config(newer, 0)
    db.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
    db.pragma("cell_size_check", 1)
    db.pragma("mmap_size", 0)  # a file cut short under a mapping would end the process
    db.pragma("temp_store", 2)  # memory


def set_durable(db: apsw.Connection, *, durable: bool) -> None:
    """Let a COMMIT wait for the disk, or not. Outside of a transaction only: inside of one SQLite refuses it.

    Without waiting the -wal keeps its order and its checksums: a power loss takes the newest commits together, and never a
    part of one; the next COMMIT that waits, or the next checkpoint, makes all before it durable.
    """
    db.pragma("synchronous", SYNCHRONOUS_FULL if durable else SYNCHRONOUS_NORMAL)


def keep_foreign_keys(db: apsw.Connection) -> None:
    """Switch foreign keys on; inside a transaction SQLite would ignore that silently, so it is read back."""
    db.pragma("foreign_keys", 1)
    if db.pragma("foreign_keys") != 1:
        raise StorageFailed(
            "SQLite does not keep foreign keys; nothing was changed", phase="begin", rolled_back=True, sqlite_extended_code=0
        )


def open_live(path: RunPath, vfs: str | None = None) -> apsw.Connection:
    """Return the owner's connection on a recognised run file. It is closed again on every failure.

    Raises Refused (read_only), what `unreadable` says, and Damaged where the file is not in WAL mode.
    """
    check_sqlite()
    _check_writable(path)
    try:
        with ExitStack() as undo:
            db = connect(path.file, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW, vfs)
            undo.callback(db.close)
            db.set_busy_timeout(BUSY_TIMEOUT_MS)  # before the first statement that could meet a lock
            harden(db)
            set_durable(db, durable=True)
            keep_foreign_keys(db)
            db.wal_autocheckpoint(0)
            if db.pragma("journal_mode") != "wal":
                raise broken("format", "is not in WAL mode", path)
            undo.pop_all()
            return db
    except SqliteError as error:
        raise unreadable(error, path) from None


def _check_writable(path: RunPath) -> None:
    """Make sure that all of it may be written: else SQLite opens it for reading, and leaves a -wal and a -shm in the folder."""
    siblings = [path.sibling(suffix) for suffix in SIBLINGS]
    needed = [path.file, path.folder, *filter(os.path.lexists, siblings)]
    if not all(os.access(file, os.W_OK, effective_ids=True) for file in needed):
        raise Refused(f"{path.file} may not be written by this user, or its folder not; it was left unchanged", code="read_only")
