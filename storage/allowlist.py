"""What a reader's connection may do: SELECT, and the pragmas that only tell. Everything else is denied by SQLite itself.

That a file was opened READONLY is not enough: VACUUM INTO writes elsewhere, a checkpoint writes here, and
`query_only` can be switched off by anybody.
"""

from __future__ import annotations

import apsw

_ACTIONS = frozenset((apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE))

# With an argument some of these would write; so they may only be asked.
_ASKED = frozenset(
    (
        "application_id",
        "auto_vacuum",
        "data_version",
        "encoding",
        "foreign_keys",
        "freelist_count",
        "journal_mode",
        "page_count",
        "page_size",
        "schema_version",
        "user_version",
    )
)
_WITH_ARGUMENT = frozenset(
    (
        "foreign_key_check",
        "foreign_key_list",
        "index_info",
        "index_list",
        "index_xinfo",
        "integrity_check",
        "quick_check",
        "table_info",
        "table_list",
        "table_xinfo",
    )
)


def allow_reading(db: apsw.Connection) -> None:
    """Deny *db* everything but reading from now on. What is denied raises SQLite's AUTH, and nothing is changed."""
    db.set_authorizer(_decide)


def _decide(action: int, first: str | None, second: str | None, _database: str | None, _source: str | None) -> int:
    if action in _ACTIONS:
        return apsw.SQLITE_OK
    if action == apsw.SQLITE_PRAGMA and (first in _WITH_ARGUMENT or (first in _ASKED and second is None)):
        return apsw.SQLITE_OK
    return apsw.SQLITE_DENY
