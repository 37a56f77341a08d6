"""Entries written into an empty folder that only we may enter: files, then links, then the modes of the folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from freehold.schema.limits import SYNC_EACH_ENTRIES_MAX
from freehold.storage import platform
from freehold.storage.entries import Out
from freehold.storage.folders import Descent, Naming, create_file, raw
from freehold.storage.objects import malformed

Read = Callable[[Out], Iterable[bytes]]
"""The bytes of a file, in pieces."""


def write_tree(top_fd: int, entries: Sequence[Out], read: Read, *, durable: bool) -> None:
    """Write all *entries*. Raises OSError, what *read* raises, Damaged where that is not the size."""
    sync_each = durable and len(entries) <= SYNC_EACH_ENTRIES_MAX
    with Descent(top_fd) as descent:
        for out in entries:
            dir_fd = descent.at(out.parts[:-1])
            if out.kind == "directory":
                with Naming(out.parts):
                    os.mkdir(raw(out.parts[-1]), 0o700, dir_fd=dir_fd)
            elif out.kind == "file":
                write_file(out.parts[-1], dir_fd, out, read, sync=sync_each)
        # Nothing is written through a link that an entry has made: by now everything else is.
        for out in entries:
            if out.kind == "link":
                make_link(out.parts[-1], descent.at(out.parts[:-1]), out)
        # From the leaves up: a folder may take away our own right to enter it.
        for out in reversed(entries):
            if out.kind == "directory":
                fd = descent.at(out.parts)
                os.fchmod(fd, out.mode)
                if sync_each:
                    os.fsync(fd)
    if sync_each:
        os.fsync(top_fd)
    elif durable:
        platform.sync_filesystem(top_fd)


def write_file(name: str, dir_fd: int, out: Out, read: Read, *, sync: bool) -> None:
    """Write one file under a name that is free. Raises as `write_tree` does."""
    with Naming(out.parts):
        fd = create_file(name, dir_fd)
    try:
        written = 0
        for piece in read(out):
            with Naming(out.parts):
                _write(fd, piece)
            written += len(piece)
        if written != out.size:
            raise malformed()
        with Naming(out.parts):
            os.fchmod(fd, out.mode)
            if sync:
                os.fsync(fd)
    finally:
        os.close(fd)


def make_link(name: str, dir_fd: int, out: Out) -> None:
    """Make one link under a name that is free; where it points to is not looked at."""
    with Naming(out.parts):
        os.symlink(raw(out.target), raw(name), dir_fd=dir_fd)


def _write(fd: int, piece: bytes) -> None:
    left = memoryview(piece)
    while left:
        left = left[os.write(fd, left) :]
