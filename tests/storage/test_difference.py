"""What two trees differ in is found whole, told in order, and costs what is different."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from counted import Counted, Folder, counted, entry, folder, forged, plain
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from freehold.schema.changes import Change, added, removed, renamed
from freehold.schema.errors import Damaged
from freehold.schema.limits import COMPARED_NODES_MAX
from freehold.schema.nodes import Directory, Entry, File
from freehold.schema.roots import EMPTY_ROOT, EMPTY_TREE, make_root
from freehold.storage import difference
from freehold.storage.difference import changes, few_changes
from freehold.storage.nodes import Nodes
from freehold.storage.trees import build, edit, measure, walk


@pytest.fixture
def objects() -> Iterator[Counted]:
    with counted() as objects:
        yield objects


def told(objects: Counted, old: Folder, new: Folder) -> list[tuple[Any, ...]]:
    """Return the changes, each as its kind and path, a renamed one with where it was."""
    found = changes(objects, folder(objects, old), folder(objects, new))
    for change in found:
        assert change.path == (change.before if change.after is None else change.after)
        assert (change.before is None, change.after is None) == (change.kind == "added", change.kind == "removed")
        assert change.kind in {"added", "removed", "renamed"} or change.before == change.after
    return [(change.kind, change.before, change.path) if change.kind == "renamed" else (change.kind, change.path) for change in found]


def test_a_tree_does_not_differ_from_itself(objects: Counted) -> None:
    assert told(objects, {"a": b"x", "d": {"e": {}}}, {"a": b"x", "d": {"e": {}}}) == []
    assert changes(objects, EMPTY_TREE.hash, EMPTY_TREE.hash) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {"a": b"x"}, [("added", "a")]),
        ({"a": b"x"}, {}, [("removed", "a")]),
        ({"a": b"x"}, {"a": b"y"}, [("changed", "a")]),
        ({"a": b""}, {"a": b"y"}, [("changed", "a")]),
        ({"a": plain("a", b"x")}, {"a": plain("a", b"x", 0o755)}, [("mode", "a")]),
        ({"a": plain("a", b"x")}, {"a": plain("a", b"y", 0o755)}, [("changed", "a")]),
        ({"a": b"x"}, {"a": "t"}, [("changed", "a")]),
        ({"a": "t"}, {"a": b"x"}, [("changed", "a")]),
        ({"a": "t"}, {"a": "u"}, [("changed", "a")]),
        ({"a": b"x"}, {"a": {}}, [("removed", "a"), ("added", "a")]),
        ({"a": b"x"}, {"a": {"b": b"y"}}, [("removed", "a"), ("added", "a/b")]),
        ({"a": {"b": b"y"}}, {"a": "t"}, [("added", "a"), ("removed", "a/b")]),
        ({"a": b"x"}, {"a": {"b": b"x"}}, [("renamed", "a", "a/b")]),
        (
            {},
            {"d": {"x": b"1", "l": "t", "e": {}, "s": {"y": b"2"}}},
            [("added", "d/e"), ("added", "d/l"), ("added", "d/s/y"), ("added", "d/x")],
        ),
        ({"d": {}}, {}, [("removed", "d")]),
        ({"d": {"x": b"1"}}, {"d": {}}, [("removed", "d/x")]),
        ({"d": {}}, {"d": {"x": b"1"}}, [("added", "d/x")]),
        ({"d": {"x": b"1", "y": b"2"}}, {"d": {"x": b"1", "y": b"3", "z": {"e": {}}}}, [("changed", "d/y"), ("added", "d/z/e")]),
        ({"a": b"x"}, {"b": b"x"}, [("renamed", "a", "b")]),
        ({"b": b"x"}, {"a": b"x"}, [("renamed", "b", "a")]),
        ({"a": "t"}, {"b": "t"}, [("renamed", "a", "b")]),
        ({"a": b""}, {"b": b""}, [("removed", "a"), ("added", "b")]),
        ({"a": {}}, {"b": {}}, [("removed", "a"), ("added", "b")]),
        ({"a": plain("a", b"x")}, {"b": plain("b", b"x", 0o755)}, [("removed", "a"), ("added", "b")]),
        ({"a": b"x", "b": b"y"}, {"a": b"y", "b": b"x"}, [("changed", "a"), ("changed", "b")]),
        ({"a": b"x"}, {"a": b"x", "b": b"x"}, [("added", "b")]),
        ({"a": b"x", "b": b"x"}, {"c": b"x", "d": b"x"}, [("renamed", "a", "c"), ("renamed", "b", "d")]),
        ({"a": b"x", "b": b"x"}, {"c": b"x"}, [("removed", "b"), ("renamed", "a", "c")]),
        ({"d": {"x": b"1", "y": b"2"}}, {"e": {"x": b"1", "y": b"2"}}, [("renamed", "d", "e")]),
        ({"d": {"x": b"1"}}, {"e": {"f": {"x": b"1"}}}, [("renamed", "d", "e/f")]),
        ({"e": {"f": {"x": b"1"}, "g": b"2"}}, {"d": {"x": b"1"}}, [("renamed", "e/f", "d"), ("removed", "e/g")]),
        ({"d": {"x": b"1"}}, {"e": {"x": b"1", "y": b"2"}}, [("renamed", "d/x", "e/x"), ("added", "e/y")]),
        ({"d": {"x": b"1"}}, {"d": b"1"}, [("renamed", "d/x", "d")]),
        ({"d": {"e": {}}}, {"f": {"e": {}}}, [("renamed", "d", "f")]),
        (
            {"p": {"d": {"x": b"1"}}, "q": {"d": {"x": b"1"}}},
            {"r": {"d": {"x": b"1"}, "z": b"3"}, "s": {"d": {"x": b"1"}}},
            [("renamed", "q/d", "r/d"), ("added", "r/z"), ("renamed", "p", "s")],
        ),
        ({"a-b": b"1", "a": {"x": b"2"}}, {}, [("removed", "a-b"), ("removed", "a/x")]),
    ],
)
def test_what_is_different_is_told(objects: Counted, old: Folder, new: Folder, expected: list[tuple[Any, ...]]) -> None:
    assert told(objects, old, new) == expected


def test_a_directorys_mode_is_a_change_beside_those_in_it(objects: Counted) -> None:
    def with_mode(mode: int, content: Folder) -> Folder:
        inner = entry(objects, "d", content)
        assert isinstance(inner, Directory)
        return {"d": Directory("d", mode, inner.tree, inner.entries, inner.size, inner.depth)}

    assert told(objects, with_mode(0o755, {"x": b"1"}), with_mode(0o700, {"x": b"1"})) == [("mode", "d")]
    assert told(objects, with_mode(0o755, {}), with_mode(0o700, {})) == [("mode", "d")]
    assert told(objects, with_mode(0o755, {"x": b"1"}), with_mode(0o700, {"x": b"2"})) == [("mode", "d"), ("changed", "d/x")]
    moved = with_mode(0o700, {"x": b"1"})["d"]
    assert isinstance(moved, Directory)
    to = Directory("e", moved.mode, moved.tree, moved.entries, moved.size, moved.depth)
    assert told(objects, {"d": moved}, {"e": to}) == [("renamed", "d", "e")]
    # What is renamed is the same but for its path; so here it is only what is in it.
    assert told(objects, with_mode(0o755, {"x": b"1"}), {"e": to}) == [("renamed", "d/x", "e/x")]


SMALL = st.recursive(
    st.sampled_from([b"", b"x", b"y", "t", plain("", b"x", 0o755)]),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=12,
).map(lambda what: what if isinstance(what, dict) else {"a": what})


def named(content: Any) -> Any:
    """Return a folder in which every entry has the name under which it stands."""
    return {
        name: named(what) if isinstance(what, dict) else File(name, what.mode, what.size, what.content) if isinstance(what, File) else what
        for name, what in content.items()
    }


def leaves(content: Any, above: str = "") -> dict[str, Any]:
    """Return every file and link in a folder, and its empty directories, by path."""
    found: dict[str, Any] = {}
    for name, what in content.items():
        if isinstance(what, dict) and what:
            found |= leaves(what, f"{above}{name}/")
        else:
            found[above + name] = what
    return found


def at(content: Any, path: str) -> Any:
    for name in path.split("/"):
        content = content[name]
    return content


def spelled_out(old: Any, new: Any, found: list[Change]) -> set[tuple[str, str]]:
    """Return changes as if nothing were ever renamed."""
    simple: set[tuple[str, str]] = set()
    for change in found:
        if change.kind == "renamed":
            assert change.before is not None
            one, other = at(old, change.before), at(new, change.path)
            assert leaves({"": named({"": one})[""]}) == leaves({"": named({"": other})[""]})
            for kind, path, what in (("removed", change.before, one), ("added", change.path, other)):
                simple |= {(kind, leaf.rstrip("/")) for leaf in leaves({path: what})}
        else:
            simple.add((change.kind, change.path))
    return simple


def expected(old: Any, new: Any, above: str = "") -> set[tuple[str, str]]:
    """Return what is different, told by somebody who looks at everything."""
    found: set[tuple[str, str]] = set()
    for name in old.keys() | new.keys():
        one, other, path = old.get(name), new.get(name), above + name
        if isinstance(one, dict) and isinstance(other, dict):
            found |= expected(one, other, path + "/")
        elif one is None or other is None or isinstance(one, dict) or isinstance(other, dict):
            found |= set() if one is None else {("removed", leaf) for leaf in leaves({path: one})}
            found |= set() if other is None else {("added", leaf) for leaf in leaves({path: other})}
        elif one != other:
            same = {type(one), type(other)} == {bytes, File} and b"x" in (one, other)
            found.add(("mode" if same else "changed", path))
    return found


@settings(max_examples=300)
@given(old=SMALL, new=SMALL)
def test_what_is_told_is_what_is_different(old: Any, new: Any) -> None:
    old, new = named(old), named(new)
    with counted() as objects:
        found = changes(objects, folder(objects, old), folder(objects, new))

    assert spelled_out(old, new, found) == expected(old, new)
    assert [change.path for change in found] == sorted(change.path for change in found)
    # Nothing that could be a renamed one is told as two.
    gone = {repr(at(old, change.path)) for change in found if change.kind == "removed" and at(old, change.path) in (b"x", b"y", "t")}
    come = {repr(at(new, change.path)) for change in found if change.kind == "added" and at(new, change.path) in (b"x", b"y", "t")}
    assert not gone & come


@settings(max_examples=40)
@given(
    count=st.sampled_from([0, 60, 70, 400, 2500]),
    numbers=st.lists(st.integers(0, 3000), max_size=40),
    row=st.tuples(st.integers(0, 3000), st.integers(0, 400)),
    dice=st.randoms(use_true_random=False),
)
def test_moved_ends_of_nodes_hide_nothing(count: int, numbers: list[int], row: tuple[int, int], dice: random.Random) -> None:
    with counted() as objects:
        before: dict[str, Entry] = {name: plain(name) for name in (f"n{number:05}" for number in range(count))}
        edits: dict[str, Entry | None] = {}
        for number in (*numbers, *range(row[0], sum(row))):
            name = f"n{number:05}"
            edits[name] = dice.choice([None, plain(name, mode=0o755)])
        old = build(objects, before.values())
        new, _ = edit(objects, old, edits)
        after = {entry.name: entry for entry in walk(objects, new)}

        found = {change.path: change.kind for change in changes(objects, old, new)}

        for name in before.keys() | after.keys():
            one, other = before.get(name), after.get(name)
            kind = None if one == other else "added" if one is None else "removed" if other is None else "mode"
            assert found.pop(name, None) == kind
        assert found == {}


def test_one_change_in_ten_thousand_is_found_by_reading_one_way_down(objects: Counted) -> None:
    entries = {name: plain(name) for name in (f"{random.Random(number).getrandbits(60):015x}" for number in range(10_000))}
    tree = build(objects, entries.values())
    reads = []
    for number, name in enumerate(list(entries)[:40]):
        changed: dict[str, Entry | None] = [{name: plain(name, b"x")}, {name: None}, {name + "x": plain(name + "x")}][number % 3]  # type: ignore[assignment]
        new, _ = edit(objects, tree, changed)
        objects.forget()

        assert [change.path for change in changes(objects, tree, new)] == list(changed)
        reads.append(len(objects.read))
    assert max(reads) <= 20
    assert sorted(reads)[20] <= 8


def test_what_is_equal_is_not_read(objects: Counted) -> None:
    big: Folder = {f"{number:03}": b"" for number in range(300)}
    old = folder(objects, {"big": big, "a": b"x", "moved": {"in": big}})
    new = folder(objects, {"big": big, "a": b"y", "to": {"in": big}})
    objects.forget()

    assert [(change.kind, change.path) for change in changes(objects, old, new)] == [("changed", "a"), ("renamed", "to")]
    assert sorted(objects.read) == sorted([old, new])


def test_a_directory_that_is_two_hundred_deep_is_told(objects: Counted) -> None:
    deep: Any = {"f": b"x"}
    for _ in range(250):
        deep = {"d": deep}
    (change,) = changes(objects, EMPTY_TREE.hash, folder(objects, deep))

    assert change.path == "d/" * 250 + "f"


def test_a_node_that_is_not_what_it_must_be_is_damage(objects: Counted) -> None:
    leaf = forged(objects, 0, [plain("a")])
    top = forged(objects, 1, [leaf, forged(objects, 0, [plain("z")])])
    wrong = forged(objects, 2, [leaf, forged(objects, 0, [plain("y")])])
    with pytest.raises(Damaged):
        changes(objects, top.child, wrong.child)

    assert [change.path for change in changes(Nodes(objects), EMPTY_TREE.hash, top.child)] == ["a", "z"]


def test_few_changes_are_found_in_one_turn_and_no_more_nodes_are_read_than_that_may_take(objects: Counted) -> None:
    before = {f"f{number:05}": plain(f"f{number:05}", b"x") for number in range(10_000)}
    one = build(objects, before.values())
    old = make_root(one, *measure(objects, one))
    objects.put(old)

    for several, is_few in ((range(4000, 4003), True), (range(0, 10_000, 9), False)):
        other = edit(objects, one, {f"f{number:05}": plain(f"f{number:05}", b"y") for number in several})[0]
        new = make_root(other, *measure(objects, other))
        objects.put(new)
        objects.forget()
        found = few_changes(objects, old.hash, new.hash)
        assert len(objects.read) <= COMPARED_NODES_MAX + 2  # and the roots
        assert found == (changes(objects, one, other) if is_few else None)


def test_a_root_that_is_not_there_is_damage_to_few_changes(objects: Counted) -> None:
    with pytest.raises(Damaged):
        few_changes(objects, EMPTY_ROOT.hash, bytes(32))


def test_what_is_compared_next_is_expected_on_both_sides(objects: Counted) -> None:
    one = build(objects, [plain(f"f{number:05}", b"x") for number in range(10_000)])
    other = edit(objects, one, {"f04321": plain("f04321", b"y")})[0]
    objects.forget()

    assert [change.path for change in changes(objects, one, other)] == ["f04321"]
    assert [len(several) for several in objects.expected] == [2] * (len(objects.read) // 2)
    assert objects.read == [hash_ for several in objects.expected for hash_ in several]


@pytest.mark.parametrize(("most", "whole"), [(4, False), (3, True)])
def test_more_changes_than_may_be_told_are_told_by_the_entries_of_the_top(
    objects: Counted, monkeypatch: pytest.MonkeyPatch, most: int, whole: bool
) -> None:
    monkeypatch.setattr(difference, "CHANGES_TOLD_MAX", most)
    old: Folder = {"a": {"x": b"1", "y": b"2"}, "gone": b"3", "same": {"z": b"4"}}
    new: Folder = {"a": {"x": b"5", "y": b"6"}, "come": {"z": b"7"}, "same": {"z": b"4"}}
    told_whole = [("changed", "a"), ("added", "come"), ("removed", "gone")]

    assert (told(objects, old, new) == told_whole) is whole


@pytest.mark.parametrize("wide", [{}, {str(number): b"x" for number in range(2)}])
def test_what_came_many_times_is_not_opened_many_times(objects: Counted, monkeypatch: pytest.MonkeyPatch, wide: dict[str, bytes]) -> None:
    monkeypatch.setattr(difference, "CHANGES_TOLD_MAX", 100)
    tree = folder(objects, {"x": b"1", **wide})
    for _ in range(50):
        one = Directory("a", 0o755, tree, *measure(objects, tree))
        tree = folder(objects, {"a": one, "b": replace(one, name="b")})

    assert changes(objects, EMPTY_TREE.hash, tree) == [added(("a",)), added(("b",))]
    assert changes(objects, tree, EMPTY_TREE.hash) == [removed(("a",)), removed(("b",))]
    assert changes(objects, folder(objects, {"c": {"a": one}}), folder(objects, {"d": {"a": one}})) == [renamed(("c",), ("d",))]
