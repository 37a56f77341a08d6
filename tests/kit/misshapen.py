"""Directories that no entries make: each is wrong in one thing, and what it is made from is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from counted import Counted, entry, forged, plain

from freehold.schema.hashes import ObjectKind, cut
from freehold.schema.limits import CUT_BELOW
from freehold.schema.nodes import Directory, Entry, Inner, Item, cut_nodes
from freehold.schema.roots import EMPTY_TREE, make_object

HASH = bytes(range(32))


def numbered(count: int) -> list[Entry]:
    return [plain(f"{number:05}") for number in range(count)]


def leaves(objects: Counted, pieces: Sequence[Sequence[Item]], level: int = 0) -> list[Item]:
    return [forged(objects, level, piece) for piece in pieces]


CRAFTED: list[Callable[[Counted], Inner]] = []


def crafted(make: Callable[[Counted], Inner]) -> Callable[[Counted], Inner]:
    CRAFTED.append(make)
    return make


@crafted
def two_nodes_that_should_be_one(objects: Counted) -> Inner:
    return forged(objects, 1, leaves(objects, [numbered(60)[:30], numbered(60)[30:]]))


@crafted
def a_small_level_that_is_cut_where_a_large_one_would_be(objects: Counted) -> Inner:
    pieces = cut_nodes(0, numbered(64))
    assert len(pieces) > 1
    return forged(objects, 1, leaves(objects, pieces))


@crafted
def a_single_child_that_is_large(objects: Counted) -> Inner:
    names = [name for name in (f"{number:06}" for number in range(150)) if cut(0, name) >= CUT_BELOW]
    return forged(objects, 1, leaves(objects, [[plain(name) for name in names[:100]]]))


@crafted
def a_node_of_a_higher_level_below(objects: Counted) -> Inner:
    pieces = cut_nodes(0, numbered(300))
    return forged(objects, 2, [forged(objects, 5, leaves(objects, pieces[:3])), forged(objects, 5, leaves(objects, pieces[3:]))])


@crafted
def one_node_that_should_be_several(objects: Counted) -> Inner:
    return forged(objects, 0, numbered(100))


@crafted
def a_single_child(objects: Counted) -> Inner:
    return forged(objects, 1, leaves(objects, [numbered(60)]))


@crafted
def two_nodes_joined(objects: Counted) -> Inner:
    pieces = cut_nodes(0, numbered(300))
    return forged(objects, 1, leaves(objects, [[*pieces[0], *pieces[1]], *pieces[2:]]))


@crafted
def a_node_cut_once_more(objects: Counted) -> Inner:
    pieces = cut_nodes(0, numbered(300))
    longest = max(pieces, key=len)
    at = pieces.index(longest)
    return forged(objects, 1, leaves(objects, [*pieces[:at], longest[:5], longest[5:], *pieces[at + 1 :]]))


@crafted
def a_large_node_cut_at_another_place(objects: Counted) -> Inner:
    names = [name for name in (f"{number:06}" for number in range(400)) if cut(0, name) >= CUT_BELOW]
    items = [plain(name) for name in names]
    return forged(objects, 1, leaves(objects, [items[:120], items[120:240], items[240:]]))


@crafted
def the_last_node_cut_once_more(objects: Counted) -> Inner:
    *pieces, last = cut_nodes(0, numbered(300))
    return forged(objects, 1, leaves(objects, [*pieces, last[:1], last[1:]]))


@crafted
def the_upper_level_not_cut(objects: Counted) -> Inner:
    return forged(objects, 1, leaves(objects, cut_nodes(0, numbered(3000))))


@crafted
def the_upper_level_cut_elsewhere(objects: Counted) -> Inner:
    below = leaves(objects, cut_nodes(0, numbered(3000)))
    return forged(objects, 2, leaves(objects, [below[:40], below[40:]], 1))


@crafted
def names_out_of_order_across_nodes(objects: Counted) -> Inner:
    first, second, *rest = cut_nodes(0, numbered(300))
    return forged(objects, 1, leaves(objects, [first, [plain("00000x"), *second], *rest]))


@crafted
def one_name_in_two_nodes(objects: Counted) -> Inner:
    pieces = cut_nodes(0, numbered(300))
    return forged(objects, 1, leaves(objects, [pieces[0], [pieces[0][-1], *pieces[1]], *pieces[2:]]))


def with_one(objects: Counted, change: Callable[[Inner], Inner]) -> Inner:
    first, second, *rest = leaves(objects, cut_nodes(0, numbered(300)))
    assert isinstance(second, Inner)
    return forged(objects, 1, [first, change(second), *rest])


@crafted
def other_entries_than_said(objects: Counted) -> Inner:
    return with_one(objects, lambda inner: Inner(inner.name, inner.child, inner.entries + 1, inner.size, inner.depth))


@crafted
def other_bytes_than_said(objects: Counted) -> Inner:
    return with_one(objects, lambda inner: Inner(inner.name, inner.child, inner.entries, 1, inner.depth))


@crafted
def another_depth_than_said(objects: Counted) -> Inner:
    return with_one(objects, lambda inner: Inner(inner.name, inner.child, inner.entries, inner.size, 2))


@crafted
def another_last_name_than_said(objects: Counted) -> Inner:
    return with_one(objects, lambda inner: Inner(inner.name + "x", inner.child, inner.entries, inner.size, inner.depth))


@crafted
def a_node_that_is_missing(objects: Counted) -> Inner:
    return with_one(objects, lambda inner: Inner(inner.name, HASH, inner.entries, inner.size, inner.depth))


@crafted
def a_node_of_another_level(objects: Counted) -> Inner:
    return forged(objects, 2, leaves(objects, cut_nodes(0, numbered(300))))


@crafted
def a_child_that_is_empty(objects: Counted) -> Inner:
    return with_one(objects, lambda inner: Inner(inner.name, EMPTY_TREE.hash, inner.entries, inner.size, inner.depth))


@crafted
def a_node_that_is_not_well_written(objects: Counted) -> Inner:
    piece = make_object(ObjectKind.TREE, b"\x92\xcc\x00\x90")
    objects.put(piece)
    return forged(objects, 0, [Directory("d", 0o755, piece.hash, 1, 0, 1)])


@crafted
def a_chunk_for_a_node(objects: Counted) -> Inner:
    piece = make_object(ObjectKind.CHUNK, EMPTY_TREE.data)
    objects.put(piece)
    return forged(objects, 0, [Directory("d", 0o755, piece.hash, 1, 0, 1)])


def beneath(objects: Counted, change: Callable[[Directory], Directory]) -> Inner:
    inner = entry(objects, "d", {"x": b"1", "e": {"y": b"22"}})
    assert isinstance(inner, Directory)
    return forged(objects, 0, [change(inner)])


@crafted
def a_directory_with_other_entries(objects: Counted) -> Inner:
    return beneath(objects, lambda it: Directory(it.name, it.mode, it.tree, it.entries + 1, it.size, it.depth))


@crafted
def a_directory_with_other_bytes(objects: Counted) -> Inner:
    return beneath(objects, lambda it: Directory(it.name, it.mode, it.tree, it.entries, it.size + 1, it.depth))


@crafted
def a_directory_with_another_depth(objects: Counted) -> Inner:
    return beneath(objects, lambda it: Directory(it.name, it.mode, it.tree, it.entries, it.size, it.depth + 1))


@crafted
def a_directory_that_is_not_sound_itself(objects: Counted) -> Inner:
    wrong = one_node_that_should_be_several(objects)
    return forged(objects, 0, [Directory("d", 0o755, wrong.child, wrong.entries, wrong.size, wrong.depth)])
