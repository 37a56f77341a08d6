"""Hashes are what the format says, field by field: a second implementation, written from the description alone, agrees."""

from __future__ import annotations

import hashlib
import struct
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.schema.hashes import NO_HASH, ObjectKind, event_hash, object_hash, request_digest

ID = bytes(range(16))
ROOT = bytes(range(32))
VALUE = bytes(range(100, 132))
FIELDS = ("seq", "id", "kind", "name", "execution", "position", "phase", "attempt", "record", "value", "root", "time")
FULL = (7, ID, "note", "paid", 3, "step", 2, 1, '{"a":1}', VALUE, ROOT, 1_700_000_000_123)
BARE = (1, ID, "created", None, None, None, None, None, "{}", None, ROOT, 0)


def hashed(previous: bytes, *fields: Any) -> bytes:
    return event_hash(previous, *fields)


def described(previous: bytes, fields: tuple[Any, ...]) -> bytes:
    """Return the hash by the description: a tag, the previous hash, then each field with its length in front."""
    text = b"freehold/event\x00\x01" + previous
    for field in fields:
        if field is None:
            text += b"\xff\xff\xff\xff\xff\xff\xff\xff"
            continue
        raw = struct.pack(">Q", field) if isinstance(field, int) else field.encode() if isinstance(field, str) else field
        text += struct.pack(">Q", len(raw)) + raw
    return hashlib.sha256(text).digest()


def test_nothing_is_32_zero_bytes() -> None:
    assert bytes.fromhex("00" * 32) == NO_HASH


@pytest.mark.parametrize(
    ("fields", "previous", "golden"),
    [
        (BARE, bytes(32), "2b5eef87c20eda45ffa9456e41af56bf030d2bd039c485540d86445908fe6b4d"),
        (FULL, b"\xaa" * 32, "72d9e994ef6600f7f29299033300ef3d5322f3d9adbc4482a1630c83e6e09283"),
    ],
)
def test_golden_event_hashes_stay_as_they_are(fields: tuple[Any, ...], previous: bytes, golden: str) -> None:
    assert hashed(previous, *fields).hex() == golden
    assert described(previous, fields).hex() == golden


@given(
    previous=st.binary(min_size=32, max_size=32),
    seq=st.integers(1, 2**63 - 1),
    event_id=st.binary(min_size=16, max_size=16),
    kind=st.sampled_from(["created", "note", "began", "settled"]),
    name=st.none() | st.text(max_size=20),
    execution=st.none() | st.integers(1, 2**63 - 1),
    at=st.none() | st.tuples(st.text(max_size=20), st.integers(0, 2), st.integers(1, 2**63 - 1)),
    record=st.text(max_size=50),
    value=st.none() | st.binary(min_size=32, max_size=32),
    root=st.binary(min_size=32, max_size=32),
    time=st.integers(0, 2**63 - 1),
)
def test_a_second_implementation_agrees(
    previous: bytes,
    seq: int,
    event_id: bytes,
    kind: str,
    name: str | None,
    execution: int | None,
    at: tuple[str, int, int] | None,
    record: str,
    value: bytes | None,
    root: bytes,
    time: int,
) -> None:
    fields = (seq, event_id, kind, name, execution, *(at or (None, None, None)), record, value, root, time)

    assert hashed(previous, *fields) == described(previous, fields)


OTHERS: dict[str, Any] = {
    "seq": 8,
    "id": bytes(16),
    "kind": "began",
    "name": "paie",
    "execution": 4,
    "position": "steq",
    "phase": 1,
    "attempt": 2,
    "record": '{"a":2}',
    "value": bytes(32),
    "root": bytes(32),
    "time": 1_700_000_000_124,
}


@pytest.mark.parametrize("field", FIELDS)
def test_each_fields_change_changes_the_hash(field: str) -> None:
    changed = tuple(OTHERS[name] if name == field else value for name, value in zip(FIELDS, FULL, strict=True))

    assert hashed(NO_HASH, *changed) != hashed(NO_HASH, *FULL)


def test_the_previous_hash_changes_the_hash() -> None:
    assert hashed(bytes(31) + b"\x01", *FULL) != hashed(bytes(32), *FULL)


def test_every_absent_field_differs_from_every_other_shape() -> None:
    shapes = []
    for name in (None, "", "0", "\xff" * 8):
        for execution in (None, 1):
            for at in ((None, None, None), ("", 0, 1), ("p", 0, 1)):
                for value in (None, VALUE):
                    shapes.append(hashed(NO_HASH, 2, ID, "note", name, execution, *at, "", value, ROOT, 0))  # noqa: PERF401

    assert all(one != other for one, other in combinations(shapes, 2))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("no", "tename"), ("note", "name")),
        (("note", ""), ("", "note")),
        (("note", "a\x00"), ("note\x00", "a")),
    ],
)
def test_a_byte_that_crosses_from_one_field_to_the_next_changes_the_hash(one: tuple[str, str], other: tuple[str, str]) -> None:
    hashes = {hashed(NO_HASH, 2, ID, kind, name, None, None, None, None, "{}", None, ROOT, 0) for kind, name in (one, other)}

    assert len(hashes) == 2


def test_text_is_hashed_as_utf_8() -> None:
    fields = (*FULL[:3], "naïve ☃ 🙂", *FULL[4:])

    assert hashed(NO_HASH, *fields) == described(NO_HASH, fields)


@pytest.mark.parametrize(
    ("kind", "number", "tag"),
    [
        (ObjectKind.CHUNK, 0, b"freehold/chunk\x00"),
        (ObjectKind.TREE, 1, b"freehold/tree\x00"),
        (ObjectKind.FILE, 2, b"freehold/file\x00"),
        (ObjectKind.ROOT, 3, b"freehold/root\x00"),
        (ObjectKind.VALUE, 4, b"freehold/value\x00"),
    ],
)
def test_an_object_is_named_by_its_kinds_tag_and_its_bytes(kind: ObjectKind, number: int, tag: bytes) -> None:
    assert int(kind) == number
    assert object_hash(kind, b"bytes") == hashlib.sha256(tag + b"bytes").digest()


def test_the_same_bytes_under_two_kinds_are_two_objects() -> None:
    assert len({object_hash(kind, b"bytes") for kind in ObjectKind}) == len(ObjectKind)


def test_a_requests_digest_tells_its_parts_apart() -> None:
    raw = b"freehold/request\x00" + b"".join(struct.pack(">Q", len(part)) + part for part in (b"append", b"a", b"\xc3\xa9"))

    assert request_digest("append", "a", "é") == hashlib.sha256(raw).digest()
    digests = [request_digest(*parts) for parts in (("append", "ab", ""), ("append", "a", "b"), ("append", "", "ab"), ("append", "ab"))]
    assert len(set(digests)) == len(digests)
