"""Directories written by a second implementation, made from docs/FORMAT.md alone: no code of ours, no msgpack library, slow and plain."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

Put = Callable[[bytes, bytes], None]
"""Called with the hash and the bytes of each node."""


def pack(value: Any) -> bytes:
    """Return a value in the shortest form of MessagePack."""
    if isinstance(value, int):
        if value < 128:
            return bytes([value])
        for mark, size in ((0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8)):
            if value < 256**size:
                return bytes([mark]) + value.to_bytes(size, "big")
    if isinstance(value, str):
        raw = value.encode()
        return _head(len(raw), (0xA0, 32), {1: 0xD9, 2: 0xDA}) + raw
    if isinstance(value, bytes):
        return _head(len(value), None, {1: 0xC4, 2: 0xC5}) + value
    assert isinstance(value, list)
    return _head(len(value), (0x90, 16), {2: 0xDC}) + b"".join(map(pack, value))


def _head(size: int, short: tuple[int, int] | None, marks: dict[int, int]) -> bytes:
    if short is not None and size < short[1]:
        return bytes([short[0] + size])
    for length, mark in marks.items():
        if size < 256**length:
            return bytes([mark]) + size.to_bytes(length, "big")
    raise OverflowError(size)


def draw(level: int, name: str) -> int:
    """Return the number that cuts."""
    return int.from_bytes(hashlib.sha256(b"freehold/cut\x00" + bytes([level]) + name.encode()).digest()[:4], "big")


def file(name: str, content: bytes, mode: int = 0o644) -> list[Any]:
    """Return a file of no more than one chunk as an entry."""
    kept = content if len(content) <= 128 else hashlib.sha256(b"freehold/chunk\x00" + content).digest()
    return [0, name, mode, len(content), kept]


def directory(name: str, entries: list[Any], put: Put, mode: int = 0o755) -> list[Any]:
    """Return a directory of these entries as an entry."""
    return [1, name, mode, tree(entries, put), *held(entries)]


def held(entries: list[Any]) -> tuple[int, int, int]:
    """Return how many entries, how many bytes and how deep."""
    return (
        sum(1 + (entry[4] if entry[0] == 1 else 0) for entry in entries),
        sum(0 if entry[0] == 2 else entry[3 + 2 * entry[0]] for entry in entries),
        max((1 + (entry[6] if entry[0] == 1 else 0) for entry in entries), default=0),
    )


def tree(entries: list[Any], put: Put) -> bytes:
    """Return the hash of a directory's top node."""
    level = 0
    rows = sorted(([entry[1], entry, held([entry])] for entry in entries), key=lambda row: row[0].encode())
    while True:
        nodes = [rows] if len(rows) <= 64 else _cut(level, rows)
        above, tops = [], []
        for node in nodes:
            raw = pack([level, [row[1] for row in node]])
            digest = hashlib.sha256(b"freehold/tree\x00" + raw).digest()
            put(digest, raw)
            name = node[-1][0] if node else ""
            sums = (sum(row[2][0] for row in node), sum(row[2][1] for row in node), max((row[2][2] for row in node), default=0))
            tops.append(digest)
            above.append([name, [name, digest, *sums], sums])
        if len(tops) == 1:
            return tops[0]
        rows, level = above, level + 1


def _cut(level: int, rows: list[Any]) -> list[list[Any]]:
    nodes, node = [], []
    for row in rows:
        node.append(row)
        if draw(level, row[0]) * 32 < 2**32:
            nodes.append(node)
            node = []
    return [piece for whole in (*nodes, node) if whole for piece in _cut_again(level, whole)]


def _cut_again(level: int, node: list[Any]) -> list[list[Any]]:
    if len(node) <= 128:
        return [node]
    smallest = min(range(len(node) - 1), key=lambda index: (draw(level, node[index][0]), node[index][0].encode()))
    return _cut_again(level, node[: smallest + 1]) + _cut_again(level, node[smallest + 1 :])
