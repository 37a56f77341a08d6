"""A deleted run is gone with everything beside it; what is not ours, or not free, stays as it is."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from folder import descriptors, snapshot
from owned import SetClock, commit_notes, live_richly, own
from runfile import Owner, forge, forge_and_die, new_run

from freehold.schema.errors import Damaged, Error, OwnedElsewhere, Refused, RunNotFound, StorageFailed, Unavailable
from freehold.schema.version import APPLICATION_ID
from freehold.storage import delete as module
from freehold.storage import platform
from freehold.storage.delete import delete
from freehold.storage.path import RunPath, resolve
from freehold.storage.pin import pin
from freehold.storage.recognise import recognise
from freehold.storage.store import Store
from freehold.storage.verify import verify

# Ends at the Nth removal or sync, for every N: one crash after another.
KILLED = """
import os, signal, sys
from freehold.storage import platform
from freehold.storage.clock import Clock
from freehold.storage.delete import delete
from freehold.storage.path import resolve
left = int(sys.argv[2])
def dying(call):
    def count(*args):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return call(*args)
    return count
os.unlink, platform.sync_folder = dying(os.unlink), dying(platform.sync_folder)
delete(resolve(sys.argv[1], "a"), Clock())
"""


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


def names(path: RunPath) -> list[str]:
    return sorted(file.name for file in Path(path.folder).iterdir())


def test_a_run_that_was_closed_cleanly_is_gone(path: RunPath) -> None:
    own(path).close(clean=True)
    before = descriptors()
    delete(path, SetClock())

    assert (names(path), descriptors()) == ([], before)


def test_a_run_whose_owner_was_killed_is_gone_with_all_that_it_left(path: RunPath) -> None:
    forge_and_die(path, "UPDATE run SET txn = 2")
    assert len(names(path)) == 3
    delete(path, SetClock())

    assert names(path) == []


def test_only_this_run_is_gone(path: RunPath, tmp_path: Path) -> None:
    others = [new_run(tmp_path, other) for other in ("aa", "a.a", "b", "a.sqlite")]
    forge_and_die(others[0], "UPDATE run SET txn = 2")
    forge_and_die(path, "UPDATE run SET txn = 2")
    before = {name: entry for name, entry in snapshot(tmp_path).items() if name != "." and not name.startswith(f"{path.id}.sqlite")}
    before["a.sqlite.sqlite"] = snapshot(tmp_path)["a.sqlite.sqlite"]
    delete(path, SetClock())

    assert {name: entry for name, entry in snapshot(tmp_path).items() if name != "."} == before


def test_its_name_is_free_again(path: RunPath) -> None:
    live = own(path)
    commit_notes(live, "1")
    live.close(clean=False)
    delete(path, SetClock())

    store = own(new_run(Path(path.folder)))
    assert (store.epoch, store.journal.head.seq) == (1, 1)
    store.close(clean=True)


def test_the_siblings_are_gone_for_good_before_the_file_goes(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    forge_and_die(path, "UPDATE run SET txn = 2")
    found: list[list[str]] = []
    sync = platform.sync_folder

    def look_and_sync(folder: str) -> None:
        found.append(names(path))
        sync(folder)

    monkeypatch.setattr(platform, "sync_folder", look_and_sync)
    delete(path, SetClock())

    assert found == [["a.sqlite"], []]


def test_the_lock_is_held_until_the_file_is_gone(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    forge_and_die(path, "UPDATE run SET txn = 2")
    inode = platform.inode_of(Path(path.file).stat())
    found: list[list[platform.LockHolder]] = []
    remove = os.unlink

    def look_and_remove(name: str) -> None:
        found.append(platform.lock_holders(inode))
        remove(name)

    monkeypatch.setattr(os, "unlink", look_and_remove)
    delete(path, SetClock())

    assert found == [[(os.getpid(), True)]]


@pytest.mark.parametrize("healthy", [True, False])
def test_a_kill_at_any_point_leaves_the_run_whole_or_gone(tmp_path: Path, healthy: bool) -> None:
    seen = set()
    for point in range(8):
        folder = tmp_path / str(point)
        path = live_richly(folder, long=2000)
        if healthy:
            forge_and_die(path, "UPDATE tenure SET closed_at = NULL", "UPDATE run SET txn = txn + 1000")
        else:
            Path(path.sibling("-shm")).touch()
        result = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(point)], check=False, timeout=30)
        if result.returncode == 0:
            assert names(path) == []
            break
        assert result.returncode == -signal.SIGKILL
        seen.add(tuple(names(path)))
        if names(path):
            held = pin(path, exclusive=True)
            found = recognise(held)
            held.close()
            assert found.last_seq > 15
            assert (found.run.txn > 1000) == healthy  # what stood only in the -wal is not lost before all of it is
            with_db = apsw.Connection(path.file)
            verify(with_db, path)
            with_db.close()
            delete(path, SetClock())
    else:
        pytest.fail("it was never finished")

    assert () in seen
    assert len(seen) > 1


# What is not ours to delete


def foreign_database(path: RunPath) -> None:
    Path(path.file).unlink()
    db = apsw.Connection(path.file)
    db.execute("CREATE TABLE t (a)")
    db.close()


def garbage(path: RunPath) -> None:
    Path(path.file).write_bytes(b"SECRET" * 1000)


def garbage_with_our_id(path: RunPath) -> None:
    Path(path.file).write_bytes(b"SECRET" * 11 + b"!!" + APPLICATION_ID.to_bytes(4, "big") + b"SECRET" * 1000)


def empty(path: RunPath) -> None:
    os.truncate(path.file, 0)


def empty_with_wal(path: RunPath) -> None:
    forge_and_die(path, "UPDATE run SET txn = 2")
    os.truncate(path.file, 0)


def hard_link(path: RunPath) -> None:
    os.link(path.file, path.file + ".other")


def fifo(path: RunPath) -> None:
    Path(path.file).unlink()
    os.mkfifo(path.file)


def folder(path: RunPath) -> None:
    Path(path.file).unlink()
    Path(path.file).mkdir()


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (foreign_database, "not_a_run"),
        (garbage, "not_a_run"),
        (garbage_with_our_id, "not_a_run"),
        (empty, "damaged"),
        (empty_with_wal, "damaged"),
        (hard_link, "hard_link"),
        (fifo, "not_a_file"),
        (folder, "not_a_file"),
    ],
)
def test_what_is_not_ours_is_refused_and_untouched(path: RunPath, tmp_path: Path, spoil: Callable[[RunPath], None], code: str) -> None:
    spoil(path)
    before, open_before = snapshot(tmp_path), descriptors()
    with pytest.raises((Refused, Damaged)) as raised:
        delete(path, SetClock())

    assert raised.value.code == code
    assert (snapshot(tmp_path), descriptors()) == (before, open_before)


def test_a_run_that_is_not_there_is_not_found_and_nothing_is_created(tmp_path: Path) -> None:
    before = snapshot(tmp_path)
    with pytest.raises(RunNotFound):
        delete(resolve(tmp_path, "a"), SetClock())

    assert snapshot(tmp_path) == before


def test_a_run_that_another_process_owns_stays(path: RunPath, tmp_path: Path) -> None:
    before = snapshot(tmp_path)
    with Owner(path), pytest.raises(OwnedElsewhere):
        delete(path, SetClock())

    assert snapshot(tmp_path) == before


def test_a_run_that_we_own_ourselves_stays(path: RunPath) -> None:
    store = own(path)
    with pytest.raises(OwnedElsewhere):
        delete(path, SetClock())
    commit_notes(store, "1")
    store.close(clean=True)

    assert names(path) == ["a.sqlite"]


def test_a_run_that_a_foreign_program_holds_locked_stays(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    forge_and_die(path, "UPDATE run SET txn = 2")
    other = apsw.Connection(path.file)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr("freehold.storage.connection.BUSY_TIMEOUT_MS", 0)
    with pytest.raises(Unavailable) as raised:
        delete(path, SetClock())
    other.close()

    assert raised.value.code == "database_busy"
    assert "a.sqlite" in names(path)


# What is ours and damaged


def torn(path: RunPath) -> None:
    raw = bytearray(Path(path.file).read_bytes())
    raw[4096:] = bytes(len(raw) - 4096)
    Path(path.file).write_bytes(raw)


@pytest.mark.parametrize(
    "spoil",
    [
        torn,
        lambda path: os.truncate(path.file, 5000),
        lambda path: forge(path, "UPDATE event SET hash = zeroblob(32)"),
        lambda path: forge(path, "UPDATE run SET id = 'another'"),
        lambda path: forge(path, "DROP TABLE request"),
        lambda path: forge(path, "CREATE TABLE extra (a)"),
        lambda path: forge(path, "PRAGMA user_version = 0"),
        lambda path: forge(path, "PRAGMA user_version = 9"),
        lambda path: forge_and_die(path, "UPDATE event SET hash = zeroblob(32)"),
        lambda path: Path(path.sibling("-journal")).write_bytes(b"x" * 1000),
    ],
)
def test_a_damaged_run_of_ours_is_deleted_as_it_is(path: RunPath, spoil: Callable[[RunPath], object]) -> None:
    spoil(path)
    before = descriptors()
    delete(path, SetClock())

    assert (names(path), descriptors()) == ([], before)


def test_a_link_beside_it_is_removed_and_what_it_leads_to_is_not(path: RunPath, tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"mine")
    Path(path.sibling("-wal")).symlink_to("mine")
    delete(path, SetClock())

    assert names(path) == ["mine"]


# What the disk says


def test_a_close_that_fails_leaves_the_run_and_raises_ours(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    forge_and_die(path, "UPDATE run SET txn = 2")

    def refusing(*args: Any, **more: Any) -> Store:
        store = Store(*args, **more)
        store.db.set_authorizer(
            lambda kind, table, *_: apsw.SQLITE_DENY if (kind, table) == (apsw.SQLITE_UPDATE, "run") else apsw.SQLITE_OK
        )
        return store

    monkeypatch.setattr(module, "Store", refusing)
    with pytest.raises(Error) as raised:
        delete(path, SetClock())
    monkeypatch.undo()

    assert isinstance(raised.value, StorageFailed)
    assert "a.sqlite" in names(path)
    delete(path, SetClock())
    assert names(path) == []


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_file_that_may_not_be_removed_is_told(path: RunPath, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(name: str) -> None:
        raise OSError(number, "SECRET", name) if name == path.file else FileNotFoundError

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(Refused) as raised:
        delete(path, SetClock())
    monkeypatch.undo()

    assert raised.value.code == "no_permission"
    assert "SECRET" not in str(raised.value)
    assert names(path) == ["a.sqlite"]
    pin(path, exclusive=True).close()
