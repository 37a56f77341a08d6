"""Nodes are kept at hand within a bound, are those that are stored, and are forgotten when they are told to be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from counted import Counted, counted, forged, plain

from freehold.schema.errors import Damaged
from freehold.schema.hashes import ObjectKind
from freehold.schema.nodes import Branch, Inner
from freehold.schema.roots import make_object
from freehold.storage.nodes import Nodes


@pytest.fixture
def objects() -> Iterator[Counted]:
    with counted() as objects:
        yield objects


def test_a_node_is_read_once(objects: Counted) -> None:
    hash_ = forged(objects, 0, [plain("a")]).child
    nodes = Nodes(objects)

    assert nodes.node(hash_) == nodes.node(hash_)
    assert objects.read == [hash_]


def test_only_nodes_that_are_not_at_hand_are_expected(objects: Counted) -> None:
    one, other = forged(objects, 0, [plain("a")]).child, forged(objects, 0, [plain("b")]).child
    nodes = Nodes(objects)
    nodes.node(one)

    nodes.expect([one, other])
    nodes.expect([one])

    assert objects.expected == [[other]]


def test_a_node_that_was_put_is_at_hand(objects: Counted) -> None:
    nodes = Nodes(objects)
    hash_ = nodes.put_node(0, [plain("a")], set())

    assert nodes.node(hash_).items == (plain("a"),)
    assert objects.read == []
    assert [piece.hash for piece in objects.written] == [hash_]


def test_a_node_that_is_known_to_be_there_is_not_put_again(objects: Counted) -> None:
    hash_ = forged(objects, 0, [plain("a")]).child
    objects.forget()

    assert Nodes(objects).put_node(0, [plain("a")], {hash_}) == hash_
    assert objects.written == []


def test_what_was_forgotten_is_read_again(objects: Counted) -> None:
    hash_ = forged(objects, 0, [plain("a")]).child
    nodes = Nodes(objects)
    nodes.node(hash_)
    nodes.forget()
    nodes.node(hash_)

    assert objects.read == [hash_, hash_]


def test_a_put_that_was_forgotten_is_put_again(objects: Counted) -> None:
    nodes = Nodes(objects)
    nodes.put_node(0, [plain("a")], set())
    nodes.forget()
    nodes.put_node(0, [plain("a")], set())

    assert len(objects.written) == 2


def test_what_was_asked_for_longest_ago_makes_room(objects: Counted) -> None:
    hashes = [forged(objects, 0, [plain(name, bytes(100))]).child for name in "abc"]
    nodes = Nodes(objects, bytes_max=250)
    for index in (0, 1, 0, 2, 0, 1):
        nodes.node(hashes[index])

    assert [hashes.index(hash_) for hash_ in objects.read] == [0, 1, 2, 1]


def test_one_node_is_at_hand_however_large(objects: Counted) -> None:
    hash_ = forged(objects, 0, [plain("a", bytes(100))]).child
    nodes = Nodes(objects, bytes_max=1)
    nodes.node(hash_)
    nodes.node(hash_)

    assert objects.read == [hash_]


def test_nodes_stand_for_the_objects_they_are_over(objects: Counted) -> None:
    nodes = Nodes(objects)
    piece = make_object(ObjectKind.CHUNK, b"x")
    nodes.put(piece)

    assert nodes.get(piece.hash, ObjectKind.CHUNK) == b"x"
    assert Nodes.over(nodes) is nodes


def test_a_missing_node_is_damage(objects: Counted) -> None:
    with pytest.raises(Damaged):
        Nodes(objects).node(bytes(32))


def test_an_object_of_another_kind_is_no_node(objects: Counted) -> None:
    piece = make_object(ObjectKind.CHUNK, b"\x92\x00\x90")
    objects.put(piece)
    with pytest.raises(Damaged):
        Nodes(objects).node(piece.hash)


def test_a_top_node_of_one_child_is_no_directory(objects: Counted) -> None:
    top = forged(objects, 1, [forged(objects, 0, [plain("a")])])
    with pytest.raises(Damaged) as raised:
        Nodes(objects).top(top.child)

    assert raised.value.details == {"rule": "tree"}


@pytest.mark.parametrize(("level", "name"), [(2, "a"), (0, "a"), (1, "b")])
def test_a_child_of_another_level_or_name_does_not_fit(objects: Counted, level: int, name: str) -> None:
    leaf = forged(objects, 0, [plain("a")])
    inner = Inner(name, leaf.child, 1, 0, 1)
    with pytest.raises(Damaged) as raised:
        Nodes(objects).child(Branch(level, (inner,)) if level else Branch(2, (inner,)), inner)

    assert raised.value.details == {"rule": "tree"}
    assert Nodes(objects).child(Branch(1, (leaf,)), leaf).items == (plain("a"),)
