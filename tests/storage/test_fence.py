"""A file that is not ours any more is noticed in the next transaction, and told as what has happened to it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from owned import begin, commit_notes, note, own, write_elsewhere
from runfile import new_run

from freehold.storage.faults import Ended, Poisoned
from freehold.storage.fence import Fence
from freehold.storage.path import RunPath
from freehold.storage.platform import inode_of
from freehold.storage.store import Store
from freehold.storage.transaction import immediate


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


@pytest.fixture
def store(path: RunPath) -> Iterator[Store]:
    store = own(path)
    commit_notes(store, "1")
    yield store
    store.close(clean=False)


def foreign_commit(path: RunPath) -> None:
    write_elsewhere(path, "UPDATE run SET updated_at = updated_at + 1")


def foreign_connection(path: RunPath) -> None:
    db = apsw.Connection(path.file)
    db.execute("UPDATE run SET updated_at = updated_at + 1")
    db.close()


def take_over(path: RunPath) -> None:
    write_elsewhere(path, "UPDATE run SET epoch = epoch + 1")


def replace(path: RunPath) -> None:
    shutil.copy(path.file, path.file + ".copy")
    Path(path.file + ".copy").rename(path.file)


def remove(path: RunPath) -> None:
    Path(path.file).unlink()


def move(path: RunPath) -> None:
    Path(path.file).rename(path.file + ".moved")


def link(path: RunPath) -> None:
    Path(path.file).rename(path.file + ".moved")
    Path(path.file).symlink_to(path.file + ".moved")


def remove_wal(path: RunPath) -> None:
    Path(path.sibling("-wal")).unlink()


def replace_wal(path: RunPath) -> None:
    shutil.copy(path.sibling("-wal"), path.file + ".copy")
    Path(path.file + ".copy").rename(path.sibling("-wal"))


@pytest.mark.parametrize(
    ("happens", "rule"),
    [
        (take_over, "epoch"),
        (foreign_commit, "foreign_writer"),
        (foreign_connection, "foreign_writer"),
        (replace, "file_replaced"),
        (remove, "file_replaced"),
        (move, "file_replaced"),
        (link, "file_replaced"),
        (remove_wal, "wal_replaced"),
        (replace_wal, "wal_replaced"),
    ],
)
def test_what_happened_to_the_file_fences_its_owner_for_good(
    store: Store, path: RunPath, happens: Callable[[RunPath], None], rule: str
) -> None:
    last, txn = store.journal.head.seq, store.transaction.txn
    happens(path)

    with pytest.raises(Poisoned) as raised:
        begin(store)
    error = raised.value.error
    assert (error.details["fence"], error.details["phase"], error.executed) == (rule, "begin", "no")
    assert raised.value.unknown_txn is None
    assert not store.db.in_transaction
    for _ in range(2):
        with pytest.raises(Poisoned) as again:
            begin(store)
        assert again.value.error is error
    with pytest.raises(Poisoned):
        note(store)
    assert store.db.execute("SELECT max(seq), txn FROM event, run").get == (last, txn)


def touch(path: RunPath) -> None:
    os.utime(path.file)


def cut_wal(path: RunPath) -> None:
    os.truncate(path.sibling("-wal"), os.lstat(path.sibling("-wal")).st_size - 1)


def replace_cut_wal(path: RunPath) -> None:
    replace_wal(path)
    cut_wal(path)


@pytest.mark.parametrize(
    ("happens", "is_ours"),
    [(touch, True), (cut_wal, True), (replace, False), (remove, False), (remove_wal, False), (replace_cut_wal, False)],
)
def test_only_what_is_done_to_our_own_files_is_overwriting(
    store: Store, path: RunPath, happens: Callable[[RunPath], None], is_ours: bool
) -> None:
    assert not store.fence.is_overwritten()
    happens(path)

    assert store.fence.is_overwritten() == is_ours


def test_a_wal_that_is_cut_before_the_first_turn_fences_its_owner(path: RunPath) -> None:
    store = own(path)
    cut_wal(path)
    with pytest.raises(Poisoned) as raised:
        begin(store)
    store.close(clean=False)

    assert raised.value.error.details["fence"] == "wal_cut"


def test_our_own_commits_rollbacks_and_checkpoints_do_not_fence_us(store: Store) -> None:
    for _ in range(3):
        commit_notes(store, "1")
        begin(store)
        note(store)
        store.rollback()
        store.wal.checkpoint()
        store.wal.checkpoint(truncate=True)
    commit_notes(store, "1")

    assert store.journal.head.seq == 6


def test_a_foreign_reader_does_not_fence_us(store: Store, path: RunPath) -> None:
    db = apsw.Connection(path.file, flags=apsw.SQLITE_OPEN_READONLY)
    db.execute("BEGIN; SELECT * FROM event").fetchall()
    commit_notes(store, "1")
    store.wal.checkpoint(truncate=True)
    commit_notes(store, "1")
    db.close()
    commit_notes(store, "1")

    assert store.journal.head.seq == 5


def test_a_foreign_commit_right_after_the_take_over_is_foreign_already(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    # Between the take-over's COMMIT and whatever its owner does next.
    @contextmanager
    def written_after(db: apsw.Connection) -> Iterator[None]:
        with immediate(db):
            yield
        foreign_connection(path)

    monkeypatch.setattr("freehold.storage.tenure.immediate", written_after)
    store = own(path)
    with pytest.raises(Poisoned) as raised:
        begin(store)
    store.close(clean=True)
    assert raised.value.error.details["fence"] == "foreign_writer"


def test_a_foreign_commit_between_the_two_looks_of_a_fence_is_not_overlooked(store: Store, path: RunPath) -> None:
    store.db.set_progress_handler(lambda: True, 1)
    with pytest.raises(Ended):
        begin(store)
    store.db.set_progress_handler(None)
    looks: list[str] = []

    def write_once(_cursor: apsw.Cursor, sql: str, _bindings: object) -> bool:
        if "data_version" in sql and "BEGIN" not in sql and not looks:
            looks.append(sql)
            foreign_commit(path)
        return True

    store.db.set_exec_trace(write_once)
    with pytest.raises(Poisoned) as raised:
        begin(store)
    store.db.set_exec_trace(None)

    assert looks
    assert raised.value.error.details["fence"] == "foreign_writer"


def test_a_fence_that_was_never_armed_lets_nothing_pass(path: RunPath) -> None:
    fence = Fence(path.file, inode_of(os.lstat(path.file)))
    error = fence.taken([(2,), (2,)])

    assert error is not None
    assert error.details["fence"] == "foreign_writer"
