"""The structure is exactly ours, or the difference has its name."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from runfile import forge, new_run

from freehold.schema.ddl import statements
from freehold.schema.errors import Error
from freehold.storage.manifest import compare, expected
from freehold.storage.path import RunPath


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


def compared(path: RunPath) -> Error | None:
    db = apsw.Connection(path.file)
    try:
        compare(db, path)
    except Error as error:
        return error
    finally:
        db.close()
    return None


def test_a_file_that_we_created_is_exactly_ours(path: RunPath) -> None:
    assert compared(path) is None
    manifest, columns = expected()
    assert ("table", "run") in manifest.names
    assert columns["ref"] == ["name", "root", "moved_seq"]


def test_a_vacuumed_file_is_still_ours(path: RunPath) -> None:
    forge(path, "VACUUM")
    assert compared(path) is None


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE request",
        "DROP INDEX ref_root",
        "ALTER TABLE run DROP COLUMN definition",
        "ALTER TABLE tenure ADD COLUMN extra INTEGER",
        "ALTER TABLE request RENAME COLUMN at TO moment",
        "DROP TABLE request; DROP TABLE ref; CREATE TABLE ref (name TEXT PRIMARY KEY) STRICT",
    ],
)
def test_an_earlier_shape_of_ours_is_an_incomplete_version(path: RunPath, sql: str) -> None:
    forge(path, sql)

    error = compared(path)
    assert error is not None
    assert error.code == "incomplete_version"
    assert "incomplete version 1 (an earlier pre-release shape): delete and recreate it" in str(error)


def replace(name: str, old: str, new: str) -> str:
    """Return the statement that changes a schema's text where no ALTER can."""
    assert old in statements()
    return f"UPDATE sqlite_schema SET sql = replace(sql, '{old}', '{new}') WHERE name = '{name}'"


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE extra (a)",
        "CREATE INDEX extra ON run (project)",
        "CREATE VIEW extra AS SELECT * FROM run",
        "CREATE TRIGGER extra AFTER INSERT ON event BEGIN DELETE FROM event; END",
        "ANALYZE",
        "DROP TABLE request; CREATE TABLE extra (a)",
        "DROP INDEX ref_root; CREATE INDEX ref_root ON ref (root DESC)",
        "DROP INDEX ref_root; CREATE UNIQUE INDEX ref_root ON ref (root)",
        replace("ref", "length(name) > 0", "length(name) >= 0"),
        replace("object", "hash   BLOB NOT NULL UNIQUE", "hash   BLOB UNIQUE"),
        replace("event", "STRICT", ""),
        replace("root", "INTEGER UNIQUE REFERENCES object (id)", "INTEGER UNIQUE"),
        "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'run') WHERE name = 'tenure'",
    ],
)
def test_anything_foreign_or_changed_is_damage(path: RunPath, sql: str) -> None:
    forge(path, sql, writable_schema=True)

    error = compared(path)
    assert error is not None
    assert (error.code, error.details) == ("damaged", {"rule": "structure"})


@pytest.mark.parametrize("change", ["PRAGMA auto_vacuum = none; VACUUM", "PRAGMA auto_vacuum = full; VACUUM"])
def test_another_file_setting_is_damage(path: RunPath, change: str) -> None:
    forge(path, change)

    error = compared(path)
    assert error is not None
    assert error.details == {"rule": "structure"}
