"""The text of version 1's tables, as it is written into every run file."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def statements() -> str:
    """Return the statements of v1.sql without the comments that stand on lines of their own."""
    text = files("freehold.schema").joinpath("v1.sql").read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if line and not line.startswith("--"))
