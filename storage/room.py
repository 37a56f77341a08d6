"""Whether a disk has room for what is to be written, asked before any of it is."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from freehold.storage.entries import Out


def check_room(dir_fd: int, entries: Iterable[Out], target: str) -> None:
    """Raise OSError (ENOSPC) where the disk of a folder has less room than new *entries* take. Others may use it up later all the same."""
    disk = os.fstatvfs(dir_fd)
    free = disk.f_bfree if os.geteuid() == 0 else disk.f_bavail
    count = size = 0
    for out in entries:
        count, size = count + 1, size + out.size
    # A file system that does not count says 0 for all there is.
    if (disk.f_blocks and size > free * disk.f_frsize) or (disk.f_files and count > disk.f_ffree):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)
