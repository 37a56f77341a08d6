"""Patterns as in a .gitignore file: what an import does not take and a checkout leaves alone."""

from __future__ import annotations

from collections.abc import Iterable

from freehold.schema.errors import Refused


def list_of_patterns(ignore: Iterable[str]) -> list[str]:
    """Return patterns as a list. Raises Refused (bad_option) for what is none, a single text among it."""
    patterns = list(ignore) if isinstance(ignore, Iterable) and not isinstance(ignore, str | bytes) else [None]
    if not all(isinstance(pattern, str) for pattern in patterns):
        raise Refused("ignore is several patterns, as in a .gitignore file; nothing was changed", code="bad_option")
    return [str(pattern) for pattern in patterns]
