"""The only place that knows SQLite's result codes.

What SQLite says becomes one of our errors here, by extended code and never by message text: a trigger can carry any
text, and a text may quote a stored value, so it is never handed on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw

from freehold.schema.errors import Damaged, Error, Executed, Refused, StorageFailed, Unavailable
from freehold.storage import platform

if TYPE_CHECKING:
    from freehold.storage.path import RunPath

SqliteError = apsw.Error
"""What every statement may raise. Others catch it by this name and ask here what it means."""

_HARMLESS = frozenset(
    {
        apsw.SQLITE_BUSY,
        apsw.SQLITE_LOCKED,
        apsw.SQLITE_CONSTRAINT,
        apsw.SQLITE_FULL,
        apsw.SQLITE_INTERRUPT,
        apsw.SQLITE_MISMATCH,
        apsw.SQLITE_NOMEM,
        apsw.SQLITE_TOOBIG,
    }
)
"""After these the connection can still be trusted, as long as its transaction is where we think it is."""


class Ended(Exception):
    """SQLite ended the whole transaction under us. Nothing of it is in the file, and the connection can be used on."""

    def __init__(self, error: StorageFailed) -> None:
        super().__init__(error.code)
        self.error = error


class Poisoned(Exception):
    """We are not sure of the connection's state any more. It takes no further call; only reopening tells the truth.

    `unknown_txn` is set when a COMMIT failed: whether that transaction is in the file, the file will say.
    """

    def __init__(self, error: Error, *, unknown_txn: int | None = None) -> None:
        super().__init__(error.code)
        self.error = error
        self.unknown_txn = unknown_txn


def code_of(error: BaseException) -> int:
    """Return SQLite's extended result code, or 0 for an error that did not come from SQLite."""
    extended = getattr(error, "extendedresult", None)
    return int(extended if extended is not None else getattr(error, "result", 0))


def is_storage(error: BaseException) -> bool:
    """Return whether *error* came from SQLite or apsw."""
    return isinstance(error, apsw.Error)


def is_harmless(error: BaseException) -> bool:
    """Return whether the connection can be used on after *error*."""
    return code_of(error) & 0xFF in _HARMLESS


def is_busy(error: BaseException) -> bool:
    """Return whether a foreign connection held the write lock for longer than the busy timeout."""
    return code_of(error) & 0xFF in (apsw.SQLITE_BUSY, apsw.SQLITE_LOCKED)


def is_unopenable(error: BaseException) -> bool:
    """Return whether SQLite found a file there that it cannot open. On the overlay that is a -wal of another version, and nothing else."""
    return code_of(error) & 0xFF == apsw.SQLITE_CANTOPEN


def is_damage(error: BaseException) -> bool:
    """Return whether SQLite says that the file is none, or not whole. Our statements are right: an error in one is a schema of others'."""
    return code_of(error) & 0xFF in (apsw.SQLITE_CORRUPT, apsw.SQLITE_NOTADB, apsw.SQLITE_FORMAT, apsw.SQLITE_ERROR)


def is_foreign_key(error: BaseException) -> bool:
    """Return whether a statement named a row that is not there. Which one, only its only key can say."""
    return code_of(error) == apsw.SQLITE_CONSTRAINT_FOREIGNKEY


def is_disk_full(error: Error) -> bool:
    """Return whether *error*, one of ours, says that there was no room."""
    return int(error.details.get("sqlite_extended_code", 0)) & 0xFF == apsw.SQLITE_FULL


def busy() -> Unavailable:
    """Return what a caller is told when a foreign program holds the file's write lock."""
    return Unavailable("another program holds the write lock of this run file; nothing was changed", code="database_busy")


def failed(error: BaseException, phase: str, *, rolled_back: bool, executed: Executed = "no") -> StorageFailed:
    """Return *error* as ours, with phase (begin, body, commit), rolled_back and the extended code."""
    code = code_of(error)
    what = {"no": "nothing of this request was kept", "unknown": "whether it was kept is not known", "yes": "it was kept"}[executed]
    return StorageFailed(
        f"SQLite refused while in {phase} ({_name(code)}); {what}",
        executed=executed,
        phase=phase,
        rolled_back=rolled_back,
        sqlite_extended_code=code,
    )


def unreadable(error: BaseException, path: RunPath) -> Error:
    """Return why a file could not be looked at. The file was left alone."""
    code = code_of(error)
    primary = code & 0xFF
    if is_damage(error):
        return Damaged(
            f"{path.file} cannot be read as a run file ({_name(code)}); it was left unchanged", rule="sqlite", sqlite_extended_code=code
        )
    if primary in (apsw.SQLITE_BUSY, apsw.SQLITE_LOCKED, apsw.SQLITE_PROTOCOL):  # the last: others keep opening and closing its -wal
        return busy()
    # SQLite does not say why it could not open a file.
    if primary in (apsw.SQLITE_CANTOPEN, apsw.SQLITE_IOERR) and (none_left := platform.no_descriptors()) is not None:
        return none_left
    if primary in (apsw.SQLITE_PERM, apsw.SQLITE_AUTH, apsw.SQLITE_READONLY):
        return Refused(f"{path.file} may not be opened for writing ({_name(code)}); it was left unchanged", code="read_only")
    return failed(error, "open", rolled_back=True)


def _name(code: int) -> str:
    if not code:
        return "no SQLite code"
    mapping = apsw.mapping_extended_result_codes
    return str(mapping.get(code) or apsw.mapping_result_codes.get(code & 0xFF) or code)
