"""What a supervisor decides: pure functions and tables, tested without a thread."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from freehold.actors.spec import Excess, Restart
from freehold.schema.errors import Crashed, DeadlineExceeded, Error, Unavailable, is_ours
from freehold.schema.foreign import is_a
from freehold.storage.faults import is_disk_full

BACKOFF_FIRST_S = 0.01
BACKOFF_MAX_S = 2.0


class Exit(Enum):
    """How an incarnation ended."""

    NORMAL = "normal"
    """It stopped by itself or was told to."""
    CRASH = "crash"
    """An exception ended it; another try may go well."""
    FINAL = "final"
    """It cannot come back: what it needs is not there, or not what it must be."""


class Verdict(Enum):
    """What becomes of a child that ended."""

    RESTART = "restart"
    STOP = "stop"
    QUARANTINE = "quarantine"
    ESCALATE = "escalate"


RESTARTS: dict[Restart, dict[Exit, bool]] = {
    "permanent": {Exit.NORMAL: True, Exit.CRASH: True, Exit.FINAL: False},
    "transient": {Exit.NORMAL: False, Exit.CRASH: True, Exit.FINAL: False},
    "temporary": {Exit.NORMAL: False, Exit.CRASH: False, Exit.FINAL: False},
}


def kind_of(reason: BaseException | None, *, failed_start: bool) -> Exit:
    """Return how an incarnation ended. Only a failed *start* can be final: it has just been seen that it cannot be."""
    if reason is None:
        return Exit.NORMAL
    if failed_start and is_a(reason, Error) and not is_a(reason, Crashed | DeadlineExceeded):
        # Owned elsewhere, gone, damaged: a restart would only repeat it. A busy or changing file may settle.
        if is_ours(reason) and isinstance(reason, Unavailable) and reason.code in ("database_busy", "changed_while_reading"):
            return Exit.CRASH
        return Exit.FINAL
    if failed_start and is_ours(reason) and is_disk_full(reason):
        return Exit.FINAL  # it will be owned again when it is asked for and there is room
    return Exit.CRASH


def decide(restart: Restart, ended: Exit, ends: int, max_restarts: int, on_excess: Excess) -> Verdict:
    """Return what becomes of a child; *ends* are those inside the window, this one included."""
    if not RESTARTS[restart][ended]:
        return Verdict.STOP
    if ends > max_restarts:
        return Verdict.QUARANTINE if on_excess == "quarantine" else Verdict.ESCALATE
    return Verdict.RESTART


def within(ends: Sequence[float], now: float, max_seconds: float) -> list[float]:
    """Return those of the times *ends* that the sliding window still holds."""
    return [at for at in ends if now - at <= max_seconds]


def backoff(ends: int, jitter: float) -> float:
    """Return the seconds to wait before restart number *ends*: doubled each time, bounded, spread by *jitter* in 0..1."""
    full = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2 ** min(max(0, ends - 1), 30))
    return float(full * (0.5 + jitter / 2))


class Rung(Enum):
    """The ladder by which a child is stopped; there is no way to kill a thread of Python."""

    DRAIN = 0.0
    """Finish what waits, then stop."""
    STOP = 0.6
    """Stop after the current turn; what waits is answered."""
    INTERRUPT = 0.8
    """Cut short what runs inside SQLite."""
    ABANDON = 1.0
    """Leave the thread where it is and set the child aside; never claim success."""


def rung(waited: float, allowed: float) -> Rung:
    """Return how far up the ladder a stop is that has *waited* seconds of the *allowed* ones."""
    part = 1.0 if allowed <= 0 else waited / allowed
    return next(step for step in reversed(Rung) if part >= step.value)


def next_rung_at(current: Rung, began: float, allowed: float) -> float | None:
    """Return the time at which the next rung is due, or None on the last one."""
    steps = list(Rung)
    index = steps.index(current) + 1
    return None if index == len(steps) else began + steps[index].value * allowed
