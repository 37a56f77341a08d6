"""A folder that its user may not enter stands open in the block, and has its mode again after it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from folder import descriptors, snapshot
from nobody import as_nobody, needs_another_user, nobodys_folder
from trees import Shelf, folder, plant

from freehold.storage.ajar import Ajar
from freehold.storage.folders import open_top


@pytest.fixture
def top_fd(tmp_path: Path) -> Iterator[int]:
    before = descriptors()
    fd = open_top(str(tmp_path))
    yield fd
    os.close(fd)
    assert descriptors() == before


def modes(top: Path) -> dict[str, int]:
    return {str(path.relative_to(top)): stat.S_IMODE(path.lstat().st_mode) for path in top.rglob("*")}


def test_what_is_opened_is_as_it_was_after_the_block_whatever_raises(tmp_path: Path, top_fd: int) -> None:
    plant(tmp_path, [folder("a", 0), folder("a/b", 0o1050)], Shelf())
    before = modes(tmp_path)
    with pytest.raises(ZeroDivisionError), Ajar(top_fd) as ajar:
        for parts in (("a",), ("a", "b"), ("a",)):
            ajar.open(parts)
        assert ajar.modes == {("a",): 0, ("a", "b"): 0o1050}
        assert modes(tmp_path) == {"a": 0o700, "a/b": 0o1750}
        raise ZeroDivisionError
    assert modes(tmp_path) == before


def test_what_is_to_have_another_mode_has_it_from_the_leaves_up(tmp_path: Path, top_fd: int) -> None:
    plant(tmp_path, [folder("a", 0o500), folder("a/b")], Shelf())
    with Ajar(top_fd) as ajar:
        ajar.open(("a",))
        ajar.leave(("a",), 0)
        ajar.leave(("a", "b"), 0o111)
        ajar.close(sync=True)
        assert modes(tmp_path) == {"a": 0, "a/b": 0o111}
    assert modes(tmp_path) == {"a": 0, "a/b": 0o111}


def test_what_can_be_entered_is_not_touched_and_what_is_not_there_is_passed_by(tmp_path: Path, top_fd: int) -> None:
    plant(tmp_path, [folder("a", 0o500), folder("a/b", 0o755)], Shelf())
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "file").touch()
    before = snapshot(tmp_path)
    with Ajar(top_fd) as ajar:
        ajar.open_all(folder(path) for path in ("a", "a/b", "a/c", "a/c/d", "file", "file/x", "link", "link/b", "z"))
        assert ajar.modes == {}
    assert snapshot(tmp_path) == before


def test_a_folder_that_somebody_took_away_meanwhile_is_no_matter(tmp_path: Path, top_fd: int) -> None:
    plant(tmp_path, [folder("a", 0o500), folder("b", 0o500)], Shelf())
    with Ajar(top_fd) as ajar:
        ajar.open(("a",))
        ajar.open(("b",))
        (tmp_path / "b").rmdir()
    assert modes(tmp_path) == {"a": 0o500}


@needs_another_user
def test_only_what_cannot_be_read_or_entered_is_opened_and_what_is_not_ours_is_left() -> None:
    program = """
from freehold.storage.ajar import Ajar
from freehold.storage.folders import open_top
entries = [folder("a", 0o100), folder("a/b", 0o400), folder("c", 0o500), folder("c/d", 0)]
plant(top, entries, shelf)
with Ajar(open_top(str(top))) as ajar:
    ajar.open_all([*entries, folder("theirs"), folder("theirs/x")])
    print({"/".join(parts): oct(mode) for parts, mode in ajar.modes.items()})
print(tree(top / "c"), oct((top / "a").stat().st_mode))
"""
    with nobodys_folder() as top:
        (top / "theirs" / "x").mkdir(parents=True)
        (top / "theirs").chmod(0o700)
        assert as_nobody(top, program).splitlines() == [
            "{'a': '0o100', 'a/b': '0o400', 'c/d': '0o0'}",
            "{'d': ('directory', 0, b'')} 0o40100",
        ]
