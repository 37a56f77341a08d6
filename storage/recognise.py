"""Telling what a file is without touching it: nothing in its folder is written, created, locked by SQLite or dated anew.

Siblings first, then the header by hand, then SQLite on a copy-on-write overlay: ids, structure, foreign keys, and the
newest rows together with the run row in one transaction. Never a repair, never a migration.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import apsw

from freehold.schema.errors import Error, Unavailable
from freehold.schema.limits import FOREIGN_KEYS_WHOLE_BYTES
from freehold.schema.rows import RunRow
from freehold.storage.connection import check_sqlite, connect, harden
from freehold.storage.faults import SqliteError, is_unopenable, unreadable
from freehold.storage.frontier import check_frontier, check_identity, read_run
from freehold.storage.header import HEADER_BYTES, broken, check_header, check_header_beside_wal, check_ids
from freehold.storage.manifest import compare
from freehold.storage.path import RunPath
from freehold.storage.pin import Pin, unopened
from freehold.storage.siblings import WAL, open_wal
from freehold.storage.transaction import snapshot
from freehold.storage.vfs.overlay import OVERLAY, OVERLAYS

Mark = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a recognised file says of itself: its run row, its last event's number, and its schema cookie."""

    run: RunRow
    last_seq: int
    schema_cookie: int


def recognise(pin: Pin) -> Recognised:
    """Return what the pinned file, whose lock we have, says of itself. After this a live connection may open.

    Raises Refused (not_a_run, newer_version, older_version, incomplete_version, and what concerns siblings: not_a_file,
    hard_link, no_permission); Damaged (damaged with `rule`, partial, another_run, malformed_record with `table` and
    `column`); Unavailable (changed_while_reading); StorageFailed.
    """
    with _overlay(pin) as (_, recognised):
        return recognised


@contextmanager
def overlay(pin: Pin) -> Iterator[apsw.Connection]:
    """Yield a connection that reads what `recognise` has recognised, and whose writes go nowhere.

    Raises as `recognise` does, and Unavailable (changed_while_reading) at the end if the file changed meanwhile.
    """
    with _overlay(pin) as (db, _):
        yield db


def check_structure(db: apsw.Connection, path: RunPath) -> None:
    """Make sure that *db* is a run file of this version: ids, then the exact structure."""
    check_ids(db.pragma("application_id") & 0xFFFFFFFF, db.pragma("user_version"), path)
    try:
        compare(db, path)
    except UnicodeDecodeError:  # its text quotes what it could not read
        raise broken("structure", "holds a schema that is not UTF-8", path) from None


@contextmanager
def _overlay(pin: Pin) -> Iterator[tuple[apsw.Connection, Recognised]]:
    check_sqlite()
    with ExitStack() as undo:
        wal = undo.enter_context(open_wal(pin.path))
        fds = {"": pin.fd} if wal is None else {"": pin.fd, WAL: wal}
        before = _marks(fds)
        size = before[""][0]
        try:
            check = check_header if wal is None else check_header_beside_wal
            check(os.pread(pin.fd, HEADER_BYTES, 0), size, pin.path)
            db = connect(undo.enter_context(OVERLAYS.over(fds)), apsw.SQLITE_OPEN_READWRITE, OVERLAY)
            undo.callback(db.close)
            recognised = _look(db, pin, sum(mark[0] for mark in before.values()))
        except (SqliteError, OSError, Error) as error:
            if _marks(fds) != before:
                raise _changed(pin.path) from None
            raise _as_ours(error, pin.path) from None
        if _marks(fds) != before:
            raise _changed(pin.path)
        yield db, recognised
        if _marks(fds) != before:
            raise _changed(pin.path)


def _look(db: apsw.Connection, pin: Pin, size: int) -> Recognised:
    db.pragma("locking_mode", "exclusive")  # WAL then needs no shared memory
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # else closing would copy a whole -wal into memory
    harden(db)
    with snapshot(db):
        check_structure(db, pin.path)
        if size <= FOREIGN_KEYS_WHOLE_BYTES and db.execute("PRAGMA foreign_key_check").fetchall():
            raise broken("foreign_keys", "holds rows that name rows which are not there", pin.path)
        run = read_run(db, pin.path)
        check_identity(run, pin.path, pin.inode)
        seq = check_frontier(db, run, pin.path)
        return Recognised(run, seq, db.pragma("schema_version"))


def _marks(fds: Mapping[str, int]) -> dict[str, Mark]:
    """Return size, time of change and number of names of every file under the overlay."""
    found = {suffix: os.fstat(fd) for suffix, fd in fds.items()}
    return {suffix: (stat.st_size, stat.st_mtime_ns, stat.st_nlink) for suffix, stat in found.items()}


def _as_ours(error: Exception, path: RunPath) -> Error:
    if isinstance(error, Error):
        return error
    if isinstance(error, OSError):
        return unopened(error, path)
    return broken("wal_version", "has a -wal of another version beside it", path) if is_unopenable(error) else unreadable(error, path)


def _changed(path: RunPath) -> Unavailable:
    return Unavailable(f"{path.file} changed while it was being read; it was left alone", code="changed_while_reading")
