"""Links that lead to each other, to themselves, over more than 40 others or to the machine's root end in an error, and are there to see."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import freehold
from freehold import PathRefused, Run
from freehold.files import Files


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with freehold.open(tmp_path, timeout=20) as host, host.create("r") as run:
        with run.publish("links") as files:
            for name, target in (("a", "b"), ("b", "a"), ("self", "self"), ("root", "/etc/passwd"), ("c0", "end")):
                files.symlink(name, target)
            for number in range(1, 41):
                files.symlink(f"c{number}", f"c{number - 1}")
            files.write_text("end", "found")
        yield run


@pytest.mark.parametrize("path", ["a", "b", "self", "self/x", "c40"])
@pytest.mark.parametrize(
    "deed",
    [
        lambda files, path: files.read_text(path),
        lambda files, path: files.open(path, "w"),
        lambda files, path: files.stat(path),
        lambda files, path: list(files.iterdir(path)),
        lambda files, path: files.write_text(path, ""),
        lambda files, path: files.mkdir(f"{path}/x"),
    ],
)
def test_a_chain_that_does_not_end_in_time_is_eloop(run: Run, path: str, deed: Callable[[Files, str], Any]) -> None:
    with pytest.raises(OSError, match="links") as caught:
        run.publish("lost", lambda files: deed(files, path))

    assert caught.value.errno == errno.ELOOP
    assert not run.files.exists(path)


def test_forty_links_are_followed(run: Run) -> None:
    assert run.files.read_text("c39") == "found"


def test_an_absolute_target_is_refused_and_never_followed(run: Run) -> None:
    with pytest.raises(PathRefused):
        run.files.read_bytes("root")
    assert not run.files.exists("root")


@pytest.mark.parametrize("path", ["a", "self", "c40", "root"])
def test_the_links_themselves_are_read_moved_and_removed(run: Run, path: str) -> None:
    says = run.files.readlink(path)
    assert run.files.is_symlink(path)
    assert run.files.stat(path, follow_symlinks=False).st_size == len(says)

    with run.publish("move") as files:
        files.rename(path, "moved")
        assert files.readlink("moved") == says
        files.remove("moved")
    assert not run.files.exists(path, follow_symlinks=False)
