"""How a run file comes to be: whole, under a temporary name, in one transaction; then renamed into place.

Of any number of racers one wins. A crash at any point leaves a whole run, or at most a temporary file that no run id
can name and that the next creation of the same id removes.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import ExitStack, suppress
from itertools import count

import apsw

from freehold.schema.ddl import statements
from freehold.schema.errors import Error, Executed, OwnedElsewhere, Refused, RunExists, StorageFailed, Unavailable
from freehold.schema.ids import FILE_SUFFIX
from freehold.schema.limits import BUSY_TIMEOUT_MS
from freehold.schema.version import APPLICATION_ID, SCHEMA_VERSION
from freehold.storage import platform
from freehold.storage.clock import Clock
from freehold.storage.connection import SYNCHRONOUS_EXTRA, check_sqlite, connect, harden, keep_foreign_keys
from freehold.storage.disk import DISK, Disk
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
_TEMPORARY = re.compile(r"\.(?P<id>[A-Za-z0-9][A-Za-z0-9._-]{0,127})\.[0-9]+-[0-9]+\.new(?P<sibling>-journal|-wal|-shm)?")


def create(
    path: RunPath, *, project: str, props: str, clock: Clock, any_filesystem: bool = False, owner: object = None, disk: Disk = DISK
) -> Pin:
    """Create the run *path*, and its folder if that is missing; return it pinned, so that the creator owns it.

    Raises RunExists; Refused (leftover_files, network_filesystem, no_permission, bad_root); StorageFailed. After each
    of them nothing new is left but, perhaps, the folder, and on a disk that refuses also to remove, a temporary file; only
    a StorageFailed whose `executed` is unknown leaves the run.
    """
    platform.check_platform()
    check_sqlite()
    check_filesystem(path.folder, any_filesystem=any_filesystem)
    _check_free(path)
    try:
        _make_folder(path.folder, disk)
        sweep(path.folder, path.id, disk)
        with ExitStack() as undo:
            pin, temporary = _temporary(path, owner, undo, disk)
            _fill(temporary, path, project, props, clock, disk)
            _rename(temporary, path, pin.inode, disk)
            undo.pop_all()
            return pin
    except OSError as error:
        raise _not_created(error, path) from None


def sweep(folder: str, run_id: str | None = None, disk: Disk = DISK) -> list[str]:
    """Remove what creators that died left in *folder* (for one id, or all); return the names. One in use is left alone."""
    removed = []
    for name in os.listdir(folder):
        found = _TEMPORARY.fullmatch(name)
        if found and run_id in (None, found["id"]):
            remove = _remove_if_alone if found["sibling"] else _remove_if_dead
            if remove(os.path.join(folder, name), disk):
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


def _make_folder(folder: str, disk: Disk) -> None:
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for new in reversed(missing):
        disk.make_folder(new)
        disk.sync_folder(os.path.dirname(new))


def _temporary(path: RunPath, owner: object, undo: ExitStack, disk: Disk) -> tuple[Pin, str]:
    """Return a new empty file, ours by lock and registry, and its name. A sweeper may win it from us: then another one."""
    for _ in range(_TRIES_MAX):
        file = os.path.join(path.folder, f".{path.id}.{os.getpid()}-{next(_COUNTER)}.new")
        try:
            fd = disk.create_new(file)
        except FileExistsError:
            continue
        inode = platform.inode_of(os.fstat(fd))
        try:
            REGISTRY.own(inode, owner)
        except OwnedElsewhere:
            # A sweeper's, who removes it too; or its number was just another file's, whose place is given back in a moment.
            try:
                _remove(file, inode, disk)
            finally:
                os.close(fd)
            continue
        pin = Pin(path, fd, inode, exclusive=True)
        with ExitStack() as mine:
            mine.callback(pin.close)
            mine.callback(_remove, file, inode, disk)
            if platform.lock_exclusive(fd) and os.fstat(fd).st_nlink == 1:
                undo.push(mine.pop_all())
                return pin, file
    raise Unavailable("no temporary file could be kept from other creators of this run; nothing was created")


def _fill(temporary: str, path: RunPath, project: str, props: str, clock: Clock, disk: Disk) -> None:
    try:
        db = connect(temporary, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW, disk.vfs)
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


def _rename(temporary: str, path: RunPath, inode: Inode, disk: Disk) -> None:
    _check_free(path)
    try:
        disk.rename_new(temporary, path.file)
    except FileExistsError:
        raise _exists(path) from None
    try:
        disk.sync_folder(path.folder)
    except BaseException as error:
        if not _took_back(path.file, inode, disk) and isinstance(error, OSError):
            raise _storage_failed("was created, but may be gone after a power loss", error, path, "unknown") from None
        raise


def _took_back(file: str, inode: Inode, disk: Disk) -> bool:
    """Remove what was renamed into place but is not durable there; return whether that worked."""
    try:
        return _remove(file, inode, disk)
    except OSError:
        return False


def _remove_if_dead(file: str, disk: Disk) -> bool:
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
            return _remove(file, inode, disk)
        except (OSError, OwnedElsewhere):
            return False  # another sweeper's, a living creator's, or not ours to remove


def _remove_if_alone(sibling: str, disk: Disk) -> bool:
    """Remove what a power loss has left of a temporary file whose own name it lost. A living creator's file is always there."""
    if os.path.lexists(sibling.removesuffix("-" + sibling.rpartition("-")[2])):
        return False
    try:
        disk.remove(sibling)
    except OSError:
        return False  # gone with its file just now, or not ours to remove
    return True


def _remove(file: str, inode: Inode, disk: Disk) -> bool:
    """Remove *file* and its siblings, siblings first, if it is the very file that *inode* says; return whether."""
    try:
        if platform.inode_of(os.lstat(file)) != inode:
            return False
    except FileNotFoundError:
        return False
    for suffix in (*SIBLINGS, ""):
        if os.path.lexists(file + suffix):
            with suppress(FileNotFoundError):  # another sweeper was faster
                disk.remove(file + suffix)
    return True


def uncreate(pin: Pin, disk: Disk = DISK) -> None:
    """Take a creation back that nobody has owned yet: remove the file, and give back lock and place.

    Raises StorageFailed when it cannot be removed; then the run exists.
    """
    try:
        if _remove(pin.path.file, pin.inode, disk):
            disk.sync_folder(pin.path.folder)
    except OSError as error:
        raise StorageFailed(
            f"{pin.path.file} was created and could be neither owned nor removed ({os.strerror(error.errno or 0)})",
            executed="yes",
            phase="begin",
            rolled_back=False,
            sqlite_extended_code=0,
        ) from None
    finally:
        pin.close()


def _exists(path: RunPath) -> RunExists:
    return RunExists(f"{path.file} exists already; open() or ensure() takes it as it is. It was left unchanged")


def _not_created(error: OSError, path: RunPath) -> Error:
    if (none_left := platform.no_descriptors(error)) is not None:
        return none_left
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return Refused(f"{path.file} may not be created by this user; nothing was created", code="no_permission")
    if isinstance(error, FileExistsError | NotADirectoryError | FileNotFoundError):
        return Refused(f"{path.folder} is not a folder, and none can be made there; nothing was created", code="bad_root")
    return _storage_failed("could not be created, and there is no run of this name", error, path, "no")


def _storage_failed(what: str, error: OSError, path: RunPath, executed: Executed) -> StorageFailed:
    text = f"{path.file} {what} ({os.strerror(error.errno or 0)})"
    return StorageFailed(text, executed=executed, phase="begin", rolled_back=executed == "no", sqlite_extended_code=0)
