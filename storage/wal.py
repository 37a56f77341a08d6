"""The owner's -wal: how much stands in it, and bringing it home. SQLite's own automatic checkpoint is off, so that its errors are seen."""

from __future__ import annotations

import apsw

from freehold.schema.limits import BUSY_TIMEOUT_MS, CHECKPOINT_PAGES
from freehold.storage.faults import SqliteError, failed, is_harmless
from freehold.storage.fence import Fence
from freehold.storage.transaction import Transaction


class Wal:
    """Counts the pages that each commit leaves in the -wal, and checkpoints between transactions."""

    def __init__(self, db: apsw.Connection, transaction: Transaction, fence: Fence) -> None:
        self._db = db
        self._transaction = transaction
        self._fence = fence
        fence.frames = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0]
        self._checkpointed = 0
        self.pages = 0
        db.set_wal_hook(self._count)

    def _count(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        self.pages = self._fence.frames = pages
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
        self._db.set_busy_timeout(0)  # TRUNCATE would wait for a reader to leave
        try:
            self._fence.frames = self._db.wal_checkpoint(mode=mode)[0]
        except SqliteError as error:
            # A reader in another process holds its snapshot, or the disk is full: the -wal stays beside the file and is whole.
            if not is_harmless(error):
                raise self._transaction.poison(failed(error, "checkpoint", rolled_back=True)) from None
        finally:
            self._db.set_busy_timeout(BUSY_TIMEOUT_MS)
        self._fence.mark()
        # What could not be brought home is left to a later checkpoint; it is not tried again for every commit.
        self._checkpointed = self.pages

    def bring_home(self) -> None:
        """At the end of a file that was moved or replaced: leave all that was acknowledged in it, whatever it is called now.

        SQLite would leave the -wal as it is, beside a file that it does not belong to, whose next reader would believe it.
        """
        self._transaction.rollback()
        self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def leave(self) -> None:
        """At the end of a file that was overwritten in place: let SQLite neither bring the -wal home nor remove it."""
        self._db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
