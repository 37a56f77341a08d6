"""Having a run file to oneself: whoever only reads it has gone in a moment, and so has a holder that is not to be seen any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from freehold.actors.deadline import monotonic, pause
from freehold.schema.errors import OwnedElsewhere
from freehold.schema.limits import OPENER_WAIT_S

T = TypeVar("T")


def when_readers_have_gone(take: Callable[[], T]) -> T:
    """Return what *take* returns, which wants a file for itself; call it again for a moment while others read the file.

    Raises what it raises, and OwnedElsewhere at once where somebody owns the file.
    """
    until = monotonic() + OPENER_WAIT_S
    while True:
        try:
            return take()
        except OwnedElsewhere as error:
            seen = error.details.get("pids") or error.details.get("pid")
            if (seen and not error.details.get("shared")) or monotonic() >= until:
                raise
        pause()
