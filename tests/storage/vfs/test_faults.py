"""A disk fails at the call that it was told, in the way that it was told, and is healthy otherwise."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from freehold.storage.faults import code_of
from freehold.storage.vfs.faults import CALLS, CHANGING, READING, Faulty, FaultyFile


@pytest.fixture
def disk() -> Iterator[Faulty]:
    with Faulty() as disk:
        yield disk


@pytest.fixture
def db(disk: Faulty, tmp_path: Path) -> Iterator[apsw.Connection]:
    db = apsw.Connection(str(tmp_path / "x.db"), vfs=disk.vfs)
    db.execute("PRAGMA journal_mode = wal; CREATE TABLE t (a)").fetchall()
    yield db
    disk.heal()
    db.close()


def insert(db: apsw.Connection) -> int:
    """Insert a row and return SQLite's extended code, 0 if all went well."""
    try:
        db.execute("INSERT INTO t VALUES (zeroblob(3000))")
    except apsw.Error as error:
        return code_of(error)
    return 0


def test_a_disk_that_was_never_armed_works(db: apsw.Connection, disk: Faulty) -> None:
    assert insert(db) == 0
    assert disk.struck == []
    assert disk.calls > 0


@pytest.mark.parametrize(
    ("call", "code"),
    [("xWrite", apsw.SQLITE_IOERR_WRITE), ("xSync", apsw.SQLITE_IOERR_FSYNC), ("xRead", apsw.SQLITE_IOERR_READ)],
)
def test_sqlite_understands_which_call_failed(disk: Faulty, tmp_path: Path, call: str, code: int) -> None:
    db = apsw.Connection(str(tmp_path / "x.db"), vfs=disk.vfs)
    db.execute("PRAGMA journal_mode = wal; CREATE TABLE t (a); INSERT INTO t VALUES (1)").fetchall()
    db.cache_flush()
    db.execute("PRAGMA shrink_memory").fetchall()
    disk.arm("eio", 1, calls=[call])

    assert insert(db) == code
    assert disk.struck == [call]
    disk.heal()
    db.close()


def test_a_fault_strikes_once_or_stays(db: apsw.Connection, disk: Faulty) -> None:
    disk.arm("eio", 2, calls=["xSync"])
    assert [insert(db) != 0 for _ in range(4)] == [False, True, False, False]

    disk.arm("eio", 2, sticky=True, calls=["xSync"])
    assert [insert(db) != 0 for _ in range(4)] == [False, True, True, True]

    disk.heal()
    assert insert(db) == 0


def test_a_full_disk_is_told_as_one(db: apsw.Connection, disk: Faulty) -> None:
    disk.arm("full", 1)
    assert insert(db) == apsw.SQLITE_FULL
    assert db.execute("SELECT count(*) FROM t").get == 0


def test_a_write_that_is_cut_short_was_done_in_part(disk: Faulty, tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    db = apsw.Connection(str(file), vfs=disk.vfs)
    disk.arm("short", 1)
    with pytest.raises(apsw.FullError):
        db.execute("CREATE TABLE t (a)")
    disk.heal()
    db.close()

    assert disk.struck == ["xWrite"]


def test_of_a_write_that_is_cut_short_the_first_half_is_there(disk: Faulty, tmp_path: Path) -> None:
    flags = [apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_MAIN_DB, 0]
    file = FaultyFile(disk, str(tmp_path / "x"), flags)
    disk.arm("short", 1)
    with pytest.raises(apsw.FullError):
        file.xWrite(b"abcdef", 0)
    file.xClose()

    assert (tmp_path / "x").read_bytes() == b"abc"


def test_calls_of_ours_fail_as_the_kernel_s_do(disk: Faulty, tmp_path: Path) -> None:
    file = str(tmp_path / "a")
    os.close(disk.create_new(file))
    calls: dict[str, Callable[[], object]] = {
        "create": lambda: disk.create_new(str(tmp_path / "b")),
        "rename": lambda: disk.rename_new(file, str(tmp_path / "b")),
        "remove": lambda: disk.remove(file),
        "make folder": lambda: disk.make_folder(str(tmp_path / "f")),
        "sync folder": lambda: disk.sync_folder(str(tmp_path)),
    }
    assert set(calls) | {call for call in CHANGING if call.startswith("x")} == set(CHANGING)
    for name, call in calls.items():
        for kind, number in (("eio", errno.EIO), ("full", errno.ENOSPC)):
            if name in CALLS[kind]:  # type: ignore[index]
                disk.arm(kind, 1, calls=[name])  # type: ignore[arg-type]
                with pytest.raises(OSError) as raised:
                    call()
                assert raised.value.errno == number

    assert [name.name for name in tmp_path.iterdir()] == ["a"]


def test_only_the_calls_that_were_named_are_counted(db: apsw.Connection, disk: Faulty) -> None:
    disk.arm("eio", 100, calls=["xSync"])
    for _ in range(3):
        insert(db)

    assert disk.calls == 3
    assert set(READING) & set(CHANGING) == set()


def test_a_disk_that_was_closed_leaves_no_file_system_behind() -> None:
    disk = Faulty()
    assert disk.vfs in apsw.vfs_names()
    disk.close()
    disk.close()

    assert disk.vfs not in apsw.vfs_names()
