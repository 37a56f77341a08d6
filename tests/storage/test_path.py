"""Every spelling of a run file has one canonical path."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from folder import snapshot

from freehold.schema.errors import Refused
from freehold.storage.path import PATH_BYTES_MAX, RunPath, resolve, resolve_file, resolve_root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "r" / "a"
    root.mkdir(parents=True)
    return root


def test_an_id_names_a_file_in_the_root(root: Path) -> None:
    path = resolve(root, "run")

    assert path == RunPath(str(root), "run")
    assert path.file == str(path) == f"{root}/run.sqlite"
    assert path.sibling("-wal") == f"{root}/run.sqlite-wal"


@pytest.mark.parametrize("exists", [True, False])
def test_relative_dotted_and_linked_spellings_are_one_path(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    if exists:
        (root / "run.sqlite").touch()
    (tmp_path / "link").symlink_to(root)
    (root / "alias.sqlite").symlink_to("run.sqlite")
    monkeypatch.chdir(tmp_path / "r")

    spellings = [
        resolve("a", "run"),
        resolve("./a/", "run"),
        resolve(f"{root}/../../r/a", "run"),
        resolve(tmp_path / "link", "run"),
        resolve(root, "alias"),
        resolve_file("a/run.sqlite"),
        resolve_file(tmp_path / "link" / "alias.sqlite"),
    ]

    assert set(spellings) == {RunPath(str(root), "run")}


def test_a_folder_that_is_not_there_yet_resolves_and_is_not_made(tmp_path: Path) -> None:
    before = snapshot(tmp_path)

    assert resolve(tmp_path / "x" / "y", "run").file == f"{tmp_path.resolve()}/x/y/run.sqlite"
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("target", ["../x.db", ".host.sqlite", "é.sqlite", "folder"])
def test_a_link_to_what_is_not_named_like_a_run_is_refused(root: Path, target: str) -> None:
    (root / "run.sqlite").symlink_to(target)
    before = snapshot(root)
    with pytest.raises(Refused) as raised:
        resolve(root, "run")

    assert raised.value.code == "bad_run_id"
    assert snapshot(root) == before


@pytest.mark.parametrize("run_id", ["", ".x", "../x", "a/b", "é", "a" * 129, "a\0", "a\n", None, 7, b"a"])
def test_a_wrong_id_is_refused_before_anything_is_looked_at(run_id: Any) -> None:
    with pytest.raises(Refused) as raised:
        resolve("/nowhere", run_id)

    assert raised.value.code == "bad_run_id"


@pytest.mark.parametrize("root", ["", "a\0b", "a\udc80", b"runs", None, 7, "x" * 256, "/x" * (PATH_BYTES_MAX // 2)])
def test_a_wrong_root_is_refused(root: Any) -> None:
    with pytest.raises(Refused) as raised:
        resolve(root, "run")

    assert raised.value.code == "bad_root"


def test_a_path_that_is_not_utf_8_is_refused_and_so_is_one_that_leads_there(root: Path) -> None:
    bad, good = root / "b\udcff", root / "good"
    bad.mkdir()
    good.mkdir()
    (root / "to good\udcff").symlink_to(good)
    (root / "to bad").symlink_to(bad)
    (root / "run.sqlite").symlink_to(bad / "run.sqlite")

    for spelling in (bad, root / "to good\udcff", root / "to bad"):
        with pytest.raises(Refused) as raised:
            resolve_root(spelling)
        assert raised.value.code == "bad_root"
    with pytest.raises(Refused) as raised:
        resolve(root, "run")
    assert raised.value.code == "bad_root"


def test_a_root_below_a_folder_that_is_gone_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    root.rmdir()
    with pytest.raises(Refused) as raised:
        resolve_root("runs")

    assert raised.value.code == "bad_root"


@pytest.mark.parametrize("root", ["x" * 256, "/x" * (PATH_BYTES_MAX // 2) + "/x"])
def test_a_root_that_is_too_long_by_itself_is_refused(root: str) -> None:
    with pytest.raises(Refused) as raised:
        resolve_root(root)

    assert raised.value.code == "bad_root"


def test_the_longest_path_is_taken_and_one_byte_more_is_not(tmp_path: Path) -> None:
    room = PATH_BYTES_MAX - len(f"{tmp_path.resolve()}/") - len("/run.sqlite")
    deep = "/".join(["x" * 99] * (room // 100) + ["x" * (room % 100)])
    file = resolve(tmp_path / deep, "run").file
    assert len(os.fsencode(file)) == PATH_BYTES_MAX

    with pytest.raises(Refused, match=str(PATH_BYTES_MAX)):
        resolve(tmp_path / deep, "runs")


@pytest.mark.parametrize("file", ["run", "run.db", ".run.sqlite", "é.sqlite"])
def test_a_users_path_that_is_no_run_file_is_refused(root: Path, file: str) -> None:
    with pytest.raises(Refused) as raised:
        resolve_file(root / file)

    assert raised.value.code == "bad_run_id"
