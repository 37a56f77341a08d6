"""The packages, links and package data that pyproject.toml speaks of are those that are there."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from house import ROOT, tracked

FOLDERS = {"schema": "freehold.schema", "storage": "freehold.storage", "actors": "freehold.actors", "src/freehold": "freehold"}


def setuptools() -> dict[str, Any]:
    """Return the table [tool.setuptools]."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    return table


def package_of(path: str) -> tuple[str, str] | None:
    """Return the package that a file of the wheel is in and its name there, or None for a file that is not in the wheel."""
    for folder, package in FOLDERS.items():
        if path.startswith(folder + "/"):
            *inner, name = path.removeprefix(folder + "/").split("/")
            return ".".join((package, *inner)), name
    return None


def unlisted_data(paths: tuple[str, ...], listed: dict[str, list[str]]) -> list[str]:
    """Return the files of packages that are neither Python nor listed as package data, and so would not be installed."""
    homes = {path: home for path in paths if not path.endswith(".py") and (home := package_of(path)) is not None}
    return [path for path, (package, name) in homes.items() if not any(Path(name).match(glob) for glob in listed.get(package, []))]


def test_every_package_is_listed() -> None:
    found = {home[0] for path in tracked() if path.endswith("/__init__.py") and (home := package_of(path)) is not None}

    assert sorted(setuptools()["packages"]) == sorted(found)


def test_every_folder_of_python_files_is_a_package() -> None:
    packages = set(setuptools()["packages"])

    assert [path for path in tracked() if path.endswith(".py") and (home := package_of(path)) is not None and home[0] not in packages] == []


def test_every_file_that_is_not_python_is_package_data() -> None:
    assert unlisted_data(tracked(), setuptools()["package-data"]) == []


def test_a_file_that_would_not_be_installed_is_found() -> None:
    assert unlisted_data(("schema/v1.sql", "schema/v1.txt", "docs/v1.txt"), {"freehold.schema": ["*.sql"]}) == ["schema/v1.txt"]


@pytest.mark.parametrize("name", ["schema", "storage", "actors"])
def test_the_face_links_to_the_three_folders(name: str) -> None:
    link = ROOT / "src" / "freehold" / name

    assert link.is_symlink()
    assert link.readlink() == Path("../..") / name
    assert link.resolve() == ROOT / name


def test_tests_are_no_packages() -> None:
    assert [path for path in tracked() if path.startswith("tests/") and path.endswith("__init__.py")] == []
