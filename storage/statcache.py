"""What files held when they were read last, so that an unchanged one is not read again. Disposable, and never evidence.

It is a file beside the runs that may be deleted at any time. One that is damaged, foreign or busy is no error: what
cannot be looked up is read by hand, what cannot be kept is forgotten. Whether the objects it names are in a run, only
that run can say.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import apsw

from freehold.schema.limits import (
    COARSE_GRAIN_NS,
    INLINE_BYTES_MAX,
    STAT_CACHE_BATCH_ENTRIES,
    STAT_CACHE_ENTRIES_MAX,
    STAT_CACHE_EXPECTED,
    TIMESTAMP_GRAIN_NS,
)
from freehold.schema.version import STAT_CACHE_ID
from freehold.storage import forks, platform
from freehold.storage.clock import Clock
from freehold.storage.connection import connect, harden
from freehold.storage.faults import SqliteError
from freehold.storage.faults import is_busy as busy
from freehold.storage.registry import REGISTRY, OwnedHere
from freehold.storage.transaction import immediate

FILE_NAME = ".stat-cache.sqlite"
"""A name that no run id can have."""

_VERSION = 1
_NORMAL = 1
_BUSY_MS = 50
_HASH_BYTES = 32
_COARSE_STEP_NS = 10_000_000
_FILE = struct.Struct(">QQ")
_SEEN = struct.Struct(">QqqI")
_Row = tuple[bytes, bytes, int]
"""As what a file was seen, its content key, and a checksum."""
# The newest rows have the highest ids: a row that is written anew gets a new one.
_TABLE = (
    "CREATE TABLE known (id INTEGER PRIMARY KEY, file BLOB NOT NULL UNIQUE, seen BLOB NOT NULL, content BLOB NOT NULL, "
    "sum INTEGER NOT NULL) STRICT"
)
_FIND = f"SELECT file, seen, content, sum FROM known WHERE file IN ({', '.join('?' * STAT_CACHE_EXPECTED)})"  # noqa: S608 - nothing but question marks
_KEEP = "INSERT OR REPLACE INTO known (file, seen, content, sum) VALUES (?, ?, ?, ?)"
_FORGET = "DELETE FROM known WHERE id <= (SELECT max(id) FROM known) - ?"


class StatCache:
    """The stat cache of one folder of runs, for one scan. What it learns is saved now and then, and when it is closed.

    A file is known by device, inode, size, both times and mode. One whose time is not older than the scan is not kept:
    it may be written again within the same tick of its clock, and would look the same.
    """

    def __init__(self, folder: str, clock: Clock, *, entries_max: int = STAT_CACHE_ENTRIES_MAX) -> None:
        self._started_ns = clock.now_ms() * 1_000_000
        self._entries_max = entries_max
        self._new: dict[bytes, tuple[bytes, bytes, bytes, int]] = {}
        self._expected: dict[bytes, _Row | None] = {}
        self._undo = ExitStack()
        self._db = self._open(os.path.join(folder, FILE_NAME))
        forks.watch(self)

    def find(self, found: os.stat_result) -> bytes | None:
        """Return the content key of a file that is still what it was, or None."""
        file, seen = _key(found)
        row = self._expected[file] if file in self._expected else self._look_up([file])[file]
        if row is None or row[0] != seen or row[2] != _sum(file, seen, row[1]):
            return None
        content = row[1]
        return content if len(content) == _key_bytes(found.st_size) else None

    def expect(self, device: int, inodes: Sequence[int]) -> None:
        """Look up several files that are asked for next; no more than STAT_CACHE_EXPECTED."""
        self._expected = self._look_up([_FILE.pack(device, inode) for inode in inodes])

    def _look_up(self, files: list[bytes]) -> dict[bytes, _Row | None]:
        """Return what is kept of each file, unchecked."""
        found: dict[bytes, _Row | None] = dict.fromkeys(files)
        if self._db is None:
            return found
        try:
            rows: Any = self._db.execute(_FIND, files + [None] * (STAT_CACHE_EXPECTED - len(files))).fetchall()
        except SqliteError as error:
            self._failed(error)
        else:
            found.update({file: (seen, content, sum_) for file, seen, content, sum_ in rows})
        return found

    def keep(self, found: os.stat_result, content: bytes) -> None:
        """Remember the content key of a file that was read just now, if its times tell it from every later state."""
        if self._db is None or self._is_racy(found) or len(content) != _key_bytes(found.st_size):
            return
        file, seen = _key(found)
        self._new[file] = (file, seen, content, _sum(file, seen, content))
        if len(self._new) >= STAT_CACHE_BATCH_ENTRIES:
            self.save()

    def save(self) -> None:
        """Write what was learned, also when no new root came of it. While another process writes, it is forgotten."""
        new, self._new = self._new, {}
        if self._db is None or not new:
            return
        try:
            with immediate(self._db):
                self._db.executemany(_KEEP, list(new.values()))
                self._db.execute(_FORGET, (self._entries_max,))
        except SqliteError as error:
            self._failed(error)

    def close(self) -> None:
        """Save, and give the file back. Closing twice changes nothing."""
        self.save()
        self._db = None
        self._undo.close()

    def forked(self) -> None:
        """In a forked child: never use, never close what the parent goes on using."""
        if self._db is not None:
            platform.keep_for_ever(self._db)
        self._db = None
        self._undo.pop_all()

    def _open(self, file: str) -> apsw.Connection | None:
        """Return a connection on the file, which is made if it is missing; None where there can be none."""
        with ExitStack() as undo:
            try:
                self._pin(file, undo)
                db = connect(file, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
                undo.callback(db.close)
                _prepare(db)
            except (OSError, SqliteError, OwnedHere):
                return None  # not ours to use: a link, a folder, no permission, no room, busy
            self._undo = undo.pop_all()
            return db

    def _pin(self, file: str, undo: ExitStack) -> None:
        """Take a place for the file in the registry, so that no scan of this process opens and closes it under SQLite."""
        try:
            os.close(platform.create_new(file))
        except FileExistsError:
            if not platform.is_regular(os.lstat(file)):
                raise
        path_fd = platform.open_path(file)
        undo.callback(os.close, path_fd)
        inode = platform.inode_of(found := os.fstat(path_fd))
        if not platform.is_regular(found) or found.st_nlink != 1:
            raise FileExistsError(file)
        REGISTRY.enter(inode, lambda: platform.reopen(path_fd))
        undo.callback(REGISTRY.leave, inode)

    def _failed(self, error: SqliteError) -> None:
        """Go on without what a busy file holds; begin anew with a damaged one."""
        if self._db is None or busy(error):
            return
        try:
            _reset(self._db)
        except SqliteError:
            self._db = None  # closed with the rest

    def _is_racy(self, found: os.stat_result) -> bool:
        coarse = not (found.st_mtime_ns % _COARSE_STEP_NS or found.st_ctime_ns % _COARSE_STEP_NS)
        grain_ns = COARSE_GRAIN_NS if coarse else TIMESTAMP_GRAIN_NS
        return max(found.st_mtime_ns, found.st_ctime_ns) >= self._started_ns - grain_ns

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _prepare(db: apsw.Connection) -> None:
    """Make *db* ours, empty unless it was ours and sound."""
    db.set_busy_timeout(_BUSY_MS)
    try:
        ours = _is_ours(db)
    except SqliteError as error:
        if busy(error):
            raise
        ours = False
    if not ours:
        _reset(db)
    harden(db)
    db.pragma("synchronous", _NORMAL)


def _is_ours(db: apsw.Connection) -> bool:
    if (db.pragma("application_id"), db.pragma("user_version")) != (STAT_CACHE_ID, _VERSION):
        return False
    return [row for (row,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")] == [_TABLE]


def _reset(db: apsw.Connection) -> None:
    """Empty the file whatever is in it, under SQLite's own locks, so that other processes that use it see it happen."""
    db.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
    db.limit(apsw.SQLITE_LIMIT_ATTACHED, 1)  # VACUUM writes to a file of its own
    try:
        db.execute("VACUUM")
    finally:
        db.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
        db.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 0)
    db.pragma("journal_mode", "wal")
    with immediate(db):
        if not _is_ours(db):  # another process was faster
            db.pragma("application_id", STAT_CACHE_ID)
            db.execute(_TABLE)
            db.pragma("user_version", _VERSION)


def _key(found: os.stat_result) -> tuple[bytes, bytes]:
    """Return which file it is, and what it was seen as."""
    seen = _SEEN.pack(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode)
    return _FILE.pack(found.st_dev, found.st_ino), seen


def _key_bytes(size: int) -> int:
    """Return how long the content key of a file of *size* bytes is: its bytes themselves, or a hash."""
    return size if size <= INLINE_BYTES_MAX else _HASH_BYTES


def _sum(file: bytes, seen: bytes, content: bytes) -> int:
    """Return a row's checksum. SQLite would hand out a flipped bit as it is."""
    return zlib.crc32(file + seen + content)
