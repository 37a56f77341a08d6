"""The same bytes are the same content, whichever way they were written; reading takes no more than asked for, and damage is found."""

from __future__ import annotations

import errno
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import independent_content
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept import Kept, kept

from freehold.schema.errors import Damaged
from freehold.schema.hashes import ObjectKind
from freehold.schema.index import CHUNK_LEVEL, IndexNode, decode_index, make_index, span
from freehold.schema.limits import CHUNK_BYTES, FILE_BYTES_MAX, INDEX_FAN_OUT, INLINE_BYTES_MAX
from freehold.storage.content import EMPTY, Content, Piece, check_content, pieces, read, write, write_stream
from freehold.storage.edit import edited

C = CHUNK_BYTES
EDGES = [0, 1, INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1, C - 1, C, C + 1, 2 * C, 127 * C + 1, 128 * C, 128 * C + 1, 130 * C + 5]


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with kept(tmp_path_factory.mktemp("kept")) as found:
        yield found


@pytest.fixture(scope="module")
def long(objects: Kept) -> tuple[bytes, Content]:
    data = noise(130 * C + 5)
    return data, write_stream(objects, [data])


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Kept]:
    with kept(tmp_path) as found:
        yield found


def noise(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.mark.parametrize("size", EDGES)
def test_what_was_written_is_read_back(objects: Kept, size: int) -> None:
    data = noise(size)

    content = write_stream(objects, [data])

    assert content == write(objects, data) == Content(size, independent_content.where(data))
    assert b"".join(read(objects, content)) == data
    check_content(objects, content)


@given(st.lists(st.integers(0, 3 * C)), st.integers(0, 9))
def test_how_a_stream_is_cut_leaves_no_trace(objects: Kept, sizes: list[int], seed: int) -> None:
    data = noise(min(sum(sizes), 5 * C), seed)
    cuts = [sum(sizes[:count]) for count in range(len(sizes) + 1)]

    content = write_stream(objects, (data[low:high] for low, high in zip(cuts, [*cuts[1:], len(data)], strict=True)))

    assert content == write_stream(objects, [data])


@given(st.integers(0, 131 * C), st.integers(0, 3 * C) | st.none())
def test_a_part_is_what_stands_there(objects: Kept, long: tuple[bytes, Content], offset: int, length: int | None) -> None:
    data, content = long

    found = list(read(objects, content, offset, length))

    assert b"".join(found) == data[offset : None if length is None else offset + length]
    assert all(0 < len(piece) <= C for piece in found)


def test_a_stream_is_written_and_read_in_bounded_memory(fresh: Kept) -> None:
    tracemalloc.start()
    try:
        content = write_stream(fresh, (number.to_bytes(2, "big") * (C // 2) for number in range(300)))
        sizes = [len(piece) for piece in read(fresh, content)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert sum(sizes) == content.size == 300 * C
    assert peak < 20 * C


def test_a_part_loads_the_chunks_that_it_stands_in_and_the_nodes_on_the_way(fresh: Kept) -> None:
    data = noise(130 * C)
    content = write_stream(fresh, [data])
    loaded: list[ObjectKind] = []
    get = fresh.get

    def counted(hash_: bytes, kind: ObjectKind) -> bytes:
        loaded.append(kind)
        return get(hash_, kind)

    fresh.get = counted  # type: ignore[method-assign]

    assert b"".join(read(fresh, content, 129 * C - 1, 2)) == data[129 * C - 1 : 129 * C + 1]
    assert loaded.count(ObjectKind.CHUNK) == 2
    assert loaded.count(ObjectKind.FILE) == 2


def test_a_small_file_takes_no_object(fresh: Kept) -> None:
    before = fresh.count()

    assert write_stream(fresh, [b"a", b"", b"b" * 127]) == Content(128, b"a" + b"b" * 127)
    assert write_stream(fresh, []) == write_stream(fresh, [b""]) == EMPTY
    assert fresh.count() == before


def test_a_stream_of_more_than_a_file_may_hold_is_refused(fresh: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.storage.content.FILE_BYTES_MAX", 2 * C)  # the true one would take days

    assert write_stream(fresh, [bytes(2 * C)]).size == 2 * C
    with pytest.raises(OSError, match="too large") as raised:
        write_stream(fresh, [bytes(2 * C), b"x"])
    assert raised.value.errno == errno.EFBIG


@pytest.mark.parametrize("size", EDGES)
def test_every_piece_is_named_once_and_a_node_before_what_it_names(fresh: Kept, size: int) -> None:
    before = fresh.count()
    content = write_stream(fresh, [noise(size)])

    named = list(pieces(fresh, content, set()))

    assert fresh.count() - before == {kind: count for kind in ObjectKind if (count := sum(piece.kind == kind for piece in named))}
    assert sum(piece.size for piece in named if piece.level == CHUNK_LEVEL) == (size if size > INLINE_BYTES_MAX else 0)
    known = {content.where}
    for piece in named:
        assert piece.hash in known
        if piece.kind == ObjectKind.FILE:
            known.update(decode_index(fresh.get(piece.hash, ObjectKind.FILE)).children)


def test_what_was_seen_is_not_named_again(fresh: Kept) -> None:
    data = noise(130 * C)
    seen: set[Piece] = set()
    first = list(pieces(fresh, write_stream(fresh, [data]), seen))

    again = list(pieces(fresh, write_stream(fresh, [data]), seen))
    other = list(pieces(fresh, edited(fresh, write_stream(fresh, [data]), {3: bytes(C)}, len(data)), seen))

    assert again == []
    assert [piece.level for piece in other] == [1, 0, CHUNK_LEVEL]
    assert seen == {*first, *other}


def test_a_hole_of_terabytes_is_looked_at_in_a_few_objects(fresh: Kept) -> None:
    content = edited(fresh, EMPTY, {}, FILE_BYTES_MAX)

    check_content(fresh, content)

    assert len(list(pieces(fresh, content, set()))) == 5


def fails(objects: Kept, content: Content, code: str) -> None:
    """Show that a forged content is refused, whether it is checked or read."""
    for act in (check_content, read)[: 2 if content.size else 1]:  # nothing is read of an empty one
        with pytest.raises(Damaged) as raised:
            list(act(objects, content) or ())
        assert raised.value.code == code
        if code == "damaged":
            assert raised.value.details["rule"] in ("content", "object")


SHORT, FULL = b"SECRET" * 50, bytes(C)


@pytest.mark.parametrize(
    "content",
    [
        Content(5, b"SECRET"),
        Content(7, b"SECRET"),
        Content(0, b"SECRET"),
        Content(128, bytes(32)),
        Content(len(SHORT) + 1, b"s"),
        Content(len(SHORT) - 1, b"s"),
        Content(C, b"s"),
        Content(C + 1, b"s"),
    ],
)
def test_a_content_whose_bytes_are_not_of_its_size_is_damaged(fresh: Kept, content: Content) -> None:
    if content.where == b"s":
        short = fresh.forge(ObjectKind.CHUNK, SHORT)
        content = Content(content.size, short)

    if content.size <= C:
        fails(fresh, content, "damaged")
    else:  # a chunk where an index must be
        fails(fresh, content, "malformed_record")


@pytest.mark.parametrize(
    "wrong", ["last is short", "first is short", "last is long", "level", "size", "one child", "kind", "lost", "lost node"]
)
def test_an_index_that_does_not_fit_is_damaged(fresh: Kept, wrong: str) -> None:
    full, short = fresh.forge(ObjectKind.CHUNK, FULL), fresh.forge(ObjectKind.CHUNK, SHORT)
    size = C + len(SHORT)
    good = fresh.forge(ObjectKind.FILE, make_index(0, size, [full, short]).data)
    check_content(fresh, Content(size, good))
    node, code = good, "damaged"
    match wrong:
        case "last is short":
            size = C + len(SHORT) + 1
            node = fresh.forge(ObjectKind.FILE, make_index(0, size, [full, short]).data)
        case "first is short":
            node = fresh.forge(ObjectKind.FILE, make_index(0, size, [short, short]).data)
        case "last is long":
            size = C + 1
            node = fresh.forge(ObjectKind.FILE, make_index(0, size, [full, short]).data)
        case "level":
            size = span(0) + C
            node = fresh.forge(ObjectKind.FILE, make_index(2, size, [good]).data)
        case "size":
            size += 1
        case "one child":
            size = C
            node = fresh.forge(ObjectKind.FILE, make_index(0, size, [full]).data)
            code = "malformed_record"  # one chunk must be there
        case "kind":
            node = fresh.forge(ObjectKind.FILE, make_index(0, size, [full, good]).data)
            code = "malformed_record"
        case "lost":
            fresh.lose(short)
        case _:
            fresh.lose(good)

    fails(fresh, Content(size, node), code)


def test_an_index_of_the_right_size_and_another_level_beneath_is_damaged(fresh: Kept) -> None:
    chunk = fresh.forge(ObjectKind.CHUNK, FULL)
    leaf = fresh.forge(ObjectKind.FILE, make_index(0, span(0), [chunk] * INDEX_FAN_OUT).data)
    inner = fresh.forge(ObjectKind.FILE, make_index(1, C, [chunk]).data)
    top = fresh.forge(ObjectKind.FILE, make_index(1, span(0) + C, [leaf, inner]).data)

    fails(fresh, Content(span(0) + C, top), "damaged")


def test_a_node_that_is_not_in_its_one_form_is_damaged(fresh: Kept) -> None:
    data = make_index(0, 2 * C, [fresh.forge(ObjectKind.CHUNK, FULL)] * 2).data
    node = fresh.forge(ObjectKind.FILE, b"\x93\xcc\x00" + data[2:])

    fails(fresh, Content(2 * C, node), "malformed_record")


def test_a_piece_seen_at_another_size_is_looked_at_all_the_same(fresh: Kept) -> None:
    full = fresh.forge(ObjectKind.CHUNK, FULL)
    top = fresh.forge(ObjectKind.FILE, make_index(0, 2 * C - 1, [full, full]).data)

    fails(fresh, Content(2 * C - 1, top), "damaged")


def test_a_content_does_not_show_the_bytes_that_stand_in_it() -> None:
    assert "SECRET" not in repr(Content(6, b"SECRET"))
    assert IndexNode(0, 1, (bytes(32),)).size == 1
