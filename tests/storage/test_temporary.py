"""A temporary checkout is a folder of this user's alone that is gone when it is closed, or swept when its process died."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from folder import descriptors
from trees import Shelf, as_tree, folder, link, stagings, tree

from freehold.schema.errors import PathRefused
from freehold.storage.entries import Out
from freehold.storage.temporary import temporary


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = descriptors()
    yield
    assert descriptors() == before


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def test_it_holds_the_entries_until_it_is_closed(tmp_path: Path, shelf: Shelf) -> None:
    entries = [folder("a", 0), shelf.file("a/x"), link("l", "/etc")]
    with temporary(entries, shelf.read) as made:
        top = Path(made.path)
        assert tree(top) == as_tree(entries, shelf)
        assert top.parent.stat().st_mode & 0o777 == 0o700
        (top / "mine").mkdir()
        (top / "way").symlink_to(tmp_path)
    made.close()

    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_nothing(tmp_path: Path, shelf: Shelf) -> None:
    def read(out: Out) -> Iterator[bytes]:
        yield b""
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        temporary([shelf.file("x")], read)
    with pytest.raises(PathRefused):
        temporary([shelf.file("x"), shelf.file("X")], shelf.read, same=lambda fd, first, second: True)
    assert list(tmp_path.iterdir()) == []


def forget(shelf: Shelf) -> None:
    temporary([shelf.file("x")], shelf.read)
    gc.collect()


def test_one_that_is_forgotten_says_so_and_is_removed(tmp_path: Path, shelf: Shelf) -> None:
    with pytest.warns(ResourceWarning, match="never closed"):
        forget(shelf)
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys, tempfile
sys.path.insert(0, sys.argv[1])
from trees import *
from freehold.storage.temporary import temporary
tempfile.tempdir = sys.argv[2]
shelf = Shelf()
with temporary([shelf.file("x")], shelf.read) as made:
    print("ready", flush=True)
    sys.stdin.readline()
"""


def test_one_whose_process_was_killed_is_swept_by_the_next_and_a_living_one_is_not(tmp_path: Path, shelf: Shelf) -> None:
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parents[1] / "kit"), str(tmp_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    (living,) = stagings(tmp_path)
    with temporary([shelf.file("x")], shelf.read):
        assert living in stagings(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)

    with temporary([shelf.file("x")], shelf.read) as made:
        assert stagings(tmp_path) == [Path(made.path).parent.name]


def test_a_forked_child_does_not_remove_its_parent_s(tmp_path: Path, shelf: Shelf) -> None:
    program = """
import os, sys
sys.path.insert(0, sys.argv[1])
from trees import *
from freehold.storage.temporary import temporary
shelf = Shelf()
with temporary([shelf.file("x")], shelf.read) as made:
    if not (child := os.fork()):
        made.close()
        os._exit(0)
    os.waitpid(child, 0)
    print(os.path.exists(made.path + "/x"))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(Path(__file__).parents[1] / "kit")],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        check=True,
        timeout=50,
    )
    assert done.stdout == b"True\n"
    assert list(tmp_path.iterdir()) == []
