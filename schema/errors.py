"""Every error of ours, named after what the caller can do next.

One root, five branches: `Refused` (change the call, nothing was changed), `Unavailable` (the same call later),
`Damaged` (look at the file, it was left alone), `Crashed` (ours; the state is safe) and `NotCompleted` (the
workflow's own end). A code is stable, listed in `CODES` and explained in docs/errors.md. No message and no
detail ever carries a stored value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeGuard

from freehold.schema.foreign import cause_of, type_name
from freehold.schema.times import utc

Executed = Literal["no", "yes", "unknown"]
CAUSE_DEPTH_MAX = 3


@dataclass(frozen=True, slots=True)
class Holder:
    """Who owns a run file: a process id, the machine's name and the moment it took the run over (UTC)."""

    pid: int
    hostname: str
    since: datetime


class Error(Exception):
    """Root of everything that Freehold raises.

    `code` is stable; `retryable` says whether the same call may succeed later; `executed` says whether the
    call took effect; `details` are plain values and never stored ones.
    """

    default_code: ClassVar[str] = "error"
    retryable: bool = False
    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, code: str | None = None, executed: Executed = "no", **details: Any) -> None:
        super().__init__(message)
        self.code = code or self.default_code
        assert type(self) is CODES[self.code], self.code  # else it would be another error beyond the border
        self.executed: Executed = executed
        self.details: dict[str, Any] = details

    def record(self) -> dict[str, Any]:
        """Return the error as plain data: code, message, details, the causes to depth 3, exit code."""
        return _record(self, CAUSE_DEPTH_MAX)

    def copy(self) -> Error:
        """Return an equal error without traceback, for each of several callers to raise on its own."""
        twin = _rebuild(type(self), str(self), self.code, self.executed, self.details)
        twin.__cause__ = self.__cause__
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), str(self), self.code, self.executed, self.details)


class Refused(Error):
    """The call was wrong for this moment. Nothing was changed; ask differently."""

    default_code = "refused"
    exit_code = 4


class RunExists(Refused):
    """The id names a run already (`create`), or one with other properties (`ensure`)."""

    default_code = "run_exists"


class RunNotFound(Refused, LookupError):
    """No run file has this name. Nothing was created."""

    default_code = "run_not_found"


class ValueRefused(Refused, TypeError):
    """A value cannot be stored as it is; the message holds the path to the member that was refused."""

    default_code = "value_refused"


class PathRefused(Refused, ValueError):
    """A workspace cannot hold this path; the message says which rule it breaks."""

    default_code = "bad_path"


class Conflict(Refused):
    """A path that this publish read or wrote was changed meanwhile. Nothing was published; look again and repeat it."""

    default_code = "conflict"


class LeaseClosed(Refused):
    """This lease was closed. Open the run again."""

    default_code = "lease_closed"


class InsideTransaction(Refused):
    """The run was called from inside its own turn or transaction. Use the transaction that is at hand."""

    default_code = "inside_transaction"


class HostOpen(Refused):
    """This process has a host on the same root already. Share it."""

    default_code = "host_open"


class RunEnded(Refused):
    """The run has come to its end; it takes no further execution."""

    default_code = "run_ended"


class RequestExpired(Refused):
    """The request ran long ago and its reply is no longer kept. It is never run again."""

    default_code = "request_expired"


class UnsupportedPlatform(Refused):
    """Freehold runs on Linux."""

    default_code = "unsupported_platform"


class Unavailable(Error):
    """Nothing is wrong with the call. Make it again later."""

    default_code = "unavailable"
    retryable = True
    exit_code = 6


class OwnedElsewhere(Unavailable):
    """Another process owns the run; `holder` says which, as far as it is known."""

    default_code = "owned_elsewhere"

    @property
    def holder(self) -> Holder | None:
        """The process that holds the run, or None where it could not be read."""
        holder = self.details.get("holder")
        if holder is None or isinstance(holder, Holder):
            return holder
        return Holder(holder["pid"], holder["hostname"], datetime.fromisoformat(holder["since"]))


class MailboxFull(Unavailable):
    """More messages wait than the mailbox may hold. This one was not taken."""

    default_code = "mailbox_full"


class LeaseLost(Unavailable):
    """The lease ended under its holder: another owner came in between, or the host has closed. Open the run again."""

    default_code = "lease_lost"
    retryable = False  # this lease does not come back; the run may


class Quarantined(Unavailable):
    """The run kept failing and was set aside; the other runs live on. The last cause is attached."""

    default_code = "quarantined"


class Damaged(Error):
    """The file is not what it must be. It was left alone; look at it."""

    default_code = "damaged"
    exit_code = 5


class Crashed(Error):
    """Ours. What was acknowledged is safe; ask again with the same request id."""

    default_code = "crashed"
    retryable = True
    exit_code = 70


class StorageFailed(Crashed):
    """SQLite or the disk refused. Details hold phase (begin, body or commit), rolled_back and sqlite_extended_code."""

    default_code = "storage_failed"


class NotCompleted(Error):
    """The workflow ended without a result."""

    default_code = "not_completed"
    exit_code = 1


class DeadlineExceeded(Error, TimeoutError):
    """The time was up. `executed` says whether the request had been taken up by then."""

    default_code = "deadline_exceeded"
    retryable = True
    exit_code = 6


CODES: dict[str, type[Error]] = {
    "error": Error,
    # Refused: change the call.
    "refused": Refused,
    "bad_run_id": Refused,
    "bad_name": Refused,
    "bad_request_id": Refused,
    "bad_option": Refused,
    "bad_root": Refused,
    "bad_position": Refused,
    "bad_path": PathRefused,
    "conflict": Conflict,
    "runs_folder": Refused,
    "too_many_entries": Refused,
    "value_refused": ValueRefused,
    "value_too_deep": ValueRefused,
    "value_too_large": ValueRefused,
    "secret_refused": Refused,
    "run_exists": RunExists,
    "run_not_found": RunNotFound,
    "run_in_use": Refused,
    "run_ended": RunEnded,
    "execution_running": Refused,
    "no_execution": Refused,
    "unknown_event": Refused,
    "file_error": Refused,
    "root_moved": Refused,
    "input_changed": Refused,
    "step_unknown": Refused,
    "claim_lost": Refused,
    "no_step": Refused,
    "request_conflict": Refused,
    "request_expired": RequestExpired,
    "lease_closed": LeaseClosed,
    "lease_foreign": Refused,
    "inside_transaction": InsideTransaction,
    "ask_cycle": Refused,
    "transaction_over": Refused,
    "awaitable_refused": Refused,
    "host_open": HostOpen,
    "host_closed": Refused,
    "forked_process": Refused,
    "unsupported_platform": UnsupportedPlatform,
    "unsupported_sqlite": UnsupportedPlatform,
    "not_a_run": Refused,
    "not_a_file": Refused,
    "hard_link": Refused,
    "network_filesystem": Refused,
    "no_permission": Refused,
    "read_only": Refused,
    "newer_version": Refused,
    "older_version": Refused,
    "incomplete_version": Refused,
    "leftover_files": Refused,
    "not_a_host_file": Refused,
    "host_file_version": Refused,
    "malformed_frame": Refused,
    "frame_too_large": Refused,
    "other_protocol": Refused,
    # Unavailable: the same call later.
    "unavailable": Unavailable,
    "owned_elsewhere": OwnedElsewhere,
    "database_busy": Unavailable,
    "changed_while_reading": Unavailable,
    "no_descriptors": Unavailable,
    "root_keeps_moving": Unavailable,
    "mailbox_full": MailboxFull,
    "lease_lost": LeaseLost,
    "quarantined": Quarantined,
    "no_host_file": Unavailable,
    "driven_elsewhere": Unavailable,
    "stopping": Unavailable,
    "still_stopping": Unavailable,
    "not_owner": Unavailable,
    "no_answer": Unavailable,
    "not_reached": Unavailable,
    "too_many_connections": Unavailable,
    # Damaged: look at the file.
    "damaged": Damaged,
    "partial": Damaged,
    "another_run": Damaged,
    "malformed_record": Damaged,
    "host_file_damaged": Damaged,
    # Crashed: ours.
    "crashed": Crashed,
    "storage_failed": StorageFailed,
    "not_completed": NotCompleted,
    "deadline_exceeded": DeadlineExceeded,
}
"""Every code and the class that carries it. docs/errors.md has a heading for each."""


def is_ours(error: object) -> TypeGuard[Error]:
    """Return whether *error* is of one of these very classes, and so keeps what they promise; a subclass of others' may not."""
    return any(type(error) is cls for cls in CODES.values())


def from_record(record: Mapping[str, Any]) -> Error:
    """Return the error that *record* describes, as `Error.record` wrote it."""
    cls = CODES.get(record["code"], Error)
    error = _rebuild(cls, record["message"], record["code"], record["executed"], dict(record["details"]))
    if isinstance(cause := record.get("cause"), Mapping) and cause.get("code") in CODES:
        error.__cause__ = from_record(cause)
    return error


def _rebuild(cls: type[Error], message: str, code: str, executed: Executed, details: dict[str, Any]) -> Error:
    return cls(message, code=code if code in CODES else cls.default_code, executed=executed, **details)


def _record(error: BaseException, depth: int) -> dict[str, Any]:
    if is_ours(error):
        row: dict[str, Any] = {
            "error": type(error).__name__,
            "code": error.code,
            "message": str(error),
            "retryable": error.retryable,
            "executed": error.executed,
            "details": {name: _plain(value) for name, value in error.details.items()},
            "exit_code": error.exit_code,
        }
    else:
        # A foreign exception's text may quote a value; only its type crosses the border.
        row = {"error": type_name(error)}
    if depth > 1 and (cause := cause_of(error)) is not None:
        row["cause"] = _record(cause, depth - 1)
    return row


def _plain(value: Any) -> Any:
    if isinstance(value, Holder):
        return {**asdict(value), "since": utc(value.since)}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(member) for member in value]
    return str(value)
