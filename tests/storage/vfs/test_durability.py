"""A disk keeps what was synced, and of the rest what it likes."""

from __future__ import annotations

from pathlib import Path

import pytest

from freehold.storage.vfs.durability import Durability, apply, tears
from freehold.storage.vfs.record import Cut, Named, Record, Removed, Renamed, Step, Synced, SyncedFolder, Wrote


def after(tmp_path: Path, *steps: Step) -> Durability:
    """Return the disk after *steps* in a folder that holds one file, `old`."""
    (tmp_path / "old").write_bytes(b"old")
    disk = Durability(Record(tmp_path))
    for step in steps:
        disk.take(step)
    return disk


def test_bytes_are_durable_after_their_file_s_sync_and_not_before(tmp_path: Path) -> None:
    disk = after(tmp_path, Wrote(0, 1, b"XX"), Cut(0, 2))
    assert disk.files[0].durable == b"old"
    assert disk.files[0].pending == [Wrote(0, 1, b"XX"), Cut(0, 2)]

    disk.take(Synced(0))
    assert disk.files[0].durable == b"oX"
    assert disk.files[0].pending == []


def test_a_file_s_sync_is_not_its_name_s(tmp_path: Path) -> None:
    disk = after(tmp_path, Named("new", 1), Wrote(1, 0, b"x"), Synced(1))
    assert disk.names == {"old": 0}

    disk.take(SyncedFolder("."))
    assert disk.names == {"old": 0, "new": 1}


def test_a_folder_s_sync_is_for_its_own_names(tmp_path: Path) -> None:
    disk = after(tmp_path, Named("folder", 1, is_folder=True), Named("folder/a", 2), SyncedFolder("folder"))

    assert disk.names == {"old": 0, "folder/a": 2}
    assert disk.folders == {1}
    assert disk.pending == [Named("folder", 1, is_folder=True)]


@pytest.mark.parametrize(
    ("step", "names"),
    [(Renamed("old", "new", 0), {"new": 0}), (Removed("old"), {})],
)
def test_a_name_is_changed_for_good_by_its_folder_s_sync(tmp_path: Path, step: Step, names: dict[str, int]) -> None:
    disk = after(tmp_path, step)
    assert disk.names == {"old": 0}

    disk.take(SyncedFolder("."))
    assert disk.names == names


@pytest.mark.parametrize(
    ("step", "content"),
    [
        (Wrote(0, 1, b"X"), b"aXc"),
        (Wrote(0, 5, b"X"), b"abc\0\0X"),
        (Cut(0, 1), b"a"),
        (Cut(0, 5), b"abc\0\0"),
    ],
)
def test_a_step_does_what_it_did(step: Wrote | Cut, content: bytes) -> None:
    found = bytearray(b"abc")
    apply(step, found)

    assert found == content


@pytest.mark.parametrize(
    ("offset", "length", "places"),
    [(0, 512, []), (0, 1024, [512]), (500, 24, [12]), (24, 100, []), (32, 1200, [480, 992])],
)
def test_a_write_tears_where_sectors_meet(offset: int, length: int, places: list[int]) -> None:
    assert tears(Wrote(0, offset, bytes(length))) == places
