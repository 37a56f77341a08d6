"""A twin in memory of a run's files: a dict of paths, with as many of the same methods as edits.py needs. Nothing of Freehold.

And a real folder, read the same way, so that the two can be compared: byte for byte, mode for mode, link for link.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from files_below import open_no_link


class Entry(NamedTuple):
    """What stands at a path: `content` is the bytes of a file, or what a link says."""

    kind: str
    mode: int
    content: bytes = b""


class Twin:
    """The files as they should be. Links are never followed: edits.py makes none that would be."""

    def __init__(self, entries: Iterable[tuple[str, Entry]]) -> None:
        self.entries = dict(entries)
        self.touched: set[str] = set()
        """The paths that were named to change something."""

    def is_file(self, path: str) -> bool:
        """Return whether a file stands there."""
        return self._is(path, "file")

    def is_dir(self, path: str) -> bool:
        """Return whether a directory stands there."""
        return self._is(path, "directory")

    def is_symlink(self, path: str) -> bool:
        """Return whether a link stands there."""
        return self._is(path, "link")

    def iterdir(self, path: str) -> Iterator[str]:
        """Yield the paths of what is in a directory."""
        return (each for each in self._beneath(path) if "/" not in each[len(path) + 1 :])

    def write_bytes(self, path: str, data: bytes) -> None:
        """Make *data* the content of a file, a new one where none is."""
        old = self.entries.get(path, Entry("file", 0o644))
        self._put(path, old._replace(content=data))

    @contextmanager
    def open(self, path: str, mode: str) -> Iterator[BytesIO]:
        """Open a file to append to it ("ab") or to change it ("r+b")."""
        file = BytesIO(self.entries[path].content if path in self.entries else b"")
        file.seek(0, os.SEEK_END if mode == "ab" else os.SEEK_SET)
        yield file
        self.write_bytes(path, file.getvalue())

    def mkdir(self, path: str) -> None:
        """Make a directory."""
        self._put(path, Entry("directory", 0o755))

    def symlink(self, path: str, target: str) -> None:
        """Make a link that says *target*."""
        self._put(path, Entry("link", 0o777, os.fsencode(target)))

    def chmod(self, path: str, mode: int) -> None:
        """Set the mode of a file or directory."""
        self._put(path, self.entries[path]._replace(mode=mode))

    def copy(self, path: str, to: str) -> None:
        """Copy a file, or a directory with all beneath it, to where nothing is."""
        for each in [path, *self._beneath(path)]:
            self.entries[to + each[len(path) :]] = self.entries[each]
        self.touched |= {path, to}

    def rename(self, path: str, to: str) -> None:
        """Give a file, a link or a directory with all beneath it a path where nothing is."""
        self.copy(path, to)
        self.rmtree(path)

    def remove(self, path: str) -> None:
        """Remove a file or a link."""
        self.rmtree(path)

    def rmtree(self, path: str) -> None:
        """Remove a directory with all beneath it."""
        for each in [path, *self._beneath(path)]:
            del self.entries[each]
        self.touched.add(path)

    def _is(self, path: str, kind: str) -> bool:
        return path in self.entries and self.entries[path].kind == kind

    def _put(self, path: str, entry: Entry) -> None:
        self.entries[path] = entry
        self.touched.add(path)

    def _beneath(self, path: str) -> list[str]:
        return [each for each in self.entries if each.startswith(path + "/")] if self.is_dir(path) else []


def entries_below(folder: Path, top: str = "", left_out: Collection[str] = ()) -> Iterator[tuple[str, Entry]]:
    """Yield what is in a real folder, each path with *top* before it, but for the paths of *left_out* and all beneath them."""
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        try:
            names = sorted(each.name for each in (folder / inside).iterdir())
        except OSError:
            continue  # the folder itself has been told; what is in it will be missed
        for path in (f"{inside}/{name}" if inside else name for name in names):
            if path not in left_out:
                entry = look_at(folder / path)
                if entry.kind == "directory":
                    waiting.append(path)
                yield top + path, entry


def look_at(path: Path) -> Entry:
    """Return what stands at a real path. What cannot be read, or could not be held, is no kind of ours."""
    try:
        found = path.lstat()
        mode = stat.S_IMODE(found.st_mode) & 0o777
        if stat.S_ISLNK(found.st_mode):
            return Entry("link", 0o777, os.fsencode(path.readlink()))
        if stat.S_ISDIR(found.st_mode):
            return Entry("directory", mode)
        if not stat.S_ISREG(found.st_mode):
            return Entry("special", mode)  # to open a FIFO would wait, and to open a device might do something
        with open(path, "rb", opener=open_no_link) as file:
            return Entry("file", mode, file.read())
    except OSError as error:
        return Entry(errno.errorcode.get(error.errno or 0, "OSError"), 0)


def differences(one: Mapping[str, Entry], other: Iterable[tuple[str, Entry]]) -> Iterator[str]:
    """Yield every path at which the two are not the same. Of *other*, no more than one entry is in memory at a time."""
    missing = set(one)
    for path, entry in other:
        missing.discard(path)
        if one.get(path) != entry:
            yield path
    yield from sorted(missing)
