"""Having a run file to oneself: whoever only reads it has gone in a moment, and so has a holder that is not to be seen any more.

Also a living owner may have gone in a moment: a handle owns a run for one call.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from freehold.actors.deadline import check_deadline, monotonic, pause
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


def when_passers_by_have_gone(own: Callable[[], T]) -> T:
    """Return what *own* returns; call it again for a moment while another process owns the run. Raises what it raises."""
    until = monotonic() + OPENER_WAIT_S
    while True:
        try:
            return own()
        except OwnedElsewhere as error:
            if error.details.get("pid") == os.getpid() or monotonic() >= until:
                raise
        check_deadline()
        pause()
