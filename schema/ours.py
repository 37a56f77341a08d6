"""The records that are ours: JSON objects, each with exactly one text."""

from __future__ import annotations

from typing import Any

import msgspec


class Underivable(Exception):
    """The event that was added does not follow from those before it, or its record is not one of its kind."""


def members(text: str) -> dict[str, Any]:
    """Return the members of a record of ours, which is the one text of them. Raises Underivable."""
    try:
        record = msgspec.json.decode(text)
        again = msgspec.json.encode(record).decode()
    except (msgspec.DecodeError, RecursionError):
        raise Underivable from None
    if not isinstance(record, dict) or again != text:
        raise Underivable
    return record
