"""Deleting a run for good, so that a crash in the middle leaves the run whole or gone, and never a part of it."""

from __future__ import annotations

import errno
import os

from freehold.schema.errors import Damaged, Error, Executed, Refused, StorageFailed
from freehold.schema.version import APPLICATION_ID
from freehold.storage import platform
from freehold.storage.clock import Clock
from freehold.storage.disk import DISK, Disk
from freehold.storage.faults import Ended, Poisoned
from freehold.storage.header import HEADER_BYTES
from freehold.storage.path import SIBLINGS, RunPath
from freehold.storage.pin import Pin, pin
from freehold.storage.recognise import recognise
from freehold.storage.store import Store

_MAGIC = b"SQLite format 3\x00"


def delete(path: RunPath, clock: Clock, disk: Disk = DISK) -> None:
    """Delete the run at *path*, which nobody owns.

    A healthy run is first closed cleanly, so that one file holds all of it. A damaged one is deleted as it is, if its
    header says that it is a run of ours. Raises RunNotFound; OwnedElsewhere; Refused (not_a_run, no_permission, …) of
    a file that is not ours to delete; it was left unchanged. StorageFailed, whose `executed` says whether it is gone.
    """
    held = pin(path, exclusive=True)
    try:
        if _is_whole(held) and any(os.path.lexists(path.sibling(suffix)) for suffix in SIBLINGS):
            _close_cleanly(held, clock, disk)
        _remove(path, disk)
    finally:
        held.close()


def _close_cleanly(held: Pin, clock: Clock, disk: Disk) -> None:
    try:
        Store(held, clock, vfs=disk.vfs).close(clean=True, keep_lock=True)
    except (Ended, Poisoned) as end:
        raise end.error from None


def _is_whole(held: Pin) -> bool:
    """Return whether the file is a whole run; raise what it is if it is none of ours."""
    try:
        recognise(held)
    except (Damaged, Refused):
        if not _is_ours(held):
            raise
        return False
    return True


def _is_ours(held: Pin) -> bool:
    head = os.pread(held.fd, HEADER_BYTES, 0)
    return head[:16] == _MAGIC and head[68:72] == APPLICATION_ID.to_bytes(4, "big")


def _remove(path: RunPath, disk: Disk) -> None:
    """Remove siblings first, and for good: a -wal without its file would stand in the way of the next run of that name."""
    try:
        for suffix in SIBLINGS:
            if os.path.lexists(path.sibling(suffix)):
                disk.remove(path.sibling(suffix))
        # SQLite does not sync its own removal of the -wal; without this a power loss could bring it back alone.
        disk.sync_folder(path.folder)
        disk.remove(path.file)
    except OSError as error:
        raise _not_removed(path, error) from None
    try:
        disk.sync_folder(path.folder)
    except OSError as error:
        raise _failed(f"{path.file} was removed, but may be back after a power loss", error, "unknown") from None


def _not_removed(path: RunPath, error: OSError) -> Error:
    if (none_left := platform.no_descriptors(error)) is not None:
        return none_left
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return Refused(f"{path.file} may not be removed by this user; the run is still there", code="no_permission")
    return _failed(f"{path.file} could not be removed; the run is still there", error, "no")


def _failed(what: str, error: OSError, executed: Executed) -> StorageFailed:
    text = f"{what} ({os.strerror(error.errno or 0)})"
    return StorageFailed(text, executed=executed, phase="commit", rolled_back=executed == "no", sqlite_extended_code=0)
