"""The owner's -wal: how much stands in it, and bringing it home. SQLite's own automatic checkpoint is off, so that its errors are seen."""

from __future__ import annotations

import apsw

from freehold.schema.limits import CHECKPOINT_PAGES
from freehold.storage.faults import SqliteError, failed, is_busy
from freehold.storage.transaction import Transaction


class Wal:
    """Counts the pages that each commit leaves in the -wal, and checkpoints between transactions."""

    def __init__(self, db: apsw.Connection, transaction: Transaction) -> None:
        self._db = db
        self._transaction = transaction
        self._checkpointed = 0
        self.pages = 0
        db.set_wal_hook(self._count)

    def _count(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        self.pages = pages
        if pages < self._checkpointed:
            self._checkpointed = 0  # the -wal has started over
        return 0

    @property
    def is_long(self) -> bool:
        """Whether more than the bound has come in since the last checkpoint."""
        return self.pages - self._checkpointed >= CHECKPOINT_PAGES

    @property
    def is_waiting(self) -> bool:
        """Whether anything has come in since the last checkpoint."""
        return self.pages > self._checkpointed

    def checkpoint(self, *, truncate: bool = False) -> None:
        """Bring home what the -wal holds, without waiting for readers; at the end also empty the file.

        Raises Poisoned when the disk refuses.
        """
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
        try:
            self._db.wal_checkpoint(mode=mode)
        except SqliteError as error:
            if is_busy(error):
                return  # a reader in another process holds its snapshot; the -wal stays beside the file and is whole
            raise self._transaction.poison(failed(error, "checkpoint", rolled_back=True)) from None
        # What a reader holds back is brought home by a later checkpoint; it is not tried again for every commit.
        self._checkpointed = self.pages
