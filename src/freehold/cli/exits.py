"""Exit codes: those of face and shell that no error class carries, and which of several counts."""

from __future__ import annotations

from collections.abc import Iterable

DONE = 0
USAGE = 64
INTERRUPTED = 130
TERMINATED = 143
"""As a shell says of a program that SIGTERM has ended."""
BROKEN_PIPE = 141
"""What a shell says of a program that SIGPIPE has ended."""

_BY_GRAVITY = (DONE, 2, 3, 1, 6, 4, 5, 70)
"""Done, suspended, cancelled, failed, unavailable, refused, damaged, crashed."""


def gravest(codes: Iterable[int]) -> int:
    """Return the exit code of a command that has done several things: that of the one that went worst."""
    return max(codes, key=_BY_GRAVITY.index, default=DONE)
