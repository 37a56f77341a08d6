"""A recorder notes what was done, in order and after it was done, and nothing outside of its folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from freehold.storage.vfs.record import Cut, Marked, Named, Record, Removed, Renamed, Synced, SyncedFolder, Wrote
from freehold.storage.vfs.recorder import Recorder, RecorderFile


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    with Recorder(tmp_path) as recorder:
        yield recorder


def steps(recorder: Recorder) -> list[object]:
    """Return what was noted, written content left out."""
    return [step if not isinstance(step, Wrote) else Wrote for step in recorder.record.steps]


def test_sqlite_s_writes_syncs_and_names_are_noted(recorder: Recorder, tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "x.db"), vfs=recorder.vfs)
    db.execute("CREATE TABLE t (a)")
    db.close()

    assert Named("x.db", 0) in recorder.record.steps
    created = recorder.record.steps.index(Named("x.db-journal", 1))
    assert Synced(1) in recorder.record.steps[created:]
    assert SyncedFolder(".") in recorder.record.steps[created:]
    assert Removed("x.db-journal") in recorder.record.steps
    content = bytearray()
    for step in recorder.record.steps:
        if isinstance(step, Wrote) and step.file == 0:
            content[step.offset : step.offset + len(step.content)] = step.content
    assert content == (tmp_path / "x.db").read_bytes()


def test_only_a_new_journal_s_first_sync_reaches_the_folder(recorder: Recorder, tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "x.db"), vfs=recorder.vfs)
    db.execute("PRAGMA journal_mode = wal; CREATE TABLE t (a)").fetchall()
    before = len(recorder.record.steps)
    db.execute("INSERT INTO t VALUES (1)")

    after = recorder.record.steps[before:]
    assert [type(step) for step in after if not isinstance(step, Wrote)] == [Synced]
    db.close()


def test_our_own_changes_of_names_are_noted(recorder: Recorder, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    recorder.make_folder(str(folder))
    recorder.make_folder(str(folder))
    os.close(recorder.create_new(str(folder / "a")))
    recorder.rename_new(str(folder / "a"), str(folder / "b"))
    recorder.sync_folder(str(folder))
    recorder.mark("told")
    recorder.remove(str(folder / "b"))

    assert recorder.record.steps == [
        Named("new", 0, is_folder=True),
        Named("new/a", 1),
        Renamed("new/a", "new/b", 1),
        SyncedFolder("new"),
        Marked("told"),
        Removed("new/b"),
    ]
    assert list(folder.iterdir()) == []


def test_what_fails_is_not_noted(recorder: Recorder, tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(FileExistsError):
        recorder.create_new(str(tmp_path / "a"))
    with pytest.raises(FileNotFoundError):
        recorder.remove(str(tmp_path / "b"))

    assert recorder.record.steps == []


def test_what_lies_elsewhere_is_not_noted(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    with Recorder(tmp_path / "inside") as recorder:
        db = apsw.Connection(str(tmp_path / "outside.db"), vfs=recorder.vfs)
        db.execute("CREATE TABLE t (a)")
        db.execute("CREATE TEMP TABLE u (a)")
        db.close()

    assert recorder.record.steps == []


def test_what_stands_there_before_is_part_of_the_record(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").write_bytes(b"old")

    record = Record(tmp_path)
    assert record.before == {"folder": None, "folder/a": b"old"}
    assert [record.find(name) for name in ("folder", "folder/a", "b")] == [0, 1, -1]


def test_a_recorder_that_was_closed_leaves_no_file_system_behind(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    assert recorder.vfs in apsw.vfs_names()
    recorder.close()
    recorder.close()

    assert recorder.vfs not in apsw.vfs_names()


def test_each_step_is_described_in_words(tmp_path: Path) -> None:
    record = Record(tmp_path)
    record.add_name("a")
    for step in (Wrote(0, 5, b"xy"), Cut(0, 3), Synced(0), SyncedFolder("."), Marked("told")):
        record.add(step)
    record.rename("a", "b")
    record.remove("b")

    assert [record.describe(position) for position in range(len(record.steps))] == [
        "a created",
        "2 bytes written at 5 of a",
        "a cut to 3 bytes",
        "a synced",
        "folder . synced",
        "a mark",
        "a renamed to b",
        "b removed",
    ]


def test_what_sqlite_could_not_do_is_not_noted(recorder: Recorder, tmp_path: Path) -> None:
    db = tmp_path / "x.db"
    db.write_bytes(b"old")
    file = RecorderFile(recorder.record, "x.db", str(db), [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
    before = list(recorder.record.steps)
    with pytest.raises(apsw.Error):
        file.xWrite(b"new", 0)
    file.xClose()
    with pytest.raises(apsw.VFSFileClosedError):
        file.xTruncate(0)
    with pytest.raises(apsw.VFSFileClosedError):
        file.xSync(2)

    assert recorder.record.steps == before
    assert db.read_bytes() == b"old"


def test_a_file_that_was_there_before_is_not_created_again(tmp_path: Path) -> None:
    apsw.Connection(str(tmp_path / "x.db")).execute("CREATE TABLE t (a)")
    with Recorder(tmp_path) as recorder:
        db = apsw.Connection(str(tmp_path / "x.db"), vfs=recorder.vfs)
        db.execute("INSERT INTO t VALUES (1)")
        db.close()

    assert [step.name for step in recorder.record.steps if isinstance(step, Named)] == ["x.db-journal"]


def test_what_never_had_a_name_here_is_not_told_of(tmp_path: Path) -> None:
    record = Record(tmp_path)
    record.remove("x.db-shm")
    assert record.steps == []


def test_a_file_is_renamed_inside_its_folder_only(tmp_path: Path) -> None:
    record = Record(tmp_path)
    record.add_name("one/a")
    with pytest.raises(AssertionError):
        record.rename("one/a", "two/a")
    assert record.steps == [Named("one/a", 0)]


def test_what_lies_elsewhere_is_not_changed_through_a_recorder(recorder: Recorder, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        recorder.sync_folder(str(tmp_path.parent))
    assert recorder.record.steps == []
