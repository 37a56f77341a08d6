"""How long a caller is willing to wait, and through which actors its call has come. Both travel with every message."""

from __future__ import annotations

import _thread
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from freehold.schema.errors import DeadlineExceeded, Executed, Refused
from freehold.storage.clock import Clock

if TYPE_CHECKING:
    from freehold.actors.ref import ActorRef

Seconds = float | timedelta
_PAUSE_S = 0.005

monotonic = Clock().monotonic
DEADLINE: ContextVar[float | None] = ContextVar("freehold_deadline", default=None)


class Link:
    """One actor in a chain of calls, for as long as its turn lasts. A context that was copied meanwhile outlives it."""

    __slots__ = ("_block", "_over", "ref")

    def __init__(self, ref: ActorRef[Any], block: object = None) -> None:
        """*block*: the `with` block that it stands for instead of a turn. When that is collected, it is over."""
        self.ref = ref
        self._block = None if block is None else weakref.ref(block)
        self._over = False

    @property
    def over(self) -> bool:
        """Whether it counts no more."""
        return self._over or (self._block is not None and self._block() is None)

    @over.setter
    def over(self, over: bool) -> None:
        self._over = over

    @property
    def block(self) -> Any:
        """The block that it stands for, while it is not over."""
        return None if self._over or self._block is None else self._block()


Chain = tuple[Link, ...]
CHAIN: ContextVar[Chain] = ContextVar("freehold_chain", default=())


def give_up_blocks() -> None:
    """Roll back the transactions in whose blocks the calling thread stands, when it will not come to their ends."""
    for link in CHAIN.get():
        if (block := link.block) is not None:
            block.give_up()


def seconds(duration: Seconds) -> float:
    """Return a duration as seconds.

    Raises Refused (bad_option) for what is no duration, or a negative or unordered one.
    """
    if isinstance(duration, timedelta):
        duration = duration.total_seconds()
    if isinstance(duration, bool) or not isinstance(duration, int | float) or not duration >= 0:
        raise Refused("a duration is a number of seconds or a timedelta, not negative; nothing was changed", code="bad_option")
    return float(min(duration, _thread.TIMEOUT_MAX))  # nothing can wait longer, and nobody will


def to_wait(duration: float | None) -> float:
    """Return *duration* as a lock takes it: None waits for ever, and what is longer than a lock can wait is cut."""
    return -1.0 if duration is None else min(max(0.0, duration), _thread.TIMEOUT_MAX)


@contextmanager
def fail_after(duration: Seconds) -> Iterator[None]:
    """Bound every call made inside by one deadline; with several, the nearest wins.

    A call that runs over it raises DeadlineExceeded, whose `executed` says whether the call had been taken up. The deadline
    travels with messages; into a thread of your own it goes with `contextvars.copy_context().run`.
    """
    until = monotonic() + seconds(duration)
    outer = DEADLINE.get()
    token = DEADLINE.set(until if outer is None else min(outer, until))
    try:
        yield
    finally:
        DEADLINE.reset(token)


def deadline_in(duration: float | None) -> float | None:
    """Return the absolute deadline of a call that may take *duration* seconds, or the nearer one it stands under."""
    outer = DEADLINE.get()
    if duration is None:
        return outer
    until = monotonic() + duration
    return until if outer is None or until < outer else outer


def pause(duration: float = _PAUSE_S) -> None:
    """Wait a moment for what another process does: there is no event for that."""
    threading.Event().wait(duration)


def check_deadline() -> None:
    """Raise DeadlineExceeded (executed: no) if the time that `fail_after` has set is up already."""
    if (until := DEADLINE.get()) is not None and until <= monotonic():
        raise exceeded("no")


def exceeded(executed: Executed, name: str = "") -> DeadlineExceeded:
    """Return what a caller is told whose time is up, and who did not answer, if that is known."""
    what = {
        "no": "it had not been taken up, and this asking of it will not run",
        "yes": "it was carried out",
        "unknown": "it had been taken up and may still be carried out; ask again with its request id, or look into the history",
    }[executed]
    whom = f" to {name}" if name else ""
    return DeadlineExceeded(f"the time for this request{whom} is up; {what}", executed=executed)
