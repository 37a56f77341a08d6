"""A tree is written into an empty folder by descriptors: links last, modes at the end, and nothing outside is touched."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from folder import descriptors, snapshot
from trees import Shelf, as_tree, folder, link, tree

from freehold.schema.errors import Damaged
from freehold.storage.entries import Out
from freehold.storage.folders import open_top
from freehold.storage.writer import write_tree


@pytest.fixture
def top(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    (tmp_path / "top").mkdir()
    fd = open_top(str(tmp_path / "top"))
    before = descriptors()
    yield tmp_path / "top", fd
    assert descriptors() == before
    os.close(fd)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.mark.parametrize("more", [0, 100])
def test_a_tree_is_written_with_its_bytes_targets_and_modes(top: tuple[Path, int], shelf: Shelf, more: int) -> None:
    entries = [
        folder("a", 0o555),
        folder("a/closed", 0),
        shelf.file("a/closed/x", os.urandom(200_000), 0o400),
        link("a/up", "../.."),
        shelf.file("b", b"", 0),
        *(shelf.file(f"c{number:03}", b"x" * number) for number in range(more)),  # more than are synced one by one
    ]
    write_tree(top[1], entries, shelf.read, durable=True)

    assert tree(top[0]) == as_tree(entries, shelf)


@pytest.mark.parametrize("off", [-1, 1])
def test_content_that_is_not_as_long_as_its_entry_says_is_damage(top: tuple[Path, int], shelf: Shelf, off: int) -> None:
    out = shelf.file("f", b"content")

    with pytest.raises(Damaged) as raised:
        write_tree(top[1], [out._replace(size=out.size + off)], shelf.read, durable=True)
    assert raised.value.code == "malformed_record"


def test_a_link_that_was_swapped_for_a_folder_is_refused_and_nothing_outside_changes(
    top: tuple[Path, int], shelf: Shelf, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_bytes(b"important")
    before = snapshot(outside)
    entries = [folder("d"), shelf.file("d/one"), shelf.file("d/victim"), folder("e"), shelf.file("f")]

    def read(out: Out) -> Iterator[bytes]:
        if out.parts == ("d", "one"):
            (top[0] / "d").rename(tmp_path / "moved")
            (top[0] / "d").symlink_to(outside)
        yield from shelf.read(out)

    with pytest.raises(OSError, match="d") as raised:
        write_tree(top[1], entries, read, durable=True)
    assert (raised.value.errno, raised.value.filename) == (errno.ELOOP, "d")
    assert snapshot(outside) == before


def test_a_link_in_the_place_of_a_file_is_not_written_through(top: tuple[Path, int], shelf: Shelf, tmp_path: Path) -> None:
    (top[0] / "f").symlink_to(tmp_path / "victim")

    with pytest.raises(FileExistsError) as raised:
        write_tree(top[1], [shelf.file("f")], shelf.read, durable=True)
    assert raised.value.filename == "f"
    assert not (tmp_path / "victim").exists()
