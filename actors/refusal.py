"""Answering what will not be taken up any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from freehold.actors.envelope import Envelope, Lane
from freehold.schema.errors import Error, Unavailable


def stopping() -> Unavailable:
    """Return what is said of a message that came too late."""
    return Unavailable("the actor is stopping and had not taken this message up; nothing was changed", code="stopping")


def refuse(envelopes: Sequence[Envelope], refusal: Callable[[], Error]) -> int:
    """Answer each of *envelopes* with an error of its own; return how many told messages were lost with them."""
    lost = 0
    for envelope in envelopes:
        if envelope.reply_to is None:
            lost += envelope.lane is not Lane.SYSTEM  # a stop that came too late is not missed
        elif envelope.reply_to.claim():
            envelope.reply_to.fail(refusal())
    return lost
