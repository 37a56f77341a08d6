"""Who is at which step: one runner at a time, and the others wait until it is over.

A claim is an object compared by identity, made by whoever wants to run a step. It ends with the outcome or the failed attempt that its
runner records, when it is given back, or with the lease that it was made under. The book outlives the owner's own reopenings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from freehold.actors.waiting import Waiting
from freehold.schema.errors import Error, MailboxFull, Refused
from freehold.schema.limits import STEP_WAITERS_MAX
from freehold.schema.messages import BeginStep, EndStep
from freehold.schema.steps import Again, Go
from freehold.storage.steps import claim_lost

if TYPE_CHECKING:
    from collections.abc import Iterable

    from freehold.actors.envelope import Envelope
    from freehold.actors.mailbox import Hold


class Claim:
    """One caller's right to be at one step, inside of those whose claims are *outer*."""

    __slots__ = ("hold", "outer")

    def __init__(self, outer: tuple[Claim, ...] = ()) -> None:
        self.outer = outer
        self.hold: Hold | None = None
        """Tells the owner when whoever holds the claim is collected."""


class _Held(NamedTuple):
    claim: Claim
    begun: Envelope
    """What it was asked for with: in whose name, and what the answer was, once there is one."""

    @property
    def is_live(self) -> bool:
        lease = self.begun.lease
        return lease is not None and not lease.closed and lease.lost is None


class Claims:
    """The claims on the steps of one run, and who waits for one. Used by the run's owner alone."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        self._waiting = Waiting()
        self._fresh: list[Envelope] = []
        """Those who were let in, and have not been answered yet."""

    def admit(self, envelope: Envelope) -> bool:
        """Return whether what is asked of a step may take its turn now; else it waits, or was refused: that is its answer then."""
        message: BeginStep | EndStep = envelope.message
        held = self._held.get(message.position)
        if isinstance(message, EndStep):
            if held is None or held.claim is not envelope.claim or not held.is_live:
                return _refuse(envelope, claim_lost(message.name))
        elif envelope.claim is None:
            return _refuse(envelope, claim_lost(message.name))
        elif held is not None and held.claim is not envelope.claim and held.is_live:
            return self._wait(envelope, held)
        else:
            self._held[message.position] = _Held(envelope.claim, envelope)
        self._fresh.append(envelope)
        return True

    def settle(self) -> None:
        """Take in how those were answered who were let in; what no COMMIT has answered yet is left for the next incarnation."""
        fresh, self._fresh = self._fresh, []
        for envelope in fresh:
            if envelope.reply_to is not None and not envelope.reply_to.is_set:
                self._fresh.append(envelope)
            elif (isinstance(envelope.message, BeginStep) and (envelope.error is not None or not isinstance(envelope.value, Go))) or (
                isinstance(envelope.message, EndStep) and envelope.error is None
            ):
                self._end(envelope.message.position, envelope.claim)

    def give_back(self, claim: Claim) -> None:
        """End a claim whose runner has gone, whatever it was at, or let it wait no more."""
        self._waiting.take(lambda envelope: envelope.claim is claim)
        for position in [position for position, held in self._held.items() if held.claim is claim]:
            self._end(position, claim)

    def sweep(self) -> None:
        """End the claims whose leases have ended."""
        for position, held in list(self._held.items()):
            if not held.is_live:
                self._end(position, held.claim)

    def ask_again(self, now: float | None = None) -> None:
        """Tell those whose time is up to ask again, or all of them."""
        _send_back(self._waiting.take_overdue(now))

    def soonest(self, other: float) -> float:
        """Return when the first one's time is up, or *other* if that is sooner."""
        return self._waiting.soonest(other)

    def _end(self, position: str, claim: Claim | None) -> None:
        held = self._held.get(position)
        if held is not None and held.claim is claim:
            del self._held[position]
            _send_back(self._waiting.take(lambda envelope: envelope.message.position == position))

    def _wait(self, envelope: Envelope, held: _Held) -> bool:
        if self._leads_to(held.claim, envelope.claim.outer if envelope.claim is not None else ()):
            return _refuse(envelope, cycle(envelope.message.name))
        if len(self._waiting) >= STEP_WAITERS_MAX:
            most = STEP_WAITERS_MAX
            return _refuse(envelope, MailboxFull(f"{most} wait for steps of this run already; this one does not", messages_max=most))
        self._waiting.add(envelope)
        return False

    def _leads_to(self, holder: Claim, wanted: tuple[Claim, ...]) -> bool:
        """Return whether the runner of *holder* waits, by way of others, for a step that is one of *wanted*."""
        seen: set[Claim] = set()
        ahead = [holder]
        while ahead:
            one = ahead.pop()
            if one in wanted:
                return True
            if one not in seen:
                seen.add(one)
                waits_for = (envelope.message.position for envelope in self._waiting if envelope.claim and one in envelope.claim.outer)
                ahead += [held.claim for held in map(self._held.get, waits_for) if held is not None]
        return False


def cycle(name: str) -> Refused:
    """Return what is said of a step that would wait for its own end."""
    return Refused(
        f"to wait for the step {name!r} here would be to wait for itself: whoever is at it waits for a step that this one is inside of, or "
        "is that; use another key. Nothing was changed",
        code="ask_cycle",
        key=name,
    )


def _send_back(envelopes: Iterable[Envelope]) -> None:
    for envelope in envelopes:
        envelope.value = Again()
        envelope.answer()


def _refuse(envelope: Envelope, error: Error) -> bool:
    envelope.error = error
    envelope.answer()
    return False
