"""Folders by descriptors: a link is met as a link, and a removal reaches everything beneath and nothing beside."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest
from folder import descriptors, snapshot
from trees import names

from freehold.storage import folders, platform
from freehold.storage.folders import Descent


@pytest.fixture
def top(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    (tmp_path / "top").mkdir()
    fd = folders.open_top(str(tmp_path / "top"))
    yield tmp_path / "top", fd
    os.close(fd)


def test_a_top_folder_may_be_a_link_and_nothing_beneath_may(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "way").symlink_to("inner")
    fd = folders.open_top(str(tmp_path / "link"))

    with pytest.raises(OSError, match="symbolic") as raised:
        folders.open_folder("way", fd)
    assert raised.value.errno == errno.ELOOP
    with pytest.raises(OSError, match="symbolic"):
        folders.open_file("way", fd)
    os.close(folders.open_folder("inner", fd))
    os.close(fd)


def test_what_is_no_folder_is_refused_as_that(top: tuple[Path, int]) -> None:
    (top[0] / "file").touch()

    with pytest.raises(NotADirectoryError):
        folders.open_folder("file", top[1])
    with pytest.raises(FileNotFoundError):
        folders.open_folder("none", top[1])


def test_a_new_file_never_goes_through_a_link(top: tuple[Path, int], tmp_path: Path) -> None:
    (top[0] / "link").symlink_to(tmp_path / "outside")

    with pytest.raises(FileExistsError):
        folders.create_file("link", top[1])
    assert not (tmp_path / "outside").exists()


def test_a_descent_tells_the_whole_path_of_a_link_that_was_swapped_in(top: tuple[Path, int], tmp_path: Path) -> None:
    (top[0] / "a" / "b" / "c").mkdir(parents=True)
    before = descriptors()
    with Descent(top[1]) as descent:
        assert os.fstat(descent.at(("a", "b", "c"))).st_ino == (top[0] / "a" / "b" / "c").stat().st_ino
        assert os.fstat(descent.at(("a",))).st_ino == (top[0] / "a").stat().st_ino
        (top[0] / "a" / "b").rename(tmp_path / "moved")
        (top[0] / "a" / "b").symlink_to(tmp_path / "moved")
        with pytest.raises(OSError, match="a/b") as raised:
            descent.at(("a", "b", "c"))

    assert (raised.value.errno, raised.value.filename) == (errno.ELOOP, "a/b")
    assert descriptors() == before


def test_a_folder_is_emptied_of_links_special_files_and_what_may_not_be_entered(top: tuple[Path, int], tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("important")
    before = snapshot(tmp_path / "outside")
    (top[0] / "closed" / "inner").mkdir(parents=True)
    (top[0] / "closed" / "inner" / "file").touch()
    (top[0] / "closed" / "link").symlink_to(tmp_path / "outside")
    os.mkfifo(top[0] / "fifo")
    (top[0] / "closed").chmod(0)

    folders.empty(top[1])

    assert names(top[0]) == []
    assert snapshot(tmp_path / "outside") == before


def test_a_folder_is_emptied_however_deep_it_is(top: tuple[Path, int]) -> None:
    fd = os.dup(top[1])
    for _ in range(700):
        os.mkdir("1.deep", dir_fd=fd)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        inner = folders.open_folder("1.deep", fd)
        os.close(fd)
        fd = inner
    os.close(fd)
    before = descriptors()

    folders.empty(top[1])

    assert names(top[0]) == []
    assert descriptors() == before


@pytest.mark.skipif(os.geteuid() != 0 or which("setpriv") is None, reason="only root can give up root's rights, and by setpriv")
def test_a_folder_that_root_may_not_enter_is_emptied_by_a_root_without_special_rights(top: tuple[Path, int]) -> None:
    (top[0] / "closed" / "inner").mkdir(parents=True)
    (top[0] / "closed" / "inner" / "file").touch()
    (top[0] / "closed" / "inner").chmod(0o500)
    (top[0] / "closed").chmod(0)
    program = "import sys; from freehold.storage import folders; folders.empty(folders.open_top(sys.argv[1]))"
    rights = "-dac_override,-dac_read_search"
    command = ["setpriv", "--bounding-set", rights, "--inh-caps", rights, sys.executable, "-c", program, str(top[0])]

    subprocess.run(command, check=True, timeout=50)

    assert names(top[0]) == []


def test_two_names_are_told_apart_here_and_the_try_leaves_nothing(top: tuple[Path, int]) -> None:
    assert not folders.same_name(top[1], "readme", "README")
    assert folders.same_name(top[1], "readme", "readme")
    assert names(top[0]) == []


def test_a_move_to_a_new_name_never_replaces_where_the_file_system_knows_how_and_where_it_does_not(
    top: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("old", "taken"):
        (top[0] / name).write_text(name)

    def cannot(*names: object) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    with pytest.raises(FileExistsError):
        folders.move_new("old", top[1], "taken", top[1])
    monkeypatch.setattr(platform, "rename_new_at", cannot)
    with pytest.raises(FileExistsError):
        folders.move_new("old", top[1], "taken", top[1])
    assert (top[0] / "taken").read_text() == "taken"

    folders.move_new("old", top[1], "new", top[1])
    assert names(top[0]) == ["new", "taken"]


def test_access_times_stay(top: tuple[Path, int]) -> None:
    (top[0] / "file").write_text("content")
    for path in (top[0], top[0] / "file"):
        os.utime(path, ns=(1, 1))

    fd = folders.open_top(str(top[0]))
    with os.scandir(fd) as listing:
        assert [entry.name for entry in listing] == ["file"]
    file = folders.open_file("file", fd)
    os.read(file, 9)
    os.close(file)
    os.close(fd)

    assert (top[0].stat().st_atime_ns, (top[0] / "file").stat().st_atime_ns) == (1, 1)


def test_a_folder_of_ours_can_be_made_passable_and_a_link_cannot(top: tuple[Path, int], tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir(mode=0o500)
    (top[0] / "link").symlink_to(tmp_path / "outside")
    (top[0] / "closed").mkdir(mode=0)

    platform.open_passable(b"closed", top[1])
    with pytest.raises(NotADirectoryError):
        platform.open_passable(b"link", top[1])

    assert stat.S_IMODE((top[0] / "closed").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "outside").stat().st_mode) == 0o500
