"""A transaction that spans messages: its holder works from its own thread, and everybody else waits."""

from __future__ import annotations

from typing import Any

from freehold.actors.envelope import Envelope
from freehold.actors.leases import Lease
from freehold.actors.operations import apply
from freehold.schema.errors import Error
from freehold.schema.messages import Commit, Message, Rollback
from freehold.storage.faults import Ended, Poisoned
from freehold.storage.store import Store


class SpanCall:
    """Message: one step of the transaction that *span* stands for. The token is compared by identity."""

    __slots__ = ("span", "step")

    def __init__(self, span: Span, step: Message) -> None:
        self.span = span
        self.step = step

    def __repr__(self) -> str:
        return f"<SpanCall {self.step!r}>"


class Span:
    """One spanning transaction, from its BEGIN to its end by commit, rollback or the time *until*."""

    def __init__(self, store: Store, lease: Lease | None, until: float) -> None:
        self._store = store
        self.lease = lease
        self.until = until
        self.now_ms = store.clock.now_ms()
        self.is_over = False
        self.timed_out = False
        store.begin(self.now_ms)

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
        envelope.answer()

    def _step(self, step: Message) -> Any:
        if isinstance(step, Commit):
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
