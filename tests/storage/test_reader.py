"""A run is read whoever owns it: as one moment, writing nothing, and never as if a crash had not happened."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest
from folder import snapshot
from runfile import Owner, forge, forge_and_die, new_run

from freehold.schema.errors import Damaged, Error, Refused, RunNotFound, Unavailable
from freehold.storage import platform
from freehold.storage import reader as module
from freehold.storage.clock import Clock
from freehold.storage.faults import is_storage
from freehold.storage.frontier import read_run
from freehold.storage.path import RunPath, resolve
from freehold.storage.pin import pin
from freehold.storage.reader import beside, reading
from freehold.storage.registry import REGISTRY, OwnedHere
from freehold.storage.store import Store

WRITE = 'UPDATE run SET props = \'{"colour":"red"}\', txn = txn + 1'
READ = """
import os, sys
from freehold.schema.errors import Error
from freehold.storage.manifest import expected
from freehold.storage.path import resolve_file
from freehold.storage.reader import reading
expected()  # read now what the other user may not reach
if len(sys.argv) > 2:
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
try:
    with reading(resolve_file(sys.argv[1])) as db:
        print(db.execute("SELECT props FROM run").get)
except Error as error:
    print(error.code)
"""


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


@pytest.fixture
def public() -> Iterator[Path]:
    """Return a folder that every user can reach, unlike the test's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def props(path: RunPath) -> object:
    with reading(path) as db:
        return db.execute("SELECT props FROM run").get


def bytes_of(folder: Path) -> dict[str, object]:
    """Return names and contents; beside an owner the -shm and, for root, ctimes may move."""
    return {name: entry.bytes for name, entry in snapshot(folder).items() if not name.endswith("-shm")}


@pytest.mark.parametrize("killed", [True, False])
def test_a_run_that_nobody_owns_is_read_and_left_as_it_was(path: RunPath, tmp_path: Path, killed: bool) -> None:
    (forge_and_die if killed else forge)(path, WRITE)
    before = snapshot(tmp_path)

    assert props(path) == '{"colour":"red"}'
    assert Path(path.sibling("-wal")).exists() is killed
    assert snapshot(tmp_path) == before


def test_beside_a_living_owner_its_committed_state_is_read_and_nothing_else_written(path: RunPath, tmp_path: Path) -> None:
    with Owner(path, WRITE, "BEGIN IMMEDIATE", "UPDATE run SET props = '{}'"):
        before = bytes_of(tmp_path)

        assert props(path) == '{"colour":"red"}'
        assert bytes_of(tmp_path) == before


@pytest.mark.parametrize("owned", [True, False])
def test_a_reader_cannot_write_or_end_its_snapshot(path: RunPath, tmp_path: Path, owned: bool) -> None:
    with Owner(path, WRITE) if owned else tempfile.TemporaryDirectory():
        before = bytes_of(tmp_path)
        with reading(path) as db:
            for sql in (
                "UPDATE run SET txn = 9",
                "COMMIT",
                "PRAGMA wal_checkpoint(TRUNCATE)",
                "ATTACH ':memory:' AS other",
                f"VACUUM INTO '{tmp_path}/copy'",
                "PRAGMA query_only = 0",
                "PRAGMA journal_mode = delete",
            ):
                with pytest.raises(Exception) as raised:
                    db.execute(sql).fetchall()
                assert is_storage(raised.value)
            assert db.in_transaction

        assert bytes_of(tmp_path) == before


def test_all_that_one_reading_sees_is_one_moment(path: RunPath) -> None:
    with Owner(path, WRITE):
        with reading(path) as db:
            first = db.execute("SELECT txn FROM run").get
            # The owner's flock keeps no foreign program out; this one stands for the owner's next commit.
            subprocess.run(
                [sys.executable, "-c", f"import apsw; apsw.Connection({path.file!r}).execute('UPDATE run SET txn = 77')"],
                check=True,
                timeout=30,
            )
            assert db.execute("SELECT txn FROM run").get == first
        with reading(path) as db:
            assert db.execute("SELECT txn FROM run").get == 77


def test_a_run_of_this_process_is_its_owners_to_read(path: RunPath) -> None:
    owner = object()
    store = Store(pin(path, exclusive=True, owner=owner), Clock())
    posix = posix_locks(path)
    with pytest.raises(OwnedHere) as raised, reading(path):
        raise AssertionError
    assert raised.value.owner is owner
    assert REGISTRY.owner_of(store.pin.inode) is owner

    # SQLite's own locks would be gone if the file had been opened and closed by hand.
    assert posix
    assert posix_locks(path) == posix
    store.close(clean=True)
    assert props(path) == '{"colour":"blue"}'


def posix_locks(path: RunPath) -> list[str]:
    """Return this process's fcntl locks on the run file and its -shm."""
    inodes = {f":{Path(file).stat().st_ino}" for file in (path.file, path.sibling("-shm"))}
    lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    return sorted(line.split(maxsplit=1)[1] for line in lines if " POSIX " in line and any(inode + " " in line for inode in inodes))


def test_readers_beside_an_owner_never_drop_each_others_locks(path: RunPath) -> None:
    with Owner(path, WRITE), reading(path) as first:
        before = posix_locks(path)
        assert props(path) == '{"colour":"red"}'
        with pytest.raises(Error):
            pin(path, exclusive=True)
        assert [line for line in before if f" {os.getpid()} " in line]
        assert posix_locks(path) == before
        assert first.execute("SELECT txn FROM run").get == 2


def test_many_threads_read_at_once_and_then_an_owner_can_open(path: RunPath) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(lambda _: props(path), range(64))) == {'{"colour":"blue"}'}

    pin(path, exclusive=True).close()


def test_an_owner_in_another_process_waits_for_a_reader(path: RunPath) -> None:
    with reading(path):
        held = platform.lock_holders(platform.inode_of(Path(path.file).stat()))
        assert held == [(os.getpid(), False)]

    assert platform.lock_holders(platform.inode_of(Path(path.file).stat())) == []


def test_an_owner_that_is_just_opening_or_closing_is_waited_for_by_the_caller(path: RunPath, tmp_path: Path) -> None:
    with Owner(path):
        before = snapshot(tmp_path)
        with pytest.raises(Unavailable) as raised:
            props(path)

        assert raised.value.code == "database_busy"
        assert snapshot(tmp_path) == before


def test_when_the_owner_is_killed_the_next_reading_finds_what_it_committed(path: RunPath, tmp_path: Path) -> None:
    with Owner(path, WRITE):
        assert props(path) == '{"colour":"red"}'
    before = snapshot(tmp_path)

    assert props(path) == '{"colour":"red"}'
    assert snapshot(tmp_path) == before


def test_an_owner_that_goes_between_two_looks_is_looked_for_again(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    with Owner(path, WRITE) as owner:
        opened = module._open_beside

        def gone_first(*args: Any) -> apsw.Connection:
            owner.kill()
            owner.wait(30)
            Path(path.sibling("-wal")).rename(path.file + ".kept")  # what a clean close would have brought home
            Path(path.sibling("-shm")).unlink()
            return opened(*args)

        monkeypatch.setattr(module, "_open_beside", gone_first)
        assert props(path) == '{"colour":"blue"}'


def test_an_owner_that_has_come_again_after_the_look_is_waited_for_by_the_caller(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    wal = Path(path.sibling("-wal"))
    opened = module._open_beside

    def gone_for_the_look(*args: Any) -> apsw.Connection:
        wal.rename(path.file + ".kept")
        try:
            return opened(*args)
        finally:
            Path(path.file + ".kept").rename(wal)

    with Owner(path, WRITE):
        monkeypatch.setattr(module, "_open_beside", gone_for_the_look)
        with pytest.raises(Unavailable) as raised:
            props(path)
        assert raised.value.code == "database_busy"
        monkeypatch.undo()
        assert props(path) == '{"colour":"red"}'


def test_a_file_that_is_replaced_while_it_is_opened_beside_its_owner_is_not_read(
    path: RunPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = new_run(tmp_path / "other")
    with Owner(path, WRITE):

        def replaced_meanwhile(*args: Any) -> Any:
            found = read_run(*args)
            Path(other.file).rename(path.file)
            return found

        monkeypatch.setattr(module, "read_run", replaced_meanwhile)
        with pytest.raises(Unavailable) as raised:
            props(path)

    assert raised.value.code == "changed_while_reading"


def test_beside_its_own_owner_a_reader_reads_and_nothing_else(path: RunPath, tmp_path: Path) -> None:
    store = Store(pin(path, exclusive=True), Clock())
    before = bytes_of(tmp_path)
    with beside(path) as db:
        assert db.execute("SELECT id FROM run").get == "a"
        for sql in ("UPDATE run SET txn = 9", "COMMIT", "PRAGMA wal_checkpoint(TRUNCATE)"):
            with pytest.raises(Exception) as raised:
                db.execute(sql).fetchall()
            assert is_storage(raised.value)

    assert bytes_of(tmp_path) == before
    store.close(clean=True)


def test_beside_an_owner_that_has_gone_it_is_told_and_nothing_is_created(path: RunPath, tmp_path: Path) -> None:
    before = snapshot(tmp_path)
    with pytest.raises(Unavailable) as raised, beside(path):
        raise AssertionError
    assert raised.value.code == "database_busy"
    assert snapshot(tmp_path) == before

    with pytest.raises(RunNotFound), beside(resolve(tmp_path, "b")):
        raise AssertionError


@pytest.mark.parametrize("root", ["", "missing"])
def test_a_missing_run_is_not_found_and_nothing_is_created(tmp_path: Path, root: str) -> None:
    before = snapshot(tmp_path)
    with pytest.raises(RunNotFound), reading(resolve(tmp_path / root, "a")):
        raise AssertionError

    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("CREATE TABLE extra (a)", "damaged"),
        ("PRAGMA user_version = 2", "newer_version"),
        ("UPDATE run SET id = 'b'", "another_run"),
        ("UPDATE run SET project = char(0)", "malformed_record"),
    ],
)
def test_what_is_not_a_whole_run_is_refused_beside_an_owner_too(path: RunPath, tmp_path: Path, sql: str, code: str, owned: bool) -> None:
    if not owned:
        forge(path, sql)
    with Owner(path, sql) if owned else tempfile.TemporaryDirectory():
        before = bytes_of(tmp_path)
        with pytest.raises((Damaged, Refused)) as raised:
            props(path)

        assert raised.value.code == code
        assert bytes_of(tmp_path) == before


def test_a_network_file_system_is_refused_unless_the_user_insists(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "filesystem_of", lambda _: "fuse.sshfs")
    with pytest.raises(Refused) as raised:
        props(path)
    assert raised.value.code == "network_filesystem"

    with reading(path, any_filesystem=True) as db:
        assert db.execute("SELECT id FROM run").get == "a"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_read_only_folder_of_another_user_can_be_read(public: Path) -> None:
    path = new_run(public)
    forge_and_die(path, WRITE)
    for file in public.iterdir():
        file.chmod(0o444)
    public.chmod(0o555)
    before = snapshot(public)
    answer = subprocess.run([sys.executable, "-c", READ, path.file, "65534"], capture_output=True, text=True, check=True, timeout=30).stdout

    assert answer == '{"colour":"red"}\n'
    assert snapshot(public) == before


def test_an_error_of_the_callers_own_leaves_nothing_behind(path: RunPath) -> None:
    for owner in (None, Owner(path, WRITE)):
        with owner or tempfile.TemporaryDirectory():
            with pytest.raises(ZeroDivisionError), reading(path):
                raise ZeroDivisionError
            assert REGISTRY._places == {}
