"""A SQLite file system that reads pinned descriptors and keeps every write in memory.

SQLite may recover a -wal on it, and no file and no folder is touched. It is right only while nobody writes the files
underneath, which the caller's flock sees to. Locks are no-ops: each overlay is one connection's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count

import apsw

OVERLAY = "freehold-overlay"
PAGE = 4096


class Copied:
    """One file's content: the bytes of a descriptor, if it has one, under the pages that were written since."""

    def __init__(self, fd: int | None = None) -> None:
        self._fd = fd
        self._base = self.size = os.fstat(fd).st_size if fd is not None else 0
        self._pages: dict[int, bytes] = {}

    def read(self, amount: int, offset: int) -> bytes:
        """Return up to *amount* bytes; fewer only at the end."""
        end = min(offset + amount, self.size)
        if not self._pages and end <= self._base:
            return self._underneath(end - offset, offset)
        found = bytearray()
        while offset < end:
            number, within = divmod(offset, PAGE)
            length = min(PAGE - within, end - offset)
            found += self._page(number)[within : within + length]
            offset += length
        return bytes(found)

    def write(self, data: bytes, offset: int) -> None:
        """Keep *data* in memory; a gap before it reads as zeros."""
        self.size = max(self.size, offset + len(data))
        done = 0
        while done < len(data):
            number, within = divmod(offset + done, PAGE)
            length = min(PAGE - within, len(data) - done)
            page = bytearray(self._page(number))
            page[within : within + length] = data[done : done + length]
            self._pages[number] = bytes(page)
            done += length

    def truncate(self, size: int) -> None:
        """Cut the content; what is cut never comes back, however far the file grows again."""
        if size >= self.size:
            return
        self.size = size
        self._base = min(self._base, size)
        last, within = divmod(size, PAGE)
        for number in [number for number in self._pages if number >= last + bool(within)]:
            del self._pages[number]
        if last in self._pages:
            self._pages[last] = self._pages[last][:within] + bytes(PAGE - within)

    def _page(self, number: int) -> bytes:
        if (page := self._pages.get(number)) is not None:
            return page
        start = number * PAGE
        below = self._underneath(min(PAGE, self._base - start), start)
        return below + bytes(PAGE - len(below))

    def _underneath(self, amount: int, offset: int) -> bytes:
        return os.pread(self._fd, amount, offset) if self._fd is not None and amount > 0 else b""


class OverlayFile:
    """What SQLite calls a file. It never locks, syncs or closes anything."""

    def __init__(self, content: Copied) -> None:
        self._content = content

    def xRead(self, amount: int, offset: int) -> bytes:
        return self._content.read(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._content.write(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self._content.truncate(newsize)

    def xFileSize(self) -> int:
        return self._content.size

    def xSync(self, flags: int) -> None:
        """Nothing here is kept."""

    def xLock(self, level: int) -> None:
        """Nobody else is here."""

    def xUnlock(self, level: int) -> None:
        """Nobody else is here."""

    def xCheckReservedLock(self) -> bool:
        return False

    def xFileControl(self, op: int, ptr: int) -> bool:
        return False

    def xSectorSize(self) -> int:
        return PAGE

    def xDeviceCharacteristics(self) -> int:
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE

    def xClose(self) -> None:
        """The descriptors are their opener's."""


class OverlayVFS(apsw.VFS):
    """All overlays of this process, each under a path of its own. Only clock and randomness come from the default VFS."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._files: dict[str, Copied] = {}
        super().__init__(OVERLAY, "", maxpathname=128)

    @contextmanager
    def over(self, fds: Mapping[str, int]) -> Iterator[str]:
        """Lay an overlay over descriptors, given by suffix ("" is the main file); yield the path under which it opens."""
        path = f"/{next(self._numbers)}"
        for suffix, fd in fds.items():
            self._files[path + suffix] = Copied(fd)
        try:
            yield path
        finally:
            for name in [name for name in list(self._files) if name == path or name.startswith(path + "-")]:
                self._files.pop(name, None)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> OverlayFile:  # type: ignore[override]
        if name is None:
            return OverlayFile(Copied())  # a nameless temporary file
        key = name.filename() if isinstance(name, apsw.URIFilename) else name
        content = self._files.get(key)
        if content is None:
            if not flags[0] & apsw.SQLITE_OPEN_CREATE:
                raise apsw.CantOpenError("no such file in this overlay")
            content = self._files[key] = Copied()
        return OverlayFile(content)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001
        self._files.pop(filename, None)

    def xAccess(self, pathname: str, flags: int) -> bool:
        return pathname in self._files

    def xFullPathname(self, name: str) -> str:
        return name


OVERLAYS = OverlayVFS()
"""The one of this process; registered when this module is first imported."""
