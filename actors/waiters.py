"""Those who wait for the journal to go on. They take no turn; each is answered after a COMMIT, or when its time is up."""

from __future__ import annotations

from collections.abc import Callable

from freehold.actors.envelope import Envelope
from freehold.actors.reply import Reply
from freehold.actors.waiting import Waiting
from freehold.schema.errors import MailboxFull
from freehold.schema.limits import WAITERS_MAX
from freehold.schema.messages import WaitBeyond


class Waiters:
    """The envelopes of those who wait, in the owner's hands. An owner that ends answers all of them: they ask its next incarnation."""

    def __init__(self) -> None:
        self._waiting = Waiting()

    def add(self, envelope: Envelope) -> None:
        """Let one wait who asks for an event beyond a seq, until the next `tell`. Refused (mailbox_full) beyond the bound."""
        if len(self._waiting) >= WAITERS_MAX:
            envelope.error = MailboxFull(
                f"{WAITERS_MAX} wait for this run's next event already; this one does not", messages_max=WAITERS_MAX
            )
            envelope.answer()
        else:
            self._waiting.add(envelope)

    def tell(self, last_seq: int, standing: Callable[[], tuple[str, bytes]]) -> None:
        """Answer those for whose event it is time, or to whom the run's *standing*, its status and first event, is news."""
        if not self._waiting:
            return
        status, first = standing()

        def has_come(envelope: Envelope) -> bool:
            asked: WaitBeyond = envelope.message
            return last_seq > asked.seq or asked.status not in (None, status) or asked.first not in (None, first)

        for envelope in self._waiting.take(has_come):
            envelope.value = last_seq
            envelope.answer()

    def give_up(self, now: float | None = None) -> None:
        """Answer None to those whose time is up, or to all of them."""
        for envelope in self._waiting.take_overdue(now):
            envelope.answer()

    def forget(self, reply: Reply) -> None:
        """Let one go for whose answer nobody waits any more."""
        self._waiting.take(lambda envelope: envelope.reply_to is reply)

    def soonest(self, other: float) -> float:
        """Return when the first one's time is up, or *other* if that is sooner."""
        return self._waiting.soonest(other)
