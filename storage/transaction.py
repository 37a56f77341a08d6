"""The only place that says BEGIN, COMMIT and ROLLBACK.

A transaction is kept whole or not at all. IMMEDIATE, so that a busy file is found out before the work runs rather
than at its first write, and so that every check made after it stays true until the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw

from freehold.schema.errors import Error, StorageFailed
from freehold.storage import faults
from freehold.storage.connection import set_durable
from freehold.storage.faults import Ended, Poisoned, SqliteError
from freehold.storage.fence import Fence


@contextmanager
def immediate(db: apsw.Connection) -> Iterator[None]:
    """Run the body in one transaction of its own: creating a file, taking one over, closing one."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


@contextmanager
def snapshot(db: apsw.Connection) -> Iterator[None]:
    """Run the body's reads in one read transaction, so that they agree with each other."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


class Transaction:
    """The owner's one open transaction: begun with every check of ownership, committed or rolled back."""

    _OPEN = (
        "BEGIN IMMEDIATE; UPDATE run SET txn = txn + 1, updated_at = ? WHERE one = 1 AND epoch = ? RETURNING txn; PRAGMA main.data_version"
    )

    def __init__(self, db: apsw.Connection, fence: Fence, epoch: int) -> None:
        self._db = db
        self._fence = fence
        self._epoch = epoch
        self.txn = 0
        self.is_open = False
        self.is_durable = True
        """Whether the COMMIT of this transaction waits for the disk, or that of the last one did."""
        self.awaits_sync = False
        """Whether something was committed that no COMMIT since has waited for."""
        self.poisoned: Poisoned | None = None
        self._ended: Ended | None = None
        self._changes = 0
        self._shaken = False
        self._looked = False

    def begin(self, now_ms: int, *, durable: bool = True, look: bool = True) -> None:
        """Begin, and prove that the file is still ours. Only a *durable* one waits at its COMMIT for the disk.

        Without *look*, the names in the folder are looked at later: by `look`, or by `commit`.

        Raises Unavailable (database_busy) when a foreign program holds the write lock, Ended when the disk is full,
        Poisoned when the file is not ours any more.
        """
        if self.poisoned is not None:
            raise self.poisoned
        try:
            if self._shaken:
                self._fence.rearm(self._db)
            if durable is not self.is_durable:
                set_durable(self._db, durable=durable)
                self.is_durable = durable
            rows: list[Any] = self._db.execute(self._OPEN, (now_ms, self._epoch)).fetchall()
        except SqliteError as error:
            if faults.is_busy(error) and not self._db.in_transaction:
                raise faults.busy() from None
            self._shaken = True
            failure = faults.failed(error, "begin", rolled_back=self._try_rollback())
            if faults.is_harmless(error) and failure.details["rolled_back"]:
                raise Ended(failure) from None  # the disk is full: the connection is as it was
            raise self.poison(failure) from None
        if (reason := self._fence.taken(rows) or (self._fence.moved() if look else None)) is not None:
            self._try_rollback()
            raise self.poison(reason)
        self._looked = look
        self.txn = rows[0][0]
        self._changes = self._db.total_changes()
        self.is_open = True
        self._ended = None
        self._shaken = False

    @property
    def has_changed(self) -> bool:
        """Whether any row was written since `begin` counted the transaction; one that only read needs no fsync."""
        return bool(self._db.total_changes() != self._changes)

    def look(self) -> None:
        """Prove once in a transaction that its file still stands at its path. Raises Poisoned."""
        if not self._looked:
            self._check_place()
            self._looked = True

    def _check_place(self) -> None:
        if (reason := self._fence.moved()) is not None:
            self._try_rollback()
            raise self.poison(reason)

    def guard(self) -> None:
        """Make sure that the transaction is still the one we began; a statement after its end would commit alone.

        Raises Ended or Poisoned, again and again, until the next `begin`.
        """
        if self.poisoned is not None:
            raise self.poisoned
        if self._ended is not None:
            raise self._ended
        if not self._in_transaction():
            # No error of SQLite's has told us of it: whatever ended it, we do not know this connection.
            raise self.poison(faults.failed(SqliteError(), "body", rolled_back=True))

    def after(self, error: BaseException) -> StorageFailed:
        """Return what to say of a statement that failed with *error*.

        Raises Ended when SQLite has ended the whole transaction because of it, Poisoned when it leaves us unsure.
        """
        failure = faults.failed(error, "body", rolled_back=True)
        if not faults.is_harmless(error):
            raise self.poison(failure) from None
        if not self._db.in_transaction:
            raise self.ended(error) from None
        return failure

    def ended(self, error: BaseException) -> Ended | Poisoned:
        """Return how to go on after SQLite has ended the transaction by itself, because of *error*."""
        self.is_open = False
        self._shaken = True
        failure = faults.failed(error, "body", rolled_back=True)
        if not faults.is_harmless(error):
            return self.poison(failure)
        self._ended = self._ended or Ended(failure)
        return self._ended

    def commit(self) -> None:
        """Keep everything since `begin`; if it is durable, with all that was committed before it.

        A COMMIT that raises has an unknown outcome: the same connection may say "rolled back" where a reopening says
        "committed". It is never tried again; the file is reopened and asked.
        """
        self.guard()
        self._check_place()
        self.is_open = False
        try:
            self._db.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001 - whatever it was, the outcome is unknown
            failure = faults.failed(error, "commit", rolled_back=False, executed="unknown")
            raise self.poison(failure, unknown_txn=self.txn) from None
        if (lost := self._fence.lost_wal()) is not None:
            raise self.poison(lost, unknown_txn=self.txn)
        self.awaits_sync = not self.is_durable

    def rollback(self) -> None:
        """Undo everything since `begin`. A rollback that fails poisons the connection."""
        self.is_open = False
        self._ended = None
        if not self._in_transaction():
            self._shaken = True
            return
        try:
            self._db.execute("ROLLBACK")
        except SqliteError as error:
            raise self.poison(faults.failed(error, "body", rolled_back=False)) from None

    def poison(self, error: Error, *, unknown_txn: int | None = None) -> Poisoned:
        """Refuse every later call on this connection with *error*; return what to raise."""
        self.is_open = False
        self.poisoned = self.poisoned or Poisoned(error, unknown_txn=unknown_txn)
        return self.poisoned

    def _in_transaction(self) -> bool:
        """Return whether SQLite is in a transaction. Where not even that is told, another thread is at work with our connection."""
        try:
            return bool(self._db.in_transaction)
        except SqliteError as error:
            failure = faults.failed(error, "body", rolled_back=False)
            raise self.poison(failure) from None

    def _try_rollback(self) -> bool:
        """Roll back a transaction that is given up anyway; return whether that worked."""
        if not self._db.in_transaction:
            return True
        try:
            self._db.execute("ROLLBACK")
        except SqliteError:
            return False
        return True
