"""Who owns nothing in a folder reads its host file, and leaves it and the folder as they were."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from folder import snapshot
from hosting import host_file, known

from freehold.schema.errors import Error
from freehold.storage.clock import Clock
from freehold.storage.faults import SqliteError
from freehold.storage.hostfile import HostFile
from freehold.storage.hostlook import look_at
from freehold.storage.known import put_known, read_known
from freehold.storage.registry import REGISTRY


class Later(Clock):
    """A clock that is past every time of a test's files."""

    def now_ms(self) -> int:
        return super().now_ms() + 3_600_000


LATER = Later()


@pytest.fixture
def file(tmp_path: Path) -> Iterator[HostFile]:
    file = HostFile(str(tmp_path))
    file.write(lambda db: put_known(db, [known(f"r{number}") for number in range(200)]))
    yield file
    file.close()


def test_where_there_is_none_nothing_is_read_and_nothing_is_made(tmp_path: Path) -> None:
    assert look_at(str(tmp_path), read_known, LATER) is None
    assert look_at(str(tmp_path / "runs"), read_known, LATER) is None
    assert list(tmp_path.iterdir()) == []


def test_one_that_nobody_has_open_is_read_without_a_trace(tmp_path: Path, file: HostFile) -> None:
    file.close()
    before = snapshot(tmp_path)
    found = look_at(str(tmp_path), read_known, LATER)
    assert found is not None
    assert len(found) == 200
    assert snapshot(tmp_path) == before
    assert REGISTRY._places == {}


def test_one_that_others_have_open_is_read_beside_them(tmp_path: Path, file: HostFile) -> None:
    file.write(lambda db: put_known(db, [known("new")]))
    found = look_at(str(tmp_path), read_known, LATER)
    assert found is not None
    assert found["new"] == known("new")
    file.write(lambda db: put_known(db, [known("newer")]))


def test_what_dead_users_have_left_in_the_wal_is_read(tmp_path: Path, file: HostFile) -> None:
    file.close()
    die = "import os, sys; from hosting import known; from freehold.storage.hostfile import HostFile; "
    die += "from freehold.storage.known import put_known; file = HostFile(sys.argv[1]); "
    die += "file.write(lambda db: put_known(db, [known('new')])); os._exit(1)"
    subprocess.run(
        [sys.executable, "-c", die, str(tmp_path)], check=False, timeout=30, env={**os.environ, "PYTHONPATH": ":".join(sys.path)}
    )
    before = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    found = look_at(str(tmp_path), read_known, LATER)
    assert found is not None
    assert "new" in found
    assert {path.name: path.stat().st_size for path in tmp_path.iterdir()} == before


def test_one_that_was_written_just_now_is_to_be_read_in_a_moment(tmp_path: Path, file: HostFile) -> None:
    file.close()
    os.utime(host_file(tmp_path), ns=(0, now := time.time_ns()))

    class AtOnce(Clock):
        def now_ms(self) -> int:
            return now // 1_000_000

    with pytest.raises(Error) as caught:
        look_at(str(tmp_path), read_known, AtOnce())
    assert caught.value.code == "changed_while_reading"


def test_one_that_others_open_and_close_meanwhile_does_not_count(tmp_path: Path, file: HostFile) -> None:
    def work(db: apsw.Connection) -> object:
        other = HostFile(str(tmp_path))
        other.write(lambda db: put_known(db, [known("new")]))
        other.close()
        return read_known(db)

    file.close()
    with pytest.raises(Error) as caught:
        look_at(str(tmp_path), work, LATER)
    assert caught.value.code == "changed_while_reading"


@pytest.mark.parametrize("is_open", [False, True])
def test_nothing_can_be_written_by_who_looks(tmp_path: Path, file: HostFile, is_open: bool) -> None:
    def work(db: apsw.Connection) -> None:
        for sql in ("DELETE FROM known", "PRAGMA user_version = 7", "PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM"):
            with pytest.raises(SqliteError):
                db.execute(sql).fetchall()

    if not is_open:
        file.close()
    look_at(str(tmp_path), work, LATER)
    assert len(look_at(str(tmp_path), read_known, LATER) or ()) == 200


def test_one_that_is_just_being_made_is_none_yet(tmp_path: Path) -> None:
    host_file(tmp_path).touch()
    assert look_at(str(tmp_path), read_known, LATER) is None
    host_file(tmp_path).unlink()
    HostFile(str(tmp_path)).close()
    (tmp_path / ".host.sqlite-journal").write_bytes(b"x")
    assert look_at(str(tmp_path), read_known, LATER) is None


def test_text_that_is_none_is_damage_and_is_not_shown(tmp_path: Path, file: HostFile) -> None:
    file.close()
    content = host_file(tmp_path).read_bytes()
    host_file(tmp_path).write_bytes(content.replace(b"paint", b"pa\xff\xfft"))
    with pytest.raises(Error) as caught:
        look_at(str(tmp_path), read_known, LATER)
    assert caught.value.code == "host_file_damaged"
    assert "pa" not in str(caught.value).replace(str(tmp_path), "")
