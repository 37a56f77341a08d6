"""An opened directory says what is in it now, folds to the tree that its entries alone decide, and finds a name's twin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from desk import shelf
from hypothesis import given
from hypothesis import strategies as st

from freehold.schema.errors import Damaged
from freehold.schema.hashes import ObjectKind
from freehold.schema.nodes import Directory, Entry, File, Link
from freehold.schema.roots import EMPTY_ROOT, EMPTY_TREE, make_root
from freehold.storage import folder as module
from freehold.storage.folder import Folder, Kept, copied, renamed
from freehold.storage.trees import build, walk


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with shelf(tmp_path_factory.mktemp("kept")) as found:
        yield found


def file(name: str, content: bytes = b"") -> File:
    return File(name, 0o644, len(content), content)


def made(nodes: Kept, *names: str) -> Folder:
    return Folder(build(nodes, [file(name) for name in names]))


def names(nodes: Kept, folder: Folder) -> list[str]:
    return [name for name, _ in folder.children(nodes)]


@given(
    st.sets(st.sampled_from("abcdefgh")),
    st.lists(st.tuples(st.sampled_from("abcdefghijk"), st.one_of(st.none(), st.binary(max_size=2))), max_size=9),
)
def test_its_children_and_its_tree_are_those_of_a_dictionary(nodes: Kept, before: set[str], edits: list[tuple[str, bytes | None]]) -> None:
    folder, twin = made(nodes, *before), {name: file(name) for name in before}
    for name, content in edits:
        folder.put(name, None if content is None else file(name, content))
        twin.pop(name, None)
        if content is not None:
            twin[name] = file(name, content)
        assert folder.child(nodes, name) == twin.get(name)

    assert list(folder.children(nodes)) == sorted(twin.items())
    assert folder.is_empty(nodes) == (not twin)
    assert folder.fold(nodes).entries == len(twin)
    assert folder.tree == build(nodes, twin.values())


def test_a_child_is_opened_once_and_its_changes_are_part_of_the_tree(nodes: Kept) -> None:
    inner = build(nodes, [file("x")])
    folder = Folder(build(nodes, [Directory("d", 0o700, inner, 1, 0, 1)]))

    folder.open(nodes, "d").put("y", file("y"))
    assert folder.open(nodes, "d") is folder.child(nodes, "d")
    totals = folder.fold(nodes)

    (entry,) = walk(nodes, folder.tree)
    assert entry == Directory("d", 0o700, build(nodes, [file("x"), file("y")]), 2, 0, 1)
    assert totals == (3, 0, 2)


def test_a_copy_does_not_see_what_is_done_later(nodes: Kept) -> None:
    folder = made(nodes, "a")
    folder.put("d", Folder())
    folder.open(nodes, "d").put("x", file("x"))
    before = folder.still()

    folder.open(nodes, "d").put("y", file("y"))
    folder.put("a", None)
    folder.mode = 0o700

    assert (names(nodes, before), before.mode) == (["a", "d"], 0o755)
    assert names(nodes, before.open(nodes, "d")) == ["x"]


def test_what_was_moved_or_copied_is_not_where_it_was(nodes: Kept) -> None:
    top = Folder(build(nodes, [Directory("d", 0o755, build(nodes, [file("x")]), 1, 0, 1)]), in_place=True)
    inner = top.open(nodes, "d")
    assert inner.in_place

    twin = copied(nodes, inner, "e")
    assert (twin, inner.in_place) == (Directory("e", 0o755, inner.tree, 1, 0, 1), True)
    moved = renamed(inner, "e")
    assert isinstance(moved, Folder)
    assert (moved is inner, moved.in_place) == (True, False)
    top.put("f", Directory("f", 0o755, EMPTY_TREE.hash, 0, 0, 0))
    assert not top.open(nodes, "f").in_place


def test_a_moved_entry_has_its_new_name(nodes: Kept) -> None:
    entries: list[Entry] = [file("a"), Link("a", "t"), Directory("a", 0o755, EMPTY_TREE.hash, 0, 0, 0)]
    for entry in entries:
        moved = renamed(entry, "b")
        assert not isinstance(moved, Folder)
        assert (type(moved), moved.name) == (type(entry), "b")
    directory = copied(nodes, Directory("a", 0o700, EMPTY_TREE.hash, 0, 0, 0), "b")
    assert directory == Directory("b", 0o700, EMPTY_TREE.hash, 0, 0, 0)


@pytest.mark.parametrize("name", ["README", "readme"])
def test_a_name_that_ignoring_case_would_take_for_another_is_found(nodes: Kept, name: str) -> None:
    folder = made(nodes, "Readme", "straße")

    assert folder.twin(nodes, name) == "Readme"
    assert folder.twin(nodes, "Readme") is None
    assert folder.twin(nodes, "STRASSE") == "straße"
    assert folder.twin(nodes, "other") is None


def test_the_names_follow_every_change_whether_they_were_asked_for_before_it_or_not(nodes: Kept) -> None:
    for asked_before in (True, False):
        folder = made(nodes, "a", "b")
        if asked_before:
            assert folder.twin(nodes, "A") == "a"
        folder.put("a", None)
        folder.put("C", file("C"))
        folder.put("b", None)
        folder.put("B", file("B"))

        assert [folder.twin(nodes, name) for name in ("A", "c", "b")] == [None, "C", "B"]


def test_the_names_of_a_directory_are_kept_with_its_new_tree_so_that_it_is_not_read_again(nodes: Kept) -> None:
    folder = made(nodes, *(f"{number:03}" for number in range(200)))
    assert folder.twin(nodes, "new") is None
    folder.put("new", file("new"))
    folder.fold(nodes)
    tree = folder.tree

    kept = nodes.take_names(tree)
    assert kept["new"] == "new"
    assert len(kept) == 201
    nodes.keep_names(tree, kept)
    assert nodes.take_names(tree) is kept
    assert nodes.take_names(tree) == kept  # read from the directory, as they were taken
    assert nodes.take_names(tree) is not kept


def test_names_are_kept_up_to_a_bound_and_the_first_give_way(nodes: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NAMES_KEPT_MAX", 10)
    nodes.forget()
    trees = [build(nodes, [file(f"{at}{number}") for number in range(3)]) for at in range(4)]
    kept = [nodes.take_names(tree) for tree in trees]
    for tree, names_ in zip(trees, kept, strict=True):
        nodes.keep_names(tree, names_)

    assert [nodes.take_names(tree) is names_ for tree, names_ in zip(trees, kept, strict=True)] == [False, False, True, True]
    nodes.forget()


def test_the_tree_of_the_last_root_is_at_hand_until_it_is_forgotten(nodes: Kept) -> None:
    tree = build(nodes, [file("a")])
    root = make_root(tree, 1, 0, 1)
    nodes.put(EMPTY_ROOT)

    assert nodes.keep_root(root) == nodes.tree(root.hash) == tree
    assert nodes.tree(EMPTY_ROOT.hash) == EMPTY_TREE.hash
    with pytest.raises(Damaged):
        nodes.tree(root.hash)  # it was not kept, and another one has been asked for since

    nodes.keep_root(root)
    nodes.forget()
    with pytest.raises(Damaged):
        nodes.tree(root.hash)


def test_it_serves_another_place_and_says_which(tmp_path: Path) -> None:
    with shelf(tmp_path) as nodes:
        first = nodes.objects
        second = Kept(first)

        assert nodes.serving(second) is nodes
        assert nodes.objects is second
        assert nodes.get(EMPTY_TREE.hash, ObjectKind.TREE) == EMPTY_TREE.data
