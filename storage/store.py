"""An owned run file: one connection, one transaction at a time, one allocator of savepoints.

Synchronous and used by one thread, its owner's. Nothing here waits for anything but the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack

from freehold.schema.errors import Unavailable
from freehold.schema.repeated import Repeated
from freehold.schema.rows import PackedObject, RunRow, Written
from freehold.schema.secrets import SecretFilter
from freehold.storage import faults, forks, platform, tenure
from freehold.storage.clock import Clock
from freehold.storage.connection import open_live
from freehold.storage.events import read_event, read_run
from freehold.storage.executions import Executions
from freehold.storage.faults import SqliteError, unreadable
from freehold.storage.fence import Fence
from freehold.storage.journal import Journal
from freehold.storage.objects import put_packed
from freehold.storage.pin import Pin
from freehold.storage.recognise import Recognised, recognise
from freehold.storage.requests import Requests
from freehold.storage.savepoint import Savepoints
from freehold.storage.steps import Steps
from freehold.storage.transaction import Transaction
from freehold.storage.wal import Wal

LastWord = Callable[[Pin, RunRow, int], None]
_STAGE = "INSERT INTO staged (object) VALUES (?)"
_UNSTAGE = "DELETE FROM staged WHERE object = ?"


class Store:
    """Owns one run file from `Store(pin)` to `close()`; the pin holds the lock and the place in the registry."""

    def __init__(
        self,
        pin: Pin,
        clock: Clock,
        *,
        own_epoch: int | None = None,
        vfs: str | None = None,
        recognised: Callable[[Recognised], None] | None = None,
        socket: Callable[[], str | None] | None = None,
        secrets: SecretFilter | None = None,
    ) -> None:
        """Recognise the pinned file and take it over.

        *own_epoch* is the epoch of our own earlier incarnation, if there was one; *recognised* is told what the file says
        before it is taken over; *socket*, asked after that, names where this owner can be asked; *secrets* are kept out of what other
        processes publish. Whatever is raised, the pin is closed and the file is as it was.
        """
        self.pin = pin
        self.clock = clock
        self.secrets = SecretFilter() if secrets is None else secrets
        self.path = pin.path
        self._forked = False
        self._closed = False
        try:
            self.recognised: Recognised = recognise(pin)
            if recognised is not None:
                recognised(self.recognised)
            self.db = open_live(pin.path, vfs)
            try:
                self._own(own_epoch, None if socket is None else socket())
            except BaseException:
                self.db.close(True)
                raise
        except SqliteError as error:
            pin.close()
            raise unreadable(error, pin.path) from None
        except BaseException:
            pin.close()
            raise
        forks.watch(self)

    def _own(self, own_epoch: int | None, socket: str | None) -> None:
        if not self.pin.names_this():
            raise Unavailable("the run file was replaced while it was being opened; it was left as it is", code="changed_while_reading")
        self.fence = fence = Fence(self.path.file, self.pin.inode)
        self.tenure = tenure.take_over(self.db, self.recognised, fence, self.clock.now_ms(), own_epoch, socket)
        self.epoch = self.tenure.epoch
        self.transaction = Transaction(self.db, fence, self.epoch)
        self.journal = Journal(self.db, self.transaction, self.clock)
        self.savepoints = Savepoints(self.db, self.transaction, self.journal)
        self.executions = Executions(self.db, self.journal, self.savepoints, self.epoch)
        self.steps = Steps(self.db, self.journal, self.savepoints)
        self.requests = Requests(self.db)
        self.committed_head = self.journal.head
        self.wal = Wal(self.db, self.transaction, fence)

    def begin(self, now_ms: int, *, durable: bool = True, look: bool = True) -> None:
        """Begin the one transaction, with every check of ownership, see `Transaction.begin`."""
        self.transaction.begin(now_ms, durable=durable, look=look)

    def commit(self) -> None:
        """Keep everything since `begin`, see `Transaction.commit`. Raises Poisoned with an unknown outcome when COMMIT fails."""
        self.transaction.commit()
        self.savepoints.forget()
        self.committed_head = self.journal.head

    def rollback(self) -> None:
        """Undo everything since `begin`, in the file and in memory."""
        self.journal.head = self.committed_head
        self.savepoints.forget()
        self.transaction.rollback()

    def append_once(self, request_id: str, digest: bytes, name: str, record: str, now_ms: int) -> Written:
        """Append a note unless *request_id* has done so before; either way return its event."""
        if (answered := self.requests.find(request_id, digest)) is not None:
            assert answered.seq is not None
            return self.written(answered.seq)
        written = self.journal.append("note", name, record, now_ms)
        self.requests.keep(request_id, digest, self.transaction.txn, now_ms, seq=written.seq)
        return written

    def repeated(self, request_id: str | None, digest: bytes | None) -> Repeated | None:
        """Return how a request was answered that was carried out before, or None. Raises as `Requests.find` does."""
        answered = self.requests.find(request_id, digest) if request_id is not None and digest is not None else None
        if answered is None:
            return None
        assert answered.reply is not None
        return Repeated(answered.reply, self.transaction.is_durable)

    def remember(self, request_id: str | None, digest: bytes | None, now_ms: int, reply: str) -> None:
        """Keep the answer to a request that has an id."""
        if request_id is not None and digest is not None:
            self.requests.keep(request_id, digest, self.transaction.txn, now_ms, reply=reply)

    def keep_objects(self, objects: Iterable[PackedObject], *, ahead: bool) -> None:
        """Keep objects; *ahead* of their publish, those that are new are listed as staged, else none is. Several statements, as one."""
        for row in objects:
            row_id, is_new = put_packed(self.db, row)
            if is_new == ahead:
                self.db.execute(_STAGE if ahead else _UNSTAGE, (row_id,))

    def unstage(self, hashes: Iterable[bytes]) -> None:
        """Take objects off the list of staged ones, as far as they stand there."""
        self.db.executemany("DELETE FROM staged WHERE object = (SELECT id FROM object WHERE hash = ?)", ((hash_,) for hash_ in hashes))

    def written(self, seq: int) -> Written:
        """Return an event that is in the journal as the append that wrote it did."""
        row, durable = read_event(self.db, seq), self.transaction.is_durable
        return Written(row.seq, row.id, row.kind, row.name, row.execution, row.text, row.root_hash, row.time_ms, row.hash, durable)

    def happened(self, txn: int, epoch: int) -> bool:
        """Return whether a transaction of an earlier tenure, whose COMMIT failed, is in the file."""
        return tenure.happened(self.db, txn, epoch)

    def close(self, *, clean: bool, keep_lock: bool = False, last_word: LastWord | None = None) -> None:
        """Give the file back: one small transaction and a checkpoint after a *clean* end, else nothing is written.

        Idempotent. The lock is released last, after the connection is closed, or kept for whoever holds the pin. After a clean
        end *last_word* is called in between, with the pin, and the run row and the number of events that the file holds now. A connection
        of unknown state is only closed: what its file says, the next owner finds out.
        """
        if self._forked:
            raise forks.forked_process()
        if self._closed:
            return
        self._closed = True
        with ExitStack() as last:
            if not keep_lock:
                last.callback(self.pin.close)
            said: list[RunRow] = []
            if last_word is not None:
                last.callback(lambda: [last_word(self.pin, row, self.journal.head.seq) for row in said])
            last.callback(self._close_connection)
            if clean and self.transaction.poisoned is None:
                self._give_back()
                said.append(read_run(self.db))

    def _close_connection(self) -> None:
        try:
            try:
                if not self.pin.names_this():
                    self.wal.bring_home()
                elif self.fence.is_overwritten():
                    self.wal.leave()
            finally:
                self.db.close(True)
        except SqliteError as error:
            raise faults.failed(error, "close", rolled_back=True) from None

    def _give_back(self) -> None:
        now_ms = self.clock.now_ms()
        if self.transaction.is_open:
            self.rollback()
        self.begin(now_ms)
        try:
            tenure.give_back(self.db, self.epoch, self.journal.head.seq, now_ms)
        except SqliteError as error:
            failure = faults.failed(error, "body", rolled_back=True)
            self.rollback()
            raise failure from None
        self.commit()
        self.wal.checkpoint(truncate=True)

    def forked(self) -> None:
        """In a forked child: never use, never close what the parent goes on using."""
        self._forked = True
        self.transaction.poison(forks.forked_process())
        platform.keep_for_ever(self.db)
        self.pin.forked()
