r"""What the index records of a folder: every path below it, and of each file its size and sha256. Nothing of Freehold.

A path is recorded as text: bytes that are not UTF-8 as \xNN, and a backslash as two, so that no two paths become one.
"""

from __future__ import annotations

import errno
import os
import re
import sysconfig
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG

STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()
CHUNK_BYTES = 64 * 1024

Record = tuple[str, dict[str, str | int]]
"""What is recorded of one path: an event's name, and its data."""


def paths_below(folder: Path, root: Path) -> Iterator[str]:
    """Yield the path, relative to *folder*, of all that is no folder, and of each folder that cannot be read.

    Left out are *root*, whose files change while they would be read, and the packages that were installed into the
    standard library, which are not part of it.
    """
    apart = [root, *(folder / name for name in ("site-packages", "dist-packages") if folder == STANDARD_LIBRARY)]
    left_out = {(found.st_dev, found.st_ino) for found in (place.stat() for place in apart if place.is_dir())}
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        try:
            found = (folder / inside).stat()
            if (found.st_dev, found.st_ino) in left_out:
                continue
            with os.scandir(folder / inside) as entries:
                listed = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        except OSError:
            yield inside or "."
            continue
        for name, is_folder in listed:
            path = f"{inside}/{name}" if inside else name
            if is_folder:
                waiting.append(path)
            else:
                yield path


def look_at(folder: Path, path: str) -> Record:
    """Return what is recorded of one path: its size and sha256, or why it was skipped."""
    text = path_text(path)
    try:
        mode = (folder / path).lstat().st_mode
        if not S_ISREG(mode):
            # To open a FIFO would wait, and to open a device might do something.
            why = "a link" if S_ISLNK(mode) else "a folder that cannot be read" if S_ISDIR(mode) else "not a regular file"
            return "skipped", {"path": text, "why": why}
        size, digest = 0, sha256()
        with open(folder / path, "rb", buffering=0, opener=open_no_link) as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        return "skipped", {"path": text, "why": errno.errorcode.get(error.errno or 0, "OSError")}
    return "file", {"path": text, "size": size, "sha256": digest.hexdigest()}


def open_no_link(path: str, flags: int) -> int:
    """Open a file that was a regular one a moment ago, and neither follow nor wait if it is something else by now."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def path_text(path: str) -> str:
    """Return *path* as text that any reader can hold; different paths stay different."""
    return os.fsencode(path).replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def path_of(text: str) -> str:
    """Return the path that *text* was made from."""
    raw = re.sub(rb"\\(?:\\|x(..))", lambda found: bytes.fromhex(found[1].decode()) if found[1] else b"\\", text.encode())
    return os.fsdecode(raw)
