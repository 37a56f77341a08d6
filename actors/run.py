"""The run actor: alone owns one run file, and lets those who hold a lease take turns on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from freehold.actors.actor import Actor
from freehold.actors.batch import Batch, waits
from freehold.actors.claims import Claim
from freehold.actors.deadline import monotonic
from freehold.actors.envelope import Envelope, Lane
from freehold.actors.leases import Lease, lost
from freehold.actors.operations import only_looks
from freehold.actors.patience import when_readers_have_gone
from freehold.actors.refusal import refuse, stopping
from freehold.actors.reply import Reply
from freehold.actors.seat import Doubt, Seat
from freehold.actors.span import Span, SpanCall, Token, timed_out
from freehold.actors.waiters import Waiters
from freehold.actors.work import Work, over
from freehold.schema.errors import Crashed, Error, Refused
from freehold.schema.foreign import type_name
from freehold.schema.limits import BATCH_BYTES_MAX, BATCH_TURNS_MAX, IDLE_CHECKPOINT_S
from freehold.schema.messages import BeginStep, CloseLease, EndStep, OpenLease, OpenTransaction, Retire, WaitBeyond
from freehold.storage.events import hash_of, standing
from freehold.storage.faults import Ended, Poisoned
from freehold.storage.fence import OVERWRITTEN
from freehold.storage.pin import Pin, pin
from freehold.storage.recognise import Recognised
from freehold.storage.registry import REGISTRY
from freehold.storage.store import Store
from freehold.storage.verify import check_whole

_IDLE_LEAST_S = 0.05


class RunActor(Actor[Any]):
    """One incarnation of the owner of *seat*'s run."""

    batch_messages = BATCH_TURNS_MAX
    batch_bytes = BATCH_BYTES_MAX

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._span: Span | None = None
        self._waiters = Waiters()
        self._working: tuple[str, float] | None = None
        # Whoever has it started needs a moment to ask for a lease.
        self._kept_s = max(seat.idle_timeout, _IDLE_LEAST_S)
        self._active_at = monotonic()

    def started(self) -> None:
        """Recognise the file and take it over; whatever is wrong with it is raised as itself, and nothing is held."""
        seat = self._seat
        held = seat.take_pin() or self._pin()
        REGISTRY.hand_over(held.inode, self.ref)
        if seat.is_suspect:
            check_whole(held)
        self._store = store = Store(
            held,
            seat.clock,
            own_epoch=seat.epoch,
            vfs=seat.vfs,
            recognised=self._recognised,
            socket=seat.socket,
            secrets=seat.secrets,
        )
        try:
            same = seat.head is None or hash_of(store.db, seat.head.seq) == seat.head.hash
            happened = seat.doubt is not None and store.happened(seat.doubt.txn, seat.doubt.epoch)
        except BaseException:
            store.close(clean=False)
            raise
        if seat.epoch is not None and not (store.tenure.continues and same):
            seat.book.lose_all(None)
        seat.resolve(happened=happened if same else None)
        seat.claims.settle()
        seat.claims.sweep()
        seat.epoch = store.epoch
        self._active_at = monotonic()

    def _recognised(self, found: Recognised) -> None:
        """Say of a failed COMMIT that it did not happen, as soon as that is seen: the disk may be too full to take the file over.

        That it did happen is said after the take-over only, which makes it durable.
        """
        doubt = self._seat.doubt
        if doubt is not None and found.run.epoch == doubt.epoch and found.run.txn < doubt.txn:
            self._seat.resolve(happened=False)

    def stopped(self, reason: BaseException | None) -> None:
        """Give the file back: cleanly, or as it is after a crash."""
        if type(reason) is Poisoned and reason.error.details.get("fence") in OVERWRITTEN:
            self._seat.is_suspect = True
        self._seat.head = self._store.committed_head
        self._waiters.give_up()
        self._seat.claims.ask_again()
        try:
            self._end_span()
        finally:
            self._store.close(clean=reason is None, last_word=self._seat.last_word)

    def interrupt(self) -> None:
        """Cut short a statement that runs too long. Called from another thread, which SQLite allows for this alone."""
        self._store.db.interrupt()

    def take_turns(self, envelopes: Sequence[Envelope]) -> None:
        """Take one drain's turns as one batch, or one message that stands alone."""
        try:
            self._take_back()
        except Poisoned:
            refuse(self.ref.mailbox.put_back(envelopes), stopping)
            raise
        first = envelopes[0]
        if first.lane is Lane.SYSTEM or first.alone:
            self._alone(first)
        elif first.lane is Lane.SPAN:
            for envelope in envelopes:
                self._span_turn(envelope)
        else:
            self._batch(envelopes)
        self._tell_waiters()
        if first.lease is not None or first.lane is not Lane.USER or any(envelope.lease is not None for envelope in envelopes):
            self._active_at = monotonic()  # whoever looks on without a lease does not keep the file here
        if self._span is None and self._store.wal.is_long:
            self._store.wal.checkpoint()

    def wake_at(self) -> float | None:
        """Return the end of a spanning transaction, the next checkpoint, or the time to give the file back if nobody uses it."""
        if self._span is not None:
            due = self._span.until
        elif self._store.wal.is_waiting:
            due = min(self._active_at + IDLE_CHECKPOINT_S, self._unused_at())
        else:
            due = self._unused_at()
        return self._waiters.soonest(self._seat.claims.soonest(due))

    def idle(self) -> None:
        """Do what is due when nothing comes."""
        self._take_back()
        self._end_overdue()
        now = monotonic()
        self._waiters.give_up(now)
        self._seat.claims.ask_again(now)
        if self._span is not None:
            return
        if self._store.wal.is_waiting and now >= self._active_at + IDLE_CHECKPOINT_S:
            self._store.wal.checkpoint()
        if now >= self._unused_at():
            self._active_at = now
            self._seat.book.drop_closed()
            self._seat.claims.sweep()
            self.ending = not self._seat.book.holding

    def _unused_at(self) -> float:
        return self._active_at + self._kept_s

    def may_end(self) -> bool:
        """Let a spanning transaction and what waits behind it come to their end."""
        return self._span is None and not len(self.ref.mailbox)

    def doing(self) -> str | None:
        """Return the epoch, and for how long a callable has been running."""
        working = self._working
        leases = len(self._seat.book.open)
        text = f"epoch {self._seat.epoch}, {leases} lease{'' if leases == 1 else 's'}"
        return text if working is None else f"{text}, {working[0]} for {monotonic() - working[1]:.1f} s"

    # Turns

    def _batch(self, envelopes: Sequence[Envelope]) -> None:
        waiting = deque(envelopes)
        batch = Batch(self._store, self.ref, durable=any(waits(envelope.message) for envelope in envelopes))
        try:
            try:
                self._fill(batch, waiting)
                batch.end()
            except Ended as ended:
                batch.run_alone(ended)
        except Poisoned as poisoned:
            self._in_doubt(poisoned, batch.give_up(poisoned))
            raise
        except BaseException as error:
            batch.give_up(Poisoned(_failed(error)))
            raise
        finally:
            self._seat.claims.settle()
            # Whoever had no turn keeps the place; what has come in the system lane meanwhile goes first.
            if waiting:
                refuse(self.ref.mailbox.put_back(waiting), stopping)

    def _fill(self, batch: Batch, waiting: deque[Envelope]) -> None:
        while waiting and batch.admits(waiting[0].message):
            self._add(batch, waiting.popleft())
            if waiting:
                if batch.is_late:
                    return
            else:
                # The late drain: whoever came while the batch was at work joins it rather than wait for another fsync.
                room, size = batch.room()
                if room > 0 and size > 0:
                    waiting.extend(self.ref.mailbox.take_late(room, size))

    def _add(self, batch: Batch, envelope: Envelope) -> None:
        reply = envelope.reply_to
        if reply is not None and not reply.claim():
            return
        if (refusal := self._refusal(envelope)) is not None:
            envelope.error = refusal
            envelope.answer()
        elif isinstance(envelope.message, WaitBeyond):
            self._waiters.add(envelope)
        elif isinstance(envelope.message, BeginStep | EndStep):
            if self._seat.claims.admit(envelope):
                batch.add(envelope)
        elif isinstance(envelope.message, Work):
            self._working = "transact", monotonic()
            try:
                batch.add(envelope)
            finally:
                self._working = None
        else:
            batch.add(envelope)

    def _refusal(self, envelope: Envelope) -> Error | None:
        # Without a lease one may look, and nothing else.
        if envelope.lease is None and only_looks(envelope.message):
            return None
        return self._seat.book.check(envelope.lease)

    def _tell_waiters(self) -> None:
        if self._span is not None:
            return  # what it has done so far is nobody else's to see
        self._waiters.tell(self._store.committed_head.seq, lambda: standing(self._store.db))

    def _in_doubt(self, poisoned: Poisoned, turns: list[Envelope]) -> None:
        if poisoned.unknown_txn is not None:
            code = int(poisoned.error.details.get("sqlite_extended_code", 0))
            self._seat.doubt = Doubt(poisoned.unknown_txn, self._store.epoch, turns, code)

    # What stands alone

    def _alone(self, envelope: Envelope) -> None:
        message, reply = envelope.message, envelope.reply_to
        if reply is not None and not reply.claim():
            return
        try:
            match message:
                case OpenLease() if envelope.lease is not None:
                    self._seat.book.enter(envelope.lease)
                case CloseLease():
                    self._close_lease(envelope.lease)
                case Retire():
                    self._retire()
                case SpanCall(token=token, step=OpenTransaction(timeout, durable)):
                    if (refusal := self._seat.book.check(envelope.lease)) is not None:
                        raise refusal
                    self._open_span(envelope, token, timeout, durable=durable)
                case _:
                    raise over()
        except Ended as ended:
            envelope.error = ended.error
        except Poisoned as poisoned:
            envelope.error = poisoned.error.copy()
            envelope.answer()
            raise
        except Error as error:
            envelope.error = error
        envelope.answer()

    def _close_lease(self, lease: Lease | None) -> None:
        if lease is not None:
            self._seat.book.close(lease)
            self._seat.claims.sweep()
            if self._span is not None and self._span.lease is lease:
                self._end_span()

    def _take_back(self) -> None:
        """Close the leases, and end the transaction, that were lost to the collector; let those go who wait for nothing any more."""
        for lost_one in self.ref.mailbox.posted():
            if isinstance(lost_one, Lease):
                self._close_lease(lost_one)
            elif isinstance(lost_one, Claim):
                self._seat.claims.give_back(lost_one)
            elif isinstance(lost_one, Reply):
                self._waiters.forget(lost_one)
            elif self._span is not None and lost_one is self._span.token:
                self._end_span()

    def _retire(self) -> None:
        self._seat.book.drop_closed()
        if holding := self._seat.book.holding:
            raise Refused(
                f"{holding} leases on {self._seat.path.id} are open; close them first. Nothing was changed",
                code="run_in_use",
            )
        self.ref.mailbox.seal(lambda: lost(self._seat.path.id, None))
        self.ending = True

    # A transaction that spans messages

    def _open_span(self, envelope: Envelope, token: Token, timeout: float, *, durable: bool = True) -> None:
        if token.given_up or (token.hold is not None and token.hold() is None):
            raise over()
        self._span = Span(self._store, token, envelope.lease, monotonic() + timeout, durable=durable)
        self.ref.mailbox.narrow(to_span=True)

    def _span_turn(self, envelope: Envelope) -> None:
        reply = envelope.reply_to
        if reply is not None and not reply.claim():
            return
        asked: Token = envelope.message.token
        if self._span is None or asked is not self._span.token:
            envelope.error = timed_out() if asked.timed_out else over()
            envelope.answer()
            return
        try:
            self._span.turn(envelope)
        except Poisoned as poisoned:
            self._in_doubt(poisoned, [envelope])
            raise
        if self._span.is_over:
            self._end_span()

    def _end_overdue(self) -> None:
        if self._span is not None and monotonic() >= self._span.until:
            self._span.token.timed_out = True
            self._end_span()

    def _end_span(self) -> None:
        span, self._span = self._span, None
        self.ref.mailbox.narrow(to_span=False)
        if span is not None:
            span.token.hold = None
            span.end()

    # Owning

    def _pin(self) -> Pin:
        """Pin the file; wait a moment for readers, who hold its lock for one call."""
        return when_readers_have_gone(lambda: pin(self._seat.path, exclusive=True, owner=self.ref))


def _failed(error: BaseException) -> Crashed:
    # A fault of ours. Its text could quote a value.
    return Crashed(f"the owner failed ({type_name(error)}); nothing of this request was kept")
