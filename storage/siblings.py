"""What SQLite leaves beside a run file, opened as carefully as the run file itself, and the rules for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from freehold.schema.errors import Refused
from freehold.storage import platform
from freehold.storage.header import broken
from freehold.storage.path import RunPath
from freehold.storage.pin import unopened

WAL, JOURNAL, SHM = "-wal", "-journal", "-shm"


@contextmanager
def open_wal(path: RunPath) -> Iterator[int | None]:
    """Yield a descriptor on the -wal that an owner left behind, or None where there is none or an empty one.

    Only for who keeps owners out by the flock. It is closed at the end, before a live connection opens.
    Raises Refused (not_a_file, hard_link, no_permission); Damaged (leftover_journal): a run is in WAL mode from its
    creation on, so a rollback journal belongs to something else, and SQLite would play it back over the run.
    """
    with ExitStack() as undo:
        for suffix in (SHM, JOURNAL, WAL):
            path_fd = _open_path(path, suffix)
            if path_fd is None:
                continue
            undo.callback(os.close, path_fd)
            if suffix == JOURNAL and os.fstat(path_fd).st_size:
                raise broken("leftover_journal", "has a rollback journal beside it, which is not ours", path)
            if suffix == WAL and os.fstat(path_fd).st_size:
                try:
                    wal = platform.reopen(path_fd)
                except OSError as error:
                    raise unopened(error, path) from None
                undo.callback(os.close, wal)
                yield wal
                return
        yield None


def _open_path(path: RunPath, suffix: str) -> int | None:
    file = path.sibling(suffix)
    try:
        fd = platform.open_path(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unopened(error, path) from None
    found = os.fstat(fd)
    if platform.is_regular(found) and found.st_nlink <= 1:
        return fd
    os.close(fd)
    if not platform.is_regular(found):
        raise Refused(f"{file} is not a plain file; it was left unchanged", code="not_a_file")
    raise Refused(f"{file} has several names (hard links); it was left unchanged", code="hard_link")
