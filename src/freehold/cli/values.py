"""A value that a call gives as JSON, written as `show` and `history --json` print it."""

from __future__ import annotations

import io
import json
import stat
import sys
from os import fstat
from typing import Any

from freehold.cli.faults import file_errors
from freehold.errors import Damaged, Refused, ValueRefused
from freehold.schema.limits import OBJECT_BYTES_MAX
from freehold.schema.values import Value, decode

STDIN = "standard input"


def value_of(text: str, what: str, left: str) -> Value:
    """Return the value that *text* says. Raises Refused (bad_option), saying *what* it is and what was *left*; it never quotes."""
    try:
        value = decode(text)
        json.loads(text, object_pairs_hook=_once)
    except Damaged:
        raise Refused(f"{what}; {left}", code="bad_option") from None
    except _Twice:
        raise Refused(f"an object of {what.partition(' is ')[0]} has the same key twice; {left}", code="bad_option") from None
    return value


def members_of(text: str, what: str, left: str) -> dict[str, Value]:
    """Return the members of the object that *text* says. Raises as `value_of` does."""
    value = value_of(text, what, left)
    if not isinstance(value, dict):
        raise Refused(f"{what}; {left}", code="bad_option")
    return value


def input_text() -> str:
    """Return all of standard input. Raises Refused (bad_option) where it is no text, ValueRefused where it is longer than any value."""
    with file_errors(STDIN):
        content = sys.stdin.buffer.read(OBJECT_BYTES_MAX + 1)
    if len(content) > OBJECT_BYTES_MAX:
        raise ValueRefused(
            f"standard input is longer than {OBJECT_BYTES_MAX} bytes, which no value is; nothing was changed", code="value_too_large"
        )
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Refused("standard input is no UTF-8 text; nothing was changed", code="bad_option") from None


def is_fed() -> bool:
    """Return whether standard input comes from a pipe or a file, rather than from a terminal or from nowhere."""
    try:
        mode = fstat(sys.stdin.fileno()).st_mode
    except io.UnsupportedOperation:
        return True  # no file of the system's: somebody has put it there
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


class _Twice(Exception):
    """A key stands twice in an object: one of the two values would be lost."""


def _once(members: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in members}) < len(members):
        raise _Twice
