"""A folder that holds something is changed name by name: whole files only, never through a link, nothing outside."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from folder import descriptors, snapshot
from nobody import as_nobody, needs_another_user, nobodys_folder
from trees import Shelf, as_tree, folder, link, names, plant, stagings, tree

from freehold.schema.limits import SYNC_EACH_ENTRIES_MAX
from freehold.storage.checkout import checkout
from freehold.storage.clock import Clock
from freehold.storage.entries import Out
from freehold.storage.inplace import CheckedOut
from freehold.storage.statcache import StatCache


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def top(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "victim").write_bytes(b"important")
    outside = snapshot(tmp_path / "outside")
    before = descriptors()
    yield tmp_path / "top"
    assert descriptors() == before
    assert snapshot(tmp_path / "outside") == outside
    assert stagings(tmp_path) == stagings(tmp_path / "top") == []


def old(shelf: Shelf) -> list[Out]:
    return [folder("d"), shelf.file("d/same", b"same"), shelf.file("d/x", b"old"), link("l", "d"), shelf.file("mine", b"mine")]


def test_changed_replaces_what_differs_and_keeps_what_is_not_an_entry(top: Path, shelf: Shelf) -> None:
    plant(top, old(shelf), shelf)
    same = snapshot(top)["d/same"]
    new = [
        folder("d", 0o700),
        folder("d/new"),
        shelf.file("d/new/y"),
        shelf.file("d/same", b"same"),
        shelf.file("d/x", b"new"),
        link("l", "x"),
    ]

    assert checkout(str(top), new, shelf.read, replace="changed") == CheckedOut(written=5, kept=1)
    assert tree(top) == as_tree([*new, *old(shelf)[4:]], shelf)
    assert snapshot(top)["d/same"] == same


@pytest.mark.parametrize("more", [0, SYNC_EACH_ENTRIES_MAX])
def test_always_makes_the_folder_exactly_the_entries_but_for_what_is_left_alone(top: Path, shelf: Shelf, more: int) -> None:
    plant(top, old(shelf), shelf)
    os.mkfifo(top / "d" / "fifo")
    (top / "d" / "x").unlink()
    (top / "d" / "x").mkdir()
    new = [folder("d"), shelf.file("d/x", b"new"), folder("l"), shelf.file("l/x"), *(shelf.file(f"m{number:02}") for number in range(more))]

    done = checkout(str(top), new, shelf.read, replace="always", leave_alone=[("d", "fifo")])
    assert (done.written, done.removed, done.left_alone) == (3 + more, 4, (("d", "fifo"),))
    assert tree(top).pop("d/fifo")[0] == "special"
    assert {path: what for path, what in tree(top).items() if path != "d/fifo"} == as_tree(new, shelf)


def test_the_other_names_and_the_open_readers_of_a_replaced_file_keep_what_they_had(top: Path, shelf: Shelf, tmp_path: Path) -> None:
    plant(top, old(shelf), shelf)
    (tmp_path / "other").hardlink_to(top / "d" / "x")
    with (top / "d" / "x").open("rb") as reader:
        checkout(str(top), [folder("d"), shelf.file("d/x", b"new", 0o600)], shelf.read, replace="changed")
        assert reader.read() == b"old"

    assert (tmp_path / "other").read_bytes() == b"old"
    assert (tmp_path / "other").stat().st_mode & 0o777 == 0o644
    assert (top / "d" / "x").read_bytes() == b"new"


def swapping(shelf: Shelf, at: str, swap: Callable[[], object]) -> Callable[[Out], Iterator[bytes]]:
    """Return a reader that does something once, when it comes to the file *at*: after the comparison, before the first rename."""

    def read(out: Out) -> Iterator[bytes]:
        if "/".join(out.parts) == at:
            swap()
        yield from shelf.read(out)

    return read


def test_a_link_that_is_planted_between_check_and_write_is_not_written_through(top: Path, shelf: Shelf, tmp_path: Path) -> None:
    plant(top, [*old(shelf)[:3], shelf.file("e", b"old")], shelf)

    def swap() -> None:
        (top / "d").rename(tmp_path / "moved")
        (top / "d").symlink_to(tmp_path / "outside")

    entries = [folder("d"), shelf.file("d/victim", b"new"), shelf.file("d/x", b"newer"), shelf.file("e", b"newest")]
    for replace in ("changed", "always"):
        with pytest.raises(OSError, match="d") as raised:
            checkout(str(top), entries, swapping(shelf, "d/victim", swap), replace=replace)
        assert (raised.value.errno, raised.value.filename) == (errno.ELOOP, "d")
        assert tree(tmp_path / "moved") == {"same": ("file", 0o644, b"same"), "x": ("file", 0o644, b"old")}
        assert (top / "e").read_bytes() == b"old"
        (top / "d").unlink()
        (tmp_path / "moved").rename(top / "d")


@pytest.mark.parametrize("swap", ["link", "file"])
def test_what_appears_between_check_and_write_at_a_new_name_is_not_replaced(top: Path, shelf: Shelf, tmp_path: Path, swap: str) -> None:
    plant(top, old(shelf), shelf)
    make = {"link": lambda: (top / "new").symlink_to(tmp_path / "outside" / "victim"), "file": lambda: (top / "new").write_bytes(b"theirs")}

    with pytest.raises(FileExistsError) as raised:
        checkout(str(top), [shelf.file("new")], swapping(shelf, "new", make[swap]), replace="changed")
    assert raised.value.filename == "new"
    assert (top / "new").read_bytes() == (b"theirs" if swap == "file" else b"important")


def test_a_link_that_is_planted_over_a_file_goes_as_a_name(top: Path, shelf: Shelf, tmp_path: Path) -> None:
    plant(top, old(shelf), shelf)

    def swap() -> None:
        (top / "d" / "x").unlink()
        (top / "d" / "x").symlink_to(tmp_path / "outside" / "victim")

    checkout(str(top), [folder("d"), shelf.file("d/x", b"newer")], swapping(shelf, "d/x", swap), replace="changed")
    assert tree(top)["d/x"] == ("file", 0o644, b"newer")


def test_a_link_that_is_an_entry_is_replaced_as_a_name_and_one_that_is_none_is_refused(top: Path, shelf: Shelf, tmp_path: Path) -> None:
    plant(top, [link("way", str(tmp_path / "outside"))], shelf)
    before = snapshot(top)
    for entries in ([shelf.file("way")], [folder("way"), shelf.file("way/victim")]):
        with pytest.raises(OSError, match="way") as raised:
            checkout(str(top), entries, shelf.read, replace="changed")
        assert raised.value.errno == errno.ELOOP
    assert snapshot(top) == before

    checkout(str(top), [link("way", "elsewhere")], shelf.read, replace="changed")
    assert tree(top) == {"way": ("link", 0o777, b"elsewhere")}
    checkout(str(top), [folder("way"), shelf.file("way/victim")], shelf.read, replace="always")
    assert tree(top)["way/victim"] == ("file", 0o644, b"content")


def test_a_failure_in_the_middle_leaves_whole_files_only(top: Path, shelf: Shelf) -> None:
    plant(top, old(shelf), shelf)
    before = tree(top)

    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        checkout(str(top), [shelf.file("a"), folder("d"), shelf.file("d/x", b"new")], swapping(shelf, "d/x", fail), replace="always")
    assert tree(top) == before


def test_what_the_stat_cache_knows_is_not_read(top: Path, shelf: Shelf, tmp_path: Path) -> None:
    class Later(Clock):
        def now_ms(self) -> int:
            return super().now_ms() + 3_600_000

    entries = [shelf.file("x", b"x" * 500), shelf.file("y", b"y" * 500)]
    plant(top, entries, shelf)
    asked: list[Out] = []

    def read(out: Out) -> Iterator[bytes]:
        asked.append(out)
        yield from shelf.read(out)

    for expected in (entries, [], entries[:1]):
        asked.clear()
        if expected == entries[:1]:
            (top / "x").write_bytes(b"z" * 500)
        with StatCache(str(tmp_path), Later()) as cache:
            checkout(str(top), entries, read, replace="changed", known=cache)
        assert [out.parts for out in dict.fromkeys(asked)] == [out.parts for out in expected]
        assert tree(top) == as_tree(entries, shelf)


@needs_another_user
def test_folders_that_their_own_user_may_not_change_are_changed_and_closed_again() -> None:
    program = """
old = [folder("a", 0o555), folder("a/b", 0o555), shelf.file("a/b/x", b"old")]
old += [folder("a/gone", 0o555), shelf.file("a/gone/y"), shelf.file("c")]
new = [folder("a", 0o555), folder("a/b", 0o500), shelf.file("a/b/new"), shelf.file("a/b/x", b"new")]
plant(top / "target", old, shelf)
print(*checkout(str(top / "target"), new, shelf.read, replace="always"))
print(tree(top / "target") == as_tree(new, shelf), os.listdir(top))
def read(out):
    if out.content == b"newest":
        raise ZeroDivisionError
    yield from shelf.read(out)
try:
    checkout(str(top / "target"), [*new[:3], shelf.file("a/b/x", b"newest")], read, replace="changed")
except ZeroDivisionError:
    print(tree(top / "target") == as_tree(new, shelf))
"""
    with nobodys_folder() as top:
        assert as_nobody(top, program) == "3 1 2 ()\nTrue ['target']\nTrue\n"


def test_a_living_checkout_s_staging_folder_in_a_folder_is_not_removed(tmp_path: Path, shelf: Shelf) -> None:
    top = tmp_path / "top"
    plant(top, old(shelf), shelf)

    def outer(out: Out) -> Iterator[bytes]:
        checkout(str(top), [shelf.file("only")], shelf.read, replace="always")
        yield from shelf.read(out)

    checkout(str(top / "inner"), [shelf.file("x")], outer)
    assert names(top) == ["inner", "only"]
    assert tree(top)["inner/x"] == ("file", 0o644, b"content")
