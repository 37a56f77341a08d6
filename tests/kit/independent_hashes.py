"""The hashes of docs/FORMAT.md, by its section *Hashes* and nothing else."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

WIDTHS = {0xCC: (1, 2**7), 0xCD: (2, 2**8), 0xCE: (4, 2**16), 0xCF: (8, 2**32)}
"""MessagePack's longer integers: how many bytes follow, and the least number that needs them."""


def object_hash(kind: str, content: bytes) -> bytes:
    """Return the identity of an object."""
    return hashlib.sha256(f"freehold/{kind}\0".encode() + content).digest()


def request_digest(*parts: str) -> bytes:
    """Return what a request id stands for."""
    return hashlib.sha256(b"freehold/request\0" + b"".join(map(_field, parts))).digest()


def input_hash(text: str) -> bytes:
    """Return what stands for the arguments of a step, by their text."""
    return hashlib.sha256(b"freehold/input\0" + text.encode()).digest()


def step_key(run: str, first: bytes, position: str) -> bytes:
    """Return the key of a step to which the user gave none."""
    return hashlib.sha256(b"freehold/step\0" + _field(run) + _field(first) + _field(position)).digest()


def event_bytes(previous: bytes, fields: list[Any]) -> bytes:
    """Return what is hashed of the event with these twelve fields."""
    return b"freehold/event\0\1" + previous + b"".join(map(_field, fields))


def event_hash(previous: bytes, fields: list[Any]) -> bytes:
    """Return the place in the chain of the event with these twelve fields."""
    return hashlib.sha256(event_bytes(previous, fields)).digest()


def tree_of(content: bytes) -> bytes:
    """Return the hash of the tree that a root object names. Raises ValueError for what is no root object."""
    numbers, at = [], 36
    while at < len(content):
        width, least = WIDTHS.get(content[at], (0, 0))
        numbers.append(int.from_bytes(content[at + 1 : at + 1 + width], "big") if width else content[at])
        if numbers[-1] < least or (not width and numbers[-1] > 127):
            raise ValueError("MessagePack")
        at += 1 + width
    if content[:4] != b"\x96\1\xc4\x20" or len(numbers) != 4 or at != len(content):
        raise ValueError("root object")
    return content[4:36]


def _field(field: bytes | str | int | None) -> bytes:
    if field is None:
        return b"\xff" * 8
    raw = struct.pack(">q", field) if isinstance(field, int) else field.encode() if isinstance(field, str) else field
    return struct.pack(">Q", len(raw)) + raw
