"""How a moment is written wherever it is read by others: UTC, in ISO format to the millisecond, with a Z at its end."""

from __future__ import annotations

from datetime import datetime


def utc(time: datetime) -> str:
    """Return a moment (UTC) as text."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
