"""What the first 100 bytes tell, each with its own refusal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from runfile import new_run

from freehold.schema.errors import Error
from freehold.schema.version import APPLICATION_ID
from freehold.storage.header import HEADER_BYTES, PAGE_SIZE, check_header, check_header_beside_wal
from freehold.storage.path import RunPath

PATH = RunPath("/runs", "a")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return Path(new_run(tmp_path_factory.mktemp("runs")).file).read_bytes()


def with_bytes(at: int, new: bytes) -> Callable[[bytes], bytes]:
    return lambda whole: whole[:at] + new + whole[at + len(new) :]


def test_a_run_that_we_created_passes(whole: bytes) -> None:
    assert len(whole) % PAGE_SIZE == 0
    check_header(whole[:HEADER_BYTES], len(whole), PATH)
    check_header_beside_wal(whole[:HEADER_BYTES], len(whole), PATH)


@pytest.mark.parametrize(
    ("change", "code", "rule"),
    [
        (lambda _: b"", "damaged", "zero_length"),
        (lambda _: b"hello", "not_a_run", None),
        (lambda _: b"SQL?" + bytes(5000), "not_a_run", None),
        (lambda whole: whole[:10], "damaged", "truncated"),
        (lambda whole: whole[:99], "damaged", "truncated"),
        (lambda whole: whole[:100], "damaged", "truncated"),
        (lambda whole: whole[:PAGE_SIZE], "damaged", "truncated"),
        (lambda whole: whole[:-1], "damaged", "truncated"),
        (lambda whole: whole[:-PAGE_SIZE], "damaged", "truncated"),
        (lambda whole: whole + b"x", "damaged", "truncated"),
        (with_bytes(68, b"\0\0\0\0"), "not_a_run", None),
        (with_bytes(68, b"FRHH"), "not_a_run", None),
        (with_bytes(60, b"\0\0\0\0"), "partial", "user_version"),
        (with_bytes(60, b"\0\0\0\2"), "newer_version", None),
        (with_bytes(60, b"\xff\xff\xff\xff"), "newer_version", None),
        (with_bytes(16, b"\x20\x00"), "damaged", "page_size"),
        (with_bytes(16, b"\0\1"), "damaged", "page_size"),
        (with_bytes(20, b"\x20"), "damaged", "page_size"),
        (with_bytes(18, b"\1\1"), "damaged", "format"),
        (with_bytes(19, b"\3"), "damaged", "format"),
        (with_bytes(56, b"\0\0\0\2"), "damaged", "encoding"),
    ],
)
def test_each_fault_has_its_own_name(whole: bytes, change: Callable[[bytes], bytes], code: str, rule: str | None) -> None:
    changed = change(whole)
    with pytest.raises(Error) as raised:
        check_header(changed[:HEADER_BYTES], len(changed), PATH)

    assert (raised.value.code, raised.value.details.get("rule")) == (code, rule)
    assert "left unchanged" in str(raised.value)


def test_a_newer_version_is_named(whole: bytes) -> None:
    with pytest.raises(Error, match="version 7") as raised:
        check_header(with_bytes(60, b"\0\0\0\7")(whole)[:HEADER_BYTES], len(whole), PATH)

    assert raised.value.details == {"found": 7, "supported": 1}


def test_the_page_count_counts_only_if_the_last_change_wrote_it(whole: bytes) -> None:
    old = with_bytes(92, b"\0\0\0\0")(with_bytes(28, b"\0\1\0\0")(whole))
    check_header(old[:HEADER_BYTES], len(old), PATH)

    with pytest.raises(Error, match="shorter"):
        check_header(with_bytes(28, b"\0\1\0\0")(whole)[:HEADER_BYTES], len(whole), PATH)


@pytest.mark.parametrize(
    ("change", "code", "rule"),
    [
        (lambda _: b"", "damaged", "zero_length"),
        (lambda _: b"hello" * 1000, "not_a_run", None),
        (with_bytes(0, b"s"), "not_a_run", None),
        (lambda whole: whole[:512], "damaged", "truncated"),
        (with_bytes(18, b"\1\1"), "damaged", "format"),
        (lambda whole: with_bytes(18, b"\1\1")(with_bytes(68, b"ABCD")(whole)), "not_a_run", None),
    ],
)
def test_beside_a_wal_only_what_never_changes_is_looked_at(
    whole: bytes, change: Callable[[bytes], bytes], code: str, rule: str | None
) -> None:
    changed = change(whole)
    with pytest.raises(Error) as raised:
        check_header_beside_wal(changed[:HEADER_BYTES], len(changed), PATH)
    assert (raised.value.code, raised.value.details.get("rule")) == (code, rule)

    # The newest first page may stand in the -wal.
    check_header_beside_wal(with_bytes(60, bytes(12))(whole)[:HEADER_BYTES], len(whole), PATH)
    assert APPLICATION_ID.to_bytes(4, "big") == b"FRHD"
