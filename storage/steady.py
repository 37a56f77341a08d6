"""A file read from one descriptor, and whether it stayed the same meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from freehold.schema.errors import Unavailable
from freehold.schema.limits import CHUNK_BYTES
from freehold.schema.skipped import Parts
from freehold.storage import platform
from freehold.storage.folders import Naming, open_file


class Reader:
    """One file's bytes, in pieces of CHUNK_BYTES. What came out counts only once `settled` has returned."""

    def __init__(self, name: str, dir_fd: int, parts: Parts) -> None:
        self._parts = parts
        with Naming(parts):
            self._fd = open_file(name, dir_fd)
        self.before = os.fstat(self._fd)
        self._bytes = 0
        self._after: os.stat_result | None = None
        if not platform.is_regular(self.before):
            self.close()
            raise self._changed()

    def __iter__(self) -> Iterator[bytes]:
        """Yield the bytes. Raises Unavailable (changed_while_reading) at their end if they may belong to two different files."""
        left = self.before.st_size
        while left > 0:
            with Naming(self._parts):
                piece = os.read(self._fd, min(left, CHUNK_BYTES))
            if not piece:
                break
            left -= len(piece)
            self._bytes += len(piece)
            yield piece
        self.settled()

    def settled(self) -> os.stat_result:
        """Return what the file was before and after. Raises Unavailable (changed_while_reading)."""
        if self._after is not None:
            return self._after
        after = os.fstat(self._fd)
        if identity(after) != identity(self.before) or self._bytes != after.st_size:
            raise self._changed()
        self._after = after
        return after

    def close(self) -> None:
        """Give the descriptor back. Closing twice changes nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _changed(self) -> Unavailable:
        return Unavailable(f"{'/'.join(self._parts)} was changed while it was read; nothing of it was kept", code="changed_while_reading")


def identity(found: os.stat_result) -> tuple[int, int, int, int, int, int]:
    """Return what a file is known by. While it stays equal, nobody has written to the file, but in the same tick of its clock."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode
