"""The only place that reads a clock or draws random bytes. Everybody else is handed a `Clock`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from freehold.schema.ids import uuid7


class Clock:
    """The machine's own clock and randomness."""

    def now_ms(self) -> int:
        """Return the wall clock: milliseconds since 1970, UTC. It may step back."""
        return time.time_ns() // 1_000_000

    def now_ns(self) -> int:
        """Return the same clock as exactly as the machine tells it, in nanoseconds."""
        return time.time_ns()

    monotonic: Callable[[], float] = staticmethod(time.monotonic)
    """Returns seconds that only go forward; what deadlines are made of."""

    def event_id(self, now_ms: int) -> bytes:
        """Return a new UUIDv7 of 16 bytes, of what this clock has just said."""
        return uuid7(now_ms, os.urandom(10))

    def random(self, count: int) -> bytes:
        """Return so many random bytes."""
        return os.urandom(count)

    def jitter(self) -> float:
        """Return a random number in 0..1, to spread restarts."""
        return int.from_bytes(os.urandom(4), "big") / 2**32
