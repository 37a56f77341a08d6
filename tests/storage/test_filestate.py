"""What is written to an open file waits in memory up to a bound; what a truncation cut off never comes back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept import Kept, kept

from freehold.schema.hashes import ObjectKind
from freehold.schema.limits import CHUNK_BYTES, DIRTY_BYTES_MAX
from freehold.storage import filestate
from freehold.storage.content import EMPTY, Content, write_stream
from freehold.storage.filestate import FileState

C = CHUNK_BYTES


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


def whole(state: FileState) -> bytes:
    found = bytearray(state.size)
    assert state.read_into(0, memoryview(found)) == state.size
    return bytes(found)


def put(state: FileState, offset: int, data: bytes) -> None:
    state.write(offset, memoryview(data))


PLACES = st.integers(0, 300) | st.integers(0, 4 * C) | st.integers(0, 4).map(lambda number: number * C)
CALLS = st.lists(
    st.tuples(st.just("write"), PLACES, st.integers(0, 200) | st.integers(0, 3 * C))
    | st.tuples(st.sampled_from(["truncate", "keep"]), PLACES, st.just(0)),
    max_size=12,
)


@pytest.mark.parametrize("bound", [1, 2, DIRTY_BYTES_MAX // C])
@given(before=st.none() | PLACES, calls=CALLS)
def test_a_state_is_its_bytes_whatever_was_done_to_it(
    objects: Kept, bound: int, before: int | None, calls: list[tuple[str, int, int]]
) -> None:
    twin = bytearray(noise(before or 0, 99))
    state = FileState(objects, None if before is None else write_stream(objects, [bytes(twin)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filestate, "_DIRTY_CHUNKS_MAX", bound)
        for seed, (call, place, length) in enumerate(calls):
            if call == "write" and length:
                twin.extend(bytes(max(0, place - len(twin))))
                twin[place : place + length] = noise(length, seed)
                put(state, place, noise(length, seed))
            elif call == "write":
                put(state, place, b"")
            elif call == "truncate":
                del twin[place:]
                twin.extend(bytes(place - len(twin)))
                state.truncate(place)
            else:
                state.content()
            assert whole(state) == bytes(twin)

        assert state.content() == write_stream(objects, [bytes(twin)])
        assert whole(state) == bytes(twin)


def test_no_write_is_an_object_before_the_bound_is_reached(fresh: Kept) -> None:
    state = FileState(fresh, write_stream(fresh, [noise(100 * C)]))
    before = fresh.count()

    for number in range(1000):
        put(state, number * 4000, b"some bytes")
    state.truncate(60 * C + 5)
    state.truncate(99 * C)
    assert fresh.count() == before

    for number in range(64):
        put(state, number * C, b"some bytes")
    assert fresh.count() != before


def test_what_waits_in_memory_stays_below_the_bound(fresh: Kept) -> None:
    state = FileState(fresh, None)
    most = 0

    for number in range(200):
        put(state, number * (C - 1), noise(C - 1, number))
        most = max(most, sum(map(len, state._dirty.values())))
    put(state, 0, noise(150 * C))

    assert DIRTY_BYTES_MAX // 2 < most <= DIRTY_BYTES_MAX
    assert sum(map(len, state._dirty.values())) <= DIRTY_BYTES_MAX


def test_a_stream_of_writes_leaves_hardly_a_piece_that_nothing_names(fresh: Kept) -> None:
    state = FileState(fresh, None)
    before = fresh.count()

    for number in range(300):
        put(state, number * C, noise(C, number))
    state.content()

    made = fresh.count() - before
    assert made[ObjectKind.CHUNK] == 300
    assert made[ObjectKind.FILE] <= 12


def test_one_large_write_keeps_each_chunk_once(fresh: Kept) -> None:
    state = FileState(fresh, None)
    before = fresh.count()

    put(state, 0, noise(200 * C))
    state.content()

    assert (fresh.count() - before)[ObjectKind.CHUNK] == 200


def test_content_that_nothing_was_done_to_is_the_same_and_costs_nothing(fresh: Kept) -> None:
    content = write_stream(fresh, [noise(3 * C)])
    state = FileState(fresh, content)
    before = fresh.db.total_changes()

    whole(state)

    assert state.content() == content
    assert fresh.db.total_changes() == before


def test_a_file_cut_to_nothing_and_written_anew_reads_nothing_of_the_old(fresh: Kept) -> None:
    fresh.lose((content := write_stream(fresh, [noise(3 * C)])).where)
    state = FileState(fresh, content)

    state.truncate(0)
    put(state, C, b"new")

    assert whole(state) == bytes(C) + b"new"
    assert state.content() == write_stream(fresh, [bytes(C) + b"new"])


def test_a_write_refers_to_nothing_of_its_source(fresh: Kept) -> None:
    state, source = FileState(fresh, None), bytearray(2 * C)

    state.write(0, memoryview(source))
    source[:] = b"x" * len(source)
    source.clear()

    assert whole(state) == bytes(2 * C)


def test_what_was_taken_back_is_what_was_told_last(fresh: Kept) -> None:
    state = FileState(fresh, None)
    put(state, 0, b"told")
    state.tell(state.content())
    assert not state.is_new

    put(state, 2, b"untold")
    era = state.era
    state.take_back()

    assert whole(state) == b"told"
    assert era.taken_back
    assert not state.era.taken_back


def test_a_new_file_that_was_taken_back_is_empty_and_new(fresh: Kept) -> None:
    state = FileState(fresh, None)
    put(state, 0, noise(C))

    state.take_back()

    assert (state.is_new, state.size, state.content()) == (True, 0, EMPTY)
    assert FileState(fresh, Content(0, b"")).is_new is False
