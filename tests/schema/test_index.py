"""A file's index has one shape for each size; what is of another shape, or written otherwise, is refused and never anything else."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from independent_content import node as described

from freehold.schema.errors import Damaged
from freehold.schema.hashes import ObjectKind
from freehold.schema.index import (
    CHUNK_LEVEL,
    IndexNode,
    child_at,
    child_size,
    count_children,
    count_chunks,
    decode_index,
    make_index,
    span,
    top_level,
)
from freehold.schema.limits import CHUNK_BYTES, FILE_BYTES_MAX, INDEX_FAN_OUT, INDEX_LEVELS_MAX

SIZES = st.integers(1, FILE_BYTES_MAX) | st.builds(
    lambda level, count, more: min(FILE_BYTES_MAX, max(1, count * span(level) + more)),
    st.integers(CHUNK_LEVEL, INDEX_LEVELS_MAX - 1),
    st.integers(1, INDEX_FAN_OUT + 1),
    st.integers(-1, 1),
)
HASHES = [bytes([number]) * 32 for number in range(INDEX_FAN_OUT + 1)]


@pytest.mark.parametrize(
    ("size", "level"),
    [
        (1, CHUNK_LEVEL),
        (CHUNK_BYTES, CHUNK_LEVEL),
        (CHUNK_BYTES + 1, 0),
        (128 * CHUNK_BYTES, 0),
        (128 * CHUNK_BYTES + 1, 1),
        (128**2 * CHUNK_BYTES, 1),
        (128**2 * CHUNK_BYTES + 1, 2),
        (128**3 * CHUNK_BYTES + 1, 3),
        (FILE_BYTES_MAX, 3),
    ],
)
def test_an_index_has_no_more_levels_than_the_size_needs(size: int, level: int) -> None:
    assert top_level(size) == level


@given(SIZES, st.data())
def test_the_way_down_leads_to_every_chunk(size: int, data: st.DataObject) -> None:
    chunk = data.draw(st.integers(0, count_chunks(size) - 1))
    start, beneath = 0, size

    for level in range(top_level(size), CHUNK_LEVEL, -1):
        child = child_at(level, chunk)
        assert child < count_children(level, beneath) <= INDEX_FAN_OUT
        assert sum(child_size(level, beneath, each) for each in range(count_children(level, beneath))) == beneath
        start += child * span(level - 1)
        beneath = child_size(level, beneath, child)

    assert start == chunk * CHUNK_BYTES
    assert beneath == min(CHUNK_BYTES, size - start) > 0


@pytest.mark.parametrize(("level", "size"), [(0, 1), (0, CHUNK_BYTES + 1), (1, span(1)), (3, FILE_BYTES_MAX), (2, 15 * span(1))])
def test_a_node_is_written_in_the_one_form_and_read_back(level: int, size: int) -> None:
    children = HASHES[: count_children(level, size)]
    sizes = [child_size(level, size, child) for child in range(len(children))]

    piece = make_index(level, size, children)

    assert piece.kind == ObjectKind.FILE
    assert piece.data == described(level, list(zip(children, sizes, strict=True)))
    assert decode_index(piece.data) == IndexNode(level, size, tuple(children))


def test_a_node_with_another_number_of_children_than_its_size_needs_is_never_made() -> None:
    with pytest.raises(AssertionError):
        make_index(0, CHUNK_BYTES, HASHES[:2])
    with pytest.raises(AssertionError):
        make_index(0, span(0) + 1, HASHES[:129])


GOOD = make_index(0, CHUNK_BYTES + 1, HASHES[:2]).data


def packed(*node: object) -> bytes:
    return msgspec.msgpack.encode(node)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93",
        GOOD[:-1],
        GOOD + b"\x00",
        b"\x93\xcc\x00" + GOOD[2:],  # a level in more than its shortest form
        b"\x93\x00\xcf" + (CHUNK_BYTES + 1).to_bytes(8, "big") + GOOD[7:],
        GOOD[:7] + b"\xdc\x00\x02" + GOOD[8:],
        GOOD[:8] + b"\xc5\x00\x20" + GOOD[10:],  # a hash behind a longer head
        b"\xdc\x00\x03" + GOOD[1:],
        packed(0, CHUNK_BYTES + 1, HASHES[:1]),
        packed(0, CHUNK_BYTES + 1, HASHES[:3]),
        packed(0, CHUNK_BYTES, HASHES[:2]),
        packed(0, 0, []),
        packed(0, 1, []),
        packed(0, -1, HASHES[:1]),
        packed(0, span(0) + 1, HASHES[:129]),
        packed(INDEX_LEVELS_MAX, FILE_BYTES_MAX, HASHES[:1]),
        packed(INDEX_LEVELS_MAX - 1, FILE_BYTES_MAX + 1, HASHES[:128]),
        packed(-1, 1, HASHES[:1]),
        packed(2**40, 1, HASHES[:1]),
        packed(0, 2**64 - 1, HASHES[:1]),
        packed(0, 1, [bytes(31)]),
        packed(0, 1, [bytes(33)]),
        packed(0, 1, ["x" * 32]),
        packed(0, 1, HASHES[0]),
        packed(0, 1, [None]),
        packed(0, 1.0, HASHES[:1]),
        packed(False, 1, HASHES[:1]),
        packed(0, 1),
        packed(0, 1, HASHES[:1], 0),
        b"\x94" + packed(0, 1, HASHES[:1])[1:] + b"\x91" * 100_000,
        b"\x93\x00\x01" + b"\x91" * 100_000,
        b"\x93\x00\x01\xdd\xff\xff\xff\xff",
        packed(0, 1, [HASHES[0]] * 200_000),
        msgspec.msgpack.encode({"level": 0, "size": 1, "children": HASHES[:1]}),
        b"SECRET",
    ],
    ids=lambda data: data[:12].hex(),
)
def test_what_is_not_the_one_form_of_a_node_is_refused_and_not_shown(data: bytes) -> None:
    with pytest.raises(Damaged) as raised:
        decode_index(data)

    error = raised.value
    assert (error.code, error.details["table"], error.__cause__) == ("malformed_record", "object", None)
    assert "SECRET" not in f"{error}{error.details}"


def mutated(dice: random.Random) -> bytes:
    """Return a node with some of its bytes changed, doubled, removed or exchanged."""
    level = dice.randrange(INDEX_LEVELS_MAX)
    size = dice.randint(1, span(level))
    data = bytearray(make_index(level, size, [dice.randbytes(32) for _ in range(count_children(level, size))]).data)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(min(len(data), dice.choice([12, len(data)])))
        match dice.randrange(4):
            case 0:
                data[at] = dice.randrange(256)
            case 1:
                data[at:at] = dice.randbytes(dice.randint(1, 9))
            case 2:
                del data[at : at + dice.randint(1, 40)]
            case _:
                data[at] ^= 1 << dice.randrange(8)
        if not data:
            break
    return bytes(data)


def refused_or_true(dice: random.Random, rounds: int) -> int:
    """Return how many mutated nodes were refused; each of the others is the one form of what was read from it."""
    refused = 0
    for _ in range(rounds):
        data = mutated(dice)
        try:
            node = decode_index(data)
        except Damaged:
            refused += 1
        else:
            assert make_index(node.level, node.size, list(node.children)).data == data
    return refused


def test_a_mutated_node_is_refused_or_is_another_node_in_its_one_form(seed: int) -> None:
    assert refused_or_true(random.Random(seed), 500) > 100


@pytest.mark.prove
def test_ten_thousand_mutated_nodes_are_refused_or_true(seed: int) -> None:
    assert refused_or_true(random.Random(seed), 10_000) > 2_000
