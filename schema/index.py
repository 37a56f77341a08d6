"""A file's index: which chunks stand where in it. Its shape follows from the file's size alone, so there is one for each content."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from freehold.schema.errors import Damaged
from freehold.schema.hashes import ObjectKind
from freehold.schema.limits import CHUNK_BYTES, FILE_BYTES_MAX, INDEX_FAN_OUT, INDEX_LEVELS_MAX
from freehold.schema.roots import Object, make_object

CHUNK_LEVEL = -1
"""Where chunks stand: a file of no more than one has no index, and is found at this level."""

_Hash = Annotated[bytes, Meta(min_length=32, max_length=32)]


class IndexNode(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One node: *size* bytes stand beneath it. At level 0 it names chunks, above nodes of the level below; all but the last are full."""

    level: Annotated[int, Meta(ge=0, lt=INDEX_LEVELS_MAX)]
    size: Annotated[int, Meta(ge=1, le=FILE_BYTES_MAX)]
    children: Annotated[tuple[_Hash, ...], Meta(min_length=1, max_length=INDEX_FAN_OUT)]


_DECODER = msgspec.msgpack.Decoder(IndexNode)


def make_index(level: int, size: int, children: list[bytes]) -> Object:
    """Return the node of these children as an object."""
    assert len(children) == count_children(level, size) <= INDEX_FAN_OUT, (level, size, len(children))
    return make_object(ObjectKind.FILE, msgspec.msgpack.encode(IndexNode(level, size, tuple(children))))


def decode_index(data: bytes) -> IndexNode:
    """Return the node that *data* is the one form of. Raises Damaged."""
    try:
        node = _DECODER.decode(data)
    except msgspec.DecodeError:
        raise _malformed() from None
    # The decoder takes an integer in more than its shortest form, so what it read is written again.
    if len(node.children) != count_children(node.level, node.size) or msgspec.msgpack.encode(node) != data:
        raise _malformed()
    return node


def chunks_beneath(data: bytes) -> tuple[bytes, ...]:
    """Return the chunks that a node of the lowest level names; none of a higher one. Raises Damaged."""
    node = decode_index(data)
    return tuple(node.children) if node.level == 0 else ()


def count_chunks(size: int) -> int:
    """Return how many chunks *size* bytes are."""
    return -(-size // CHUNK_BYTES)


def top_level(size: int) -> int:
    """Return the level of the top node of *size* bytes; CHUNK_LEVEL where one chunk holds them."""
    level = CHUNK_LEVEL
    while size > span(level):
        level += 1
    return level


def span(level: int) -> int:
    """Return how many bytes stand beneath a full node of *level*; a chunk's own, at CHUNK_LEVEL."""
    fans: int = INDEX_FAN_OUT ** (level - CHUNK_LEVEL)
    return CHUNK_BYTES * fans


def count_children(level: int, size: int) -> int:
    """Return how many children a node of *level* has with *size* bytes beneath it."""
    return -(-size // span(level - 1))


def child_at(level: int, chunk: int) -> int:
    """Return which child of the node of *level* on the way to chunk number *chunk* leads there."""
    return chunk * CHUNK_BYTES // span(level - 1) % INDEX_FAN_OUT


def child_size(level: int, size: int, child: int) -> int:
    """Return how many bytes stand beneath one child of a node of *level* with *size* bytes."""
    return min(span(level - 1), size - child * span(level - 1))


def _malformed() -> Damaged:
    return Damaged("a node of a file's index is not in its one form; the file was left unchanged", code="malformed_record", table="object")
