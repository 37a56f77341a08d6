"""The empty workspace is one canonical pair of objects, and its identity never changes."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from freehold.schema.errors import Damaged
from freehold.schema.hashes import ObjectKind
from freehold.schema.ids import Root
from freehold.schema.roots import EMPTY_ROOT, EMPTY_TREE, PORTABLE, make_object, make_root, root_text, tree_of
from freehold.schema.version import ROOT_FORMAT

TREE = hashlib.sha256(b"freehold/tree\x00\x92\x00\x90").digest()
"""An array of two: the level 0 and an array of no entries, in MessagePack."""
GOLDEN = "e07b4f10efe61532a26c465e3ab1b40254e2303ae45fa01efcbb441025750f4d"


def test_the_empty_tree_is_level_zero_without_entries() -> None:
    assert (EMPTY_TREE.data, EMPTY_TREE.hash, EMPTY_TREE.kind) == (b"\x92\x00\x90", TREE, ObjectKind.TREE)


def test_the_empty_root_names_format_tree_entries_bytes_depth_and_profile() -> None:
    assert EMPTY_ROOT.data == b"\x96\x01\xc4\x20" + TREE + b"\x00\x00\x00\x00"
    assert msgspec.msgpack.decode(EMPTY_ROOT.data) == [ROOT_FORMAT, TREE, 0, 0, 0, PORTABLE]


def test_the_empty_roots_identity_stays_as_it_is() -> None:
    assert EMPTY_ROOT.hash == hashlib.sha256(b"freehold/root\x00" + EMPTY_ROOT.data).digest()
    assert root_text(EMPTY_ROOT.hash) == GOLDEN


def test_a_root_is_written_as_64_hexadecimal_digits() -> None:
    text = root_text(bytes(31) + b"\xab")

    assert (text, type(text)) == ("00" * 31 + "ab", Root)


def test_an_object_is_addressed_by_its_content() -> None:
    assert make_object(ObjectKind.TREE, b"\x92\x00\x90") == EMPTY_TREE
    assert make_object(ObjectKind.VALUE, b"\x92\x00\x90").hash != EMPTY_TREE.hash


def test_a_root_names_its_tree() -> None:
    assert tree_of(make_root(bytes(32), 3, 9, 1).data) == bytes(32)
    assert tree_of(EMPTY_ROOT.data) == EMPTY_TREE.hash


@pytest.mark.parametrize(
    "members",
    [
        [2, bytes(32), 0, 0, 0, 0],
        [1, bytes(32), 0, -1, 0, 0],
        [1, bytes(31), 0, 0, 0, 0],
        [1, bytes(32), 0, 0, 0],
        [1, bytes(32), 0, 0, 0, 0, 0],
        [1, "SECRET", 0, 0, 0, 0],
        {"1": 2},
        None,
    ],
)
def test_what_no_writer_makes_is_no_root(members: object) -> None:
    with pytest.raises(Damaged) as caught:
        tree_of(msgspec.msgpack.encode(members))

    assert caught.value.code == "malformed_record"
    assert "SECRET" not in str(caught.value)


def test_a_root_in_a_longer_form_is_none() -> None:
    short = EMPTY_ROOT.data

    with pytest.raises(Damaged):
        tree_of(short[:36] + b"\xcc\x00" + short[37:])
