"""Many files in few looks, and a file no more than a portion at a time."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import freehold
from freehold.files import Files
from freehold.listing import Listed, listing, portions
from freehold.schema.limits import PORTION_BYTES

CONTENT = os.urandom(PORTION_BYTES) + b"end"


def fill(files: Files) -> None:
    files.mkdir("d/e", parents=True)
    files.write_bytes("d/large", CONTENT)
    files.write_text("d/e/small", "x")
    files.write_text("a", "")
    files.write_bytes("even", CONTENT[:PORTION_BYTES])
    files.symlink("z", "d")


def test_a_listing_says_what_every_look_by_itself_says(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as host, host.create("a") as run:
        run.publish("fill", fill)
        files = run.snapshot()

        found = listing(files, ".", recursive=True)

        assert [item.path for item in found] == ["a", "d", "d/e", "d/e/small", "d/large", "even", "z"]
        for item in found:
            target = files.readlink(item.path) if stat.S_ISLNK(item.stat.st_mode) else None
            assert item == Listed(item.path, files.stat(item.path, follow_symlinks=False), target)
        assert [item.path for item in listing(files, ".")] == list(files.iterdir())
        assert [item.path for item in listing(files, "d/large")] == ["d/large"]


def test_portions_are_the_content_and_none_is_larger_than_it_may_be(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as host, host.create("a") as run:
        run.publish("fill", fill)
    files = freehold.view(tmp_path / "a.sqlite").snapshot()

    assert [len(portion) for portion in portions(files, "d/large")] == [PORTION_BYTES, 3]
    assert b"".join(portions(files, "z/large")) == CONTENT
    assert [len(portion) for portion in portions(files, "even")] == [PORTION_BYTES]
    assert list(portions(files, "a")) == []


def test_of_what_is_not_there_it_is_python_s_own_error(tmp_path: Path) -> None:
    files = freehold.view(tmp_path / "none.sqlite").snapshot()

    assert listing(files, ".") == []
    with pytest.raises(FileNotFoundError):
        listing(files, "a")
    with pytest.raises(IsADirectoryError):
        list(portions(files, "."))
