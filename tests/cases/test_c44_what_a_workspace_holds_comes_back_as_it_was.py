"""C44: empty folders, links to folders, dangling links, modes and large files are all held, changed and found again as they were."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from published import contents

import freehold
from freehold import Run
from freehold.files import Files

MIB = 1024 * 1024


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with freehold.open(tmp_path, timeout=60) as host, host.create("r") as run:
        yield run


def furnish(files: Files, large: int) -> None:
    files.mkdir("empty/deep", parents=True)
    files.mkdir("folder")
    files.chmod("folder", 0o711)
    files.write_text("folder/f", "f")
    files.symlink("to folder", "folder")
    files.symlink("dangling", "none/at/all")
    files.write_text("script", "#!/bin/sh\n")
    files.chmod("script", 0o755)
    files.write_text("locked", "x")
    files.chmod("locked", 0o400)
    files.touch("nothing")
    with files.open("large", "wb") as file:
        for number in range(large):
            file.write(number.to_bytes(4, "big") * (MIB // 4))


def change_all(files: Files) -> None:
    files.rmtree("empty")
    files.remove("to folder")
    files.mkdir("to folder")
    files.remove("dangling")
    files.write_text("dangling", "a file now")
    files.rmtree("folder")
    files.symlink("folder", "to folder")
    files.chmod("script", 0o644)
    files.write_text("locked", "y")
    with files.open("large", "r+b") as file:
        file.seek(MIB)
        file.write(b"changed")
        file.truncate(2 * MIB)


@pytest.mark.parametrize("large", [3, pytest.param(300, marks=pytest.mark.prove)])
def test_everything_is_found_again_after_all_of_it_was_changed(run: Run, large: int) -> None:
    first = run.publish("furnish", lambda files: furnish(files, large))
    before = contents(run.files) if large < 10 else {}
    run.publish("change", change_all)
    assert run.files.root != first.root

    found = run.snapshot(first)
    assert list(found.iterdir()) == ["dangling", "empty", "folder", "large", "locked", "nothing", "script", "to folder"]
    assert (list(found.iterdir("empty/deep")), found.readlink("to folder"), found.readlink("dangling")) == ([], "folder", "none/at/all")
    assert [oct(found.stat(path).st_mode) for path in ("folder", "script", "locked")] == ["0o40711", "0o100755", "0o100400"]
    assert (found.stat("large").st_size, found.stat("nothing").st_size) == (large * MIB, 0)
    with found.open("large", "rb") as file:
        assert all(file.read(MIB) == number.to_bytes(4, "big") * (MIB // 4) for number in range(large))

    run.restore(first)
    assert run.files.root == first.root
    assert not before or contents(run.files) == before
    run.verify()


@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o1777, 0o10644, -1])
def test_a_mode_that_cannot_be_held_is_refused_rather_than_dropped(run: Run, mode: int) -> None:
    run.publish("furnish", lambda files: furnish(files, 0))
    before = run.files.root
    for path in ("script", "folder"):
        with pytest.raises(OSError, match="Invalid argument"):
            run.publish("lost", lambda files, path=path: files.chmod(path, mode))  # type: ignore[misc]
    assert run.files.root == before
