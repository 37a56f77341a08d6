"""The turns that one drain of the mailbox commits together, with one fsync.

Each turn is whole or not at all by itself. Nothing is answered before the COMMIT but what does not depend on it.
"""

from __future__ import annotations

from typing import Any

from freehold.actors.deadline import monotonic
from freehold.actors.envelope import Envelope
from freehold.actors.operations import IN_TRANSACTION, is_durable, is_single
from freehold.actors.ref import ActorRef
from freehold.actors.work import Theirs, Work, perform, without_our_frames
from freehold.schema.errors import Unavailable
from freehold.schema.foreign import is_a
from freehold.schema.limits import BATCH_BYTES_MAX, BATCH_SECONDS_MAX, BATCH_TURNS_MAX
from freehold.storage.faults import Ended, Poisoned, SqliteError
from freehold.storage.reads import READS
from freehold.storage.store import Store


class Batch:
    """One batch: `add` turns, then `end` it. After Ended, `run_alone`; after Poisoned, `give_up`. Not used again."""

    def __init__(self, store: Store, ref: ActorRef[Any], *, durable: bool = True) -> None:
        """With *durable*, its COMMIT waits for the disk; without, only turns may join that do not ask for that."""
        self._store = store
        self._ref = ref
        self._durable = durable
        self._until = monotonic() + BATCH_SECONDS_MAX
        self._bytes_left = BATCH_BYTES_MAX
        self._turns: list[Envelope] = []
        self._committing: list[Envelope] = []
        self._kept = 0
        self._busy: Unavailable | None = None

    @property
    def is_late(self) -> bool:
        """Whether its time is up: those who have had their turn wait for the COMMIT. Of a busy file all are told at once."""
        return self._busy is None and monotonic() >= self._until

    def room(self) -> tuple[int, int]:
        """Return how many more turns and bytes it may take; none once its time is up."""
        if not self._store.transaction.is_open or self.is_late:
            return 0, 0
        return BATCH_TURNS_MAX - len(self._turns), self._bytes_left

    def admits(self, message: object) -> bool:
        """Return whether a turn may join: not one that waits for the disk, where the COMMIT will not."""
        return self._durable or not waits(message)

    def add(self, envelope: Envelope) -> None:
        """Take one turn, or answer a read that saw nothing uncommitted. Raises Ended or Poisoned."""
        if not self._store.transaction.is_open and type(envelope.message) in READS:
            self._read(envelope)
            return
        self._turns.append(envelope)
        self._bytes_left -= envelope.size
        try:
            if self._busy is not None:
                raise self._busy.copy()
            now_ms = self._store.clock.now_ms()
            if not self._store.transaction.is_open:
                self._begin(now_ms)
            envelope.value = self._turn(envelope, now_ms)
            self._kept += type(envelope.message) not in READS
        except (Ended, Poisoned):
            raise
        except BaseException as error:  # noqa: BLE001 - a turn ended by its own exception loses only itself
            envelope.error = self._after(error)

    def end(self) -> None:
        """Commit and answer; one whose turns were all refused, or only repeated what was done before, is rolled back. Raises Poisoned."""
        if self._store.transaction.is_open:
            if self._kept and self._has_to_commit():
                self._committing = self._turns
                self._store.commit()
            else:
                if self._kept:
                    self._store.transaction.look()  # what is only repeated has to be in the file that stands there
                self._store.rollback()
        for envelope in self._turns:
            envelope.answer()

    def _has_to_commit(self) -> bool:
        # What is only repeated may have been answered before the disk had it; now somebody waits until it does.
        transaction = self._store.transaction
        return transaction.has_changed or (transaction.is_durable and transaction.awaits_sync)

    def run_alone(self, ended: Ended) -> None:
        """After SQLite ended the whole transaction: run each typed turn once more, in a transaction of its own.

        Callables are not run again; they are told that nothing of them was kept. Raises Poisoned.
        """
        self._store.rollback()
        for envelope in self._turns:
            if envelope.error is None:
                if isinstance(envelope.message, Work):
                    envelope.error = ended.error.copy()
                elif type(envelope.message) in READS:
                    self._read(envelope)
                else:
                    self._run_one(envelope)
            envelope.answer()

    def give_up(self, poisoned: Poisoned) -> list[Envelope]:
        """Answer what is known not to have happened; return the turns whose COMMIT has an unknown outcome."""
        doubtful = self._committing if poisoned.unknown_txn is not None else []
        for envelope in self._turns:
            if envelope in doubtful:
                continue
            if envelope.error is None:  # asked so, because an exception of theirs may be false, or refuse to say
                error = poisoned.error.copy()
                error.executed = "no"
                envelope.error = error
            envelope.answer()
        return doubtful

    def _begin(self, now_ms: int) -> None:
        try:
            # Typed turns do nothing that is not undone with the transaction: that the file stands at its path, its end makes sure of.
            self._store.begin(now_ms, durable=self._durable, look=False)
        except Unavailable as busy:
            self._busy = busy  # the others of this batch need not wait for the same lock again
            raise

    def _turn(self, envelope: Envelope, now_ms: int) -> Any:
        message, store = envelope.message, self._store
        if isinstance(message, Work):
            store.transaction.look()
            return perform(message, store, envelope, self._ref, now_ms)
        operation = IN_TRANSACTION[type(message)]
        if is_single(message) or type(message) in READS:
            return operation(store, message, now_ms)
        with store.savepoints.scope():
            return operation(store, message, now_ms)

    def _run_one(self, envelope: Envelope) -> None:
        try:
            now_ms = self._store.clock.now_ms()
            self._store.begin(now_ms, durable=is_durable(envelope.message))
            try:
                envelope.value = self._turn(envelope, now_ms)
            except SqliteError as error:
                raise self._store.transaction.after(error) from None
            self._committing = [envelope]
            self._store.commit()
        except Ended as ended:
            self._store.rollback()
            envelope.error = ended.error.copy()
        except Poisoned:
            raise
        except BaseException as error:  # noqa: BLE001 - as in `add`
            self._store.rollback()
            envelope.error = without_our_frames(error)

    def _read(self, envelope: Envelope) -> None:
        """Answer a read that sees nothing uncommitted. Raises Poisoned, after it was answered."""
        try:
            envelope.value = READS[type(envelope.message)](self._store.db, envelope.message)
        except SqliteError as error:
            try:
                envelope.error = self._store.transaction.after(error)
            except Ended as ended:
                self._store.rollback()  # there was no transaction to end
                envelope.error = ended.error.copy()
            except Poisoned as poisoned:
                envelope.error = poisoned.error.copy()
                envelope.answer()
                raise
        except Exception as error:  # noqa: BLE001 - a read that fails loses only itself
            envelope.error = without_our_frames(error)
        envelope.answer()

    def _after(self, error: BaseException) -> BaseException:
        """Return how a turn's own error is told. Raises Ended or Poisoned when it took more than the turn with it."""
        if type(error) is Theirs:
            error = error.error
        elif is_a(error, SqliteError):
            return self._store.transaction.after(error)
        if self._store.transaction.is_open:
            self._store.transaction.guard()
        return without_our_frames(error)


def waits(message: object) -> bool:
    """Return whether the answer to a turn waits for the disk; a read says what it sees, whether the disk has it or not."""
    return type(message) not in READS and is_durable(message)
