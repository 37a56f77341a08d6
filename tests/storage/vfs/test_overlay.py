"""The overlay reads what is there, keeps what is written to itself, and forgets what was cut off."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import apsw
import pytest
from folder import snapshot
from hypothesis import given
from hypothesis import strategies as st

from freehold.storage.vfs.overlay import OVERLAY, OVERLAYS, PAGE, Copied

Step = tuple[str, int, bytes]
OFFSET = st.one_of(st.integers(0, 4 * PAGE), st.sampled_from([0, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 3 * PAGE]))
STEPS = st.lists(st.tuples(st.sampled_from(["write", "cut"]), OFFSET, st.binary(min_size=1, max_size=2 * PAGE)), max_size=12)


@given(base=st.integers(0, 3 * PAGE), steps=STEPS)
def test_an_overlay_reads_like_a_file_after_any_writes_and_cuts(base: int, steps: list[Step]) -> None:
    model = bytearray(os.urandom(base))
    with tempfile.TemporaryFile() as file:
        file.write(model)
        file.flush()
        copied = Copied(file.fileno())
        for step, offset, content in steps:
            if step == "cut":
                copied.truncate(offset)
                del model[offset:]
            else:
                copied.write(content, offset)
                model.extend(bytes(max(0, offset - len(model))))
                model[offset : offset + len(content)] = content

            assert copied.size == len(model)
            assert copied.read(copied.size + 10, 0) == model


def test_what_was_cut_reads_as_zeros_when_the_file_grows_again(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 3 * PAGE)
    fd = os.open(tmp_path / "f", os.O_RDONLY)
    copied = Copied(fd)
    copied.write(b"y" * PAGE, PAGE)
    copied.truncate(PAGE + 10)
    copied.write(b"z", 3 * PAGE - 1)

    assert copied.read(3 * PAGE, 0) == b"x" * PAGE + b"y" * 10 + bytes(2 * PAGE - 11) + b"z"
    os.close(fd)


def test_sqlite_writes_into_an_overlay_and_the_file_stays_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    db = apsw.Connection(str(file))
    db.execute("PRAGMA journal_mode = wal; CREATE TABLE t (a); INSERT INTO t VALUES (1)").fetchall()
    db.close()
    before = snapshot(tmp_path)
    fd = os.open(file, os.O_RDONLY | os.O_NOATIME)

    with OVERLAYS.over({"": fd}) as path, OVERLAYS.over({"": fd}) as other:
        db, second = (apsw.Connection(name, vfs=OVERLAY, flags=apsw.SQLITE_OPEN_READWRITE) for name in (path, other))
        for each in (db, second):
            each.pragma("locking_mode", "exclusive")
        db.execute("INSERT INTO t VALUES (2)")
        assert db.execute("SELECT count(*) FROM t").get == 2
        assert second.execute("SELECT count(*) FROM t").get == 1
        db.close()
        second.close()

    os.close(fd)
    assert snapshot(tmp_path) == before


def test_an_overlay_that_has_ended_is_gone_and_none_names_a_real_file(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    fd = os.open(tmp_path / "f", os.O_RDONLY)
    with OVERLAYS.over({"": fd, "-wal": fd}) as path:
        assert OVERLAYS.xAccess(path + "-wal", 0)
    os.close(fd)

    for name in (path, path + "-wal", str(tmp_path / "f")):
        assert not OVERLAYS.xAccess(name, 0)
        with pytest.raises(apsw.CantOpenError):
            apsw.Connection(name, vfs=OVERLAY, flags=apsw.SQLITE_OPEN_READWRITE)
