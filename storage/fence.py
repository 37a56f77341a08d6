"""What must be true of the file in every write transaction: same epoch, no foreign commit, same inodes at the paths.

SQLite itself would go on writing into a file that was unlinked or replaced, and acknowledge it. About 15 microseconds
a transaction buy that nothing is acknowledged that is not in the file.
"""

from __future__ import annotations

from typing import Any

import apsw

from freehold.schema.errors import Error, StorageFailed
from freehold.storage.platform import Inode, find_inode


class Fence:
    """Armed once after the take-over, asked after every BEGIN IMMEDIATE."""

    def __init__(self, file: str, inode: Inode) -> None:
        self._file = file
        self._wal = file + "-wal"
        self._inode = inode
        self._wal_inode: Inode | None = None
        self._data_version = -1

    def arm(self, db: apsw.Connection) -> None:
        """Note what the file looks like now that it is ours: any later change is somebody else's."""
        self._data_version = db.pragma("data_version")
        self._wal_inode = find_inode(self._wal)

    def broken(self, rows: list[tuple[Any, ...]]) -> Error | None:
        """Return why the file is not ours any more, or None. *rows* are [(txn,), (data_version,)]; no txn: another epoch."""
        if len(rows) != 2:
            return _lost("another owner has taken it over", "epoch")
        if rows[1][0] != self._data_version:
            return _lost("another program has written into it", "foreign_writer")
        if find_inode(self._file) != self._inode:
            return _lost("it was moved, replaced or removed", "file_replaced")
        if find_inode(self._wal) != self._wal_inode:
            return _lost("its -wal was removed or replaced", "wal_replaced")
        return None


def _lost(what: str, rule: str) -> Error:
    return StorageFailed(
        f"the run file is not ours any more: {what}; nothing of this request was kept",
        phase="begin",
        rolled_back=True,
        sqlite_extended_code=0,
        fence=rule,
    )
