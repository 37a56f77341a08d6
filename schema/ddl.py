"""The text of version 1's tables, as it is written into every run file, and of the host file's."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path


@cache
def statements() -> str:
    """Return the statements of v1.sql without the comments that stand on lines of their own."""
    return _statements("v1.sql")


@cache
def host_statements() -> str:
    """Return the statements of host.sql likewise."""
    return _statements("host.sql")


def _statements(name: str) -> str:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if line and not line.startswith("--"))


@cache
def checks() -> dict[str, str]:
    """Return, for each table, what all its CHECKs together say of a row: a condition for WHERE that a legal one meets."""
    tables = re.findall(r"^CREATE TABLE (\w+) \((.*?)^\) STRICT", statements(), re.DOTALL | re.MULTILINE)
    return {table: " AND ".join(re.findall(r"CHECK \((.*?IS TRUE)\)", text, re.DOTALL)) for table, text in tables}


@cache
def partial_indices() -> list[tuple[str, str, str]]:
    """Return name, table and condition of each index that holds only some rows."""
    return re.findall(r"INDEX (\w+) ON (\w+) \([^)]*\) WHERE (.*);", statements())
