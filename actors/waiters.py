"""Those who wait for the journal to go on. They take no turn; each is answered after a COMMIT, or when its time is up."""

from __future__ import annotations

from collections.abc import Callable

from freehold.actors.deadline import monotonic
from freehold.actors.envelope import Envelope
from freehold.actors.reply import Reply
from freehold.schema.errors import MailboxFull
from freehold.schema.limits import WAIT_BEYOND_S, WAITERS_MAX
from freehold.schema.messages import WaitBeyond

_EARLY_S = 0.02
"""How long before its deadline a waiter is told that nothing has come: else its own clock would be quicker."""


class Waiters:
    """The envelopes of those who wait, in the owner's hands. An owner that ends answers all of them: they ask its next incarnation."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, Envelope]] = []

    def add(self, envelope: Envelope) -> None:
        """Let one wait who asks for an event beyond a seq, until the next `tell`. Refused (mailbox_full) beyond the bound."""
        until = monotonic() + WAIT_BEYOND_S
        if envelope.deadline is not None:
            until = min(until, envelope.deadline - _EARLY_S)
        if len(self._waiting) >= WAITERS_MAX:
            envelope.error = MailboxFull(
                f"{WAITERS_MAX} wait for this run's next event already; this one does not", messages_max=WAITERS_MAX
            )
            envelope.answer()
        else:
            self._waiting.append((until, envelope))

    def tell(self, last_seq: int, standing: Callable[[], tuple[str, bytes]]) -> None:
        """Answer those for whose event it is time, or to whom the run's *standing*, its status and first event, is news."""
        if not self._waiting:
            return
        status, first = standing()

        def has_come(_until: float, envelope: Envelope) -> bool:
            asked: WaitBeyond = envelope.message
            return last_seq > asked.seq or asked.status not in (None, status) or asked.first not in (None, first)

        for envelope in self._taken(has_come):
            envelope.value = last_seq
            envelope.answer()

    def give_up(self, now: float | None = None) -> None:
        """Answer None to those whose time is up, or to all of them."""
        for envelope in self._taken(lambda until, _envelope: now is None or until <= now):
            envelope.answer()

    def forget(self, reply: Reply) -> None:
        """Let one go for whose answer nobody waits any more."""
        self._taken(lambda _until, envelope: envelope.reply_to is reply)

    def soonest(self, other: float) -> float:
        """Return when the first one's time is up, or *other* if that is sooner."""
        if not self._waiting:
            return other
        return min([other, *(until for until, _ in self._waiting)])

    def _taken(self, which: Callable[[float, Envelope], bool]) -> list[Envelope]:
        taken = [envelope for until, envelope in self._waiting if which(until, envelope)]
        if taken:
            self._waiting = [(until, envelope) for until, envelope in self._waiting if not which(until, envelope)]
        return taken
