"""The canonical empty workspace: one empty directory, and the root that names it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from freehold.schema.errors import Damaged
from freehold.schema.hashes import ObjectKind, object_hash
from freehold.schema.ids import Root
from freehold.schema.version import ROOT_FORMAT

PORTABLE = 0
"""The profile of names that a root keeps to: portable ones."""
_DECODER = msgspec.msgpack.Decoder(tuple[int, bytes, int, int, int, int])


class Object(NamedTuple):
    """An immutable piece, addressed by its content."""

    hash: bytes
    kind: ObjectKind
    data: bytes


def make_object(kind: ObjectKind, data: bytes) -> Object:
    """Return *data* as an object of *kind*."""
    return Object(object_hash(kind, data), kind, data)


def make_root(tree: bytes, entries: int, size: int, depth: int) -> Object:
    """Return the root object of a workspace whose top directory is *tree*, with what stands beneath it."""
    return make_object(ObjectKind.ROOT, msgspec.msgpack.encode([ROOT_FORMAT, tree, entries, size, depth, PORTABLE]))


def tree_of(root: bytes) -> bytes:
    """Return the top directory that a root object's content names. Raises Damaged for anything that no writer makes."""
    try:
        members = _DECODER.decode(root)
    except msgspec.MsgspecError:  # its text quotes what it could not read
        members = None
    if (
        members is None
        or members[0] != ROOT_FORMAT
        or min(members[2:]) < 0
        or len(members[1]) != 32
        or msgspec.msgpack.encode(members) != root
    ):
        raise Damaged("a root is not written as the format says; the file was left unchanged", code="malformed_record", table="object")
    return members[1]


EMPTY_TREE = make_object(ObjectKind.TREE, msgspec.msgpack.encode([0, []]))
EMPTY_ROOT = make_root(EMPTY_TREE.hash, 0, 0, 0)


def root_text(raw: bytes) -> Root:
    """Return a root's 32 bytes as its 64 hexadecimal digits."""
    return Root(raw.hex())
