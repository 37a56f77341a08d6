"""What a run file looks like from outside, so that one that was not written to need not be read again.

A file's time is that of a tick of the kernel's clock: two writes in one tick look alike. So what was read counts only if the
file's times were older by a margin when it was read, as git's index has it; or if the owner has *sealed* it at its close.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from freehold.schema.limits import COARSE_GRAIN_NS, TIMESTAMP_GRAIN_NS
from freehold.schema.rows import Known, Stamp
from freehold.storage import platform
from freehold.storage.clock import Clock
from freehold.storage.path import RunPath
from freehold.storage.pin import Pin
from freehold.storage.siblings import JOURNAL, SHM, WAL

_COARSE_STEP_NS = 10_000_000
_SIGN = 1 << 63
_NOTHING = (0, 0)


def stamp_of(path: RunPath) -> Stamp | None:
    """Return what *path* looks like now, or None where there is no plain file of one name: that one has to be looked at.

    The -wal is looked at first: what was committed before that stood in it then, or stands in the file when that is looked at.
    """
    file = path.file
    wal = _beside(file + WAL)
    if wal is None or _beside(file + SHM) is None or os.path.lexists(file + JOURNAL):
        return None
    try:
        found = os.lstat(file)
    except OSError:
        return None
    if not platform.is_regular(found) or found.st_nlink != 1 or not found.st_size:
        return None
    return Stamp(_signed(found.st_dev), _signed(found.st_ino), found.st_size, found.st_mtime_ns, found.st_ctime_ns, *wal)


def seal(pin: Pin, clock: Clock) -> Stamp | None:
    """Set the time of a file whose lock we have, and which is closed, to this very moment; return what it looks like then.

    The kernel's own times are those of its ticks: none of its later ones is the same to the nanosecond, however soon it comes. None
    where that cannot be said: the path names another file, a -wal is left, or the time may not be set by this user.
    """
    try:
        os.utime(pin.fd, ns=(os.fstat(pin.fd).st_atime_ns, now_ns := clock.now_ns()))
    except OSError:
        return None
    stamp = stamp_of(pin.path)
    # Another time: the path names another file, or the file system keeps times less exactly, and a later write may get the same.
    return None if stamp is None or stamp.wal_size or stamp.mtime_ns != now_ns else stamp


def is_sure(known: Known) -> bool:
    """Return whether every later write would have left another stamp than that of *known*."""
    return known.sealed or is_settled(known.stamp, known.seen_at)


def is_settled(stamp: Stamp, seen_at: int) -> bool:
    """Return whether *stamp* was old enough, when the clock said *seen_at*, that a later write leaves another."""
    return are_settled((stamp.mtime_ns, stamp.ctime_ns, stamp.wal_mtime_ns), seen_at)


def are_settled(times_ns: Sequence[int], now_ms: int) -> bool:
    """Return whether these times of a file are further back than two writes that look alike can be apart."""
    coarse = not any(time % _COARSE_STEP_NS for time in times_ns)
    return max(times_ns) + (COARSE_GRAIN_NS if coarse else TIMESTAMP_GRAIN_NS) < now_ms * 1_000_000


def _beside(file: str) -> tuple[int, int] | None:
    """Return size and time of what SQLite has left beside a run file, an empty one being none; None of what it cannot have left."""
    try:
        found = os.lstat(file)
    except FileNotFoundError:
        return _NOTHING
    except OSError:
        return None
    if not platform.is_regular(found) or found.st_nlink != 1:
        return None
    return (found.st_size, found.st_mtime_ns) if found.st_size else _NOTHING


def _signed(number: int) -> int:
    """Return a number of the kernel's, which has no sign, as SQLite can keep it."""
    return number - 2 * _SIGN if number >= _SIGN else number
