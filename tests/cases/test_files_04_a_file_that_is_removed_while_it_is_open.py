"""Whoever has a file open goes on reading and writing it after its name is gone; at its close nothing comes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from published import contents

import freehold
from freehold.files import Files


@pytest.mark.parametrize(
    ("take_away", "left"),
    [
        (lambda files: files.remove("d/f"), {"d": "/", "g": b"g"}),
        (lambda files: files.rmtree("d"), {"g": b"g"}),
        (lambda files: files.rename("g", "d/f"), {"d": "/", "d/f": b"g"}),
    ],
)
def test_a_removed_file_is_read_by_who_has_it_open_and_does_not_come_back(
    tmp_path: Path, take_away: Callable[[Files], None], left: dict[str, bytes | str]
) -> None:
    with freehold.open(tmp_path, timeout=20) as host, host.create("r") as run:
        with run.publish("start") as files:
            files.mkdir("d")
            files.write_bytes("d/f", bytes(200_000))
            files.write_text("g", "g")

        with run.publish("remove") as files, files.open("d/f", "r+b") as file:
            file.write(b"written before")
            take_away(files)
            file.seek(0)
            assert file.read(14) == b"written before"
            file.write(b"and after")
            file.seek(0, 2)
            assert file.tell() == 200_000

        assert contents(run.files) == left
        run.verify()


def test_a_name_that_is_taken_again_is_another_file(tmp_path: Path) -> None:
    with freehold.open(tmp_path, timeout=20) as host, host.create("r") as run:
        with run.publish("both") as files:
            files.write_text("f", "old")
            with files.open("f", "r+") as old:
                files.remove("f")
                files.write_text("f", "new")
                with files.open("f") as new:
                    assert (old.read(), new.read()) == ("old", "new")
                old.write("more")

        assert contents(run.files) == {"f": b"new"}
