"""The canonical empty workspace: one empty directory, and the root that names it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from freehold.schema.hashes import ObjectKind, object_hash
from freehold.schema.ids import Root
from freehold.schema.version import ROOT_FORMAT

PORTABLE = 0
"""The profile of names that a root keeps to: portable ones."""


@dataclass(frozen=True, slots=True)
class Object:
    """An immutable piece, addressed by its content."""

    hash: bytes
    kind: ObjectKind
    data: bytes


def make_object(kind: ObjectKind, data: bytes) -> Object:
    """Return *data* as an object of *kind*."""
    return Object(object_hash(kind, data), kind, data)


EMPTY_TREE = make_object(ObjectKind.TREE, msgspec.msgpack.encode([0, []]))
EMPTY_ROOT = make_object(
    ObjectKind.ROOT,
    # format, tree, entries, bytes, depth, profile
    msgspec.msgpack.encode([ROOT_FORMAT, EMPTY_TREE.hash, 0, 0, 0, PORTABLE]),
)


def root_text(raw: bytes) -> Root:
    """Return a root's 32 bytes as its 64 hexadecimal digits."""
    return Root(raw.hex())
