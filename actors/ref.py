"""How an actor is known to others: by a name and its mailbox, through every restart."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from freehold.actors.claims import Claim
from freehold.actors.deadline import CHAIN, deadline_in, exceeded, monotonic
from freehold.actors.envelope import Envelope, Lane
from freehold.actors.leases import Lease
from freehold.actors.mailbox import Mailbox
from freehold.actors.reply import Reply
from freehold.schema.errors import InsideTransaction, Refused
from freehold.schema.limits import ASK_TIMEOUT_S

M = TypeVar("M")


class ActorRef(Generic[M]):
    """Sends messages to one actor. Ask downhill, tell uphill, never ask a peer."""

    __slots__ = ("mailbox", "name", "timeout")

    def __init__(self, name: str, mailbox: Mailbox | None = None, timeout: float = ASK_TIMEOUT_S) -> None:
        self.name = name
        self.mailbox = mailbox if mailbox is not None else Mailbox()
        self.timeout = timeout

    def tell(self, message: M) -> None:
        """Send *message* and wait for nothing. Raises MailboxFull or Unavailable when it was not taken."""
        self.mailbox.put(Envelope(message))

    def ask(self, message: M, *, timeout: float | None = None) -> Any:
        """Send *message* and return its answer.

        Raises what the actor answers with; DeadlineExceeded after *timeout* seconds (30 by default);
        InsideTransaction or Refused (ask_cycle), at once, when the answer could only come from the asker itself.
        """
        return self.send(Envelope(message, Reply()), self.timeout if timeout is None else timeout)

    def send(self, envelope: Envelope, timeout: float | None) -> Any:
        """Put *envelope* in and wait for the answer to its reply."""
        chain = CHAIN.get()
        if chain:
            chain = tuple(link for link in chain if not link.over)
            # The holder of a spanning transaction stands in the chain itself, so that its other calls are refused.
            if envelope.lane is not Lane.SPAN and any(link.ref is self for link in chain):
                raise self._cycle([link.ref for link in chain])
            envelope.chain = chain
        envelope.deadline = deadline = deadline_in(timeout)
        reply = envelope.reply_to
        assert reply is not None
        if deadline is not None and deadline <= monotonic():
            raise exceeded("no", self.name)
        try:
            self.mailbox.put(envelope)
            return reply.get(None if deadline is None else deadline - monotonic())
        except TimeoutError as error:
            if reply.error is error:
                raise  # the actor's own answer
            raise exceeded("no" if reply.abandon() else "unknown", self.name) from None
        except BaseException:
            reply.abandon()  # the asker was interrupted: what was not taken up will not run
            raise

    def system(self, message: Any) -> None:
        """Send a message that is taken before all others, however full the mailbox is."""
        self.mailbox.put(Envelope(message, lane=Lane.SYSTEM))

    def post_system(self, message: Any, lease: Lease) -> None:
        """Tell in the name of *lease*, before all others."""
        self.mailbox.put(Envelope(message, None, lease, lane=Lane.SYSTEM))

    def call(
        self,
        message: Any,
        lease: Lease | None,
        size: int = 0,
        *,
        lane: Lane = Lane.USER,
        alone: bool = False,
        timeout: float | None = None,
        claim: Claim | None = None,
    ) -> Any:
        """Ask in the name of *lease*, and of a step with its *claim*."""
        envelope = Envelope(message, Reply(), lease, lane=lane, size=size, alone=alone, claim=claim)
        return self.send(envelope, self.timeout if timeout is None else timeout)

    def _cycle(self, chain: list[ActorRef[Any]]) -> Refused:
        if chain[-1] is self:
            return InsideTransaction(
                f"{self.name} was called from inside its own turn or transaction; use the transaction at hand. Nothing was changed",
                run=self.name,
            )
        names = [ref.name for ref in (*chain[chain.index(self) :], self)]
        return Refused(
            f"this call would wait for itself: {' asks '.join(names)}; tell instead, or ask from outside. Nothing was changed",
            code="ask_cycle",
            chain=names,
        )

    def __repr__(self) -> str:
        return f"<ActorRef {self.name}>"
