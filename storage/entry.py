"""What one host says in the host file, so that it can be said again in a new one."""

from __future__ import annotations

import apsw

from freehold.schema.rows import HostRow
from freehold.storage.clock import Clock
from freehold.storage.living import claim_driver, enter_host, this_process


class Entry:
    """This process's host: its row, and the runs that it drives."""

    def __init__(self, clock: Clock) -> None:
        now_ms = clock.now_ms()
        self.host = HostRow(clock.event_id(now_ms), this_process(), None, now_ms)
        self.driven: dict[str, int] = {}
        """The runs that it drives, and since when."""

    def say(self, db: apsw.Connection) -> None:
        """Say all of it; a run that another host drives by now stays with that one."""
        enter_host(db, self.host)
        for run, since in self.driven.items():
            claim_driver(db, run, self.host, since)
