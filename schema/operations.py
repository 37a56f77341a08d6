"""What a transaction can be told to do as plain values, and what is checked of them before anything is sent, or believed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec

from freehold.schema.errors import Error, Refused, ValueRefused
from freehold.schema.hashes import request_digest
from freehold.schema.ids import check_name, check_stop_code
from freehold.schema.lifecycle import settling
from freehold.schema.limits import APPLY_BYTES_MAX, APPLY_OPERATIONS_MAX
from freehold.schema.paths import parse, text
from freehold.schema.secrets import SecretFilter
from freehold.schema.values import canonical, decode

E = TypeVar("E", bound=Error)


class Step(msgspec.Struct, frozen=True, gc=False, tag=True, forbid_unknown_fields=True):
    """Base of every operation. Its repr shows its kind and nothing that it carries. What has a member more is not taken for one without."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return nothing: what rich prints of an operation must not show more than its repr."""
        return []


class Append(Step, frozen=True, gc=False, tag=True):
    """Add a note, whose value is encoded already. The result is its event."""

    name: str
    record: str


class BeginExecution(Step, frozen=True, gc=False, tag=True):
    """Begin an execution. The result is its number."""


class Settle(Step, frozen=True, gc=False, tag=True):
    """End the running execution. The result is the event `settled`, or None with a code.

    The reason is an event, by its seq or its id, or the one that the append at *result* of the same operations has added.
    """

    status: str
    code: str | None = None
    event: int | bytes | None = None
    result: int | None = None


class WriteBytes(Step, frozen=True, gc=False, tag=True):
    """Make *data* the content of a file."""

    path: str
    data: bytes


class Touch(Step, frozen=True, gc=False, tag=True):
    """Create an empty file, or leave the one that is there."""

    path: str
    exist_ok: bool = True


class Mkdir(Step, frozen=True, gc=False, tag=True):
    """Make a directory."""

    path: str
    mode: int = 0o755
    parents: bool = False
    exist_ok: bool = False


class Symlink(Step, frozen=True, gc=False, tag=True):
    """Make a link at *path* that says *target*."""

    path: str
    target: str


class Remove(Step, frozen=True, gc=False, tag=True):
    """Remove a file or a link."""

    path: str


class Rmdir(Step, frozen=True, gc=False, tag=True):
    """Remove an empty directory."""

    path: str


class Rmtree(Step, frozen=True, gc=False, tag=True):
    """Remove a directory with all beneath it."""

    path: str


class Rename(Step, frozen=True, gc=False, tag=True):
    """Give a file, a link or a directory another path."""

    path: str
    to: str


class Copy(Step, frozen=True, gc=False, tag=True):
    """Copy a file, or a directory with all beneath it."""

    path: str
    to: str


class Chmod(Step, frozen=True, gc=False, tag=True):
    """Set the permissions of a file or a directory."""

    path: str
    mode: int


Operation: TypeAlias = (
    Append | BeginExecution | Settle | WriteBytes | Touch | Mkdir | Symlink | Remove | Rmdir | Rmtree | Rename | Copy | Chmod
)
"""One step of a transaction as data."""

KINDS: frozenset[type] = frozenset(Step.__subclasses__())
FILE_KINDS = KINDS - {Append, BeginExecution, Settle}
_NEW_PATHS: tuple[tuple[tuple[type, ...], Callable[[Any], str]], ...] = (
    ((WriteBytes, Touch, Mkdir, Symlink), lambda operation: operation.path),
    ((Rename, Copy), lambda operation: operation.to),
)
"""What gives a path to something that has had none: a name with a secret would be stored there."""


def checked(operations: Sequence[object], secrets: SecretFilter) -> tuple[Operation, ...]:
    """Return the operations as they are carried out: each is what it says it is, and no record, name or path holds a secret.

    Raises what each call by itself would raise, with the index of the operation in the detail `operation`; and Refused
    (bad_option) for more than 1,000, ValueRefused (value_too_large) for more than 16 MiB. Nothing was sent by then.
    """
    if not isinstance(operations, list | tuple):
        raise Refused("operations are a list of what freehold.operations makes; nothing was changed", code="bad_option")
    if len(operations) > APPLY_OPERATIONS_MAX:
        raise Refused(f"a transaction as data has at most {APPLY_OPERATIONS_MAX} operations; nothing was changed", code="bad_option")
    found: list[Operation] = []
    for index, operation in enumerate(operations):
        try:
            found.append(_checked(operation, found, secrets))
        except Error as error:
            raise named(error, index) from None
    if (size := size_of(found)) > APPLY_BYTES_MAX:
        raise ValueRefused(
            f"these operations take {size} bytes, and a transaction as data at most {APPLY_BYTES_MAX}; nothing was changed",
            code="value_too_large",
            size=size,
            limit=APPLY_BYTES_MAX,
        )
    return tuple(found)


def named(error: E, index: int) -> E:
    """Return *error* with the index of the operation that it is about."""
    if "operation" not in error.details:
        error.details["operation"] = index
        error.args = (f"operation {index}: {error}",)
    return error


def size_of(operations: Sequence[Operation]) -> int:
    """Return about how many bytes the operations carry."""
    carried = (each.record if isinstance(each, Append) else each.data if isinstance(each, WriteBytes) else b"" for each in operations)
    # In bytes, because that is what has to cross between two processes: a character can take four.
    return sum(len(each) if isinstance(each, bytes) or each.isascii() else len(each.encode()) for each in carried)


def digest_of(operations: Sequence[Operation]) -> bytes:
    """Return what a request id stands for that carries them out."""
    plain = [Append(each.name, canonical(decode(each.record))) if isinstance(each, Append) else each for each in operations]
    return request_digest("apply", msgspec.json.encode(plain).decode())


def _checked(operation: object, before: Sequence[Operation], secrets: SecretFilter) -> Operation:
    kind = type(operation)
    if kind not in KINDS:
        raise Refused(f"this is no operation but {kind.__name__}; nothing was changed", code="bad_option")
    try:
        # Also one that was made here may have members of other types, or of classes that answer for themselves.
        known: Any = msgspec.convert(msgspec.to_builtins(operation, builtin_types=(bytes,)), kind, builtin_types=(bytes,))
    except (msgspec.ValidationError, TypeError, ValueError):
        raise Refused(f"a member of this {kind.__name__} is of another type than it says; nothing was changed", code="bad_option") from None
    if isinstance(known, Append):
        secrets.check_text(check_name(known.name), "an event name")
        return Append(known.name, secrets.seal(decode(known.record)).record)
    if isinstance(known, Settle):
        _check_settle(known, before, secrets)
    elif kind in FILE_KINDS:
        _check_file(known, secrets)
    operation_: Operation = known
    return operation_


def _check_settle(settle: Settle, before: Sequence[Operation], secrets: SecretFilter) -> None:
    settling(settle.status)
    if settle.code is not None:
        secrets.check_text(check_stop_code(settle.code), "a stop code")
    if sum(each is not None for each in (settle.code, settle.event, settle.result)) > 1:
        raise Refused("an execution stops for a code or for one event; nothing was changed", code="bad_option")
    if settle.result is not None and not (0 <= settle.result < len(before) and isinstance(before[settle.result], Append)):
        raise Refused("a result that is a stop reason is that of an append that comes before; nothing was changed", code="bad_option")
    if isinstance(settle.event, int) and not 0 < settle.event < 2**63:
        raise Refused("a stop reason is an event of this run or its seq; nothing was changed", code="bad_option")


def _check_file(operation: Any, secrets: SecretFilter) -> None:
    for path in (operation.path, getattr(operation, "to", ".")):
        parse(path)
    for kinds, new in _NEW_PATHS:
        if isinstance(operation, kinds):
            secrets.check_text(text(parse(new(operation))), "a path")
    if isinstance(operation, Symlink):
        secrets.check_text(operation.target, "what a link says")
