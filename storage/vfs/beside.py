"""A SQLite file system on which nothing can be created: for reading beside an owner in another process.

READONLY alone is not enough: SQLite would create a -wal and a -shm where the owner has none.
"""

from __future__ import annotations

import apsw

BESIDE = "freehold-beside"


class BesideVFS(apsw.VFS):
    """The default file system without the power to create or delete a file."""

    def __init__(self) -> None:
        super().__init__(BESIDE, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        if name is not None:  # a nameless temporary file is no file of the folder
            flags[0] &= ~(apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_DELETEONCLOSE)
        return apsw.VFSFile("", name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001
        raise apsw.ReadOnlyError("a reader deletes nothing")


BESIDES = BesideVFS()
"""The one of this process; registered when this module is first imported."""
