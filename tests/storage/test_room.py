"""What a disk has no room for is refused before anything is written, whatever the folder is."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest
from trees import Shelf, folder, plant, tree

from freehold.storage.checkout import Replace, checkout
from freehold.storage.entries import Out
from freehold.storage.room import check_room
from freehold.storage.temporary import temporary


@pytest.fixture
def entries() -> list[Out]:
    return [folder("d"), Shelf().file("d/large")._replace(size=1 << 60)]


def never(_out: Out) -> list[bytes]:
    raise AssertionError("nothing is read")


@pytest.mark.parametrize("state", ["missing", "empty", "full"])
@pytest.mark.parametrize("replace", ["changed", "always"])
def test_a_checkout_that_no_disk_holds_writes_nothing(tmp_path: Path, entries: list[Out], state: str, replace: Replace) -> None:
    target = tmp_path / "target"
    if state != "missing":
        target.mkdir()
    if state == "full":
        shelf = Shelf()
        plant(target, [shelf.file("mine", b"mine")], shelf)
    before = tree(tmp_path)

    with pytest.raises(OSError, match="No space") as caught:
        checkout(str(target), entries, never, replace=replace)

    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(target))
    assert tree(tmp_path) == before


def test_a_temporary_one_does_not_either(tmp_path: Path, entries: list[Out], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with pytest.raises(OSError, match="No space"):
        temporary(entries, never)

    assert list(tmp_path.iterdir()) == []


def disk(**counts: int) -> os.statvfs_result:
    names = ("f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree", "f_favail", "f_flag", "f_namemax")
    whole = dict.fromkeys(names, 1_000) | {"f_frsize": 512} | counts
    return os.statvfs_result([whole[name] for name in names])


@pytest.mark.parametrize(
    ("counts", "size", "fits"),
    [
        ({"f_bfree": 2, "f_bavail": 2}, 1_024, True),
        ({"f_bfree": 2, "f_bavail": 2}, 1_025, False),
        ({"f_blocks": 0, "f_bfree": 0, "f_bavail": 0}, 1 << 50, True),
        ({"f_ffree": 1}, 0, False),
        ({"f_ffree": 2}, 0, True),
        ({"f_files": 0, "f_ffree": 0}, 0, True),
    ],
)
def test_blocks_and_inodes_are_counted_where_the_disk_counts_them(
    monkeypatch: pytest.MonkeyPatch, counts: dict[str, int], size: int, fits: bool
) -> None:
    monkeypatch.setattr(os, "fstatvfs", lambda _fd: disk(**counts))
    entries = [folder("d"), Out(("d", "f"), "file", size=size)]

    if fits:
        check_room(0, entries, "target")
        return
    with pytest.raises(OSError, match="target"):
        check_room(0, entries, "target")


@pytest.mark.parametrize(("user", "fits"), [(0, True), (1, False)])
def test_what_is_kept_for_root_is_for_root(monkeypatch: pytest.MonkeyPatch, user: int, fits: bool) -> None:
    monkeypatch.setattr(os, "fstatvfs", lambda _fd: disk(f_bfree=2, f_bavail=1))
    monkeypatch.setattr(os, "geteuid", lambda: user)
    entries = [Out(("f",), "file", size=1_000)]

    if fits:
        check_room(0, entries, "target")
        return
    with pytest.raises(OSError, match="No space"):
        check_room(0, entries, "target")
