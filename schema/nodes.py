"""What a directory is, as bytes: nodes of entries in the order of their names, cut where the names alone say.

Everything here depends on the set of entries and on nothing else, so any order of edits leads to the same bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import lt
from typing import Annotated, NamedTuple, TypeVar, final

import msgspec
from msgspec import Meta, Struct

from freehold.schema.errors import Damaged
from freehold.schema.hashes import ObjectKind, cut
from freehold.schema.limits import (
    CUT_BELOW,
    ENTRY_NAME_BYTES_MAX,
    INLINE_BYTES_MAX,
    LINK_TARGET_BYTES_MAX,
    LONE_NODE_ENTRIES_MAX,
    NODE_BYTES_MAX,
    NODE_ENTRIES_MAX,
    PATH_DEPTH_MAX,
    TREE_BYTES_MAX,
    TREE_LEVELS_MAX,
)
from freehold.schema.roots import EMPTY_TREE, Object, make_object

_Name = Annotated[str, Meta(min_length=1, max_length=ENTRY_NAME_BYTES_MAX)]
_Hash = Annotated[bytes, Meta(min_length=32, max_length=32)]
_Mode = Annotated[int, Meta(ge=0, le=0o777)]
_Size = Annotated[int, Meta(ge=0, le=TREE_BYTES_MAX)]


@final
class File(Struct, array_like=True, tag=0, frozen=True, forbid_unknown_fields=True, gc=False):
    """A file: its content itself up to 128 bytes, up to 64 KiB the hash of its one chunk, else of its index's top node."""

    name: _Name
    mode: _Mode
    size: _Size
    content: Annotated[bytes, Meta(max_length=INLINE_BYTES_MAX)]


@final
class Directory(Struct, array_like=True, tag=1, frozen=True, forbid_unknown_fields=True, gc=False):
    """A directory: its top node, how many entries stand beneath it, the bytes of all files there, the longest way down."""

    name: _Name
    mode: _Mode
    tree: _Hash
    entries: _Size
    size: _Size
    depth: Annotated[int, Meta(ge=0, lt=PATH_DEPTH_MAX)]


@final
class Link(Struct, array_like=True, tag=2, frozen=True, forbid_unknown_fields=True, gc=False):
    """A symbolic link: what it says, which nothing here follows."""

    name: _Name
    target: Annotated[str, Meta(min_length=1, max_length=LINK_TARGET_BYTES_MAX)]


@final
class Inner(Struct, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    """A node as the level above it names it: by its last name, and with the totals of what stands beneath it."""

    name: _Name
    child: _Hash
    entries: Annotated[int, Meta(ge=1, le=TREE_BYTES_MAX)]
    size: _Size
    depth: Annotated[int, Meta(ge=1, le=PATH_DEPTH_MAX)]


Entry = File | Directory | Link
Item = Entry | Inner
_Item = TypeVar("_Item", bound=Item)


class Leaf(Struct, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    """A node of level 0: entries of the directory."""

    level: Annotated[int, Meta(ge=0, le=0)]
    items: tuple[Entry, ...]


class Branch(Struct, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    """A node of a level above: nodes of the level below it."""

    level: Annotated[int, Meta(ge=1, lt=TREE_LEVELS_MAX)]
    items: tuple[Inner, ...]


Node = Leaf | Branch


class Totals(NamedTuple):
    """What stands beneath: all entries, the bytes of all files, and the number of names on the longest way down."""

    entries: int
    size: int
    depth: int


_encode = msgspec.msgpack.Encoder().encode
_decode_leaf = msgspec.msgpack.Decoder(Leaf).decode
_decode_branch = msgspec.msgpack.Decoder(Branch).decode


def make_node(level: int, items: Sequence[Item]) -> Object:
    """Return a node as an object."""
    return make_object(ObjectKind.TREE, encode(level, items))


def encode(level: int, items: Sequence[Item]) -> bytes:
    """Return the one encoding of a node: the array of its level and its items."""
    assert len(items) <= NODE_ENTRIES_MAX
    assert 0 <= level < TREE_LEVELS_MAX
    return _encode((level, items))


def decode(raw: bytes) -> Node:
    """Return the node that *raw* is the one encoding of. Raises Damaged for anything that no writer of this format makes."""
    if len(raw) > NODE_BYTES_MAX:
        raise malformed()
    try:
        node = _decode_leaf(raw) if raw[1:2] == b"\x00" else _decode_branch(raw)
    except (msgspec.MsgspecError, RecursionError):  # its text quotes what it could not read
        raise malformed() from None
    if len(node.items) > NODE_ENTRIES_MAX or not _in_order(node.items) or _encode(node) != raw:
        raise malformed()
    if isinstance(node, Leaf):
        fit = all(map(is_fit, node.items))
    else:
        fit = bool(node.items) and all(item.depth <= item.entries for item in node.items)
    held = totals(node.items)
    if not fit or max(held.entries, held.size) > TREE_BYTES_MAX:
        raise malformed()
    return node


def is_fit(entry: Entry) -> bool:
    """Return whether what an entry says of itself agrees with itself; its types and the bounds of its numbers are given."""
    if type(entry) is File:  # isinstance takes many times as long to say no, and there are no classes beneath these
        return len(entry.content) == (entry.size if entry.size <= INLINE_BYTES_MAX else 32)
    if type(entry) is Link:
        return "\x00" not in entry.target and len(entry.target.encode()) <= LINK_TARGET_BYTES_MAX
    if entry.tree == EMPTY_TREE.hash:
        return entry.entries == entry.size == entry.depth == 0
    return 1 <= entry.depth <= entry.entries


def totals(items: Collection[Item]) -> Totals:
    """Return what a directory of exactly these items holds; items of a level above speak for what stands beneath them."""
    entries, size, depth = len(items), 0, min(len(items), 1)
    for item in items:
        if type(item) is File:
            size += item.size
        elif type(item) is Inner:
            entries += item.entries - 1
            size += item.size
            depth = max(depth, item.depth)
        elif type(item) is Directory:
            entries += item.entries
            size += item.size
            depth = max(depth, 1 + item.depth)
    return Totals(entries, size, depth)


def split(level: int, items: Sequence[_Item]) -> list[Sequence[_Item]]:
    """Return a whole level as the nodes that it is cut into: one where it has no more than 64 items."""
    return [items] if len(items) <= LONE_NODE_ENTRIES_MAX else cut_nodes(level, items)


def cut_nodes(level: int, items: Sequence[_Item]) -> list[Sequence[_Item]]:
    """Return the nodes that a stretch of a larger level is cut into.

    An item whose draw is below the bound ends its node; a node that is still too large is cut again, after the item
    other than its last with the smallest draw, until none is.
    """
    nodes: list[Sequence[_Item]] = []
    draws: list[tuple[int, str]] = []
    start = 0
    for end, item in enumerate(items, 1):
        draws.append((cut(level, item.name), item.name))
        if draws[-1][0] < CUT_BELOW or end == len(items):
            nodes += (
                (items[start + one : start + other] for one, other in _pieces(draws))
                if end - start > NODE_ENTRIES_MAX
                else (items[start:end],)
            )
            draws, start = [], end
    return nodes


def _pieces(draws: Sequence[tuple[int, str]]) -> list[tuple[int, int]]:
    """Return where a stretch is cut again: the recursion of the rule, in one pass however the draws are ordered.

    The smallest draw is the root of a tree whose left and right parts are what is cut next, so the tree of the rule
    is the Cartesian tree of all draws but the last; its lower parts are nodes as soon as they are small enough.
    """
    last = len(draws) - 1
    left, right, open_ = [-1] * last, [-1] * last, list[int]()
    for index in range(last):
        below = -1
        while open_ and draws[open_[-1]] > draws[index]:
            below = open_.pop()
        left[index] = below
        if open_:
            right[open_[-1]] = index
        open_.append(index)
    pieces: list[tuple[int, int]] = []
    todo = [(0, last + 1, open_[0])]
    while todo:
        one, other, smallest = todo.pop()
        if other - one <= NODE_ENTRIES_MAX:
            pieces.append((one, other))
        else:
            todo += [(smallest + 1, other, right[smallest]), (one, smallest + 1, left[smallest])]
    return pieces


def malformed() -> Damaged:
    """Return what is said of a directory node that is not written as the format says."""
    return Damaged(
        "a directory node is not written as the format says; the file was left unchanged", code="malformed_record", table="object"
    )


def _in_order(items: Sequence[Item]) -> bool:
    """Return whether the names are names, in order, and none is there twice."""
    names = [item.name for item in items]
    if not all(map(lt, names, names[1:])) or not {".", ".."}.isdisjoint(names):
        return False
    if max(map(len, names), default=0) > ENTRY_NAME_BYTES_MAX // 4 and any(len(name.encode()) > ENTRY_NAME_BYTES_MAX for name in names):
        return False
    together = "".join(names)
    return "/" not in together and "\x00" not in together
