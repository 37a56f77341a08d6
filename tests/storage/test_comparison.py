"""What a folder needs to hold given entries is found out without a write, and what stands in the way is refused by path."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest
from folder import descriptors, snapshot
from trees import Shelf, folder, link, plant

from freehold.schema.errors import PathRefused
from freehold.schema.skipped import Parts
from freehold.storage import platform
from freehold.storage.comparison import Change, Comparison, Plan
from freehold.storage.entries import Out
from freehold.storage.folders import open_folder, open_top
from freehold.storage.registry import REGISTRY


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def top(tmp_path: Path) -> Iterator[Path]:
    top = tmp_path / "top"
    top.mkdir()
    before = descriptors()
    yield top
    assert descriptors() == before


def compare(top: Path, entries: list[Out], shelf: Shelf, *, exact: bool, leave_alone: Collection[Parts] = ()) -> Plan:
    fd, before = open_top(str(top)), snapshot(top)
    try:
        return Comparison(entries, shelf.read, exact=exact, leave_alone=leave_alone, known=None).plan(fd)
    finally:
        os.close(fd)
        assert snapshot(top) == before


@pytest.mark.parametrize("exact", [False, True])
def test_a_folder_that_holds_the_entries_needs_nothing(top: Path, shelf: Shelf, exact: bool) -> None:
    entries = [folder("a", 0o700), shelf.file("a/x", bytes(200_000)), link("a/y", "x"), shelf.file("b", b"", 0o600)]
    plant(top, entries, shelf)

    assert compare(top, entries, shelf, exact=exact) == Plan(kept=4)


def test_what_differs_is_found_by_bytes_size_mode_and_target(top: Path, shelf: Shelf) -> None:
    same = b"x" * 100_000
    old = [folder("a"), shelf.file("b", same), shelf.file("c", b"abc"), shelf.file("d"), link("e", "x"), shelf.file("f", same)]
    new = [folder("a", 0o700), shelf.file("b", same[1:] + b"y"), shelf.file("c"), shelf.file("d", mode=0o755), link("e", "y"), old[5]]
    plant(top, old, shelf)
    plan = compare(top, new, shelf, exact=False)

    assert plan.files == [Change(out, replaces=True) for out in new[1:4]]
    assert plan.links == [Change(new[4], replaces=True)]
    assert (plan.modes, plan.kept) == ({("a",): 0o700}, 1)


def test_extras_are_removed_only_for_an_exact_folder_and_never_what_is_left_alone(top: Path, shelf: Shelf) -> None:
    plant(
        top, [folder("d"), shelf.file("d/keep"), shelf.file("d/x"), folder("e"), folder("e/f"), shelf.file("e/f/x"), link("l", "d")], shelf
    )
    os.mkfifo(top / "d" / "fifo")

    assert compare(top, [folder("d")], shelf, exact=False).remove == []
    assert compare(top, [folder("d")], shelf, exact=True).remove == [("d", "fifo"), ("d", "keep"), ("d", "x"), ("e",), ("l",)]
    plan = compare(top, [folder("d"), shelf.file("d/x", b"new")], shelf, exact=True, leave_alone=[("d", "fifo"), ("d", "x"), ("e", "f")])
    assert plan.remove == [("d", "keep"), ("l",)]
    assert plan.left_alone == [("d", "x"), ("d", "fifo"), ("e", "f")]
    assert plan.files == []


STANDING: dict[str, Callable[[Path, Path], object]] = {
    "file": lambda path, outside: path.write_bytes(b"mine"),
    "folder": lambda path, outside: (path / "inner").mkdir(parents=True),
    "link": lambda path, outside: path.symlink_to(outside),
    "fifo": lambda path, outside: os.mkfifo(path),
}


@pytest.mark.parametrize(
    ("standing", "wanted", "number"),
    [
        ("link", "file", errno.ELOOP),
        ("link", "directory", errno.ELOOP),
        ("folder", "file", errno.EISDIR),
        ("folder", "link", errno.EISDIR),
        ("fifo", "file", errno.EEXIST),
        ("fifo", "directory", errno.EEXIST),
        ("fifo", "link", errno.EEXIST),
        ("file", "directory", None),
        ("file", "link", None),
    ],
)
def test_what_is_of_another_kind_is_refused_with_its_path_or_goes(
    top: Path, shelf: Shelf, tmp_path: Path, standing: str, wanted: str, number: int | None
) -> None:
    (tmp_path / "outside").mkdir()
    (top / "d").mkdir()
    STANDING[standing](top / "d" / "x", tmp_path / "outside")
    entries = [folder("d"), {"file": shelf.file("d/x"), "directory": folder("d/x"), "link": link("d/x", "y")}[wanted]]

    if number is not None:
        with pytest.raises(OSError, match="d/x") as raised:
            compare(top, entries, shelf, exact=False)
        assert (raised.value.errno, raised.value.filename) == (number, "d/x")
    for exact in {True, number is not None}:
        plan = compare(top, entries, shelf, exact=exact)
        removed = wanted == "directory" or standing == "folder"
        assert plan.remove == [("d", "x")] * removed
        assert [*plan.files, *plan.links] == [Change(entries[1], replaces=not removed)] * (wanted != "directory")
        assert plan.folders == [entries[1]] * (wanted == "directory")


def test_a_folder_that_holds_something_to_be_left_alone_does_not_become_a_file(top: Path, shelf: Shelf) -> None:
    plant(top, [folder("a"), shelf.file("a/x")], shelf)

    with pytest.raises(OSError, match="a") as raised:
        compare(top, [shelf.file("a")], shelf, exact=True, leave_alone=[("a", "x")])
    assert raised.value.errno == errno.ENOTEMPTY


@pytest.mark.parametrize("entries", [[], [folder("runs")], [folder("runs"), Out(("runs", "r.sqlite"), "file")]])
def test_a_run_file_that_this_process_has_open_is_neither_removed_nor_replaced(top: Path, shelf: Shelf, entries: list[Out]) -> None:
    (top / "runs").mkdir()
    (top / "runs" / "r.sqlite").touch()
    inode = platform.inode_of((top / "runs" / "r.sqlite").stat())
    REGISTRY.own(inode, "somebody")
    try:
        with pytest.raises(OSError, match=r"runs/r\.sqlite") as raised:
            compare(top, entries, shelf, exact=True)
        assert raised.value.errno == errno.EBUSY
    finally:
        REGISTRY.release(inode)
    compare(top, entries, shelf, exact=True)


def test_two_entries_that_are_one_file_there_are_refused(top: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [shelf.file("README"), shelf.file("readme")]
    (top / "README").write_bytes(b"content")
    real = os.stat

    def folding(name: bytes, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        return real(name.replace(b"readme", b"README"), dir_fd=dir_fd, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(os, "stat", folding)
    fd = open_top(str(top))
    with pytest.raises(PathRefused, match="one name"):
        Comparison(entries, shelf.read, exact=False, leave_alone=(), known=None).plan(fd)
    os.close(fd)


def test_two_hard_links_are_two_files(top: Path, shelf: Shelf) -> None:
    (top / "one").write_bytes(b"content")
    (top / "one").chmod(0o644)
    (top / "two").hardlink_to(top / "one")

    assert compare(top, [shelf.file("one"), shelf.file("two")], shelf, exact=True) == Plan(kept=2)


def test_a_tree_as_deep_as_a_path_may_be_is_compared(top: Path, shelf: Shelf) -> None:
    fd = open_top(str(top))
    entries = [folder("/".join(["d"] * depth)) for depth in range(1, 257)]
    for _ in entries:
        os.mkdir("d", dir_fd=fd)
        os.chmod("d", 0o755, dir_fd=fd)
        inner = open_folder("d", fd)
        os.close(fd)
        fd = inner
    os.close(fd)
    fd = open_top(str(top))

    assert Comparison(entries, shelf.read, exact=True, leave_alone=(), known=None).plan(fd).kept == 256
    assert Comparison([], shelf.read, exact=True, leave_alone=(), known=None).plan(fd).remove == [("d",)]
    os.close(fd)
