"""A sound tree is taken, and every way in which one could be another than its entries make is damage."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from counted import Counted, Folder, counted, folder, forged, plain
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from misshapen import CRAFTED, HASH, beneath, leaves, numbered, with_one

from freehold.schema import nodes as schema_nodes
from freehold.schema.errors import Damaged
from freehold.schema.hashes import cut
from freehold.schema.limits import CUT_BELOW
from freehold.schema.nodes import Branch, Directory, File, Inner, Totals, cut_nodes, totals
from freehold.storage import soundness, windows
from freehold.storage.nodes import Nodes
from freehold.storage.soundness import Soundness, check_tree
from freehold.storage.trees import build, edit, measure


@pytest.fixture
def objects() -> Iterator[Counted]:
    with counted() as objects:
        yield objects


def no_files(file: File) -> None:
    raise AssertionError(file.name)


def refused(objects: Counted, tree: bytes) -> None:
    objects.forget()
    with pytest.raises(Damaged) as raised:
        check_tree(objects, tree, lambda file: None)
    assert raised.value.details == {"rule": "tree"}
    assert objects.written == []


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


@pytest.mark.parametrize("make", CRAFTED, ids=lambda make: make.__name__)
def test_a_tree_that_no_entries_make_is_damage(objects: Counted, make: Callable[[Counted], Inner]) -> None:
    refused(objects, make(objects).child)


def test_what_the_crafted_trees_were_made_from_is_sound(objects: Counted) -> None:
    for count in (60, 100, 300, 3000):
        assert check_tree(objects, build(objects, numbered(count)), no_files).entries == count
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
