"""What is told of a creation or deletion on a disk that fails half-way is what a look at the folder finds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from runfile import new_run

from freehold.schema.errors import StorageFailed
from freehold.storage.clock import Clock
from freehold.storage.create import create, sweep
from freehold.storage.delete import delete
from freehold.storage.disk import DISK
from freehold.storage.path import RunPath, resolve
from freehold.storage.pin import pin
from freehold.storage.recognise import recognise
from freehold.storage.vfs.faults import Faulty


@pytest.fixture
def disk() -> Iterator[Faulty]:
    with Faulty() as disk:
        yield disk


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return resolve(tmp_path, "a")


def refused(disk: Faulty, path: RunPath) -> StorageFailed:
    """Create a run on a disk that does not let it, and return what is told."""
    with pytest.raises(StorageFailed) as raised:
        create(path, project="", props="{}", clock=Clock(), disk=disk)
    return raised.value


def test_a_creation_whose_folder_cannot_be_synced_is_taken_back(disk: Faulty, path: RunPath, tmp_path: Path) -> None:
    disk.arm("eio", 1, calls=["sync folder"])

    assert refused(disk, path).executed == "no"
    assert list(tmp_path.iterdir()) == []


def test_a_creation_that_cannot_be_taken_back_is_told_as_unknown(disk: Faulty, path: RunPath) -> None:
    disk.arm("eio", 1, sticky=True, calls=["sync folder", "remove"])

    error = refused(disk, path)
    assert (error.executed, error.details["rolled_back"]) == ("unknown", False)
    held = pin(path, exclusive=True)
    assert recognise(held).run.txn == 1
    held.close()


def test_a_deletion_is_told_as_it_is(disk: Faulty, path: RunPath) -> None:
    new_run(Path(path.folder))
    for nth, executed, is_there in ((1, "no", True), (2, "unknown", False)):
        disk.arm("eio", nth, calls=["sync folder"])
        with pytest.raises(StorageFailed) as raised:
            delete(path, Clock(), disk)
        assert (raised.value.executed, os.path.lexists(path.file)) == (executed, is_there)


def test_a_file_that_the_disk_does_not_remove_is_still_a_run(disk: Faulty, path: RunPath) -> None:
    new_run(Path(path.folder))
    disk.arm("eio", 1, calls=["remove"])
    with pytest.raises(StorageFailed) as raised:
        delete(path, Clock(), disk)

    assert raised.value.executed == "no"
    held = pin(path, exclusive=True)
    assert recognise(held).last_seq == 1
    held.close()


def test_what_a_lost_temporary_file_leaves_is_swept(tmp_path: Path) -> None:
    for name in (".a.1-1.new-journal", ".a.1-2.new-wal", ".b.1-1.new-journal", ".a.1-1.new-other"):
        (tmp_path / name).touch()

    assert sorted(sweep(str(tmp_path), "a")) == [".a.1-1.new-journal", ".a.1-2.new-wal"]
    assert sweep(str(tmp_path)) == [".b.1-1.new-journal"]


def test_a_living_creators_journal_is_not_swept(path: RunPath, tmp_path: Path) -> None:
    # The creator's own sweep comes before its file; the journal of another one stands beside a file that is locked.
    held = create(path, project="", props="{}", clock=Clock())
    temporary = tmp_path / ".a.7-7.new"
    os.link(path.file, temporary)
    Path(f"{temporary}-journal").touch()

    assert sweep(str(tmp_path)) == []
    held.close()


def test_the_machine_s_own_disk_makes_a_folder_once(tmp_path: Path) -> None:
    DISK.make_folder(str(tmp_path / "f"))
    DISK.make_folder(str(tmp_path / "f"))
    DISK.sync_folder(str(tmp_path / "f"))

    assert (tmp_path / "f").is_dir()
