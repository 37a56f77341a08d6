"""Everything observable about a folder, to show that a refusal or a look has changed nothing: also times and modes."""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from freehold.schema.ids import is_socket_name


class Entry(NamedTuple):
    """One name of a folder. A link or FIFO has no bytes of its own."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    mode: int
    bytes: str | None


def snapshot(folder: Path) -> dict[str, Entry]:
    """Return every name below *folder*, and the folder itself as ".", without changing an access time."""
    return {".": _entry(folder), **{str(path.relative_to(folder)): _entry(path) for path in sorted(folder.rglob("*"))}}


def run_files(folder: Path) -> list[str]:
    """Return the names in a folder of runs, without those of the host file and of hosts' sockets, which lie beside them."""
    return sorted(file.name for file in folder.iterdir() if not (file.name.startswith(".host.sqlite") or is_socket_name(file.name)))


def descriptors() -> int:
    """Return how many descriptors this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def _entry(path: Path) -> Entry:
    found = path.lstat()
    content = sha256(_read(path)).hexdigest() if stat.S_ISREG(found.st_mode) else None
    # A folder's size is the file system's own affair.
    size = -1 if stat.S_ISDIR(found.st_mode) else found.st_size
    return Entry(found.st_ino, size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode, content)


def _read(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NOATIME)
    try:
        return os.pread(fd, path.stat().st_size, 0)
    finally:
        os.close(fd)
