"""A folder with everything in it: what is taken comes back as it was, what is not is listed, and a checkout leaves it alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from nobody import as_nobody, needs_another_user, nobodys_folder
from trees import Shelf, taken, tree

from freehold.schema.skipped import Reason
from freehold.storage.checkout import checkout

MIB = 1024 * 1024


def furnish(top: Path, large_bytes: int) -> None:
    """Make the folder of the case."""
    (top / "empty").mkdir(parents=True)
    (top / "folder").mkdir()
    (top / "folder" / "file").write_bytes(b"file")
    (top / "way").symlink_to("folder")
    (top / "dangling").symlink_to("nowhere")
    for name, mode in (("script", 0o755), ("secret", 0o400), ("setuid", 0o4755)):
        (top / name).write_bytes(name.encode())
        (top / name).chmod(mode)
    with (top / "large").open("wb") as file:
        for number in range(large_bytes // MIB):
            file.write(bytes([number % 251]) * MIB)
    os.mkfifo(top / "fifo")


@pytest.mark.parametrize("large_bytes", [3 * MIB, pytest.param(300 * MIB, marks=pytest.mark.prove)])
def test_a_folder_is_changed_in_everything_and_comes_back(tmp_path: Path, large_bytes: int) -> None:
    top, shelf = tmp_path / "top", Shelf()
    furnish(top, large_bytes)
    before = tree(top)
    entries, report = taken(top, shelf)

    assert [(entry.path, entry.reason) for entry in report.skipped] == [("fifo", Reason.FIFO), ("setuid", Reason.SPECIAL_BITS)]
    assert not report.complete
    assert report.left_out() == {("fifo",)}

    (top / "empty").rmdir()
    (top / "empty").write_bytes(b"not a folder")
    (top / "folder" / "more").mkdir()
    (top / "way").unlink()
    (top / "dangling").unlink()
    (top / "dangling").mkdir()
    for name in ("script", "secret", "setuid"):
        (top / name).chmod(0o666)
        (top / name).write_bytes(b"changed")
    os.truncate(top / "large", 5)

    done = checkout(str(top), entries, shelf.read, replace="always", leave_alone=report.left_out())
    assert done.left_alone == (("fifo",),)
    assert tree(top) == before | {"setuid": ("file", 0o755, b"setuid")}
    assert taken(top, shelf)[0] == entries


@needs_another_user
def test_what_could_not_be_read_is_still_there_after_a_checkout() -> None:
    with nobodys_folder() as top:
        for path in (top / "w" / "closed" / "x", top / "w" / "mine", top / "w" / "theirs"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"important")
        os.chown(top / "w", 65534, 65534)
        (top / "w" / "closed").chmod(0o700)
        (top / "w" / "theirs").chmod(0o600)
        program = """
entries, report = taken(top / "w", shelf)
print([s.path for s in report.skipped], report.complete)
(top / "w" / "mine").unlink()
(top / "w" / "extra").touch()
print(*checkout(str(top / "w"), entries, shelf.read, replace="always", leave_alone=report.left_out()))
"""
        told = as_nobody(top, program)
        assert told == "['closed', 'theirs'] False\n1 0 1 (('closed',), ('theirs',))\n"
        assert tree(top / "w").keys() == {"closed", "closed/x", "mine", "theirs"}
