"""A sound tree is taken, and every way in which one could be another than its entries make is damage."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import pytest
from counted import Counted, Folder, counted, entry, folder, forged, plain
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freehold.schema import nodes as schema_nodes
from freehold.schema.errors import Damaged
from freehold.schema.hashes import ObjectKind, cut
from freehold.schema.limits import CUT_BELOW
from freehold.schema.nodes import Branch, Directory, Entry, File, Inner, Item, Totals, cut_nodes, totals
from freehold.schema.roots import EMPTY_TREE, make_object
from freehold.storage import soundness, windows
from freehold.storage.nodes import Nodes
from freehold.storage.soundness import Soundness, check_tree
from freehold.storage.trees import build, edit, measure

HASH = bytes(range(32))


@pytest.fixture
def objects() -> Iterator[Counted]:
    with counted() as objects:
        yield objects


def no_files(file: File) -> None:
    raise AssertionError(file.name)


def numbered(count: int) -> list[Entry]:
    return [plain(f"{number:05}") for number in range(count)]


def refused(objects: Counted, tree: bytes) -> None:
    objects.forget()
    with pytest.raises(Damaged) as raised:
        check_tree(objects, tree, lambda file: None)
    assert raised.value.details == {"rule": "tree"}
    assert objects.written == []


def leaves(objects: Counted, pieces: Sequence[Sequence[Item]], level: int = 0) -> list[Item]:
    return [forged(objects, level, piece) for piece in pieces]


@pytest.mark.parametrize("count", [0, 1, 64, 65, 300, 5000])
def test_what_was_built_is_sound(objects: Counted, count: int) -> None:
    assert check_tree(objects, build(objects, numbered(count)), no_files) == totals(numbered(count))


@pytest.mark.parametrize("one_of", [4, 32, 400, 2**33])
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(numbers=st.sets(st.integers(0, 2000), max_size=800), edits=st.lists(st.integers(0, 2000), max_size=50))
def test_what_was_edited_is_sound(monkeypatch: pytest.MonkeyPatch, one_of: int, numbers: set[int], edits: list[int]) -> None:
    for module in (schema_nodes, windows, soundness):
        monkeypatch.setattr(module, "CUT_BELOW", 2**32 // one_of)
    with counted() as objects:
        sound = Soundness(objects, no_files)
        tree = build(objects, [plain(f"n{number:05}") for number in numbers])
        sound.check(tree)
        for number in edits:
            name = f"n{number:05}"
            tree, held = edit(objects, tree, {name: None if number % 3 else plain(name, mode=0o755)})
            assert sound.check(tree) == held
        check_tree(objects, tree, no_files)


def test_directories_beneath_are_checked_and_files_are_handed_on(objects: Counted) -> None:
    large, chunk = File("large", 0o644, 70_000, HASH), File("chunk", 0o644, 129, HASH)
    tree = folder(objects, {"a": b"x" * 128, "d": {"large": large, "l": "large"}, "e": {"e": {"chunk": chunk, "none": {}}}})
    seen: list[File] = []

    assert check_tree(objects, tree, seen.append) == measure(objects, tree)
    assert sorted(file.name for file in seen) == ["chunk", "large"]


def test_a_path_that_is_too_long_is_found_in_whatever_tree_it_begins(objects: Counted) -> None:
    def inside(names: list[str], content: Folder) -> Folder:
        for name in reversed(names):
            content = {name: content}
        return content

    long = {"short": {"x": b""}, **inside(["d" * 255] * 14, {"f" * 255: b"", "empty": {}})}  # 3,839 bytes
    sound = Soundness(objects, no_files)
    for _ in range(2):
        for fits in (["e" * 255], ["e", "e" * 254], ["e"] * 128):
            sound.check(folder(objects, inside(fits, long)))
        for too_long in (["e", "e" * 255], ["e"] * 129):
            with pytest.raises(Damaged) as raised:
                sound.check(folder(objects, inside(too_long, long)))
            assert raised.value.details["rule"] == "tree"


def test_what_the_look_at_a_file_raises_is_raised_and_not_forgotten(objects: Counted) -> None:
    tree = folder(objects, {"d": {"large": File("large", 0o644, 70_000, HASH)}})

    def wrong(file: File) -> None:
        raise Damaged("no", rule="object")

    sound = Soundness(objects, wrong)
    for _ in range(2):
        with pytest.raises(Damaged, match=r"^no$"):
            sound.check(tree)


def test_the_next_tree_costs_what_is_new_in_it(objects: Counted) -> None:
    tree = folder(objects, {"flat": folder_entry(objects, 5000), "other": {"x": b"1"}})
    sound = Soundness(Nodes(objects, bytes_max=1), no_files)
    sound.check(tree)
    flat, _ = edit(objects, folder_entry(objects, 5000).tree, {"00007x": plain("00007x")})
    new, _ = edit(objects, tree, {"flat": Directory("flat", 0o755, flat, *measure(objects, flat))})
    branches = count_branches(objects, flat)
    objects.forget()
    sound.check(new)

    # The nodes above the leaves, what is new, and the few leaves that the second rule has cut.
    assert branches < len(objects.read) <= branches + 20
    objects.forget()
    sound.check(new)
    assert objects.read == []


def folder_entry(objects: Counted, count: int) -> Directory:
    tree = build(objects, numbered(count))
    return Directory("flat", 0o755, tree, *measure(objects, tree))


def count_branches(objects: Counted, tree: bytes) -> int:
    node = Nodes(objects).node(tree)
    return 0 if not isinstance(node, Branch) else 1 + sum(count_branches(objects, inner.child) for inner in node.items)


def test_what_was_seen_is_remembered_within_a_bound(objects: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soundness, "CHECKED_NODES_MAX", 10)
    sound = Soundness(objects, no_files)
    tree, other = build(objects, numbered(2000)), build(objects, [plain("a")])
    sound.check(tree)
    sound.check(other)

    assert len(sound._leaves) + len(sound._trees) <= 10


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


@pytest.mark.parametrize("make", CRAFTED, ids=lambda make: make.__name__)
def test_a_tree_that_no_entries_make_is_damage(objects: Counted, make: Callable[[Counted], Inner]) -> None:
    refused(objects, make(objects).child)


def test_what_the_crafted_trees_were_made_from_is_sound(objects: Counted) -> None:
    for count in (60, 100, 300, 3000):
        check_tree(objects, build(objects, numbered(count)), no_files)
    check_tree(objects, with_one(objects, lambda inner: inner).child, no_files)
    check_tree(objects, beneath(objects, lambda it: it).child, no_files)


def test_a_tree_of_which_a_part_was_seen_as_sound_is_still_looked_at_across_its_nodes(objects: Counted) -> None:
    names = [name for name in (f"{random.Random(number).getrandbits(60):015x}" for number in range(600)) if cut(0, name) >= CUT_BELOW]
    items = [plain(name) for name in sorted(names)]
    sound = Soundness(objects, no_files)
    sound.check(build(objects, items))
    pieces = cut_nodes(0, items)
    assert len(pieces) > 3

    # Every node but one is one of the tree that was seen.
    wrong = forged(objects, 1, leaves(objects, [*pieces[:-1], pieces[-1][:3], pieces[-1][3:]]))
    with pytest.raises(Damaged):
        sound.check(wrong.child)
    assert sound.check(build(objects, items)) == Totals(len(items), 0, 1)
