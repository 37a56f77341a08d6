"""A disk that fails where it is told to: the nth call fails once, or it and all after it, or the disk is full, or a write is cut short.

SQLite learns the code of an error from its extended result; without one it would take every failure for another.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from itertools import count
from typing import Literal, Self

import apsw

from freehold.storage.disk import Disk

Kind = Literal["eio", "full", "short"]

READING = ("xOpen", "xAccess", "xFileSize", "xRead", "xLock")
CHANGING = ("xWrite", "xTruncate", "xSync", "xDelete", "create", "rename", "remove", "make folder", "sync folder")
CALLS: dict[Kind, tuple[str, ...]] = {
    "eio": READING + CHANGING,
    "full": ("xWrite", "create", "rename", "make folder"),
    "short": ("xWrite",),
}
"""What can fail in which way. The lower-case ones are ours, beside SQLite."""

_NUMBERS = count(1)
_CODES = {
    "xOpen": apsw.SQLITE_CANTOPEN,
    "xAccess": apsw.SQLITE_IOERR_ACCESS,
    "xFileSize": apsw.SQLITE_IOERR_FSTAT,
    "xRead": apsw.SQLITE_IOERR_READ,
    "xLock": apsw.SQLITE_IOERR_LOCK,
    "xWrite": apsw.SQLITE_IOERR_WRITE,
    "xTruncate": apsw.SQLITE_IOERR_TRUNCATE,
    "xSync": apsw.SQLITE_IOERR_FSYNC,
    "xDelete": apsw.SQLITE_IOERR_DELETE,
}


class FaultyFile(apsw.VFSFile):
    """One open file; every call asks the disk first whether it is to fail."""

    def __init__(self, disk: Faulty, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        self._disk.ask("xRead")
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        try:
            self._disk.ask("xWrite")
        except CutShort:
            super().xWrite(data[: len(data) // 2], offset)
            raise told(apsw.FullError, apsw.SQLITE_FULL) from None
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self._disk.ask("xTruncate")
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self._disk.ask("xSync")
        super().xSync(flags)

    def xFileSize(self) -> int:
        self._disk.ask("xFileSize")
        return super().xFileSize()

    def xLock(self, level: int) -> None:
        self._disk.ask("xLock")
        super().xLock(level)

    def excepthook(self, *_: object) -> bool:
        """Say nothing of an error that SQLite had no place for: it was ours."""
        return True


class FaultyVFS(apsw.VFS):
    """SQLite's default file system on a disk that may fail."""

    def __init__(self, name: str, disk: Faulty) -> None:
        self._disk = disk
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        self._disk.ask("xOpen")
        return FaultyFile(self._disk, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001
        self._disk.ask("xDelete")
        super().xDelete(filename, syncdir)

    def xAccess(self, pathname: str, flags: int) -> bool:
        self._disk.ask("xAccess")
        return super().xAccess(pathname, flags)

    def excepthook(self, *_: object) -> bool:
        """Say nothing of an error that SQLite had no place for: it was ours."""
        return True


class CutShort(Exception):
    """A write is to be done in part."""


class Faulty(Disk):
    """The machine's own disk until it is armed, and again when it is healed."""

    def __init__(self) -> None:
        self.vfs = f"freehold-faulty-{next(_NUMBERS)}"
        self.struck: list[str] = []
        """The calls that failed."""
        self.calls = 0
        """How many of those calls there were that can fail, since the disk was armed; if it never was, all."""
        self._kind: Kind = "eio"
        self._nth = 0
        self._sticky = False
        self._among = frozenset(CALLS["eio"])
        self._vfs = FaultyVFS(self.vfs, self)

    def arm(self, kind: Kind, nth: int, *, sticky: bool = False, calls: Iterable[str] | None = None) -> None:
        """Let call number *nth* from now on fail, of those that can fail in this way or of *calls*; with *sticky* all after it too."""
        self._kind, self._nth, self._sticky, self.calls = kind, nth, sticky, 0
        self._among = frozenset(CALLS[kind]) & frozenset(CALLS[kind] if calls is None else calls)

    def heal(self) -> None:
        """Let nothing fail any more."""
        self._nth = 0

    def ask(self, call: str) -> None:
        """Count a call; raise what it fails with, if it is to fail."""
        if call not in self._among:
            return
        self.calls += 1
        if not self._nth or self.calls < self._nth or (self.calls > self._nth and not self._sticky):
            return
        self.struck.append(call)
        if self._kind == "short":
            raise CutShort
        if call not in _CODES:
            number = errno.ENOSPC if self._kind == "full" else errno.EIO
            raise OSError(number, os.strerror(number))
        if self._kind == "full":
            raise told(apsw.FullError, apsw.SQLITE_FULL)
        raise told(apsw.CantOpenError if call == "xOpen" else apsw.IOError, _CODES[call])

    def create_new(self, file: str) -> int:
        """Create a file, or fail."""
        self.ask("create")
        return super().create_new(file)

    def rename_new(self, old: str, new: str) -> None:
        """Rename, or fail."""
        self.ask("rename")
        super().rename_new(old, new)

    def remove(self, file: str) -> None:
        """Remove a name, or fail."""
        self.ask("remove")
        super().remove(file)

    def make_folder(self, folder: str) -> None:
        """Make a folder, or fail."""
        self.ask("make folder")
        super().make_folder(folder)

    def sync_folder(self, folder: str) -> None:
        """Sync a folder, or fail."""
        self.ask("sync folder")
        super().sync_folder(folder)

    def close(self) -> None:
        """Take the file system away, after every connection on it was closed. Closing twice is fine."""
        self._vfs.unregister()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def told(kind: type[apsw.Error], code: int) -> apsw.Error:
    """Return an error that SQLite takes for *code*."""
    error = kind("the disk refuses")
    error.extendedresult = code  # type: ignore[attr-defined]
    return error
