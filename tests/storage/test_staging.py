"""A staging folder is gone after its block, and one whose maker died is swept, but none that is in use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest
from folder import descriptors
from trees import stagings

from freehold.storage.folders import open_top
from freehold.storage.staging import Staging, is_staging, sweep


@pytest.fixture
def parent_fd(tmp_path: Path) -> Iterator[int]:
    fd = open_top(str(tmp_path))
    yield fd
    os.close(fd)


def dead(parent: Path, name: str = "", mode: int = 0o700) -> Path:
    """Make what a maker that died leaves, or something that is only called like it."""
    (parent / "new" / "inner").mkdir(parents=True)
    (parent / "new" / "inner" / "file").touch()
    (parent / "new").chmod(mode)
    return (parent / "new").rename(parent / (name or f".freehold-1-{(parent / 'new').stat().st_ino}.staging"))


def test_a_staging_folder_is_private_and_gone_after_its_block(parent_fd: int, tmp_path: Path) -> None:
    before = descriptors()
    with Staging(parent_fd) as staging:
        made = tmp_path / staging.name
        assert is_staging(staging.name)
        assert made.stat().st_mode & 0o777 == 0o700
        (made / "file").touch()
    staging.close()

    assert stagings(tmp_path) == []
    assert descriptors() == before


def test_a_living_maker_s_folder_is_not_swept_and_a_dead_one_s_is(parent_fd: int, tmp_path: Path) -> None:
    left = dead(tmp_path)
    with Staging(parent_fd) as staging:
        assert sweep(parent_fd) == [left.name]
        assert stagings(tmp_path) == [staging.name]


def test_nothing_is_swept_that_only_looks_like_one(parent_fd: int, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").touch()
    (tmp_path / ".freehold-1-2.staging").symlink_to("outside")
    (tmp_path / ".freehold-1-3.staging").touch()
    dead(tmp_path, ".freehold-1-4.staging")
    dead(tmp_path, ".freehold-x.staging")
    dead(tmp_path, mode=0o755)
    copy = dead(tmp_path)
    copy.rename(tmp_path / "first")
    copytree(tmp_path / "first", copy)

    assert sweep(parent_fd) == []
    assert len(stagings(tmp_path)) == 6
    assert (tmp_path / "outside" / "file").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_another_user_s_folder_is_left_alone(parent_fd: int, tmp_path: Path) -> None:
    os.chown(dead(tmp_path), 65534, 65534)

    assert sweep(parent_fd) == []


def test_a_name_that_is_taken_is_passed_over(parent_fd: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    real = os.mkdir

    def make(name: str, mode: int, *, dir_fd: int) -> None:
        number = int(name.split("-")[2].removesuffix(".staging"))
        if not taken:  # the next name, and the one that this very folder is to have
            real(f".freehold-{os.getpid()}-{number + 1}.staging", mode, dir_fd=dir_fd)
            real(name, mode, dir_fd=dir_fd)
            real(f".freehold-{os.getpid()}-{os.stat(name, dir_fd=dir_fd).st_ino}.staging", mode, dir_fd=dir_fd)
            taken.extend(set(stagings(tmp_path)) - {name})
        else:
            real(name, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", make)
    before = descriptors()
    with Staging(parent_fd) as staging:
        assert staging.name not in taken
        assert set(stagings(tmp_path)) == {staging.name, *taken}
    assert len(taken) == 2
    assert descriptors() == before


def test_a_folder_that_was_made_elsewhere_meanwhile_is_not_removed(parent_fd: int, tmp_path: Path) -> None:
    with Staging(parent_fd) as staging:
        (tmp_path / staging.name).rename(tmp_path / "moved")
        (tmp_path / staging.name).mkdir()
        (tmp_path / staging.name / "file").touch()

    assert (tmp_path / staging.name / "file").exists()


def test_a_parent_that_is_gone_is_an_error_and_not_a_loop(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    fd = open_top(str(tmp_path / "gone"))
    (tmp_path / "gone").rmdir()
    before = descriptors()
    with pytest.raises(FileNotFoundError):
        Staging(fd)
    assert descriptors() == before
    os.close(fd)
