"""Envelopes whose answers are put off: each is answered when something has come, or when its time is up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freehold.actors.deadline import monotonic
from freehold.schema.limits import WAIT_BEYOND_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from freehold.actors.envelope import Envelope

_EARLY_S = 0.02
"""How long before its deadline one who waits is answered: else its own clock would be quicker."""


class Waiting:
    """The envelopes, in the order in which they came, in the owner's hands."""

    def __init__(self) -> None:
        self._each: list[tuple[float, Envelope]] = []

    def __len__(self) -> int:
        return len(self._each)

    def __iter__(self) -> Iterator[Envelope]:
        return (envelope for _, envelope in self._each)

    def add(self, envelope: Envelope) -> None:
        """Put off an answer for `WAIT_BEYOND_S` at most, and never beyond the envelope's own deadline."""
        until = monotonic() + WAIT_BEYOND_S
        if envelope.deadline is not None:
            until = min(until, envelope.deadline - _EARLY_S)
        self._each.append((until, envelope))

    def take(self, which: Callable[[Envelope], bool]) -> list[Envelope]:
        """Return those for which *which* is true, who wait here no more."""
        return self._taken(lambda _until, envelope: which(envelope))

    def take_overdue(self, now: float | None = None) -> list[Envelope]:
        """Return those whose time is up, or all of them, who wait here no more."""
        return self._taken(lambda until, _envelope: now is None or until <= now)

    def soonest(self, other: float) -> float:
        """Return when the first one's time is up, or *other* if that is sooner."""
        if not self._each:
            return other
        return min([other, *(until for until, _ in self._each)])

    def _taken(self, which: Callable[[float, Envelope], bool]) -> list[Envelope]:
        taken = [envelope for until, envelope in self._each if which(until, envelope)]
        if taken:
            self._each = [(until, envelope) for until, envelope in self._each if not which(until, envelope)]
        return taken
