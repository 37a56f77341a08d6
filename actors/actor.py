"""What an actor is to whoever writes one: sequential code with a mailbox. No locks, no threads, one message at a time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from freehold.actors.deadline import CHAIN, DEADLINE, Link
from freehold.actors.envelope import Envelope
from freehold.actors.refusal import refuse, stopping
from freehold.schema.errors import DeadlineExceeded, Refused, Unavailable

if TYPE_CHECKING:
    from freehold.actors.ref import ActorRef
    from freehold.actors.reply import Reply

M = TypeVar("M")

ANSWERS = (Refused, Unavailable, DeadlineExceeded)
"""Errors that say that nothing is wrong with the actor. They answer the message and end nothing."""

log = logging.getLogger("freehold.actors")


class Actor(Generic[M]):
    """Subclass it, write `receive`, and let a supervisor start it.

    An exception from `receive` is the answer to the message and the end of this incarnation, whether the sender asked
    or told; `Refused`, `Unavailable` and `DeadlineExceeded` are answers only. All but `interrupt` and `doing` run in the
    actor's own thread.
    """

    ref: ActorRef[M]
    """How others know this actor. Set before `started`."""

    def started(self) -> None:
        """Make ready. What is raised here is raised by whoever starts the actor; clean up before raising."""

    def receive(self, message: M) -> object:
        """Handle one message and return the answer to it."""
        raise TypeError(f"{type(self).__name__} takes no {type(message).__name__}")

    def stopped(self, reason: BaseException | None) -> None:
        """Close what `started` opened. Called once, also after a crash (*reason*), not after a failed start."""

    def interrupt(self) -> None:
        """Cut short what the actor is doing. Called from another thread when stopping takes too long."""

    # What follows is for actors that take several messages at once.

    batch_messages = 1
    batch_bytes = 1
    ending = False
    """Set to end this incarnation normally after the current batch."""
    asker: Reply | None = None
    """Who waits for the answer to the message at hand; for a `receive` that returns LATER."""

    def wake_at(self) -> float | None:
        """Return the monotonic time of the next `idle`, or None."""
        return None

    def idle(self) -> None:
        """Called when `wake_at` has come and no message has."""

    def may_end(self) -> bool:
        """Return whether a draining actor has nothing left to do."""
        return not len(self.ref.mailbox)

    def doing(self) -> str | None:
        """Return what the actor is at, for `tree()`: read from other threads, so only attributes."""
        return None

    def take_turns(self, envelopes: Sequence[Envelope]) -> None:
        """Handle a batch and answer each message. What is raised ends the incarnation; the rest waits for the next."""
        for count, envelope in enumerate(envelopes, 1):
            reply = envelope.reply_to
            if reply is not None and not reply.claim():
                continue
            link = Link(self.ref)
            CHAIN.set((*envelope.chain, link))
            DEADLINE.set(envelope.deadline)
            self.asker = reply
            try:
                answer: Any = self.receive(envelope.message)
            except ANSWERS as error:
                if reply is not None:
                    reply.fail(error)
                else:
                    log.error("%s refused a %s that was told: %s", self.ref.name, type(envelope.message).__name__, error.code)  # noqa: TRY400 - one line says it all
            except BaseException as error:
                if reply is not None:
                    reply.fail(error)
                refuse(self.ref.mailbox.put_back(envelopes[count:]), stopping)
                raise
            else:
                if reply is not None and answer is not LATER:
                    reply.set(answer)
            finally:
                link.over = True


class _Later:
    """The answer of a `receive` that has kept the reply, to answer later."""


LATER = _Later()
