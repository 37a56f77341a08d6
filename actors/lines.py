"""Lines to hosts in other processes that wait unused for the next call: those of a host's handles are shared.

A line is not about one run: whoever asks an owner about many runs needs no more lines than it asks at once.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from freehold.schema.limits import CONNECTIONS_KEPT_MAX

if TYPE_CHECKING:
    from freehold.actors.remote import Line


class Lines:
    """Unused lines by the name of the socket that they lead to. Any thread may take one, and has it alone then."""

    def __init__(self) -> None:
        self._kept: dict[str, deque[Line]] = {}  # each is taken and put back in one step
        self._closed = False

    def take(self, name: str) -> Line | None:
        """Take a line that stands, or return None."""
        kept = self._kept.get(name)
        while kept:
            try:
                line = kept.pop()
            except IndexError:  # another thread was quicker
                return None
            if line.is_quiet:
                return line
            line.close()
        return None

    def put_back(self, name: str, line: Line) -> None:
        """Keep a line for the next who wants one, or hang up where there are enough, or it does not stand."""
        kept = self._kept.setdefault(name, deque())
        if len(kept) < CONNECTIONS_KEPT_MAX and line.is_quiet:
            kept.append(line)
        else:
            line.close()
        if self._closed:
            self.hang_up()

    def close(self) -> None:
        """Hang up all, and keep no more. What is on its way comes to its end."""
        self._closed = True
        self.hang_up()

    def hang_up(self) -> None:
        """Hang up what waits unused."""
        for name in list(self._kept):
            while (line := self.take(name)) is not None:
                line.close()
