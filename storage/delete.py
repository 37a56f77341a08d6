"""Deleting a run for good, so that a crash in the middle leaves the run whole or gone, and never a part of it."""

from __future__ import annotations

import os

from freehold.schema.errors import Damaged, Error, Refused
from freehold.schema.version import APPLICATION_ID
from freehold.storage import platform
from freehold.storage.clock import Clock
from freehold.storage.header import HEADER_BYTES
from freehold.storage.path import SIBLINGS, RunPath
from freehold.storage.pin import Pin, pin
from freehold.storage.recognise import recognise
from freehold.storage.store import Store

_MAGIC = b"SQLite format 3\x00"


def delete(path: RunPath, clock: Clock) -> None:
    """Delete the run at *path*, which nobody owns.

    A healthy run is first closed cleanly, so that one file holds all of it. A damaged one is deleted as it is, if its
    header says that it is a run of ours. Raises RunNotFound; OwnedElsewhere; Refused (not_a_run, no_permission, …) of
    a file that is not ours to delete; it was left unchanged.
    """
    held = pin(path, exclusive=True)
    try:
        if _is_whole(held) and any(os.path.lexists(path.sibling(suffix)) for suffix in SIBLINGS):
            Store(held, clock).close(clean=True, keep_lock=True)
        _remove(path)
    finally:
        held.close()


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


def _remove(path: RunPath) -> None:
    """Remove siblings first: a -wal without its file would become part of the next run of that name."""
    for name in [*(path.sibling(suffix) for suffix in SIBLINGS), path.file]:
        try:
            os.unlink(name)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise _not_removed(path, error) from None
    platform.sync_folder(path.folder)


def _not_removed(path: RunPath, error: OSError) -> Error:
    return Refused(f"{path.file} may not be removed ({os.strerror(error.errno or 0)})", code="no_permission")
