"""What docs/FORMAT.md says of directories holds in the code and in a second implementation: bounds, rules, golden directories."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import independent_tree
import pytest
from counted import Folder, counted, folder, plain

from freehold.schema import limits
from freehold.schema.hashes import ObjectKind, cut
from freehold.schema.nodes import decode
from freehold.schema.paths import unportable
from freehold.storage.trees import build

PAGE = (Path(__file__).parents[2] / "docs" / "FORMAT.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## The workspace\n")[2].partition("\n## ")[0]
GOLDEN = dict(re.findall(r"^\| (empty|[\d,]+ files?|the folder below) \| `([0-9a-f]{64})` \|$", SECTION, re.MULTILINE))
NODES = dict(re.findall(r"^\| (the folder|`d`) \| `([0-9A-F ]+)` \|$", SECTION, re.MULTILINE))
FOLDER: Folder = {"a": b"\x68\x69", "d": {"e": {}, "f": b"\x78" * 128}, "l": "../a"}


def theirs(content: Any, put: independent_tree.Put) -> list[Any]:
    """Return the entries of a folder, as the second implementation makes them."""
    return [
        [2, name, what]
        if isinstance(what, str)
        else independent_tree.file(name, what)
        if isinstance(what, bytes)
        else independent_tree.directory(name, theirs(what, put), put)
        for name, what in content.items()
    ]


def test_the_page_has_golden_directories_of_every_shape() -> None:
    assert len(GOLDEN) >= 8
    assert {"empty", "64 files", "65 files", "the folder below"} <= GOLDEN.keys()
    assert NODES.keys() == {"the folder", "`d`"}


@pytest.mark.parametrize("what", [what for what in GOLDEN if what != "the folder below"])
def test_a_golden_directory_is_the_pages(what: str) -> None:
    count = 0 if what == "empty" else int(what.split(maxsplit=1)[0].replace(",", ""))
    names = [f"{number:05}" for number in range(count)]
    nodes: dict[bytes, bytes] = {}

    assert independent_tree.tree([independent_tree.file(name, b"") for name in names], nodes.__setitem__).hex() == GOLDEN[what]
    with counted() as objects:
        assert build(objects, map(plain, names)).hex() == GOLDEN[what]
        assert {piece.hash: piece.data for piece in objects.written} == nodes


def test_the_golden_folder_is_the_pages_to_the_byte() -> None:
    nodes: dict[bytes, bytes] = {}
    golden = [bytes.fromhex(text) for text in NODES.values()]

    assert independent_tree.tree(theirs(FOLDER, nodes.__setitem__), nodes.__setitem__).hex() == GOLDEN["the folder below"]
    with counted() as objects:
        assert folder(objects, FOLDER).hex() == GOLDEN["the folder below"]
        assert set(golden) <= {piece.data for piece in objects.written} == set(nodes.values())


@pytest.mark.parametrize(("count", "level"), [(65, 1), (3000, 2)])
def test_a_golden_directory_has_the_level_that_the_page_says(count: int, level: int) -> None:
    with counted() as objects:
        tree = build(objects, [plain(f"{number:05}") for number in range(count)])
        assert decode(objects.get(tree, ObjectKind.TREE)).level == level
    assert f"{count} of level {level}" in SECTION or f"Of {count} such files the top node is of level {level}" in SECTION


@pytest.mark.parametrize(
    "bound",
    [
        f"up to {limits.INLINE_BYTES_MAX} bytes the content itself, up to {limits.CHUNK_BYTES:,} the hash of its chunk",
        f"text of 1 to {limits.LINK_TARGET_BYTES_MAX} bytes without NUL",
        f"are at most {limits.TREE_BYTES_MAX:,}, a root's depth at most {limits.PATH_DEPTH_MAX}",
        f"text of 1 to {limits.ENTRY_NAME_BYTES_MAX} bytes",
        f"A path has at most {limits.PATH_DEPTH_MAX} names and {limits.PATH_BYTES_MAX} bytes",
        f"A level of at most {limits.LONE_NODE_ENTRIES_MAX} items is one node",
        f"whose draw is below {limits.CUT_BELOW:,} ",
        f"A node of more than {limits.NODE_ENTRIES_MAX} items is cut again",
        f"Level numbers are 0 to {limits.TREE_LEVELS_MAX - 1};",
        f"a node that is longer than {limits.NODE_BYTES_MAX:,} bytes",
        f"a directory deeper than {limits.PATH_DEPTH_MAX - 1}",
    ],
)
def test_a_bound_is_the_codes_own(bound: str) -> None:
    assert bound in SECTION


def test_the_draw_is_the_pages() -> None:
    for level, name in ((0, "a"), (1, "Grüße"), (15, "x" * 255)):
        assert cut(level, name) == independent_tree.draw(level, name)


def test_the_signs_and_devices_that_the_page_names_are_not_portable() -> None:
    paragraph = SECTION.partition("*Names* are")[2].partition("\n\n")[0]
    signs = [sign for sign in re.findall(r"`([^`]+)`", paragraph) if len(sign) == 1 and sign not in "/."]
    devices = re.findall(r"`([A-Z]{3,6}\d?\$?)`", paragraph)

    assert len(signs) >= 9
    assert all(unportable(f"a{sign}b") for sign in signs if sign not in "¹²³")
    assert len(devices) >= 10
    assert all(unportable(f"{device.lower()}.txt") for device in devices if device not in {"COM", "LPT"})
