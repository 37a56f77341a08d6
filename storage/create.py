"""How a run file comes to be: whole, under a temporary name, in one transaction; then renamed into place.

Of any number of racers one wins. A crash at any point leaves a whole run, or at most a temporary file that no run id
can name and that the next creation of the same id removes.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import ExitStack
from itertools import count

import apsw

from freehold.schema.ddl import statements
from freehold.schema.errors import Error, OwnedElsewhere, Refused, RunExists, StorageFailed, Unavailable
from freehold.schema.ids import FILE_SUFFIX
from freehold.schema.limits import BUSY_TIMEOUT_MS
from freehold.schema.version import APPLICATION_ID, SCHEMA_VERSION
from freehold.storage import platform
from freehold.storage.clock import Clock
from freehold.storage.connection import SYNCHRONOUS_EXTRA, check_sqlite, harden, keep_foreign_keys
from freehold.storage.faults import SqliteError, unreadable
from freehold.storage.filesystem import check_filesystem
from freehold.storage.header import PAGE_SIZE, broken
from freehold.storage.journal import write_first_event
from freehold.storage.path import SIBLINGS, RunPath
from freehold.storage.pin import Pin
from freehold.storage.platform import Inode
from freehold.storage.registry import REGISTRY
from freehold.storage.transaction import immediate

_INCREMENTAL = 2
_TRIES_MAX = 100
_COUNTER = count(1)
_TEMPORARY = re.compile(r"\.(?P<id>[A-Za-z0-9][A-Za-z0-9._-]{0,127})\.[0-9]+-[0-9]+\.new")


def create(path: RunPath, *, project: str, props: str, clock: Clock, any_filesystem: bool = False, owner: object = None) -> Pin:
    """Create the run *path*, and its folder if that is missing; return it pinned, so that the creator owns it.

    Raises RunExists; Refused (leftover_files, network_filesystem, no_permission, bad_root); StorageFailed. After each
    of them nothing new is left but, perhaps, the folder.
    """
    platform.check_platform()
    check_sqlite()
    check_filesystem(path.folder, any_filesystem=any_filesystem)
    _check_free(path)
    try:
        _make_folder(path.folder)
        sweep(path.folder, path.id)
        with ExitStack() as undo:
            pin, temporary = _temporary(path, owner, undo)
            _fill(temporary, path, project, props, clock)
            _rename(temporary, path, pin.inode)
            undo.pop_all()
            return pin
    except OSError as error:
        raise _not_created(error, path) from None


def sweep(folder: str, run_id: str | None = None) -> list[str]:
    """Remove what creators that died left in *folder* (for one id, or all); return the names. One in use is left alone."""
    removed = []
    for name in os.listdir(folder):
        found = _TEMPORARY.fullmatch(name)
        if found and run_id in (None, found["id"]) and _remove_if_dead(os.path.join(folder, name)):
            removed.append(name)
    return removed


def _check_free(path: RunPath) -> None:
    leftover = [suffix for suffix in SIBLINGS if os.path.lexists(path.sibling(suffix))]
    # In this order: a rival's run appears before its siblings do.
    if os.path.lexists(path.file):
        raise _exists(path)
    if leftover:
        # SQLite would take them for the new run's own.
        names = [path.id + FILE_SUFFIX + suffix for suffix in leftover]
        raise Refused(
            f"{' and '.join(names)} in {path.folder} stand beside no run file; look at them and remove them. Nothing was created",
            code="leftover_files",
            files=names,
        )


def _make_folder(folder: str) -> None:
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for new in reversed(missing):
        os.makedirs(new, exist_ok=True)
        platform.sync_folder(os.path.dirname(new))


def _temporary(path: RunPath, owner: object, undo: ExitStack) -> tuple[Pin, str]:
    """Return a new empty file, ours by lock and registry, and its name. A sweeper may win it from us: then another one."""
    for _ in range(_TRIES_MAX):
        file = os.path.join(path.folder, f".{path.id}.{os.getpid()}-{next(_COUNTER)}.new")
        try:
            fd = platform.create_new(file)
        except FileExistsError:
            continue
        inode = platform.inode_of(os.fstat(fd))
        try:
            REGISTRY.own(inode, owner)
        except OwnedElsewhere:
            os.close(fd)
            continue
        pin = Pin(path, fd, inode, exclusive=True)
        with ExitStack() as mine:
            mine.callback(pin.close)
            mine.callback(_remove, file, inode)
            if platform.lock_exclusive(fd) and os.fstat(fd).st_nlink == 1:
                undo.push(mine.pop_all())
                return pin, file
    raise Unavailable("no temporary file could be kept from other creators of this run; nothing was created")


def _fill(temporary: str, path: RunPath, project: str, props: str, clock: Clock) -> None:
    try:
        db = apsw.Connection(temporary, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
        try:
            db.set_busy_timeout(BUSY_TIMEOUT_MS)
            harden(db)
            db.pragma("page_size", PAGE_SIZE)
            db.pragma("auto_vacuum", _INCREMENTAL)  # like the page size, only before the first table
            db.pragma("synchronous", SYNCHRONOUS_EXTRA)  # FULL does not sync the folder after the journal's removal
            keep_foreign_keys(db)
            with immediate(db):
                db.pragma("application_id", APPLICATION_ID)
                db.execute(statements())
                write_first_event(db, run_id=path.id, project=project, props=props, clock=clock)
                db.pragma("user_version", SCHEMA_VERSION)
            # After the COMMIT: inside a transaction it is ignored, before it a crash would leave a stub.
            if db.pragma("journal_mode", "wal") != "wal":
                raise broken("format", "could not be put into WAL mode", path)
        finally:
            db.close()
    except SqliteError as error:
        raise unreadable(error, path) from None


def _rename(temporary: str, path: RunPath, inode: Inode) -> None:
    _check_free(path)
    try:
        platform.rename_new(temporary, path.file)
    except FileExistsError:
        raise _exists(path) from None
    with ExitStack() as renamed:
        renamed.callback(_remove, path.file, inode)
        platform.sync_folder(path.folder)
        renamed.pop_all()


def _remove_if_dead(file: str) -> bool:
    """Remove one temporary file whose lock is free, which proves that its creator is gone."""
    with ExitStack() as undo:
        try:
            path_fd = platform.open_path(file)
            undo.callback(os.close, path_fd)
            inode = platform.inode_of(found := os.fstat(path_fd))
            if not platform.is_regular(found):
                return False
            REGISTRY.own(inode, None)
            undo.callback(REGISTRY.release, inode)
            fd = platform.reopen(path_fd)
            undo.callback(os.close, fd)
            if not platform.lock_exclusive(fd):
                return False
            return _remove(file, inode)
        except (OSError, OwnedElsewhere):
            return False  # another sweeper's, a living creator's, or not ours to remove


def _remove(file: str, inode: Inode) -> bool:
    """Remove *file* and its siblings, siblings first, if it is the very file that *inode* says; return whether."""
    try:
        if platform.inode_of(os.lstat(file)) != inode:
            return False
    except FileNotFoundError:
        return False
    for suffix in (*SIBLINGS, ""):
        if os.path.lexists(file + suffix):
            os.unlink(file + suffix)
    return True


def _exists(path: RunPath) -> RunExists:
    return RunExists(f"{path.file} exists already; it was left unchanged")


def _not_created(error: OSError, path: RunPath) -> Error:
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return Refused(f"{path.file} may not be created by this user; nothing was created", code="no_permission")
    if isinstance(error, FileExistsError | NotADirectoryError):
        return Refused(f"{path.folder} is not a folder; nothing was created", code="bad_root")
    return StorageFailed(
        f"{path.file} could not be created ({os.strerror(error.errno or 0)}); nothing of it was left",
        phase="begin",
        rolled_back=True,
        sqlite_extended_code=0,
    )
