"""Nothing is created or deleted by who reads beside an owner."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from folder import snapshot
from runfile import new_run

from freehold.storage.vfs.beside import BESIDE, BESIDES


def test_a_file_without_a_wal_cannot_be_opened_and_nothing_is_created(tmp_path: Path) -> None:
    path = new_run(tmp_path)
    before = snapshot(tmp_path)
    db = apsw.Connection(path.file, vfs=BESIDE, flags=apsw.SQLITE_OPEN_READONLY)
    with pytest.raises(apsw.CantOpenError):
        db.execute("SELECT * FROM run").fetchall()
    db.close()

    assert snapshot(tmp_path) == before


def test_plain_sqlite_would_create_two(tmp_path: Path) -> None:
    path = new_run(tmp_path)
    db = apsw.Connection(path.file, flags=apsw.SQLITE_OPEN_READONLY)
    db.execute("SELECT * FROM run").fetchall()
    db.close()

    assert sorted(name.name for name in tmp_path.iterdir()) == ["a.sqlite", "a.sqlite-shm", "a.sqlite-wal"]


def test_a_new_file_is_not_created_and_none_is_deleted(tmp_path: Path) -> None:
    path = new_run(tmp_path)
    with pytest.raises(apsw.CantOpenError):
        apsw.Connection(str(tmp_path / "new"), vfs=BESIDE, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    with pytest.raises(apsw.ReadOnlyError):
        BESIDES.xDelete(path.file, syncdir=False)

    assert [name.name for name in tmp_path.iterdir()] == ["a.sqlite"]
