"""What two processes say to each other about a run: frames, and two closed tables of what may be asked and what is answered.

A frame is four bytes of length, big-endian, and so many bytes of msgpack. Whoever connects says hello first and is greeted
back; then each request has one answer, a value or an error. What cannot be understood is refused, and never quoted.
"""

from __future__ import annotations

import math
from typing import Any, Union

import msgspec

from freehold.schema import messages
from freehold.schema.changes import Change
from freehold.schema.errors import CAUSE_DEPTH_MAX, Crashed, Error, Executed, Refused, from_record, is_ours
from freehold.schema.foreign import type_name
from freehold.schema.limits import REPLY_FRAME_BYTES_MAX, REQUEST_FRAME_BYTES_MAX
from freehold.schema.messages import Message
from freehold.schema.repeated import Repeated
from freehold.schema.rows import EventRow, PackedObject, RunRow, Written

PROTOCOL = 1
HEAD_BYTES = 4

REPLIES: dict[type[Message], Any] = {
    messages.ReadRun: tuple[RunRow, int],
    messages.ReadPage: tuple[list[EventRow], int | None],
    messages.ReadEvent: EventRow,
    messages.FindId: int | None,
    messages.FindTime: int,
    messages.ReadRoot: bytes | None,
    messages.FindRoot: list[bytes],
    messages.ReadObjects: list[PackedObject | None],
    messages.ReadChanges: list[Change] | None,
    messages.WaitBeyond: int | None,
    messages.ShowTree: dict[str, Any],
    messages.Append: Written,
    messages.Apply: list[Written | int | None] | Repeated,
    messages.KeepObjects: None,
    messages.PublishOn: Written | Repeated,
}
"""What may be asked from another process, and what the answer is. Nothing else crosses."""

SENDABLE = tuple(REPLIES)
_Sendable: Any = Union.__getitem__(SENDABLE)  # made at run time


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """The first frame in each direction. One of another version may say more, and is still told from what is none."""

    protocol: int = PROTOCOL


class Request(msgspec.Struct, frozen=True, tag="request", forbid_unknown_fields=True):
    """Ask one thing of the owner of a run, by its id and by the device and inode number of its file."""

    message: _Sendable
    run: str | None = None
    inode: tuple[int, int] | None = None
    timeout: float | None = None
    """How many seconds its asker still waits."""


class ErrorRecord(msgspec.Struct, frozen=True):
    """An error as `Error.record` writes it; of an exception that is not ours, its type alone."""

    error: str
    code: str | None = None
    message: str = ""
    executed: Executed = "no"
    details: dict[str, Any] = {}
    cause: ErrorRecord | None = None


class _Answer(msgspec.Struct, frozen=True, tag="answer"):
    value: msgspec.Raw


class _Failure(msgspec.Struct, frozen=True, tag="failure"):
    error: ErrorRecord


_encode = msgspec.msgpack.Encoder().encode
_hello = msgspec.msgpack.Decoder(Hello | _Failure)
_request = msgspec.msgpack.Decoder(Request)
_reply = msgspec.msgpack.Decoder(_Answer | _Failure)
_values = {kind: msgspec.msgpack.Decoder(reply) for kind, reply in REPLIES.items()}
_NOT_READ = (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError, OverflowError, TypeError)


def frame(body: bytes, most: int = REPLY_FRAME_BYTES_MAX) -> bytes:
    """Return *body* with its length before it. Raises Refused (frame_too_large)."""
    if len(body) > most:
        raise _too_large(len(body), most)
    return len(body).to_bytes(HEAD_BYTES, "big") + body


def body_length(head: bytes, most: int) -> int:
    """Return how many bytes follow *head*. Raises Refused (frame_too_large): nothing of them is to be read."""
    length = int.from_bytes(head, "big")
    if length > most:
        raise _too_large(length, most)
    return length


def encode_hello() -> bytes:
    """Return the frame that opens a connection, in either direction."""
    return frame(_encode(Hello()))


def check_hello(body: bytes) -> None:
    """Make sure that the other side speaks as we do. Raises Refused (other_protocol, malformed_frame), or what it was told instead."""
    said = _decoded(_hello, body)
    if isinstance(said, _Failure):
        raise error_of(said.error)
    if said.protocol != PROTOCOL:
        raise Refused(
            f"the other process speaks version {said.protocol} of the protocol, this one version {PROTOCOL}; nothing was changed",
            code="other_protocol",
            ours=PROTOCOL,
            theirs=said.protocol,
        )


def encode_request(request: Request) -> bytes:
    """Return the frame of a request. Raises Refused: what cannot be asked in another process, or is too large for it."""
    if type(request.message) not in REPLIES:
        raise Refused("this cannot be asked of an owner in another process; nothing was changed", kind=type_name(request.message))
    try:
        return frame(_encode(request), REQUEST_FRAME_BYTES_MAX)
    except _NOT_READ:
        raise malformed("a message holds what cannot be sent") from None


def decode_request(body: bytes) -> Request:
    """Return the request that *body* is. Raises Refused (malformed_frame)."""
    request: Request = _decoded(_request, body)
    whose = request.run is not None and request.inode is not None
    if whose is isinstance(request.message, messages.ShowTree) or (request.timeout is not None and not 0 <= request.timeout < math.inf):
        raise malformed("a request does not say of which run, or for how long")
    return request


def encode_value(value: Any) -> bytes:
    """Return the frame of an answer. Raises Refused (frame_too_large)."""
    return frame(_encode({"type": "answer", "value": value}))


def encode_error(error: BaseException) -> bytes:
    """Return the frame of an error. Of one that is not ours only its type is told, for its text could quote a value."""
    if not is_ours(error):
        error = Crashed(f"the owner failed ({type_name(error)}); nothing of this request was kept")
    record = error.record()
    try:
        return frame(_encode({"type": "failure", "error": record}))
    except (*_NOT_READ, Error):  # a detail that cannot be written: a surrogate, a number beyond 64 bits
        text = str(error).encode("ascii", "backslashreplace").decode()
        bare = {**record, "message": text, "details": {}, "cause": None}
        return frame(_encode({"type": "failure", "error": bare}))


def decode_reply(body: bytes, kind: type[Message]) -> tuple[Any, Error | None]:
    """Return the value that a message of *kind* was answered with, or the error. Raises Refused (malformed_frame)."""
    reply = _decoded(_reply, body)
    if isinstance(reply, _Failure):
        return None, error_of(reply.error)
    return _decoded(_values[kind], reply.value), None


def error_of(record: ErrorRecord) -> Error:
    """Return the error that was sent, of the same class, with its causes to the depth that errors are told in."""
    return from_record(_as_row(record, CAUSE_DEPTH_MAX))


def _as_row(record: ErrorRecord, depth: int) -> dict[str, Any]:
    # A detail of such a name would be taken for the error's own argument.
    details = {name: value for name, value in record.details.items() if name not in ("self", "message", "code", "executed")}
    row = {"code": record.code or "error", "message": record.message, "executed": record.executed, "details": details}
    if record.cause is not None and record.cause.code is not None and depth > 1:
        row["cause"] = _as_row(record.cause, depth - 1)
    return row


def _decoded(decoder: msgspec.msgpack.Decoder[Any], body: bytes | msgspec.Raw) -> Any:
    try:
        return decoder.decode(body)
    except _NOT_READ:  # its text quotes what it could not read
        raise malformed("what came is not what this protocol says") from None


def malformed(what: str) -> Refused:
    """Return what is said of a frame that nobody of ours has made."""
    return Refused(f"{what}; nothing was changed", code="malformed_frame")


def _too_large(length: int, most: int) -> Refused:
    return Refused(
        f"{length} bytes are more than the {most} that may cross between two processes at once; nothing was changed",
        code="frame_too_large",
        bytes=length,
        bytes_max=most,
    )
