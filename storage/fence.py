"""What must be true of the file in every write transaction: same epoch, no foreign commit, same files at the paths, untouched.

SQLite itself would go on writing into a file that was unlinked, replaced or overwritten, and acknowledge it. About 20 microseconds
a transaction buy that nothing is acknowledged that is not in the file.
"""

from __future__ import annotations

import os
from typing import Any

import apsw

from freehold.schema.errors import Error, StorageFailed
from freehold.storage.header import PAGE_SIZE
from freehold.storage.platform import Inode, Spot, inode_of

OVERWRITTEN = frozenset({"file_rewritten", "wal_cut"})
"""The rules after which pages of ours and somebody else's may stand in one file, where only `verify` tells them apart."""
_WAL_HEADER_BYTES, _FRAME_BYTES = 32, 24 + PAGE_SIZE


class Fence:
    """Armed once after the take-over, asked in every write transaction."""

    def __init__(self, file: str, inode: Inode) -> None:
        self._file = file
        self._wal = Spot(file + "-wal")
        self._inode = inode
        self._wal_inode: Inode | None = None
        self._data_version = -1
        self._content = (-1, -1)
        self.frames = 0
        """How many committed pages the -wal holds; whoever counts them sets it."""

    def arm(self, db: apsw.Connection) -> None:
        """Note what the file looks like now that it is ours: any later change is somebody else's."""
        self._data_version = db.pragma("data_version")
        self._wal_inode = self._inode_of_wal()
        self.mark()

    def mark(self) -> None:
        """Note size and time of the run file itself: until our own next checkpoint nobody has to write there."""
        self._content = _content(_find(self._file))

    def rearm(self, db: apsw.Connection) -> None:
        """Take the data version anew after an error of SQLite's own, which moves it like a foreign commit does.

        A foreign commit shows in the -wal all the same: then the old version stays, and the next transaction is fenced.
        """
        version = db.pragma("data_version")
        # Asked in this order: a foreign commit that comes after the count moves the version once more.
        if db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0] == self.frames:
            self._data_version = version

    def taken(self, rows: list[tuple[Any, ...]]) -> Error | None:
        """Return who else has the file by now, or None. *rows* are [(txn,), (data_version,)]; no txn: another epoch."""
        if len(rows) != 2:
            return _lost("another owner has taken it over", "epoch")
        if rows[1][0] != self._data_version:
            return _lost("another program has written into it", "foreign_writer")
        return None

    def moved(self) -> Error | None:
        """Return why the files at the paths are not ours any more, or untouched, or None.

        Asked right before a COMMIT, which would write into whatever is there, and make a -wal that was cut as long as it was; and
        before anything that cannot be undone with the transaction.
        """
        file, wal = _find(self._file), self._wal.find()
        if file is None or (file.st_dev, file.st_ino) != self._inode:
            return _lost("it was moved, replaced or removed", "file_replaced")
        if (file.st_size, file.st_mtime_ns) != self._content:
            return _lost("it was overwritten in place", "file_rewritten")
        if wal is None or wal[0] != self._wal_inode:
            return _lost("its -wal was removed or replaced", "wal_replaced")
        if self._is_cut(*wal):
            return _lost("its -wal was cut short", "wal_cut")
        return None

    def lost_wal(self) -> Error | None:
        """Return that the -wal that was just committed into is not the one at the path, or None: asked before anything is acknowledged.

        While the transaction was open, somebody who believed to be alone may have taken it away.
        """
        if self._inode_of_wal() == self._wal_inode:
            return None
        return StorageFailed(
            "the run file's -wal was taken away during the transaction; whether this request was kept is not known",
            executed="unknown",
            phase="commit",
            rolled_back=False,
            sqlite_extended_code=0,
            fence="wal_replaced",
        )

    def is_overwritten(self) -> bool:
        """Return whether somebody has written into our file or cut our -wal: bringing our pages home would mix two files."""
        file, wal = _find(self._file), self._wal.find()
        is_ours = file is not None and inode_of(file) == self._inode
        return is_ours and (_content(file) != self._content or (wal is not None and self._is_cut(*wal)))

    def _inode_of_wal(self) -> Inode | None:
        found = self._wal.find()
        return None if found is None else found[0]

    def _is_cut(self, wal: Inode, size: int) -> bool:
        # Another file of that name is not ours to judge by: our own, without a name, is whole.
        return wal == self._wal_inode and self.frames > 0 and size < _WAL_HEADER_BYTES + self.frames * _FRAME_BYTES


def _find(file: str) -> os.stat_result | None:
    try:
        return os.lstat(file)
    except OSError:
        return None


def _content(found: os.stat_result | None) -> tuple[int, int]:
    return (-1, -1) if found is None else (found.st_size, found.st_mtime_ns)


def _lost(what: str, rule: str) -> Error:
    return StorageFailed(
        f"the run file is not ours any more: {what}; nothing of this request was kept",
        phase="begin",
        rolled_back=True,
        sqlite_extended_code=0,
        fence=rule,
    )
