"""An edited content is the one that its bytes have, however it came about, and costs what was changed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import independent_content
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kept import Kept, kept

from freehold.schema.errors import Damaged
from freehold.schema.hashes import ObjectKind
from freehold.schema.index import count_chunks, span
from freehold.schema.limits import CHUNK_BYTES, FILE_BYTES_MAX, INLINE_BYTES_MAX
from freehold.storage.content import EMPTY, Content, check_content, read, write_stream
from freehold.storage.edit import chunk_size, edited

C = CHUNK_BYTES
SIZES = (
    st.integers(0, 3) | st.integers(0, 2 * INLINE_BYTES_MAX) | st.integers(0, 3 * C) | st.sampled_from([C - 1, C, C + 1, 2 * C, 2 * C + 1])
)
LONG = st.sampled_from([127 * C, 127 * C + 1, 128 * C, 128 * C + 1, 129 * C, 130 * C - 7])
HUGE = st.sampled_from([span(1), span(1) + 1, span(1) - C, span(2) + 5, span(2) - 1, 3 * span(2), FILE_BYTES_MAX]) | st.integers(
    1, FILE_BYTES_MAX
)


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with kept(tmp_path_factory.mktemp("kept")) as found:
        yield found


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Kept]:
    with kept(tmp_path) as found:
        yield found


def noise(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


def changed(old: bytes, numbers: set[int], size: int) -> tuple[bytes, dict[int, bytes]]:
    """Return the bytes after an edit, and its chunks."""
    data = bytearray(old[:size].ljust(size, b"\0"))
    changes = {number: noise(chunk_size(size, number), number + 1) for number in numbers if number < count_chunks(size)}
    for number, chunk in changes.items():
        data[number * C : number * C + len(chunk)] = chunk
    return bytes(data), changes


@given(SIZES, SIZES, st.sets(st.integers(0, 3)))
def test_an_edited_content_is_the_one_of_its_bytes(objects: Kept, before: int, after: int, numbers: set[int]) -> None:
    old = noise(before)
    data, changes = changed(old, numbers, after)

    content = edited(objects, write_stream(objects, [old]), changes, after)

    assert content == Content(after, independent_content.where(data))
    assert b"".join(read(objects, content)) == data


@settings(max_examples=25)
@given(LONG | SIZES, LONG, st.sets(st.integers(0, 3) | st.integers(125, 130)))
def test_so_is_one_of_several_nodes(objects: Kept, before: int, after: int, numbers: set[int]) -> None:
    for low, high in ((before, after), (after, before)):
        old = noise(low)
        data, changes = changed(old, numbers, high)

        content = edited(objects, write_stream(objects, [old]), changes, high)

        assert content == Content(high, independent_content.where(data))


@given(HUGE, HUGE, st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_the_order_of_edits_leaves_no_trace_at_any_size(objects: Kept, before: int, after: int, places: list[float]) -> None:
    numbers = {int(place * (count_chunks(after) - 1)) for place in places}
    changes = {number: noise(chunk_size(after, number), number) for number in numbers}

    at_once = edited(objects, edited(objects, EMPTY, {}, before), changes, after)
    one_by_one = edited(objects, EMPTY, {}, after)
    for number, chunk in sorted(changes.items(), reverse=True):
        one_by_one = edited(objects, one_by_one, {number: chunk}, after)
    grown = edited(objects, edited(objects, at_once, {}, min(after + before, FILE_BYTES_MAX)), {}, after)

    assert at_once == one_by_one == grown
    for number, chunk in changes.items():
        assert b"".join(read(objects, at_once, number * C, C)) == chunk
    check_content(objects, at_once)


def test_four_kib_inside_64_mib_cost_a_chunk_and_the_nodes_on_its_way(fresh: Kept) -> None:
    content = write_stream(fresh, (noise(C, number) for number in range(1024)))
    before = fresh.count()
    (chunk,) = read(fresh, content, 500 * C, C)

    other = edited(fresh, content, {500: b"x" * 4096 + chunk[4096:]}, content.size)

    assert fresh.count() - before == {ObjectKind.CHUNK: 1, ObjectKind.FILE: 2}
    assert edited(fresh, other, {500: chunk}, content.size) == content


def test_an_append_costs_the_last_chunk_and_the_nodes_on_its_way(fresh: Kept) -> None:
    content = write_stream(fresh, [noise(300 * C + 100)])
    before = fresh.count()

    longer = edited(fresh, content, {300: noise(200)}, 300 * C + 200)
    shorter = edited(fresh, content, {}, 299 * C + 5)

    assert fresh.count() - before == {ObjectKind.CHUNK: 2, ObjectKind.FILE: 4}
    check_content(fresh, longer)
    check_content(fresh, shorter)


def test_a_hole_of_any_length_is_a_few_objects(fresh: Kept) -> None:
    before = fresh.count()

    edited(fresh, EMPTY, {}, FILE_BYTES_MAX)

    assert fresh.count() - before == {ObjectKind.CHUNK: 1, ObjectKind.FILE: 4}


def test_what_is_damaged_on_the_way_is_refused_and_nothing_is_written(fresh: Kept) -> None:
    content = write_stream(fresh, [noise(130 * C)])
    other = Content(content.size + C, content.where)
    before = fresh.count()

    with pytest.raises(Damaged) as raised:
        edited(fresh, other, {5: noise(C)}, other.size)
    assert raised.value.details["rule"] == "content"

    fresh.lose(content.where)
    with pytest.raises(Damaged):
        edited(fresh, content, {5: noise(C)}, content.size)
    with pytest.raises(Damaged):
        edited(fresh, Content(5, b"longer than it says"), {}, 10)
    assert before - fresh.count() == {ObjectKind.FILE: 1}


@pytest.mark.parametrize("changes", [{1: b"x"}, {0: b"xx"}, {0: b""}, {-1: b"x"}])
def test_a_chunk_that_the_edited_file_has_no_place_for_is_our_mistake(fresh: Kept, changes: dict[int, bytes]) -> None:
    with pytest.raises(AssertionError):
        edited(fresh, EMPTY, changes, 1)
