"""What the host file of a folder knows, for a host that has no registrar: read without creating or changing anything."""

from __future__ import annotations

from freehold.actors.aside import Gone, aside
from freehold.actors.deadline import monotonic, pause
from freehold.schema.errors import Unavailable
from freehold.schema.limits import OPENER_WAIT_S
from freehold.schema.rows import Known
from freehold.storage.clock import Clock
from freehold.storage.hostlook import look_at
from freehold.storage.known import read_known


def look_at_known(folder: str) -> dict[str, Known]:
    """Return what is known of runs, nothing where there is no host file. A file that others write just now is waited for a moment.

    Raises what `look_at` raises.
    """
    clock = Clock()

    def read(_gone: Gone) -> dict[str, Known]:
        until = monotonic() + OPENER_WAIT_S
        while True:
            try:
                return look_at(folder, read_known, clock) or {}
            except Unavailable as error:
                if error.code != "changed_while_reading" or monotonic() >= until:
                    raise
            pause()

    return aside(read)
