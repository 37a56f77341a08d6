"""Legal names are returned as they are; a wrong one is refused, and the refusal never repeats it."""

from __future__ import annotations

import enum
from collections.abc import Callable
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.schema.errors import Refused
from freehold.schema.ids import (
    EventId,
    check_name,
    check_project,
    check_request_id,
    check_run_id,
    check_stop_code,
    event_id_text,
    uuid7,
)

CHECKS: list[tuple[Callable[[object], str], str, int, int]] = [
    (check_name, "bad_name", 1, 256),
    (check_request_id, "bad_request_id", 1, 128),
    (check_project, "bad_option", 0, 256),
    (check_stop_code, "bad_option", 1, 64),
]


class Colour(str, enum.Enum):  # noqa: UP042 - its str() is not its text, which is the point
    """Text that says something else of itself."""

    RED = "red"


class Liar(str):
    """Text whose str() leads elsewhere."""

    __slots__ = ()

    def __str__(self) -> str:
        return "../../SECRET"


@pytest.mark.parametrize("run_id", ["a", "Z", "0", "a.b_c-D.9", "a" * 128, "a..b", "nightly.2026-01-02", "a.sqlite", "1-wal"])
def test_a_legal_run_id_is_returned(run_id: str) -> None:
    assert check_run_id(run_id) == run_id


@pytest.mark.parametrize(
    "run_id",
    ["", ".a", "-a", "_a", "a" * 129, "a/b", "../a", "a b", "a\n", "a\x00", "é", "a٣", "\ud800", "a:b", "a\\b", b"a", 7, None, ["a"]],
)
def test_an_illegal_run_id_is_refused(run_id: object) -> None:
    with pytest.raises(Refused) as raised:
        check_run_id(run_id)

    assert raised.value.code == "bad_run_id"


@pytest.mark.parametrize(("check", "code", "least", "most"), CHECKS)
def test_text_is_taken_within_its_bounds_and_refused_outside(check: Callable[[object], str], code: str, least: int, most: int) -> None:
    for text in ("x" * least, "x" * most, "é" * most, "a b/c: ☃"):
        assert check(text) == text
    for wrong in ["x" * (most + 1), "a\x00", "a\n", "\x1f", "\x7f", "\ud800", "a\udfff", b"x", 1, None, *([""] if least else [])]:
        with pytest.raises(Refused) as raised:
            check(wrong)
        assert raised.value.code == code


@pytest.mark.parametrize("check", [check_run_id, *(check for check, *_ in CHECKS)])
def test_a_refusal_never_repeats_the_text(check: Callable[[object], str]) -> None:
    with pytest.raises(Refused) as raised:
        check("SECRET\n" * 60)

    assert "SECRET" not in f"{raised.value!r} {raised.value} {raised.value.details}"


@pytest.mark.parametrize("check", [check_run_id, *(check for check, *_ in CHECKS)])
def test_text_that_says_otherwise_of_itself_is_taken_by_its_characters(check: Callable[[object], str]) -> None:
    for text, right in ((Colour.RED, "red"), (Liar("fine"), "fine")):
        found = check(text)
        assert (found, type(found)) == (right, str)


@given(ms=st.integers(0, 2**48 - 1), random=st.binary(min_size=10, max_size=10))
def test_an_event_id_is_a_uuid_of_version_7_with_its_time_and_74_random_bits(ms: int, random: bytes) -> None:
    raw = uuid7(ms, random)
    found = UUID(bytes=raw)

    assert (len(raw), found.version, found.variant) == (16, 7, RFC_4122)
    assert int.from_bytes(raw[:6], "big") == ms
    kept = (raw[6] & 0x0F, raw[7], raw[8] & 0x3F, raw[9:])
    assert kept == (random[0] & 0x0F, random[1], random[2] & 0x3F, random[3:])


def test_ids_of_later_milliseconds_sort_later() -> None:
    ids = [uuid7(ms, bytes([255 - ms % 256]) * 10) for ms in range(0, 2**40, 2**33 + 1)]

    assert ids == sorted(ids)


@given(st.binary(min_size=16, max_size=16))
def test_an_event_ids_text_is_that_of_its_uuid(raw: bytes) -> None:
    text = event_id_text(raw)

    assert (text, type(text)) == (str(UUID(bytes=raw)), EventId)
