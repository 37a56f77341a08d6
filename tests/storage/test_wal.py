"""The -wal is brought home between transactions, as often as it is long and never at a commit's expense."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from faulty import Disk
from owned import begin, commit_notes, events, note, own
from runfile import new_run

from freehold.schema.limits import BUSY_TIMEOUT_MS, CHECKPOINT_PAGES
from freehold.storage.faults import Poisoned
from freehold.storage.path import RunPath
from freehold.storage.store import Store


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.unregister()


@pytest.fixture
def store(path: RunPath, disk: Disk) -> Iterator[Store]:
    store = own(path, vfs=disk.name)
    yield store
    disk.heal()
    store.close(clean=False)


def grow(store: Store, pages: int) -> None:
    """Commit at least so many pages at once."""
    begin(store)
    for _ in range(pages):
        store.db.execute("INSERT INTO object (hash, kind, size, codec, data) VALUES (?, 0, 4000, 0, ?)", (os.urandom(32), os.urandom(4000)))
    store.commit()


def size(path: RunPath) -> int:
    return Path(path.sibling("-wal")).stat().st_size


def test_nothing_waits_in_a_file_that_was_only_opened(store: Store) -> None:
    assert (store.wal.is_waiting, store.wal.is_long) == (False, False)


def test_a_commit_waits_and_a_checkpoint_brings_it_home(store: Store, path: RunPath) -> None:
    commit_notes(store, "1")
    assert (store.wal.is_waiting, store.wal.is_long) == (True, False)

    before = Path(path.file).stat().st_mtime_ns
    store.wal.checkpoint()
    assert not store.wal.is_waiting
    assert Path(path.file).stat().st_mtime_ns > before


def test_it_is_long_from_a_thousand_pages_on(store: Store) -> None:
    grow(store, CHECKPOINT_PAGES - 100)
    found = [store.wal.is_long]
    grow(store, 100)
    found.append(store.wal.is_long)
    store.wal.checkpoint()
    found += [store.wal.is_long, store.wal.is_waiting]

    assert found == [False, True, False, False]


def test_nothing_is_brought_home_by_a_commit(store: Store, path: RunPath) -> None:
    before = Path(path.file).stat().st_mtime_ns
    grow(store, CHECKPOINT_PAGES + 100)
    commit_notes(store, "1")

    assert Path(path.file).stat().st_mtime_ns == before
    assert size(path) > CHECKPOINT_PAGES * 4096


def test_a_reader_holds_it_back_and_is_not_waited_for(store: Store, path: RunPath) -> None:
    commit_notes(store, "1")
    reader = apsw.Connection(path.file, flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN; SELECT * FROM event").fetchall()
    grow(store, CHECKPOINT_PAGES)
    waited: list[int] = []

    def give_up(times: int) -> bool:
        waited.append(times)
        return False

    for truncate in (False, True):
        store.db.set_busy_handler(give_up)
        store.wal.checkpoint(truncate=truncate)
    assert waited == []
    # It is not tried again for every commit.
    assert (store.wal.is_long, store.wal.is_waiting, store.transaction.poisoned) == (False, False, None)
    assert size(path) > CHECKPOINT_PAGES * 4096

    reader.close()
    commit_notes(store, "1")
    assert store.wal.is_waiting
    store.wal.checkpoint(truncate=True)
    assert size(path) == 0


@pytest.mark.parametrize("truncate", [False, True])
def test_after_a_checkpoint_locks_are_waited_for_again(store: Store, truncate: bool) -> None:
    store.wal.checkpoint(truncate=truncate)

    assert store.db.pragma("busy_timeout") == BUSY_TIMEOUT_MS


def test_counting_begins_anew_with_the_file(store: Store, path: RunPath) -> None:
    for _ in range(2):
        grow(store, CHECKPOINT_PAGES)
        assert store.wal.is_long
        store.wal.checkpoint()
        kept = size(path)
        commit_notes(store, "1")  # the first commit after it goes to the beginning of the same file
        assert store.wal.pages < 100
        assert (store.wal.is_long, store.wal.is_waiting, size(path)) == (False, True, kept)


@pytest.mark.parametrize("truncate", [False, True])
@pytest.mark.parametrize(("operation", "suffix"), [("write", ""), ("sync", ""), ("sync", "-wal"), ("read", "-wal")])
def test_a_disk_that_refuses_poisons_and_loses_nothing(
    store: Store, path: RunPath, disk: Disk, truncate: bool, operation: str, suffix: str
) -> None:
    commit_notes(store, "1", "2")
    disk.arm(operation, suffix, code=apsw.SQLITE_IOERR | (4 << 8))
    with pytest.raises(Poisoned) as raised:
        store.wal.checkpoint(truncate=truncate)
    disk.heal()

    assert raised.value.unknown_txn is None
    with pytest.raises(Poisoned):
        begin(store)
    store.close(clean=True)
    assert events(path) == 3
    own(path).close(clean=True)


@pytest.mark.parametrize("truncate", [False, True])
def test_a_full_disk_leaves_the_wal_whole_for_a_later_checkpoint(store: Store, path: RunPath, disk: Disk, truncate: bool) -> None:
    commit_notes(store, "1", "2")
    disk.arm("write", "", code=apsw.SQLITE_FULL)
    store.wal.checkpoint(truncate=truncate)
    disk.heal()

    assert store.transaction.poisoned is None
    commit_notes(store, "3")
    store.wal.checkpoint(truncate=True)
    assert (events(path), size(path)) == (4, 0)


def test_a_clean_close_leaves_one_file(store: Store, path: RunPath) -> None:
    grow(store, 50)
    store.close(clean=True)

    assert sorted(file.name for file in Path(path.folder).iterdir()) == ["a.sqlite"]


def test_inside_a_transaction_nothing_is_brought_home(store: Store, path: RunPath) -> None:
    begin(store)
    note(store)
    store.wal.checkpoint()
    store.commit()

    assert store.transaction.poisoned is None
    assert events(path) == 2
