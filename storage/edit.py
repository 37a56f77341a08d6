"""A file's content with some of its chunks replaced: what is written is those chunks, and the nodes of the index on the way to them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from freehold.schema.index import CHUNK_LEVEL, child_size, count_children, count_chunks, make_index, span, top_level
from freehold.schema.limits import CHUNK_BYTES, INLINE_BYTES_MAX
from freehold.storage.content import EMPTY, Chunks, Content, Piece, load_chunk, load_node, put_chunk
from freehold.storage.objects import Objects

Changes = Mapping[int, bytes | bytearray]
"""Chunks by their number, each of the length that it has in the edited file."""


def edited(objects: Objects, content: Content, changes: Changes, size: int) -> Content:
    """Keep and return *content* with *size* bytes and the chunks in *changes*; where it was shorter, there are zero bytes.

    Raises Damaged when a piece of *content* that is needed is not what it must be.
    """
    count = count_chunks(size)
    assert all(0 <= number < count and len(chunk) == chunk_size(size, number) for number, chunk in changes.items())
    if size == 0:
        return EMPTY
    if size <= INLINE_BYTES_MAX:
        first = changes[0] if 0 in changes else _fit(_first(objects, content), size)
        return Content(size, bytes(first))
    if content.is_inline:
        changes = {0: _fit(_first(objects, content), chunk_size(size, 0))} | dict(changes)
    edit = _Edit(objects, changes)
    return Content(size, edit.top(content, size))


def chunk_size(size: int, number: int) -> int:
    """Return how long chunk *number* is in a file of *size* bytes."""
    return min(CHUNK_BYTES, size - number * CHUNK_BYTES)


class _Edit:
    def __init__(self, objects: Objects, changes: Changes) -> None:
        self._objects = objects
        self._changes = changes
        self._numbers = sorted(changes)
        self._zeros: dict[tuple[int, int], bytes] = {}

    def top(self, content: Content, size: int) -> bytes:
        """Return the hash of what holds all *size* bytes."""
        level = top_level(size)
        old = None if content.is_inline else Piece(top_level(content.size), content.where, content.size)
        while old is not None and old.level > level:  # what is left of it stands beneath its first child
            old = self._children(old, old.level)[0]
        return self._piece(level, 0, size, old)

    def _piece(self, level: int, first: int, size: int, old: Piece | None) -> bytes:
        """Return the hash of what stands from chunk *first* on; *old* is what stood there, as far as there was anything."""
        at = bisect_left(self._numbers, first)
        if at == len(self._numbers) or self._numbers[at] >= first + count_chunks(size):
            if old is None:
                return self._zero(level, size)
            if (old.level, old.size) == (level, size):
                return old.hash
        if level == CHUNK_LEVEL:
            return put_chunk(self._objects, self._chunk(first, size, old))
        inner = self._children(old, level)
        step = count_chunks(span(level - 1))
        return self._keep(
            level,
            size,
            [
                self._piece(level - 1, first + child * step, child_size(level, size, child), inner[child] if child < len(inner) else None)
                for child in range(count_children(level, size))
            ],
        )

    def _chunk(self, number: int, size: int, old: Piece | None) -> bytes:
        if number in self._changes:
            return bytes(self._changes[number])
        assert old is not None
        return _fit(load_chunk(self._objects, old.hash, old.size), size)

    def _children(self, old: Piece | None, level: int) -> list[Piece]:
        if old is None:
            return []
        if old.level < level:  # the index had fewer levels: all of it is the first child
            return [old]
        node = load_node(self._objects, old)
        return [Piece(level - 1, hash_, child_size(level, old.size, child)) for child, hash_ in enumerate(node.children)]

    def _zero(self, level: int, size: int) -> bytes:
        """Return the hash of *size* zero bytes. Full nodes of zeros are all the same one, so a hole of any length is a few objects."""
        kept = self._zeros.get((level, size))
        if kept is None:
            if level == CHUNK_LEVEL:
                kept = put_chunk(self._objects, bytes(size))
            else:
                sizes = [child_size(level, size, child) for child in range(count_children(level, size))]
                kept = self._keep(level, size, [self._zero(level - 1, each) for each in sizes])
            self._zeros[level, size] = kept
        return kept

    def _keep(self, level: int, size: int, children: list[bytes]) -> bytes:
        node = make_index(level, size, children)
        self._objects.put(node)
        return node.hash


def _first(objects: Objects, content: Content) -> bytes:
    return Chunks(objects, content).at(0)


def _fit(chunk: bytes, size: int) -> bytes:
    return chunk[:size].ljust(size, b"\0")
