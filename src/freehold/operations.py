"""Transactions as data: what `Run.apply` carries out in one turn, as plain values that can be kept, compared and sent.

Each function returns one operation; it is named and takes what it is named after takes, in `Transaction` and in `Files`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import Any

from freehold.event import Event
from freehold.files import StrPath
from freehold.reply import restore
from freehold.schema import operations
from freehold.schema.errors import Refused
from freehold.schema.ids import check_name
from freehold.schema.operations import Operation
from freehold.schema.paths import parse, plain, text
from freehold.schema.repeated import Repeated
from freehold.schema.rows import EventRow, Written
from freehold.schema.values import Value, encode
from freehold.storage.folder import DIRECTORY_MODE

__all__ = [
    "Operation",
    "append",
    "begin_execution",
    "chmod",
    "copy",
    "mkdir",
    "remove",
    "rename",
    "rmdir",
    "rmtree",
    "settle",
    "symlink",
    "touch",
    "write_bytes",
    "write_text",
]


def append(name: str, data: Value = None) -> Operation:
    """Add a note to the journal. *data* is taken as it is now. Raises Refused (bad_name), ValueRefused."""
    return operations.Append(check_name(name), encode(data))


def begin_execution() -> Operation:
    """Begin an execution of the run."""
    return operations.BeginExecution()


def settle(status: str, *, code: str | None = None, event: Event | int | None = None, result: int | None = None) -> Operation:
    """End the running execution, for the host's *code*, or for an event; that of the append at index *result* of the list is one."""
    if isinstance(event, Event):
        return operations.Settle(status, code, event._id, result)  # noqa: SLF001 - the same package
    if isinstance(event, bool) or not (event is None or isinstance(event, int)):
        raise Refused("a stop reason is an event of this run or its seq; nothing was changed", code="bad_option")
    return operations.Settle(status, code, event, result)


def write_bytes(path: StrPath, data: bytes) -> Operation:
    """Make *data* the content of a file. Raises PathRefused."""
    return operations.WriteBytes(_path(path), bytes(memoryview(data)))


def write_text(path: StrPath, data: str, encoding: str = "utf-8", errors: str = "strict", newline: str | None = None) -> Operation:
    """Make *data* the content of a file; see `write_bytes`."""
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding, errors, newline or "") as writer:
        writer.write(data)
        writer.flush()
        return write_bytes(path, raw.getvalue())


def touch(path: StrPath, *, exist_ok: bool = True) -> Operation:
    """Create an empty file, or leave the one that is there."""
    return operations.Touch(_path(path), exist_ok)


def mkdir(path: StrPath, mode: int = DIRECTORY_MODE, *, parents: bool = False, exist_ok: bool = False) -> Operation:
    """Make a directory."""
    return operations.Mkdir(_path(path), mode, parents, exist_ok)


def symlink(path: StrPath, target: StrPath) -> Operation:
    """Make a link at *path* that says *target*."""
    return operations.Symlink(_path(path), plain(target))


def remove(path: StrPath) -> Operation:
    """Remove a file or a link."""
    return operations.Remove(_path(path))


def rmdir(path: StrPath) -> Operation:
    """Remove an empty directory."""
    return operations.Rmdir(_path(path))


def rmtree(path: StrPath) -> Operation:
    """Remove a directory with all beneath it."""
    return operations.Rmtree(_path(path))


def rename(path: StrPath, to: StrPath) -> Operation:
    """Give a file, a link or a directory another path, as os.rename does."""
    return operations.Rename(_path(path), _path(to))


def copy(path: StrPath, to: StrPath) -> Operation:
    """Copy a file over whatever file is at *to*, or a directory to where nothing is."""
    return operations.Copy(_path(path), _path(to))


def chmod(path: StrPath, mode: int) -> Operation:
    """Set the permissions of a file or a directory."""
    return operations.Chmod(_path(path), mode)


def results_of(send: Callable[[], Any], read: Callable[[int], EventRow]) -> list[Event | int | None]:
    """Return the results of what *send* carries out, or had carried out before; a file error is Python's own again."""
    try:
        answer = send()
    except Refused as refusal:
        number, path = refusal.details.get("errno"), refusal.details.get("path")
        if refusal.code != "file_error" or type(number) is not int or not isinstance(path, str | None):
            raise
        raise _file_error(refusal, number, path) from refusal
    if isinstance(answer, Repeated):
        again: list[Event | int | None] = restore(answer.reply, lambda seq: Event(read(seq), durable=answer.durable))
        return again
    return [Event(Written(*result)) if isinstance(result, tuple) else result for result in answer]


def _file_error(refusal: Refused, number: int, path: str | None) -> OSError:
    error = OSError(number, os.strerror(number), path)
    error.add_note(f"operation {refusal.details.get('operation')} of this transaction; all of it was undone")
    return error


def _path(path: StrPath) -> str:
    return text(parse(path))
