"""The guards of the project, each with the test that fails when it is removed: the tables in tests/guards/."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

PROJECT = Path(__file__).resolve().parents[2]
TABLES = PROJECT / "tests" / "guards"


class Guard(NamedTuple):
    """One guard: `old` stands once in `file`, `new` is the code without it, and `test` is a node id that then fails."""

    table: str
    why: str
    file: str
    old: str
    new: str
    test: str


class _Table(msgspec.Struct, forbid_unknown_fields=True):
    guard: list[_Row]


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    why: str
    file: str
    old: str
    new: str
    test: str


def guards() -> Iterator[Guard]:
    """Yield every guard, table by table."""
    for file in sorted(TABLES.glob("*.toml")):
        for row in msgspec.toml.decode(file.read_bytes(), type=_Table).guard:
            yield Guard(file.stem, row.why, row.file, row.old, row.new, row.test)
