"""C40: a renamed folder takes all that is in it along, and nothing beside it with a like name; on a kill in the middle, all or nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from other import ready
from published import contents

import freehold
from freehold import Run

THINGS = {"a/b/c.txt": b"c", "a/b/d/e.txt": b"e", "ab/x": b"x", "a_/f": b"wild", "axb/f": b"other"}

RENAMES = """
import sys
import freehold
run = freehold.open(sys.argv[1]).open("r")
print("ready", flush=True)
number = 0
while True:
    number += 1
    run.publish("there", lambda files: files.rename("a", "z"))
    print(number, flush=True)
    run.publish("back", lambda files: files.rename("z", "a"))
    number += 1
    print(number, flush=True)
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with freehold.open(tmp_path, timeout=20) as host, host.create("r") as run:
        with run.publish("start") as files:
            for path, content in THINGS.items():
                files.mkdir(path.rpartition("/")[0], parents=True, exist_ok=True)
                files.write_bytes(path, content)
        yield run


def files_of(run: freehold.RunView) -> dict[str, bytes]:
    return {path: content for path, content in contents(run.files).items() if isinstance(content, bytes)}


def test_all_that_is_in_it_goes_along_and_nothing_else(run: Run) -> None:
    first = run.publish("rename", lambda files: files.rename("a", "z"))
    second = run.publish("rename", lambda files: files.rename("a_", "q"))

    assert files_of(run) == {"z/b/c.txt": b"c", "z/b/d/e.txt": b"e", "ab/x": b"x", "q/f": b"wild", "axb/f": b"other"}
    assert [(change.kind, change.before, change.after) for effect in (first, second) for change in effect.changes] == [
        ("renamed", "a", "z"),
        ("renamed", "a_", "q"),
    ]
    assert not run.files.exists("a")
    assert run.snapshot(before=first).read_bytes("a/b/d/e.txt") == b"e"
    assert run.info.events == 4
    run.verify()


def test_its_history_is_reached_under_the_old_and_the_new_name(run: Run) -> None:
    effect = run.publish("rename", lambda files: files.rename("a", "z"))
    last = run.publish("change", lambda files: files.write_bytes("z/b/c.txt", b"new"))

    assert [event.name for event in run.history(path="a/b/c.txt")] == ["start", "rename"]
    assert [event.name for event in run.history(path="z/b/c.txt")] == ["rename", "change"]
    assert run.snapshot(effect).read_bytes("z/b/c.txt") == b"c"
    assert last.changes[0].path == "z/b/c.txt"


def test_a_kill_in_the_middle_leaves_the_old_name_or_the_new_one(tmp_path: Path) -> None:
    with freehold.open(tmp_path, timeout=20) as host, host.create("r") as run, run.publish("start") as files:
        files.mkdir("a/b/d", parents=True)
        files.write_bytes("a/b/c.txt", b"c")
        files.write_bytes("a/b/d/e.txt", b"e")
    for patience in range(1, 6):
        before = freehold.view(tmp_path / "r.sqlite").info.events  # the child does not wait to be looked at
        with ready(RENAMES, str(tmp_path)) as process:
            assert process.stdout is not None
            told = [int(process.stdout.readline()) for _ in range(2 * patience)]
            os.kill(process.pid, signal.SIGKILL)
            told += [int(line) for line in process.stdout.read().split()]
        view = freehold.view(tmp_path / "r.sqlite")
        found = files_of(view)
        top = next(iter(found))[0]

        assert found == {f"{top}/b/c.txt": b"c", f"{top}/b/d/e.txt": b"e"}
        assert view.info.events - before in (told[-1], told[-1] + 1)
        assert top == ("z" if (view.info.events - before) % 2 else "a")
        view.verify()
        with freehold.open(tmp_path, timeout=20) as host, host.open("r") as run, run.publish("same") as again:
            if top == "z":
                again.rename("z", "a")
