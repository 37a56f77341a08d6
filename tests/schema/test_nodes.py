"""A node has one encoding, and what is not one is refused; where a level is cut follows from its names alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freehold.schema import nodes
from freehold.schema.errors import Damaged
from freehold.schema.hashes import cut
from freehold.schema.limits import CUT_BELOW, LONE_NODE_ENTRIES_MAX, NODE_BYTES_MAX, NODE_ENTRIES_MAX, TREE_BYTES_MAX, TREE_LEVELS_MAX
from freehold.schema.nodes import (
    Branch,
    Directory,
    Entry,
    File,
    Inner,
    Leaf,
    Link,
    Totals,
    decode,
    encode,
    is_fit,
    make_node,
    split,
    totals,
)
from freehold.schema.paths import is_entry_name
from freehold.schema.roots import EMPTY_TREE

HASH = bytes(range(32))
NO_TREE = EMPTY_TREE.hash
NAMES = st.text(min_size=1, max_size=12).filter(is_entry_name)
FILES = st.builds(
    lambda name, mode, content: File(name, mode, len(content), content), NAMES, st.integers(0, 0o777), st.binary(max_size=128)
)
LARGE = st.builds(File, NAMES, st.integers(0, 0o777), st.integers(129, 2**40), st.binary(min_size=32, max_size=32))
FULL = st.builds(
    lambda name, mode, tree, depth, more, size: Directory(name, mode, tree, depth + more, size, depth),
    NAMES,
    st.integers(0, 0o777),
    st.binary(min_size=32, max_size=32),
    st.integers(1, 255),
    st.integers(0, 2**40),
    st.integers(0, 2**40),
)
EMPTY = st.builds(lambda name, mode: Directory(name, mode, NO_TREE, 0, 0, 0), NAMES, st.integers(0, 0o777))
LINKS = st.builds(Link, NAMES, st.text(min_size=1, max_size=50).filter(lambda text: "\x00" not in text and is_text(text)))
INNERS = st.builds(
    lambda name, child, depth, more, size: Inner(name, child, depth + more, size, depth),
    NAMES,
    st.binary(min_size=32, max_size=32),
    st.integers(1, 256),
    st.integers(0, 2**40),
    st.integers(0, 2**40),
)


def is_text(text: str) -> bool:
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


def in_order(items: Sequence[Any]) -> list[Any]:
    return [item for _, item in sorted({item.name: item for item in items}.items())]


ENTRIES = st.lists(FILES | LARGE | FULL | EMPTY | LINKS, max_size=20).map(in_order)
NODES = ENTRIES.map(lambda items: (0, items)) | st.tuples(
    st.integers(1, TREE_LEVELS_MAX - 1), st.lists(INNERS, min_size=1, max_size=20).map(in_order)
)


def raw(*node: Any) -> bytes:
    return msgspec.msgpack.encode(node)


def files(names: Sequence[str]) -> list[File]:
    return [File(name, 0o644, 0, b"") for name in sorted(names)]


@pytest.mark.parametrize(
    ("level", "items", "golden"),
    [
        (0, [], "920090"),
        (0, [File("a", 0o644, 2, b"hi")], "92009195 00a161cd01a402c4026869"),
        (0, [File("é", 0o777, 65536, HASH)], "92009195 00a2c3a9cd01ffce00010000c420" + HASH.hex()),
        (0, [Link("l", "../a")], "92009193 02a16ca42e2e2f61"),
        (0, [Directory("d", 0o755, NO_TREE, 0, 0, 0)], "92009197 01a164cd01edc420" + NO_TREE.hex() + "000000"),
        (0, [Directory("d", 0o755, HASH, 200, 70000, 3)], "92009197 01a164cd01edc420" + HASH.hex() + "ccc8ce0001117003"),
        (
            1,
            [Inner("m", HASH, 33, 5, 1), Inner("z", HASH, 300, 0, 2)],
            "92019295a16dc420" + HASH.hex() + "21050195a17ac420" + HASH.hex() + "cd012c0002",
        ),
    ],
)
def test_golden_nodes_stay_as_they_are(level: int, items: list[Any], golden: str) -> None:
    assert encode(level, items) == bytes.fromhex(golden)
    assert decode(bytes.fromhex(golden)) == (Leaf(0, tuple(items)) if level == 0 else Branch(level, tuple(items)))


def test_the_empty_directory_is_the_one_that_a_new_run_has() -> None:
    assert make_node(0, []) == EMPTY_TREE


@given(NODES)
def test_what_is_encoded_is_read_back(node: tuple[int, list[Any]]) -> None:
    found = decode(encode(*node))

    assert (found.level, list(found.items)) == node


WRONG: list[tuple[str, bytes]] = [
    ("nothing", b""),
    ("no array", raw(0)[1:] + b"\xc0"),
    ("another array", raw(0, [], 0)),
    ("too short an array", b"\x91\x00"),
    ("a byte too many", raw(0, []) + b"\x00"),
    ("no level", raw(None, [])),
    ("a level below 0", raw(-1, [])),
    ("a level too high", raw(TREE_LEVELS_MAX, [["a", HASH, 1, 0, 1]])),
    ("true for a level", raw(True, [["a", HASH, 1, 0, 1]])),
    ("a longer 0", b"\x92\xcc\x00\x90"),
    ("a longer array", b"\x92\x00\xdc\x00\x00"),
    ("a longer number", bytes.fromhex("9200919500a161cd000102c4026869")),
    ("a longer text", bytes.fromhex("9200919500d90161cd01a402c4026869")),
    ("longer bytes", bytes.fromhex("9200919500a161cd01a402c500026869")),
    ("text for bytes", bytes.fromhex("9200919500a161cd01a402a26869")),
    ("bytes for text", bytes.fromhex("9200919500c40161cd01a402c4026869")),
    ("a real number", raw(0, [[0, "a", 0o644, 0.0, b""]])),
    ("a map", raw(0, [{0: "a"}])),
    ("an unknown kind", raw(0, [[3, "a", 0, 0, b""]])),
    ("a kind that is text", raw(0, [["0", "a", 0, 0, b""]])),
    ("no kind", raw(0, [[]])),
    ("too short a file", raw(0, [[0, "a", 0, 0]])),
    ("too long a file", raw(0, [[0, "a", 0, 0, b"", 0]])),
    ("too long a directory", raw(0, [[1, "a", 0o755, NO_TREE, 0, 0, 0, 0]])),
    ("too long a link", raw(0, [[2, "a", "b", 0]])),
    ("a setuid mode", raw(0, [[0, "a", 0o4755, 0, b""]])),
    ("a mode below 0", raw(0, [[0, "a", -1, 0, b""]])),
    ("a setuid mode of a directory", raw(0, [[1, "a", 0o4755, NO_TREE, 0, 0, 0]])),
    ("a directory without a mode", raw(0, [[1, "a", NO_TREE, 0, 0, 0]])),
    ("a size below 0", raw(0, [[0, "a", 0, -1, b""]])),
    ("a size too large", raw(0, [[0, "a", 0, 2**63, HASH]])),
    ("less content than said", raw(0, [[0, "a", 0, 2, b"a"]])),
    ("more content than said", raw(0, [[0, "a", 0, 0, b"a"]])),
    ("a hash for little content", raw(0, [[0, "a", 0, 128, HASH]])),
    ("content where a hash must be", raw(0, [[0, "a", 0, 129, bytes(129)]])),
    ("too short a hash", raw(0, [[0, "a", 0, 129, bytes(31)]])),
    ("no name", raw(0, [[0, "", 0, 0, b""]])),
    *((f"the name {name!r}", raw(0, [[0, name, 0, 0, b""]])) for name in (".", "..", "a/b", "/", "a\x00")),
    ("too long a name", raw(0, [[0, "x" * 256, 0, 0, b""]])),
    ("a name of too many bytes", raw(0, [[2, "é" * 128, "b"]])),
    ("a name that is not UTF-8", bytes.fromhex("9200919500a1ff0000c400")),
    ("a surrogate in a name", bytes.fromhex("9200919500a3eda0800000c400")),
    ("one name twice", raw(0, [[0, "a", 0, 0, b""], [2, "a", "b"]])),
    ("names out of order", raw(0, [[0, "b", 0, 0, b""], [0, "a", 0, 0, b""]])),
    ("names in the order of UTF-16", raw(0, [[0, "\U00010000", 0, 0, b""], [0, "\uffff", 0, 0, b""]])),
    ("a link to nothing", raw(0, [[2, "a", ""]])),
    ("a link to NUL", raw(0, [[2, "a", "b\x00"]])),
    ("too long a link's target", raw(0, [[2, "a", "x" * 4096]])),
    ("a link's target of too many bytes", raw(0, [[2, "a", "é" * 2048]])),
    ("too short a tree", raw(0, [[1, "a", 0o755, bytes(31), 1, 0, 1]])),
    ("too long a tree", raw(0, [[1, "a", 0o755, bytes(33), 1, 0, 1]])),
    ("an empty directory with entries", raw(0, [[1, "a", 0o755, NO_TREE, 1, 0, 1]])),
    ("an empty directory with bytes", raw(0, [[1, "a", 0o755, NO_TREE, 0, 1, 0]])),
    ("a full directory without entries", raw(0, [[1, "a", 0o755, HASH, 0, 0, 0]])),
    ("a full directory without depth", raw(0, [[1, "a", 0o755, HASH, 1, 0, 0]])),
    ("a directory deeper than it has entries", raw(0, [[1, "a", 0o755, HASH, 1, 0, 2]])),
    ("a directory too deep", raw(0, [[1, "a", 0o755, HASH, 256, 0, 256]])),
    ("more bytes than can be counted", raw(0, [[0, "a", 0, TREE_BYTES_MAX, HASH], [0, "b", 0, TREE_BYTES_MAX, HASH]])),
    ("more bytes than can be counted, in nodes", raw(1, [["a", HASH, 1, TREE_BYTES_MAX, 1], ["b", HASH, 1, 1, 1]])),
    ("an inner node of nothing", raw(1, [])),
    ("entries above", raw(1, [[0, "a", 0, 0, b""]])),
    ("nodes below", raw(0, [["a", HASH, 1, 0, 1]])),
    ("a child without entries", raw(1, [["a", HASH, 0, 0, 1]])),
    ("a child without depth", raw(1, [["a", HASH, 1, 0, 0]])),
    ("a child deeper than it has entries", raw(1, [["a", HASH, 1, 0, 2]])),
    ("a child too deep", raw(1, [["a", HASH, 300, 0, 257]])),
    ("too long a child", raw(1, [["a", HASH, 1, 0, 1, 0]])),
    ("children out of order", raw(1, [["b", HASH, 1, 0, 1], ["a", HASH, 1, 0, 1]])),
    ("one child twice", raw(1, [["a", HASH, 1, 0, 1], ["a", HASH, 1, 0, 1]])),
    ("129 entries", raw(0, [[2, f"{number:03}", "b"] for number in range(129)])),
    ("129 children", raw(1, [[f"{number:03}", HASH, 1, 0, 1] for number in range(129)])),
    ("four thousand million entries", bytes.fromhex("9200ddffffffff")),
    ("a text of four thousand million bytes", bytes.fromhex("9200919500dbffffffff")),
    ("arrays in arrays", b"\x91" * 200_000),
    ("arrays in the level", b"\x92" * 200_000),
    ("more bytes than any node", raw(0, [[0, "a", 0, NODE_BYTES_MAX, bytes(NODE_BYTES_MAX)]])),
]


@pytest.mark.parametrize("crafted", [crafted for _, crafted in WRONG], ids=[what for what, _ in WRONG])
def test_what_no_writer_makes_is_refused_and_not_shown(crafted: bytes) -> None:
    with pytest.raises(Damaged) as raised:
        decode(crafted)

    assert (raised.value.code, raised.value.details) == ("malformed_record", {"table": "object"})
    assert raised.value.__cause__ is None


def test_the_crafted_nodes_are_wrong_for_their_own_reason() -> None:
    """What they were made from is right: a node of 128 links of the greatest length is still one."""
    longest = [Link(f"{number:0255}", "x" * 4095) for number in range(NODE_ENTRIES_MAX)]

    assert len(decode(encode(0, longest)).items) == 128
    assert decode(raw(0, [[0, "a", 0o644, 0, b""]])).items == (File("a", 0o644, 0, b""),)
    assert decode(raw(1, [["a", HASH, 1, 0, 1]])).items == (Inner("a", HASH, 1, 0, 1),)


def mutated(raw: bytes, dice: random.Random) -> bytes:
    """Return *raw* with a few bytes changed, added, removed or repeated."""
    text = bytearray(raw)
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(text) + 1)
        match dice.randrange(5):
            case 0 if at < len(text):
                text[at] = dice.randrange(256)
            case 1 if at < len(text):
                text[at] ^= 1 << dice.randrange(8)
            case 2:
                text[at:at] = dice.randbytes(dice.randint(1, 4))
            case 3:
                del text[at : at + dice.randint(1, 4)]
            case _:
                text[at:at] = text[at : at + dice.randint(1, 40)]
    return bytes(text)


def survives(seed: int, rounds: int) -> int:
    """Throw mutated nodes at decode, and return how many of them were nodes still."""
    dice = random.Random(seed)
    taken = 0
    for _ in range(rounds):
        crafted = mutated(encode(*a_node(dice)), dice)
        try:
            node = decode(crafted)
        except Damaged:
            continue
        taken += 1
        assert encode(node.level, node.items) == crafted
    return taken


def a_node(dice: random.Random) -> tuple[int, list[Any]]:
    names = sorted({"".join(dice.choices("abcdé.-", k=dice.randint(1, 9))) for _ in range(dice.randint(1, 6))} - {".", ".."}) or ["a"]
    if dice.random() < 0.3:
        return dice.randint(1, 3), [
            Inner(name, dice.randbytes(32), dice.randint(9, 500), dice.randrange(2**20), dice.randint(1, 9)) for name in names
        ]
    return 0, [an_entry(name, dice) for name in names]


def an_entry(name: str, dice: random.Random) -> Entry:
    match dice.randrange(4):
        case 0:
            return Link(name, "../" + name)
        case 1:
            return Directory(
                name, dice.randrange(0o1000), dice.randbytes(32), dice.randint(9, 500), dice.randrange(2**20), dice.randint(1, 9)
            )
        case 2:
            return File(name, dice.randrange(0o1000), dice.randint(129, 2**20), dice.randbytes(32))
        case _:
            content = dice.randbytes(dice.randrange(30))
            return File(name, dice.randrange(0o1000), len(content), content)


def test_a_mutated_node_is_refused_or_is_another_node(seed: int) -> None:
    assert survives(seed, 500) < 500


@pytest.mark.prove
def test_ten_thousand_mutated_nodes_are_refused_or_are_other_nodes(seed: int) -> None:
    assert 0 < survives(seed, 10_000) < 10_000


@given(st.binary(max_size=60))
def test_any_bytes_are_refused_or_are_a_node(crafted: bytes) -> None:
    for text in (crafted, b"\x92\x00" + crafted, b"\x92\x01" + crafted):
        try:
            node = decode(text)
        except Damaged:
            continue
        assert encode(node.level, node.items) == text


def test_a_node_counts_what_stands_beneath_it() -> None:
    file: Entry = File("f", 0o644, 7, b"1234567")
    link: Entry = Link("l", "f")
    empty: Entry = Directory("e", 0o755, NO_TREE, 0, 0, 0)

    assert totals([]) == Totals(0, 0, 0)
    assert totals([file]) == Totals(1, 7, 1)
    assert totals([empty]) == totals([link]) == Totals(1, 0, 1)
    assert totals([Directory("d", 0o755, HASH, 5, 100, 2), file, link]) == Totals(8, 107, 3)
    assert totals([Inner("f", HASH, 3, 7, 1), Inner("z", HASH, 5, 100, 4)]) == Totals(8, 107, 4)


def test_an_entry_that_a_writer_would_make_is_fit() -> None:
    assert is_fit(File("a", 0, 128, bytes(128)))
    assert not is_fit(File("a", 0, 129, bytes(129)))
    assert is_fit(Directory("a", 0o755, NO_TREE, 0, 0, 0))
    assert not is_fit(Link("a", "é" * 2048))


def by_the_rule(level: int, items: Sequence[Any]) -> list[list[Any]]:
    """Return what a level is cut into, by the words of the rule: slow, and recursive."""
    if len(items) <= 64:
        return [list(items)]
    done: list[list[Any]] = []
    natural: list[Any] = []
    for item in items:
        natural.append(item)
        if cut(level, item.name) < 2**32 // 32 or item is items[-1]:
            done += again(level, natural)
            natural = []
    return done


def again(level: int, node: list[Any]) -> list[list[Any]]:
    if len(node) <= 128:
        return [node]
    _, _, at = min((cut(level, item.name), item.name, index) for index, item in enumerate(node[:-1]))
    return again(level, node[: at + 1]) + again(level, node[at + 1 :])


@settings(max_examples=60)
@given(level=st.integers(0, 3), count=st.sampled_from([0, 1, 63, 64, 65, 128, 129, 130, 500, 1500]), dice=st.randoms(use_true_random=False))
@pytest.mark.parametrize("natural", [True, False])
def test_a_level_is_cut_as_the_rule_says(*, natural: bool, level: int, count: int, dice: random.Random) -> None:
    names: set[str] = set()
    while len(names) < count:
        name = f"{dice.getrandbits(60):x}"
        if natural or cut(level, name) >= CUT_BELOW:
            names.add(name)
    items = files(list(names))

    found = split(level, items)

    assert [list(node) for node in found] == by_the_rule(level, items)
    assert all(len(node) <= NODE_ENTRIES_MAX for node in found)
    assert [item for node in found for item in node] == items


def test_a_level_of_64_is_one_node_wherever_its_names_would_be_cut() -> None:
    names = [name for name in (f"{number:05}" for number in range(5000)) if cut(0, name) < CUT_BELOW]

    assert len(split(0, files(names[:LONE_NODE_ENTRIES_MAX]))) == 1
    assert len(split(0, files(names[: LONE_NODE_ENTRIES_MAX + 1]))) == 65


def test_names_whose_draws_ascend_are_cut_without_recursion_and_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    items = files([f"{number:06}" for number in range(20_000)])
    monkeypatch.setattr(nodes, "cut", lambda level, name: CUT_BELOW + int(name))
    ascending = split(0, items)
    monkeypatch.setattr(nodes, "cut", lambda level, name: CUT_BELOW + 20_000 - int(name))
    descending = split(0, items)

    assert [len(node) for node in ascending] == [1] * (20_000 - 128) + [128]
    assert {len(node) for node in descending[1:]} == {1}
    assert len(descending[0]) == 128
    assert all(one[-1].name < other[0].name for one, other in pairwise(ascending))
