"""A transaction that spans messages: its holder works from its own thread, and everybody else waits."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from freehold.actors.envelope import Envelope, Lane
from freehold.actors.leases import Lease
from freehold.actors.mailbox import Hold
from freehold.actors.operations import apply
from freehold.actors.ref import ActorRef
from freehold.actors.work import over, unended, without_our_frames
from freehold.schema.errors import DeadlineExceeded, Error
from freehold.schema.messages import Commit, Message, OpenTransaction, Rollback
from freehold.storage.faults import Ended, Poisoned
from freehold.storage.store import Store


class Token:
    """Stands for one spanning transaction, from before it begins; compared by identity."""

    __slots__ = ("given_up", "hold", "now_ms", "timed_out")

    def __init__(self) -> None:
        self.given_up = False
        self.hold: Hold | None = None
        """Tells the owner when the holder's block is collected."""
        self.timed_out = False
        self.now_ms = 0


class SpanCall:
    """Message: one step of the transaction that *token* stands for, its beginning included."""

    __slots__ = ("step", "token")

    def __init__(self, token: Token, step: Message) -> None:
        self.token = token
        self.step = step

    def __repr__(self) -> str:
        return f"<SpanCall {self.step!r}>"


class Holding:
    """The holder's side of a spanning transaction: sends its steps, from the thread that began it and no other."""

    def __init__(self, ref: ActorRef[Any], lease: Lease, timeout: float, *, patience: float | None = None, durable: bool = True) -> None:
        """The whole of it may take *timeout* seconds, each of its calls *patience*."""
        self.ref = ref
        self._lease = lease
        self._timeout = timeout
        self._patience = patience
        self._durable = durable
        self._thread = threading.get_ident()
        self._token = Token()

    def begin(self, block: object) -> None:
        """Begin: the batch before is committed first, and from now on everybody else waits, at the longest while *block* lives."""
        self._token.hold = self.ref.mailbox.hold(block, self._token)
        begin = SpanCall(self._token, OpenTransaction(self._timeout, self._durable))
        self.ref.call(begin, self._lease, alone=True, timeout=self._patience)

    @property
    def now_ms(self) -> int:
        """The one time of the transaction."""
        return self._token.now_ms

    def do(self, step: Message) -> Any:
        """Carry out one step. Raises Refused (transaction_over), DeadlineExceeded, and what the step raises."""
        self.check_thread()
        return self.ref.call(SpanCall(self._token, step), self._lease, lane=Lane.SPAN, timeout=self._patience)

    def check_thread(self) -> None:
        """Raise Refused (transaction_over) in another thread than the one that began."""
        if not self.is_here():
            raise over()

    def is_here(self) -> bool:
        """Return whether this is the thread that began."""
        return threading.get_ident() == self._thread

    def give_up(self) -> None:
        """Tell the owner to roll back, whatever time is left."""
        with suppress(Error):  # an owner that is gone has rolled back; the caller's own error matters more
            self.ref.mailbox.put(Envelope(SpanCall(self._token, Rollback()), None, self._lease, lane=Lane.SPAN))

    def lose(self) -> None:
        """Leave word, from a finalizer too, that nobody will end the transaction, or wait for its beginning."""
        self._token.given_up = True
        self.ref.mailbox.post(self._token)


def timed_out() -> DeadlineExceeded:
    """Return what the holder is told whose transaction has taken longer than it may."""
    return DeadlineExceeded("the transaction took longer than its time, and all of it was undone; give it more: transaction(timeout=…)")


class Span:
    """One spanning transaction, from its BEGIN to its end by commit, rollback or the time *until*."""

    def __init__(self, store: Store, token: Token, lease: Lease | None, until: float, *, durable: bool = True) -> None:
        self._store = store
        self.token = token
        self.lease = lease
        self.until = until
        self.now_ms = token.now_ms = store.clock.now_ms()
        self.is_over = False
        store.begin(self.now_ms, durable=durable)

    def turn(self, envelope: Envelope) -> None:
        """Carry out one step and answer it. Raises Poisoned; then a step that was to commit is not answered yet."""
        call: SpanCall = envelope.message
        try:
            envelope.value = self._step(call.step)
        except Ended as ended:
            self.end()
            envelope.error = ended.error.copy()
        except Poisoned as poisoned:
            self.is_over = True
            if poisoned.unknown_txn is None:
                envelope.error = poisoned.error.copy()
                envelope.answer()
            raise
        except Error as error:
            envelope.error = error
        except BaseException as error:  # noqa: BLE001 - it cut the step short, so nobody knows how far that came: all of it is undone
            self.end()
            envelope.error = without_our_frames(error)
        envelope.answer()

    def _step(self, step: Message) -> Any:
        if isinstance(step, Commit):
            if self._store.savepoints.depth:
                self.end()
                raise unended()
            self._store.commit()
            self.is_over = True
            return None
        if isinstance(step, Rollback):
            self.end()
            return None
        return apply(self._store, step, self.now_ms)

    def end(self) -> None:
        """Undo what was not committed."""
        if not self.is_over:
            self.is_over = True
            self._store.rollback()
