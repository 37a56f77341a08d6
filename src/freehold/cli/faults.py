"""What went wrong, as a record for machines and a hint for people. No record repeats a stored value."""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from freehold.cli.exits import INTERRUPTED, TERMINATED, USAGE
from freehold.cli.interrupt import Terminated
from freehold.errors import Crashed, Error, Refused, Unavailable

DEBUG = "FREEHOLD_DEBUG"

HINTS = {
    "run_not_found": "`freehold list` names the runs of the root, and `freehold create RUN` makes one.",
    "run_exists": "`freehold show RUN` shows the one that is there.",
    "owned_elsewhere": "its owner cannot be asked. What reads (show, history, cat, diff) works meanwhile; try later, or close it there.",
    "deadline_exceeded": "--timeout SECONDS waits longer, and with the same --request-id it is never done twice.",
    "no_answer": "`freehold history RUN` says what was done, and with the same --request-id it is never done twice.",
    "bad_position": "a seq, an event's id, a time such as 2026-11-23T12:00:00Z, or a root (8 or more of its digits).",
    "not_a_run": "if it is no run of yours, keep it out of the folder of runs.",
    "usage": "`freehold --help` and `freehold COMMAND --help` say what there is; put -- before an argument that begins with a dash.",
}
"""What to do next, by code, where the message does not say it itself."""


class FileError(Exception):
    """What the system, or the workspace in its words, says of a file that the call has named."""

    def __init__(self, error: OSError, number: int, path: str, executed: str) -> None:
        super().__init__(f"{path}: {error.strerror or os.strerror(number)}")
        later = number in (errno.EAGAIN, errno.ENOSPC, errno.EDQUOT)
        symbol = errno.errorcode.get(number, str(number))
        self.record = {
            "error": type(error).__name__,
            "code": symbol,
            "message": str(self),
            "retryable": later,
            "executed": executed,
            "details": {"errno": symbol, "path": path},
            "exit_code": (Unavailable if later else Refused).exit_code,
        }


@contextmanager
def file_errors(about: str | None = None, *, executed: str = "no") -> Iterator[None]:
    """Know a file error inside the block for one of the call: one that names its file, or any where *about* names it."""
    try:
        yield
    except OSError as error:
        path = about if error.filename is None else error.filename
        if not isinstance(path, str | bytes | os.PathLike) or error.errno is None:
            raise
        raise FileError(error, error.errno, os.fsdecode(path), executed) from None


def record_of(error: BaseException) -> dict[str, Any]:
    """Return *error* as plain data, `Error.record()` or one of the same shape."""
    if isinstance(error, Error):
        return error.record()
    if isinstance(error, FileError):
        return error.record
    if isinstance(error, click.ClickException):
        return _record("UsageError", "usage", error.format_message(), USAGE, executed="no")
    if isinstance(error, Terminated):
        return _record("Terminated", "terminated", "terminated", TERMINATED, executed="unknown")
    if isinstance(error, KeyboardInterrupt):
        return _record("Interrupted", "interrupted", "interrupted", INTERRUPTED, executed="unknown")
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    # The exception's own text and traceback may quote a value; its type cannot.
    name = type(error).__name__
    message = f"{name}: this is a fault of freehold's own, not of the call. Where it happened is shown with {DEBUG}=1 (may show values)"
    return Crashed(message, executed="unknown", type=name).record()


def _record(kind: str, code: str, message: str, exit_code: int, *, executed: str) -> dict[str, Any]:
    return {
        "error": kind,
        "code": code,
        "message": message,
        "retryable": False,
        "executed": executed,
        "details": {},
        "exit_code": exit_code,
    }
