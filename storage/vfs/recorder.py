"""A disk that records: the machine's own, with every write, sync and change of a name noted after it was done.

It records what goes through it: SQLite on its file system `vfs`, and the names that our own code changes beside SQLite.
Shared memory is no file of its own: whatever a crash leaves of it, SQLite makes it anew.
"""

from __future__ import annotations

import os
from itertools import count
from typing import Self

import apsw

from freehold.storage.disk import Disk
from freehold.storage.vfs.record import ABSENT, Cut, Marked, Record, Synced, SyncedFolder, Wrote

_NUMBERS = count(1)
_SYNCS_FOLDER = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL
"""With the first sync of a new file of these kinds SQLite syncs the folder too."""


class RecorderFile(apsw.VFSFile):
    """One open file below the recorded folder."""

    def __init__(self, record: Record, name: str, uri: str | apsw.URIFilename, flags: list[int]) -> None:
        self._record = record
        self._folder = os.path.dirname(name) or "."
        self._file = record.find(name)
        existed = self._file != ABSENT
        super().__init__("", uri, flags)
        if not existed:
            self._file = record.add_name(name)
        self._syncs_folder = not existed and bool(flags[0] & _SYNCS_FOLDER)

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._record.add(Wrote(self._file, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self._record.add(Cut(self._file, newsize))

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self._record.add(Synced(self._file))
        if self._syncs_folder:
            self._syncs_folder = False
            self._record.add(SyncedFolder(self._folder))


class RecorderVFS(apsw.VFS):
    """SQLite's default file system, recorded."""

    def __init__(self, name: str, record: Record) -> None:
        self._record = record
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        inside = None if path is None else self._record.name_of(path)
        if name is None or inside is None:
            return apsw.VFSFile("", name, flags)
        return RecorderFile(self._record, inside, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001
        super().xDelete(filename, syncdir)
        name = self._record.name_of(filename)
        if name is not None:
            self._record.remove(name)
            if syncdir:
                self._record.add(SyncedFolder(os.path.dirname(name) or "."))


class Recorder(Disk):
    """Records what happens below *base* from now until it is closed."""

    def __init__(self, base: str | os.PathLike[str]) -> None:
        self.record = Record(base)
        self.vfs = f"freehold-recorder-{next(_NUMBERS)}"
        self._vfs = RecorderVFS(self.vfs, self.record)

    def mark(self, fact: object) -> None:
        """Note *fact* between what has been done and what will be done."""
        self.record.add(Marked(fact))

    def create_new(self, file: str) -> int:
        """Create a file, noted."""
        fd = super().create_new(file)
        self.record.add_name(self._name_of(file))
        return fd

    def rename_new(self, old: str, new: str) -> None:
        """Rename, noted."""
        super().rename_new(old, new)
        self.record.rename(self._name_of(old), self._name_of(new))

    def remove(self, file: str) -> None:
        """Remove a name, noted."""
        super().remove(file)
        self.record.remove(self._name_of(file))

    def make_folder(self, folder: str) -> None:
        """Make a folder, noted."""
        super().make_folder(folder)
        if self.record.find(name := self._name_of(folder)) == ABSENT:
            self.record.add_name(name, is_folder=True)

    def sync_folder(self, folder: str) -> None:
        """Sync a folder, noted."""
        super().sync_folder(folder)
        self.record.add(SyncedFolder(self._name_of(folder)))

    def close(self) -> None:
        """Record no more, after every connection on `vfs` was closed. Closing twice is fine."""
        self._vfs.unregister()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _name_of(self, path: str) -> str:
        name = self.record.name_of(path)
        assert name is not None, "only what lies below the recorded folder is created, renamed or removed through its recorder"
        return name
