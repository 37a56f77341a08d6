"""A callable that runs in the owner's thread, in a copy of its caller's context, inside one turn."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import Context
from typing import TYPE_CHECKING, Any

from freehold.actors.deadline import CHAIN, DEADLINE, Chain, Link, exceeded, monotonic
from freehold.actors.operations import apply
from freehold.schema.errors import Crashed, Error, Refused
from freehold.schema.foreign import is_frame_of_ours, traceback_of
from freehold.schema.messages import Message
from freehold.storage.faults import Ended, Poisoned, SqliteError

if TYPE_CHECKING:
    from freehold.actors.envelope import Envelope
    from freehold.actors.ref import ActorRef
    from freehold.storage.store import Store

Do = Callable[[Message], Any]


class Work:
    """Message: run *body(do, now_ms)*; it returns the value, and its text where a request id is to remember it."""

    __slots__ = ("body", "context", "digest", "durable", "request_id")

    def __init__(
        self,
        body: Callable[[Do, int], tuple[Any, str | None]],
        context: Context,
        request_id: str | None,
        digest: bytes | None,
        *,
        durable: bool = True,
    ) -> None:
        self.body = body
        self.context = context
        self.request_id = request_id
        self.digest = digest
        self.durable = durable

    def __repr__(self) -> str:
        return "<Work>"


class Theirs(Exception):
    """A work's own exception of SQLite's kind: it came from a connection of theirs and says nothing about ours."""

    def __init__(self, error: SqliteError) -> None:
        super().__init__()
        self.error = error


class Turn:
    """What a callable may do in its turn; dead afterwards, and in every other thread."""

    def __init__(self, store: Store, now_ms: int, deadline: float | None) -> None:
        self._store = store
        self._now_ms = now_ms
        self._deadline = deadline
        self._thread = threading.get_ident()
        self._over = False
        self.broken: BaseException | None = None
        """What cut a step short, so that nobody knows how far it came."""

    def do(self, message: Message) -> Any:
        """Carry out one step. Raises Refused (transaction_over), DeadlineExceeded, StorageFailed."""
        if self._over or threading.get_ident() != self._thread:
            raise over()
        if self._deadline is not None and monotonic() > self._deadline:
            raise exceeded("no")
        try:
            return apply(self._store, message, self._now_ms)
        except (Ended, Poisoned) as end:
            # The callable may catch this; whatever it does then, its turn has ended.
            raise end.error.copy() from None
        except Error:
            raise
        except BaseException as error:
            self.broken = error
            raise

    def end(self) -> None:
        """Refuse every later step."""
        self._over = True


def perform(work: Work, store: Store, envelope: Envelope, ref: ActorRef[Any], now_ms: int) -> Any:
    """Run *work* in a savepoint of its own and return its value, or what it returned when it ran before."""
    request_id, digest = work.request_id, work.digest
    if (repeated := store.repeated(request_id, digest)) is not None:
        return repeated
    turn = Turn(store, now_ms, envelope.deadline)
    link = Link(ref)
    try:
        with store.savepoints.scope():
            depth = store.savepoints.depth
            try:
                value, reply = work.context.run(_inside, work, turn, (*envelope.chain, link), envelope.deadline)
            except SqliteError as error:
                raise Theirs(error) from None
            store.transaction.guard()
            if turn.broken is not None or store.savepoints.depth != depth:
                # The callable went on after an error that had cut one of its steps short: what it holds is not whole.
                raise turn.broken if turn.broken is not None else unended()
            if reply is not None:
                store.remember(request_id, digest, now_ms, reply)
    finally:
        turn.end()
        link.over = True
    return value


def _inside(work: Work, turn: Turn, chain: Chain, deadline: float | None) -> tuple[Any, str | None]:
    CHAIN.set(chain)
    DEADLINE.set(deadline)
    return work.body(turn.do, turn._now_ms)  # noqa: SLF001 - a part of this file


def over() -> Refused:
    """Return what a transaction says that was kept after its end, or used in another thread."""
    return Refused("this transaction is over, or belongs to another thread; nothing was changed", code="transaction_over")


def unended() -> Crashed:
    """Return what a transaction says whose end finds a savepoint of it that was not ended."""
    return Crashed("a savepoint of this transaction was not ended; nothing was kept")


def without_our_frames(error: BaseException) -> BaseException:
    """Return *error* with a traceback that begins in its own code, and so keeps none of the owner's objects alive."""
    trace = traceback_of(error)
    while trace is not None and is_frame_of_ours(trace):
        trace = trace.tb_next
    return BaseException.with_traceback(error, trace)  # a class may have one of its own
