"""A live connection is opened with every switch as it must be, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import apsw
import pytest
from folder import snapshot
from runfile import new_run

from freehold.schema.errors import Damaged, Error, StorageFailed, UnsupportedPlatform
from freehold.schema.limits import BUSY_TIMEOUT_MS
from freehold.schema.version import SQLITE_MIN
from freehold.storage import connection as module
from freehold.storage import forks, platform
from freehold.storage.clock import Clock
from freehold.storage.connection import check_sqlite, connect, keep_foreign_keys, open_live
from freehold.storage.create import create
from freehold.storage.path import RunPath, resolve
from freehold.storage.pin import Pin, pin
from freehold.storage.reader import reading
from freehold.storage.recognise import recognise

PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": 2,
    "foreign_keys": 1,
    "wal_autocheckpoint": 0,
    "locking_mode": "normal",
    "busy_timeout": BUSY_TIMEOUT_MS,
    "mmap_size": 0,
    "cell_size_check": 1,
    "temp_store": 2,
    "page_size": 4096,
    "auto_vacuum": 2,
    "trusted_schema": 0,
}


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


@pytest.fixture
def db(path: RunPath) -> Iterator[apsw.Connection]:
    db = open_live(path)
    yield db
    db.close()


def test_every_pragma_is_as_it_must_be(db: apsw.Connection) -> None:
    found = {name: db.pragma(name) for name in PRAGMAS}

    assert found == PRAGMAS


@pytest.mark.parametrize(
    "sql",
    [
        "ATTACH ':memory:' AS other",
        "VACUUM INTO '{folder}/copy'",
        'SELECT "not a column"',
        'CREATE INDEX extra ON run ("not a column")',
        "SELECT load_extension('x')",
        "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = sql",
    ],
)
def test_what_a_run_never_needs_is_refused(db: apsw.Connection, tmp_path: Path, sql: str) -> None:
    with pytest.raises(apsw.Error):
        db.execute(sql.format(folder=tmp_path)).fetchall()

    assert not (tmp_path / "copy").exists()


def test_foreign_keys_that_cannot_be_switched_on_are_found_out(path: RunPath) -> None:
    db = apsw.Connection(path.file)
    db.execute("BEGIN")
    with pytest.raises(StorageFailed):
        keep_foreign_keys(db)
    db.close()


def test_a_trigger_or_view_does_not_run(db: apsw.Connection) -> None:
    db.execute("CREATE TRIGGER bad AFTER UPDATE ON run BEGIN DELETE FROM event; END; CREATE VIEW spy AS SELECT * FROM run")
    db.execute("UPDATE run SET txn = txn + 1")

    assert db.execute("SELECT count(*) FROM event").get == 1
    with pytest.raises(apsw.SQLError):
        db.execute("SELECT * FROM spy").fetchall()


def test_a_missing_file_is_never_created(tmp_path: Path) -> None:
    before = snapshot(tmp_path)
    with pytest.raises(Error):
        open_live(resolve(tmp_path, "a"))

    assert snapshot(tmp_path) == before


def test_a_link_is_not_followed(path: RunPath, tmp_path: Path) -> None:
    (tmp_path / "b.sqlite").symlink_to("a.sqlite")
    with pytest.raises(Error):
        open_live(RunPath(path.folder, "b"))

    assert sorted(name.name for name in tmp_path.iterdir()) == ["a.sqlite", "b.sqlite"]


def test_a_file_in_another_journal_mode_is_damaged_and_closed_again(path: RunPath) -> None:
    db = apsw.Connection(path.file)
    db.pragma("journal_mode", "delete")
    db.close()
    with pytest.raises(Damaged) as raised:
        open_live(path)

    assert raised.value.details["rule"] == "format"


def test_a_file_that_is_not_sqlite_is_damaged_and_closed_again(path: RunPath) -> None:
    Path(path.file).write_bytes(b"hello" * 1000)
    with pytest.raises(Damaged):
        open_live(path)


WAYS: dict[str, Callable[[RunPath, Pin], object]] = {
    "create": lambda path, _: create(resolve(path.folder, "b"), project="", props="{}", clock=Clock()),
    "read": lambda path, _: reading(path).__enter__(),
    "recognise": lambda _, held: recognise(held),
    "open": lambda path, _: open_live(path),
}


@pytest.mark.parametrize(("way", "code"), [*product(WAYS, ["unsupported_sqlite"]), *product(["create", "read"], ["unsupported_platform"])])
def test_on_an_unsupported_machine_nothing_is_opened_or_created(
    path: RunPath, monkeypatch: pytest.MonkeyPatch, way: str, code: str
) -> None:
    held = pin(path, exclusive=True)
    before = snapshot(Path(path.folder))
    if code == "unsupported_sqlite":
        monkeypatch.setattr(module, "SQLITE_MIN", (99, 0, 0))
    else:
        check = platform.check_platform
        monkeypatch.setattr(platform, "check_platform", lambda: check("darwin"))
    with pytest.raises(UnsupportedPlatform) as raised:
        WAYS[way](path, held)
    held.close()

    assert raised.value.code == code
    assert snapshot(Path(path.folder)) == before


@pytest.mark.parametrize("found", ["3.51.2", "3.50.9", "3.40.1", "3.9.0"])
def test_an_older_sqlite_is_refused(found: str) -> None:
    with pytest.raises(UnsupportedPlatform) as raised:
        check_sqlite(found)

    assert raised.value.code == "unsupported_sqlite"


def test_the_first_mended_sqlite_is_enough() -> None:
    for found in ("3.51.3", "3.52.0", "4.0.0", "3.51.3.1"):
        check_sqlite(found)
    check_sqlite()
    assert SQLITE_MIN == (3, 51, 3)


def test_a_connection_has_a_ticket_from_before_it_is_opened_until_it_is_closed(tmp_path: Path) -> None:
    class Watching(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("watching", "")

        def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
            seen.append(len(forks._connections - before))
            return apsw.VFSFile("", name, flags)

    before, seen, watching = set(forks._connections), list[int](), Watching()
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    db = connect(str(tmp_path / "x"), flags, "watching")
    db.execute("CREATE TABLE t (a)")
    assert len(forks._connections - before) == 1
    db.close()
    db.close()
    assert forks._connections == before
    with pytest.raises(apsw.CantOpenError):
        connect(str(tmp_path), flags, "watching")

    assert forks._connections == before
    assert seen
    assert set(seen) == {1}
    del watching
