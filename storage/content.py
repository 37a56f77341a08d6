"""The bytes of a file as objects: the same bytes are the same content, however they were written, and never all in memory."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from freehold.schema.errors import Damaged
from freehold.schema.hashes import ObjectKind
from freehold.schema.index import (
    CHUNK_LEVEL,
    IndexNode,
    child_at,
    child_size,
    count_chunks,
    decode_index,
    make_index,
    span,
    top_level,
)
from freehold.schema.limits import CHUNK_BYTES, FILE_BYTES_MAX, INDEX_FAN_OUT, INLINE_BYTES_MAX
from freehold.schema.roots import make_object
from freehold.storage.objects import Objects


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds: its size, and the bytes themselves, the hash of their one chunk, or that of their index's top node."""

    size: int
    where: bytes = field(repr=False)  # it may be the bytes themselves

    @property
    def is_inline(self) -> bool:
        """Whether the bytes themselves stand in `where`."""
        return self.size <= INLINE_BYTES_MAX


EMPTY = Content(0, b"")


class Piece(NamedTuple):
    """One object that a content names: a node of its index, or a chunk at CHUNK_LEVEL, with *size* bytes in or beneath it."""

    level: int
    hash: bytes
    size: int

    @property
    def kind(self) -> ObjectKind:
        """What kind of object it is."""
        return ObjectKind.CHUNK if self.level == CHUNK_LEVEL else ObjectKind.FILE


def read(objects: Objects, content: Content, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
    """Yield what stands from *offset* on, no more than a chunk at a time; less than *length* where the file ends before.

    Raises Damaged when an object is missing or not what it must be.
    """
    end = content.size if length is None else min(content.size, offset + length)
    if offset >= end:
        return
    chunks = Chunks(objects, content)
    for number in range(offset // CHUNK_BYTES, count_chunks(end)):
        start = number * CHUNK_BYTES
        yield chunks.at(number)[max(0, offset - start) : end - start]


def write(objects: Objects, data: bytes) -> Content:
    """Keep *data* and return it as content."""
    if len(data) > CHUNK_BYTES:
        return write_stream(objects, (data,))
    return Content(len(data), data if len(data) <= INLINE_BYTES_MAX else put_chunk(objects, data))


def write_stream(objects: Objects, pieces: Iterable[bytes]) -> Content:
    """Keep what *pieces* hold one after the other, a chunk at a time, and return it. Raises OSError (EFBIG) past FILE_BYTES_MAX."""
    size = 0
    fold = _Fold(objects)
    for chunk in _chunks(pieces):
        if size == 0 and len(chunk) <= INLINE_BYTES_MAX:  # only the last chunk is short: it is the whole
            return Content(len(chunk), chunk)
        size += len(chunk)
        if size > FILE_BYTES_MAX:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        fold.add(put_chunk(objects, chunk))
    return Content(size, fold.top(size)) if size else EMPTY


def check_content(objects: Objects, content: Content, seen: set[Piece] | None = None) -> None:
    """Look at every node of the index and every chunk.

    Raises Damaged when one is missing, is not what its hash says, or is not of the size that follows from the file's. What is
    in *seen* was looked at before; what was looked at now is added.
    """
    if content.is_inline:
        if len(content.where) != content.size:
            raise _wrong()
        return
    for piece in pieces(objects, content, set() if seen is None else seen):
        if piece.level == CHUNK_LEVEL:
            load_chunk(objects, piece.hash, piece.size)


def pieces(objects: Objects, content: Content, seen: set[Piece]) -> Iterator[Piece]:
    """Yield every object that *content* names, each once and a node before what it names; none for a content that is inline.

    What is in *seen* is left out with all beneath it; what is yielded is added. The chunks themselves are not read.
    """
    if not content.is_inline:
        yield from _beneath(objects, Piece(top_level(content.size), content.where, content.size), seen)


def _beneath(objects: Objects, piece: Piece, seen: set[Piece]) -> Iterator[Piece]:
    if piece in seen:
        return
    seen.add(piece)
    yield piece
    if piece.level != CHUNK_LEVEL:
        for number, child in enumerate(load_node(objects, piece).children):
            yield from _beneath(objects, Piece(piece.level - 1, child, child_size(piece.level, piece.size, number)), seen)


class Chunks:
    """The chunks of one content by their number. The last one asked for is kept at hand, and the nodes on the way to it."""

    def __init__(self, objects: Objects, content: Content) -> None:
        self.content = content
        self._objects = objects
        self._path: dict[int, tuple[Piece, IndexNode]] = {}
        self._last: tuple[int, bytes] | None = None

    def at(self, number: int) -> bytes:
        """Return chunk *number* of the content. Raises Damaged when it, or a node on the way, is not what it must be."""
        if self._last is None or self._last[0] != number:
            self._last = number, self._load(number)
        return self._last[1]

    def _load(self, number: int) -> bytes:
        hash_, size = self.content.where, self.content.size
        if self.content.is_inline:
            if len(hash_) != size:
                raise _wrong()
            return hash_
        for level in range(top_level(size), CHUNK_LEVEL, -1):
            child = child_at(level, number)
            hash_, size = self._node(Piece(level, hash_, size)).children[child], child_size(level, size, child)
        return load_chunk(self._objects, hash_, size)

    def _node(self, piece: Piece) -> IndexNode:
        kept = self._path.get(piece.level)
        if kept is None or kept[0] != piece:
            kept = self._path[piece.level] = piece, load_node(self._objects, piece)
        return kept[1]


class _Fold:
    """An index that grows at its end: a node is kept as soon as the next one begins, so that at most one of each level is in memory."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._levels: list[list[bytes]] = []

    def add(self, hash_: bytes, level: int = 0) -> None:
        """Take the hash of the next chunk, or of what is the next child at *level*."""
        if level == len(self._levels):
            self._levels.append([])
        waiting = self._levels[level]
        # Only when one more has come it is known that the last of these is full.
        if len(waiting) == INDEX_FAN_OUT:
            self.add(self._keep(level, span(level), waiting), level + 1)
            waiting.clear()
        waiting.append(hash_)

    def top(self, size: int) -> bytes:
        """Return the hash of what holds all *size* bytes. Nothing can be added afterwards."""
        for level in range(top_level(size) + 1):
            self.add(self._keep(level, (size - 1) % span(level) + 1, self._levels[level]), level + 1)
        (hash_,) = self._levels[-1]
        return hash_

    def _keep(self, level: int, size: int, children: list[bytes]) -> bytes:
        node = make_index(level, size, children)
        self._objects.put(node)
        return node.hash


def put_chunk(objects: Objects, data: bytes) -> bytes:
    """Keep *data* as a chunk and return its hash."""
    chunk = make_object(ObjectKind.CHUNK, data)
    objects.put(chunk)
    return chunk.hash


def load_chunk(objects: Objects, hash_: bytes, size: int) -> bytes:
    """Return a chunk that must have *size* bytes. Raises Damaged."""
    data = objects.get(hash_, ObjectKind.CHUNK)
    if len(data) != size:
        raise _wrong()
    return data


def load_node(objects: Objects, piece: Piece) -> IndexNode:
    """Return a node that must be of this level and size. Raises Damaged."""
    node = decode_index(objects.get(piece.hash, ObjectKind.FILE))
    if (node.level, node.size) != (piece.level, piece.size):
        raise _wrong()
    return node


def _chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    pending = bytearray()
    for piece in pieces:
        rest = memoryview(piece)
        while rest:
            taken = rest[: CHUNK_BYTES - len(pending)]
            rest = rest[len(taken) :]
            pending += taken
            if len(pending) == CHUNK_BYTES:
                yield bytes(pending)
                pending.clear()
    if pending:
        yield bytes(pending)


def _wrong() -> Damaged:
    return Damaged("a piece of a file's content is not of the size that it must have; the file was left unchanged", rule="content")
