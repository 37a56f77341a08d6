"""The only place that says SAVEPOINT: one allocator a connection, so that no two names are ever equal."""

from __future__ import annotations

from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING

import apsw

from freehold.schema.errors import Refused
from freehold.schema.foreign import is_a
from freehold.storage import faults
from freehold.storage.faults import SqliteError

if TYPE_CHECKING:
    from freehold.storage.journal import Head, Journal
    from freehold.storage.transaction import Transaction


class Savepoints:
    """Allocates savepoints inside our own open transaction; a bare one would open a deferred transaction of its own."""

    def __init__(self, db: apsw.Connection, transaction: Transaction, journal: Journal) -> None:
        self._db = db
        self._transaction = transaction
        self._journal = journal
        self._numbers = count(1)
        self._open: list[tuple[str, Head]] = []

    def scope(self) -> _Scope:
        """Keep the body whole or not at all; whatever ends it with an exception is undone, and raised on."""
        return _Scope(self, self._transaction)

    @property
    def depth(self) -> int:
        """How many savepoints are open."""
        return len(self._open)

    def open(self) -> str:
        """Open the next savepoint and return its name."""
        self._transaction.guard()
        name = f"s{next(self._numbers)}"
        self._execute("SAVEPOINT " + name)
        self._open.append((name, self._journal.head))
        return name

    def release(self, name: str) -> None:
        """Keep what was done since *name*, as far as the transaction is kept. Raises Refused if it is not open."""
        self._check(name)
        self._execute("RELEASE " + name)
        while self._open and self._open.pop()[0] != name:
            pass

    def undo(self, name: str) -> None:
        """Undo what was done since *name* and close it; the journal's head in memory goes back with it. Raises as `release`."""
        self._check(name)
        self._execute(f"ROLLBACK TO {name}; RELEASE {name}")
        while self._open:
            opened, head = self._open.pop()
            if opened == name:
                self._journal.head = head
                return

    def forget(self) -> None:
        """Drop the book: the transaction that held the savepoints has ended."""
        self._open.clear()

    def _check(self, name: str) -> None:
        self._transaction.guard()
        if all(opened != name for opened, _ in self._open):
            raise Refused("this savepoint is not open any more: one around it has ended; nothing was changed", code="transaction_over")

    def _execute(self, sql: str) -> None:
        try:
            self._db.execute(sql)
        except SqliteError as error:
            if not self._db.in_transaction:
                raise self._transaction.ended(error) from None
            # A savepoint that cannot be taken or undone leaves a transaction of unknown content.
            raise self._transaction.poison(faults.failed(error, "body", rolled_back=False)) from None


class _Scope:
    """Not a generator: contextlib would write the traceback into the exception, and a user's may be frozen."""

    def __init__(self, savepoints: Savepoints, transaction: Transaction) -> None:
        self._savepoints = savepoints
        self._transaction = transaction

    def __enter__(self) -> None:
        self._name = self._savepoints.open()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        if error is None:
            self._savepoints.release(self._name)
            return
        if is_a(error, SqliteError):
            self._transaction.after(error)  # the transaction may have gone with the statement
        self._savepoints.undo(self._name)
