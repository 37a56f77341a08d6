"""A change says what is different at a path; what only moved is one change, and which is paired with which is fixed."""

from __future__ import annotations

from freehold.schema.changes import Change, added, altered, listed, paired, removed, renamed
from freehold.schema.nodes import Directory, File, Link
from freehold.schema.roots import EMPTY_TREE


def file(content: bytes = b"x", mode: int = 0o644) -> File:
    return File("any", mode, len(content), content)


def test_a_change_names_the_path_where_it_is_now() -> None:
    assert added(("a", "b")) == Change("a/b", "added", None, "a/b")
    assert removed(("a", "b")) == Change("a/b", "removed", "a/b", None)
    assert renamed(("a",), ("b", "c")) == Change("b/c", "renamed", "a", "b/c")


def test_a_mode_is_a_change_of_its_own_only_when_nothing_else_is() -> None:
    assert altered(("a",), file(), file(mode=0o755)) == Change("a", "mode", "a", "a")
    assert altered(("a",), file(), file(b"y", 0o755)).kind == "changed"
    assert altered(("a",), file(), Link("any", "x")).kind == "changed"
    assert altered(("a",), Link("any", "x"), Link("any", "y")).kind == "changed"


def test_what_is_the_same_under_another_name_was_renamed() -> None:
    assert paired([(("a",), file())], [(("b",), file())]) == [renamed(("a",), ("b",))]
    assert paired([(("a",), Link("a", "t"))], [(("b",), Link("b", "t"))]) == [renamed(("a",), ("b",))]


def test_several_that_are_the_same_are_paired_in_order_and_the_rest_is_left() -> None:
    gone = [((name,), file()) for name in "cab"]
    come = [((name,), file()) for name in "zx"]

    assert listed(paired(gone, come)) == [removed(("c",)), renamed(("a",), ("x",)), renamed(("b",), ("z",))]
    assert listed(paired(come, gone)) == [renamed(("x",), ("a",)), renamed(("z",), ("b",)), added(("c",))]


def test_what_is_empty_or_not_quite_the_same_was_not_renamed() -> None:
    for one, other in (
        (file(b""), file(b"")),
        (file(b"x"), file(b"y")),
        (file(mode=0o644), file(mode=0o755)),
        (file(b"x"), Link("any", "x")),
        (Directory("any", 0o755, EMPTY_TREE.hash, 0, 0, 0), Directory("any", 0o755, EMPTY_TREE.hash, 0, 0, 0)),
    ):
        assert paired([(("a",), one)], [(("b",), other)]) in ([removed(("a",)), added(("b",))], [added(("b",)), removed(("a",))])


def test_changes_stand_in_the_order_of_their_paths() -> None:
    changes = [added(("a", "b")), added(("a",)), added(("a-b",)), removed(("a",)), renamed(("z",), ("0",))]

    assert [(change.path, change.kind) for change in listed(changes)] == [
        ("0", "renamed"),
        ("a", "removed"),
        ("a", "added"),
        ("a-b", "added"),
        ("a/b", "added"),
    ]
