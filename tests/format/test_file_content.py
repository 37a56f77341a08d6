"""What docs/FORMAT.md says of a file's content is what the code does: bounds, levels and golden vectors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import independent_content
import pytest
from independent_hashes import object_hash
from kept import Kept, kept

from freehold.schema.hashes import ObjectKind
from freehold.schema.index import decode_index, top_level
from freehold.schema.limits import CHUNK_BYTES, FILE_BYTES_MAX, INDEX_FAN_OUT, INDEX_LEVELS_MAX, INLINE_BYTES_MAX
from freehold.storage.content import write_stream

PAGE = (Path(__file__).parents[2] / "docs" / "FORMAT.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("### File content\n")[2].partition("\n## ")[0].partition("\n### ")[0]
VECTORS = re.findall(r"^\| (none|`abcde`|chunks? [\w ]+?) \| (\d+) \| `?([0-9a-f]*)`? ?\|$", SECTION, re.MULTILINE)
LETTERS = b"abcde"


@pytest.fixture
def objects(tmp_path: Path) -> Iterator[Kept]:
    with kept(tmp_path) as found:
        yield found


def pattern(size: int) -> bytes:
    """Return bytes of which each is the number of its chunk, or the letters."""
    return (
        LETTERS[:size] if size <= len(LETTERS) else b"".join(bytes([at // 65536]) * min(65536, size - at) for at in range(0, size, 65536))
    )


@pytest.mark.parametrize(("size", "where"), [(int(size), where) for _, size, where in VECTORS])
def test_a_golden_vector_holds_in_both(objects: Kept, size: int, where: str) -> None:
    data = pattern(size)

    assert write_stream(objects, [data]).where.hex() == where
    assert independent_content.where(data).hex() == where


def test_the_page_has_a_vector_for_every_kind_of_content() -> None:
    sizes = [int(size) for _, size, _ in VECTORS]

    assert [size for size in sizes if size <= INLINE_BYTES_MAX] == [0, 5]
    assert [top_level(size) for size in sizes[2:]] == [-1, -1, 0, 0, 1]


def test_the_node_that_is_spelled_out_is_the_one_in_the_file(objects: Kept) -> None:
    (head,) = re.findall(r"is one node, `([0-9A-F ]+)`", SECTION)
    children = [object_hash("chunk", bytes(65536)), object_hash("chunk", b"\x01")]

    node = objects.get(write_stream(objects, [pattern(65537)]).where, ObjectKind.FILE)

    assert node == bytes.fromhex(head) + b"".join(b"\xc4\x20" + child for child in children)
    assert decode_index(node).children == tuple(children)
    assert VECTORS[3][2] == children[0].hex()


def test_the_bounds_are_the_codes_own() -> None:
    for text in (
        f"| 0 to {INLINE_BYTES_MAX} |",
        f"| {INLINE_BYTES_MAX + 1} to {CHUNK_BYTES:,} |",
        f"| {CHUNK_BYTES + 1:,} to {FILE_BYTES_MAX:,} |",
        f"at most {INDEX_FAN_OUT}, and",
        f"a chunk of {CHUNK_BYTES:,} bytes, a node of {INDEX_FAN_OUT} children",
        f"{INDEX_LEVELS_MAX - 1} at the highest",
    ):
        assert text in SECTION
