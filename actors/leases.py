"""Leases: a caller's own hold on a run. Closing one invalidates it alone; the book is the run actor's.

A lease is an object compared by identity, so a forged one cannot be made from a name or a number.
"""

from __future__ import annotations

from freehold.actors.mailbox import Hold
from freehold.schema.errors import Error, LeaseClosed, LeaseLost, Refused


class Lease:
    """One hold on one run, made by whoever asks for it and entered by the owner. Its flags only ever go to closed or lost."""

    __slots__ = ("book", "closed", "hold", "is_guest", "lost")

    def __init__(self, *, is_guest: bool = False) -> None:
        """*is_guest*: of somebody in another process, who owns nothing between two calls: it keeps no run from being given back."""
        self.is_guest = is_guest
        self.book: LeaseBook | None = None
        self.closed = False
        self.lost: LeaseLost | None = None
        self.hold: Hold | None = None
        """Tells the owner when whoever holds the lease is collected."""


class LeaseBook:
    """The open leases of one run. It outlives the run actor's restarts."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.open: set[Lease] = set()

    def enter(self, lease: Lease) -> None:
        """Give *lease* the right to this run. Raises LeaseClosed if whoever wanted it has given it up meanwhile."""
        if lease.closed:
            raise closed(self.run_id)
        lease.book = self
        self.open.add(lease)

    def close(self, lease: Lease) -> None:
        """Invalidate *lease*; closing twice is fine."""
        lease.closed = True
        lease.hold = None
        self.open.discard(lease)

    def drop_closed(self) -> None:
        """Close those of which a signal has cut the word short."""
        for lease in [lease for lease in self.open if lease.closed]:
            self.close(lease)

    @property
    def holding(self) -> int:
        """How many keep the run here."""
        return sum(not lease.is_guest for lease in self.open)

    def lose_all(self, cause: Error | None) -> None:
        """End every lease: another owner came in between, or the run is no longer held here."""
        for lease in self.open:
            lease.lost = lost(self.run_id, cause)
            lease.hold = None
        self.open.clear()

    def check(self, lease: Lease | None) -> Error | None:
        """Return why *lease* gives no right to this run, or None if it does."""
        if lease is None or lease.book is not self:
            return Refused("this lease is not one of this run; open the run. Nothing was changed", code="lease_foreign")
        if lease.closed:
            return closed(self.run_id)
        return lease.lost.copy() if lease.lost is not None else None


def closed(run_id: str) -> LeaseClosed:
    """Return what the holder of a closed lease is told."""
    return LeaseClosed(f"this lease on {run_id} was closed; open the run again. Nothing was changed", run=run_id)


def lost(run_id: str, cause: Error | None) -> LeaseLost:
    """Return what the holder of a lost lease is told."""
    error = LeaseLost(f"this lease on {run_id} was lost; open the run again. Nothing was changed", run=run_id)
    error.__cause__ = cause
    return error
