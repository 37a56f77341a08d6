"""An object is kept once, packed where that pays, and read back only if it is what its row says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import apsw
import pytest
import zstandard

from freehold.schema.ddl import statements
from freehold.schema.errors import Damaged
from freehold.schema.hashes import ObjectKind
from freehold.schema.limits import OBJECT_BYTES_MAX
from freehold.schema.roots import Object, make_object
from freehold.storage.objects import RAW, ZSTD, pack, put_object, unpack


@pytest.fixture
def db() -> Iterator[apsw.Connection]:
    db = apsw.Connection(":memory:")
    db.execute(statements())
    yield db
    db.close()


def stored(db: apsw.Connection, row_id: int) -> tuple[int, bytes, int]:
    found: tuple[int, bytes, int] = db.execute("SELECT codec, data, size FROM object WHERE id = ?", (row_id,)).get
    return found


@pytest.mark.parametrize("kind", ObjectKind)
@pytest.mark.parametrize("data", [b"", b"x", b"x" * 255, b"x" * 256, b"x" * 100_000, bytes(range(256)), os.urandom(5000)])
def test_what_is_put_is_read_back(db: apsw.Connection, kind: ObjectKind, data: bytes) -> None:
    row_id = put_object(db, make_object(kind, data))

    assert unpack(*stored(db, row_id)) == data
    assert db.execute("SELECT kind, size FROM object").get == (kind, len(data))


def test_putting_it_again_changes_nothing(db: apsw.Connection) -> None:
    piece, other = make_object(ObjectKind.VALUE, b"one" * 500), make_object(ObjectKind.VALUE, b"other")
    first = put_object(db, piece)
    second = put_object(db, other)
    changes = db.total_changes()

    assert (put_object(db, piece), put_object(db, other)) == (first, second)
    assert first != second
    assert (db.total_changes(), db.execute("SELECT count(*) FROM object").get) == (changes, 2)


def test_the_same_bytes_of_another_kind_are_another_object(db: apsw.Connection) -> None:
    rows = {put_object(db, make_object(kind, b"same")) for kind in ObjectKind}

    assert len(rows) == len(ObjectKind)


def test_a_row_that_holds_the_hash_under_another_kind_is_malformed(db: apsw.Connection) -> None:
    piece = make_object(ObjectKind.VALUE, b"SECRET")
    put_object(db, Object(piece.hash, ObjectKind.CHUNK, piece.data))
    with pytest.raises(Damaged) as raised:
        put_object(db, piece)

    assert (raised.value.code, raised.value.details["table"]) == ("malformed_record", "object")


@pytest.mark.parametrize(
    ("data", "codec"),
    [
        (b"x" * 255, RAW),
        (b"x" * 256, ZSTD),
        (b"x" * 100_000, ZSTD),
        (b"", RAW),
        (os.urandom(100_000), RAW),
    ],
)
def test_bytes_are_packed_where_that_saves_a_tenth(data: bytes, codec: int) -> None:
    found, kept = pack(data)

    assert found == codec
    assert len(kept) < len(data) * 0.9 if codec == ZSTD else kept == data


def test_packing_is_no_part_of_the_identity(db: apsw.Connection) -> None:
    piece = make_object(ObjectKind.VALUE, b"x" * 1000)
    db.execute("INSERT INTO object (hash, kind, size, codec, data) VALUES (?, ?, ?, ?, ?)", (piece.hash, piece.kind, 1000, RAW, piece.data))

    assert put_object(db, piece) == 1
    assert stored(db, 1)[0] == RAW


PLAIN = b"SECRET" * 100
PACKED = zstandard.ZstdCompressor(level=1).compress(PLAIN)
NO_SIZE = zstandard.ZstdCompressor(level=1, write_content_size=False).compress(PLAIN)
HUGE = zstandard.ZstdCompressor(level=1).compress(bytes(OBJECT_BYTES_MAX + 1))
SKIPPED = b"\x50\x2a\x4d\x18" + bytes(4)
"""A frame that every reader passes by: it holds nothing."""


@pytest.mark.parametrize(
    ("codec", "data", "size"),
    [
        (RAW, PLAIN, len(PLAIN) - 1),
        (RAW, PLAIN, len(PLAIN) + 1),
        (RAW, b"", 1),
        (ZSTD, PACKED, len(PLAIN) - 1),
        (ZSTD, PACKED, len(PLAIN) + 1),
        (ZSTD, PACKED[:-1], len(PLAIN)),
        (ZSTD, PACKED[:3], len(PLAIN)),
        (ZSTD, b"", 0),
        (ZSTD, b"", len(PLAIN)),
        (ZSTD, PLAIN, len(PLAIN)),
        (ZSTD, b"\x00" + PACKED[1:], len(PLAIN)),
        (ZSTD, PACKED[:10] + b"\xff\xff\xff" + PACKED[13:], len(PLAIN)),
        (ZSTD, NO_SIZE, len(PLAIN)),
        (ZSTD, PACKED + b"\x00", len(PLAIN)),
        (ZSTD, PACKED + PACKED, len(PLAIN)),
        (ZSTD, PACKED + zstandard.compress(b""), len(PLAIN)),
        (ZSTD, PACKED + SKIPPED, len(PLAIN)),
        (ZSTD, SKIPPED + PACKED, len(PLAIN)),
        (ZSTD, SKIPPED, 0),
        (ZSTD, HUGE, OBJECT_BYTES_MAX + 1),
        (ZSTD, PACKED, 2**40),
    ],
)
def test_what_is_not_what_its_row_says_is_malformed_and_not_shown(codec: int, data: bytes, size: int) -> None:
    with pytest.raises(Damaged) as raised:
        unpack(codec, data, size)

    assert raised.value.code == "malformed_record"
    assert "SECRET" not in f"{raised.value}{raised.value.details}{raised.value.__cause__}"


def test_a_forged_size_does_not_make_us_allocate_it() -> None:
    # The frame speaks of 2^40 bytes, the row does or does not; to take them at their word would end the process.
    forged = PACKED[:4] + bytes([PACKED[4] & 0b00111111 | 0b11000000]) + (2**40).to_bytes(8, "little") + PACKED[7:]
    assert zstandard.get_frame_parameters(forged).content_size == 2**40

    for size in (2**40, len(PLAIN)):
        with pytest.raises(Damaged):
            unpack(ZSTD, forged, size)


def test_any_number_of_threads_pack_and_unpack_at_once() -> None:
    texts = [f"{number} ".encode() * 400 for number in range(200)]

    def there_and_back(data: bytes) -> bytes:
        codec, packed = pack(data)
        assert codec == ZSTD
        return unpack(codec, packed, len(data))

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(there_and_back, texts)) == texts
