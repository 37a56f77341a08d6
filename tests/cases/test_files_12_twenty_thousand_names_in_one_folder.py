"""A folder of 20,000 names: each listing is complete, a refusal changes nothing, and what is changed costs nodes by the change alone."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest
from published import objects

import freehold
from freehold import Run

COUNT = 20_000
NAMES = [f"f{number:05}" for number in range(COUNT)]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with freehold.open(tmp_path, timeout=120) as host, host.create("r") as run:
        run.publish("fill", lambda files: [files.mkdir("d"), *(files.touch(f"d/{name}") for name in NAMES)])  # type: ignore[func-returns-value]
        yield run


def listing(run: Run, folder: str) -> list[str]:
    return [path.rpartition("/")[2] for path in run.files.iterdir(folder)]


def test_a_large_folder_is_whole_at_every_step_and_changes_cost_their_own_nodes(run: Run) -> None:
    assert listing(run, "d") == NAMES
    before = objects(run)

    with pytest.raises(OSError, match="d") as caught:
        run.publish("lost", lambda files: files.rmdir("d"))
    assert (caught.value.errno, objects(run)) == (errno.ENOTEMPTY, before)

    run.publish("rename", lambda files: files.rename("d", "e"))
    assert objects(run) - before == 2  # the top directory and the root
    assert listing(run, "e") == NAMES

    for number, change in enumerate((("e/f10000", b"changed"), ("e/g", b"new"), ("e/f00000", b"first"))):
        before = objects(run)
        if number % 2:
            with run.publish("block") as files:
                files.write_bytes(*change)
        else:
            run.publish("turn", lambda files, change=change: files.write_bytes(*change))  # type: ignore[misc]
        assert objects(run) - before <= 8

    run.publish("half", lambda files: [files.remove(f"e/{name}") for name in NAMES[::2]])  # type: ignore[func-returns-value]
    assert listing(run, "e") == [*NAMES[1::2], "g"]
    run.verify()
