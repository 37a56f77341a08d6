"""A message on its way: what is asked, by which lease, who waits for the answer, through whom it came, and what came of it."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from freehold.actors.claims import Claim
    from freehold.actors.deadline import Chain
    from freehold.actors.leases import Lease
    from freehold.actors.reply import Reply

_OVERHEAD_BYTES = 200


class Lane(IntEnum):
    """Lanes of a mailbox, served in this order; first come, first served inside a lane."""

    SYSTEM = 0
    """Stop, start, monitor: never bounded, never delayed by work."""
    SPAN = 1
    """Messages of the transaction that spans several of them."""
    USER = 2
    """Everything else."""


class Envelope:
    """Carries one message. `alone` cuts a batch: what came before is committed first."""

    __slots__ = ("alone", "chain", "claim", "deadline", "error", "lane", "lease", "message", "reply_to", "size", "value")

    def __init__(
        self,
        message: Any,
        reply_to: Reply | None = None,
        lease: Lease | None = None,
        chain: Chain = (),
        deadline: float | None = None,
        *,
        lane: Lane = Lane.USER,
        size: int = 0,
        alone: bool = False,
        claim: Claim | None = None,
    ) -> None:
        self.message = message
        self.reply_to = reply_to
        self.lease = lease
        self.chain = chain
        self.deadline = deadline
        self.lane = lane
        self.size = size + _OVERHEAD_BYTES
        self.alone = alone
        self.claim = claim
        self.value: Any = None
        self.error: BaseException | None = None

    def answer(self) -> None:
        """Tell whoever waits what came of it."""
        if self.reply_to is None:
            return
        if self.error is None:
            self.reply_to.set(self.value)
        else:
            self.reply_to.fail(self.error)

    def __repr__(self) -> str:
        return f"<Envelope {type(self.message).__name__}>"
