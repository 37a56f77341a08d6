"""The only place that says sha256. Every hash is tagged with what it is a hash of, so that no two kinds can collide."""

from __future__ import annotations

import struct
from enum import IntEnum
from hashlib import sha256

from freehold.schema.version import EVENT_FORMAT

NO_HASH = bytes(32)
"""What stands before event 1."""

_EVENT_TAG = b"freehold/event\x00" + bytes((EVENT_FORMAT,))
_CUT_TAG = b"freehold/cut\x00"
_U64 = struct.Struct(">Q").pack
_ABSENT = b"\xff" * 8
_EIGHT = _U64(8)
_SIXTEEN = _U64(16)
_THIRTY_TWO = _U64(32)
_NO_POSITION = _ABSENT * 3


class ObjectKind(IntEnum):
    """What an object holds; stands in `object.kind`."""

    CHUNK = 0
    TREE = 1
    FILE = 2
    ROOT = 3
    VALUE = 4


_TAGS = {kind: f"freehold/{kind.name.lower()}\x00".encode() for kind in ObjectKind}


def object_hash(kind: ObjectKind, data: bytes) -> bytes:
    """Return the identity of an object: sha256 over its kind's tag and its plain bytes."""
    return sha256(_TAGS[kind] + data).digest()


def cut(level: int, name: str) -> int:
    """Return where *name* stands in the draw that cuts a level of directory nodes: 32 bits that depend on nothing else."""
    return int.from_bytes(sha256(_CUT_TAG + bytes((level,)) + name.encode()).digest()[:4], "big")


def request_digest(kind: str, *parts: str) -> bytes:
    """Return what a request id stands for: sha256 over length-prefixed parts, the kind of request first."""
    return sha256(b"freehold/request\x00" + b"".join(_text(part) for part in (kind, *parts))).digest()


def input_hash(arguments: str) -> bytes:
    """Return what stands in the journal for the arguments of a step, given as their canonical text."""
    return sha256(b"freehold/input\x00" + arguments.encode()).digest()


def step_key(run_id: str, first_event: bytes, position: str) -> bytes:
    """Return what the world is to know a step by, in every attempt: of a run, by its id and that of its first event, and a position."""
    return sha256(b"freehold/step\x00" + _text(run_id) + _SIXTEEN + first_event + _text(position)).digest()


def event_hash(
    previous: bytes,
    seq: int,
    event_id: bytes,
    kind: str,
    name: str | None,
    execution: int | None,
    position: str | None,
    phase: int | None,
    attempt: int | None,
    record: str,
    value_hash: bytes | None,
    root_hash: bytes,
    time_ms: int,
) -> bytes:
    """Return an event's place in the chain.

    Every field is an 8-byte big-endian length and its bytes, an integer 8 bytes big-endian, an absent field the
    length FFFFFFFFFFFFFFFF and nothing. The order is the order of the arguments; *previous* is 32 bytes.
    """
    fields = (
        _EVENT_TAG,
        previous,
        _EIGHT,
        _U64(seq),
        _SIXTEEN,
        event_id,
        _text(kind),
        _ABSENT if name is None else _text(name),
        _ABSENT if execution is None else _EIGHT + _U64(execution),
        _NO_POSITION if position is None or phase is None or attempt is None else _at(position, phase, attempt),
        _text(record),
        _ABSENT if value_hash is None else _THIRTY_TWO + value_hash,
        _THIRTY_TWO,
        root_hash,
        _EIGHT,
        _U64(time_ms),
    )
    return sha256(b"".join(fields)).digest()


def _at(position: str, phase: int, attempt: int) -> bytes:
    return _text(position) + _EIGHT + _U64(phase) + _EIGHT + _U64(attempt)


def _text(text: str) -> bytes:
    raw = text.encode()
    return _U64(len(raw)) + raw
