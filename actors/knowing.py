"""What the host file of a folder knows, for whoever has no registrar: read without creating or changing anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from freehold.actors.aside import Gone, aside
from freehold.actors.deadline import monotonic, pause
from freehold.schema.errors import Unavailable
from freehold.schema.limits import OPENER_WAIT_S
from freehold.schema.rows import HostRow, Known
from freehold.storage.clock import Clock
from freehold.storage.hostlook import look_at
from freehold.storage.known import read_known
from freehold.storage.living import read_hosts

T = TypeVar("T")


def look_at_known(folder: str) -> dict[str, Known]:
    """Return what is known of runs, nothing where there is no host file. A file that others write just now is waited for a moment.

    Raises what `look_at` raises.
    """
    return _looked_at(folder, read_known, OPENER_WAIT_S) or {}


def look_at_hosts(folder: str, timeout: float) -> list[HostRow] | None:
    """Return the hosts whose processes live, None where there is no host file. A file that others write just now is waited for.

    Raises what `look_at` raises.
    """
    return _looked_at(folder, read_hosts, timeout)


def _looked_at(folder: str, work: Callable[[Any], T], timeout: float) -> T | None:
    clock = Clock()

    def read(gone: Gone) -> T | None:
        until = monotonic() + timeout
        while True:
            try:
                return look_at(folder, work, clock)
            except Unavailable as error:
                if error.code != "changed_while_reading" or monotonic() >= until or gone():
                    raise
            pause()

    return aside(read)
