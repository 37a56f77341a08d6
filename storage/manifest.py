"""The exact structure of a version 1 file, and what it means when a file has another one.

Texts, not only names, are compared: a changed CHECK shows nowhere else. What differs is told apart like this:

- *incomplete version 1*: something of ours is not there yet, or one of our tables has other columns, and nothing is
  there that we do not know. That is the shape an earlier pre-release wrote; such a file is deleted and created again.
- *damaged*: anything there that is not ours (a table, index, view, trigger, the statistics that ANALYZE leaves), or
  everything there by name, but with another text, root page, flag or file setting.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import apsw

from freehold.schema.ddl import statements
from freehold.schema.errors import Error, Refused
from freehold.schema.version import SCHEMA_VERSION
from freehold.storage.connection import connect
from freehold.storage.header import PAGE_SIZE, broken
from freehold.storage.path import RunPath

_INCREMENTAL = 2
_SETTINGS = (("page_size", PAGE_SIZE), ("encoding", "UTF-8"), ("auto_vacuum", _INCREMENTAL))
_AUTOINDEX = "sqlite_autoindex_"

Entry = tuple[str, str, str, str | None]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a schema says: its entries (type, name, tbl_name, sql), and the flags of its tables."""

    entries: frozenset[Entry]
    flags: frozenset[tuple[str, str, int, int, int]]

    @property
    def names(self) -> frozenset[tuple[str, str]]:
        """Type and name of what somebody has created; the indices that SQLite adds by itself follow from those."""
        return frozenset((kind, name) for kind, name, _, _ in self.entries if not name.startswith(_AUTOINDEX))


def read_manifest(db: apsw.Connection) -> Manifest:
    """Return what the schema of *db* says."""
    entries: list[Any] = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
    flags: list[Any] = db.execute("SELECT name, type, ncol, wr, strict FROM pragma_table_list WHERE schema = 'main'").fetchall()
    return Manifest(frozenset(entries), frozenset(flags))


@cache
def manifest_of(text: str) -> Manifest:
    """Return the manifest of a file whose schema is *text*."""
    db = _filled(text)
    try:
        return read_manifest(db)
    finally:
        db.close()


@cache
def expected() -> tuple[Manifest, dict[str, list[str]]]:
    """Return the manifest of a file that this build creates, and the columns of its tables."""
    db = _filled(statements())
    try:
        return read_manifest(db), _columns(db)
    finally:
        db.close()


def _filled(text: str) -> apsw.Connection:
    db = connect(":memory:", apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_MEMORY)
    db.execute(text)
    return db


def compare(db: apsw.Connection, path: RunPath) -> None:
    """Make sure that *db* has exactly our structure.

    Raises Refused (incomplete_version) and Damaged (rule `structure`), by the rule at the head of this file.
    """
    for name, right in _SETTINGS:
        if db.pragma(name) != right:
            raise broken("structure", f"has another {name} than a run file", path)
    found = read_manifest(db)
    ours, columns = expected()
    if found.names - ours.names:
        raise broken("structure", "holds tables, indices, views or triggers that are not ours", path)
    if ours.names - found.names or (found != ours and _columns(db) != columns):
        raise _incomplete(path)
    if found != ours or not _pages_are_apart(db):
        raise broken("structure", "holds our tables in another form", path)


def _columns(db: apsw.Connection) -> dict[str, list[str]]:
    tables = [str(name) for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()]
    return {table: [row[0] for row in db.execute("SELECT name FROM pragma_table_xinfo(?) ORDER BY cid", (table,))] for table in tables}


def _pages_are_apart(db: apsw.Connection) -> bool:
    """Return whether each table and index has a root page of its own; two on one page would read each other's rows."""
    pages = [page for (page,) in db.execute("SELECT rootpage FROM sqlite_schema").fetchall()]
    return all(isinstance(page, int) and page > 0 for page in pages) and len(set(pages)) == len(pages)


def _incomplete(path: RunPath) -> Error:
    return Refused(
        f"{path.file} is an incomplete version {SCHEMA_VERSION} (an earlier pre-release shape): delete and recreate it; "
        "it was left unchanged",
        code="incomplete_version",
    )
