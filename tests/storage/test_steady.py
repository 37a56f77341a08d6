"""A file's bytes count only if it stayed the same from before the first to after the last."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from folder import descriptors

from freehold.schema.errors import Unavailable
from freehold.schema.limits import CHUNK_BYTES
from freehold.storage.folders import open_top
from freehold.storage.steady import Reader


@pytest.fixture
def dir_fd(tmp_path: Path) -> Iterator[int]:
    fd = open_top(str(tmp_path))
    yield fd
    os.close(fd)


def append(file: Path) -> None:
    with file.open("ab") as opened:
        opened.write(b"more")


def overwrite(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(b"X")
    os.utime(file, ns=(1, 1))


CHANGES: dict[str, Callable[[Path], None]] = {
    "longer": append,
    "shorter": lambda file: os.truncate(file, 3),
    "rewritten": overwrite,
    "another mode": lambda file: file.chmod(0o600),
}


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1])
def test_the_bytes_come_in_pieces_of_a_chunk(dir_fd: int, tmp_path: Path, size: int) -> None:
    (tmp_path / "file").write_bytes(content := os.urandom(size))
    with Reader("file", dir_fd, ("file",)) as reader:
        pieces = list(reader)

    assert b"".join(pieces) == content
    assert all(len(piece) == CHUNK_BYTES for piece in pieces[:-1])


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_file_that_changes_meanwhile_is_refused_at_its_end(dir_fd: int, tmp_path: Path, change: Callable[[Path], None]) -> None:
    (tmp_path / "file").write_bytes(bytes(2 * CHUNK_BYTES))
    with Reader("file", dir_fd, ("a", "file")) as reader, pytest.raises(Unavailable, match="a/file") as raised:
        for number, _ in enumerate(reader):
            if number == 0:
                change(tmp_path / "file")

    assert raised.value.code == "changed_while_reading"


def test_what_was_not_read_to_its_end_is_not_settled(dir_fd: int, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(2 * CHUNK_BYTES))
    with Reader("file", dir_fd, ("file",)) as reader:
        next(iter(reader))
        with pytest.raises(Unavailable):
            reader.settled()


def test_a_fifo_in_the_place_of_a_file_is_not_waited_for(dir_fd: int, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "file")
    before = descriptors()
    with pytest.raises(Unavailable):
        Reader("file", dir_fd, ("file",))

    assert descriptors() == before
