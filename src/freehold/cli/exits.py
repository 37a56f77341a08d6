"""Exit codes: those of face and shell that no error class carries, and which of several counts."""

from __future__ import annotations

from collections.abc import Iterable

DONE = 0
NOT_WHOLE = 7
"""Done, but not everything could be taken as it was."""
USAGE = 64
INTERRUPTED = 130
TERMINATED = 143
"""As a shell says of a program that SIGTERM has ended."""
BROKEN_PIPE = 141
"""What a shell says of a program that SIGPIPE has ended."""

EXITS = {
    DONE: "done",
    1: "failed",
    2: "suspended",
    3: "cancelled",
    4: "refused",
    5: "damaged",
    6: "unavailable",
    NOT_WHOLE: "done, but not whole",
    USAGE: "usage",
    70: "crashed",
    INTERRUPTED: "interrupted",
    BROKEN_PIPE: "whoever reads standard output has gone",
    TERMINATED: "terminated",
}
"""Every exit code there is, and how what docs/errors.md says of it begins, or goes on."""

_BY_GRAVITY = (DONE, NOT_WHOLE, 2, 3, 1, 6, 4, 5, 70)
"""Done, not whole, suspended, cancelled, failed, unavailable, refused, damaged, crashed."""


def gravest(codes: Iterable[int]) -> int:
    """Return the exit code of a command that has done several things: that of the one that went worst."""
    return max(codes, key=_BY_GRAVITY.index, default=DONE)
