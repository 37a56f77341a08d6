"""A file's content as docs/FORMAT.md tells it, written without a line of Freehold: bottom up, all in memory."""

from __future__ import annotations

import struct

from independent_hashes import object_hash


def where(data: bytes) -> bytes:
    """Return what stands for *data* in its directory's entry: the bytes themselves, or the hash of their chunk or index."""
    if len(data) <= 128:
        return data
    row = [(object_hash("chunk", data[at : at + 65536]), len(data[at : at + 65536])) for at in range(0, len(data), 65536)]
    level = 0
    while len(row) > 1:
        groups = [row[at : at + 128] for at in range(0, len(row), 128)]
        row = [(object_hash("file", node(level, group)), sum(size for _, size in group)) for group in groups]
        level += 1
    return row[0][0]


def node(level: int, children: list[tuple[bytes, int]]) -> bytes:
    """Return the bytes of an index node: the array `[level, size, [hash, …]]`."""
    names = b"".join(b"\xc4\x20" + hash_ for hash_, _ in children)
    head = bytes((0x90 | len(children),)) if len(children) < 16 else b"\xdc" + struct.pack(">H", len(children))
    return b"\x93" + number(level) + number(sum(size for _, size in children)) + head + names


def number(value: int) -> bytes:
    """Return an integer in its shortest form."""
    if value < 128:
        return bytes((value,))
    mark, form = next(
        (mark, form) for mark, form, end in ((0xCC, ">B", 8), (0xCD, ">H", 16), (0xCE, ">I", 32), (0xCF, ">Q", 64)) if value < 1 << end
    )
    return bytes((mark,)) + struct.pack(form, value)
