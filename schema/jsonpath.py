"""The way to a member of a value, as an error may show it.

A key is shown only if it is a short plain word; any other key, and every set member, is `*`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from freehold.schema.errors import ValueRefused

STEPS_SHOWN_MAX = 16
KEY_CHARS_MAX = 40
_WORD = re.compile(rf"[A-Za-z_][A-Za-z0-9_-]{{0,{KEY_CHARS_MAX - 1}}}")

Step = str | int | None
"""A dict key, a list index, or None for a set member, which has neither."""

ROOT: Final = "$"


def is_word(text: str) -> bool:
    """Say whether *text* is shown as it is."""
    return _WORD.fullmatch(text) is not None


def shown(steps: Sequence[Step], hide: Callable[[str], bool] | None = None) -> str:
    """Return the path, e.g. `$.jobs[3].*`; a key for which *hide* is true is `*` too."""
    parts = [ROOT]
    for step in steps[:STEPS_SHOWN_MAX]:
        if step is None:
            parts.append("[*]")
        elif isinstance(step, int):
            parts.append(f"[{step}]")
        elif is_word(step) and not (hide is not None and hide(step)):
            parts.append(f".{step}")
        else:
            parts.append(".*")
    if len(steps) > STEPS_SHOWN_MAX:
        # A value that holds itself has a path of a hundred steps; the first ones say where.
        parts.append("…")
    path = "".join(parts)
    # Two harmless keys may spell together what must not be shown: `a` and `b` for the secret `a.b`.
    return ROOT if hide is not None and hide(path) else path


class Refusal(Exception):
    """What is wrong with a member, and where. It never leaves the schema: it becomes a ValueRefused whose path may be shown."""

    def __init__(self, steps: Sequence[Step], reason: str, code: str, member: object, **details: Any) -> None:
        super().__init__(reason)
        self.steps = tuple(steps)
        self.reason = reason
        self.code = code
        name = type(member).__name__
        self.type = name if is_word(name) else "*"
        self.details = details

    def error(self, hide: Callable[[str], bool] | None = None) -> ValueRefused:
        """Return the error for the caller. It holds the path and type names, never a value."""
        path = shown(self.steps, hide)
        kind = "*" if hide is not None and hide(self.type) else self.type
        reason = self.reason.format(type=kind)
        return ValueRefused(f"{path}: {reason}; nothing was changed", code=self.code, path=path, type=kind, **self.details)
