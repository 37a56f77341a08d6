"""A transaction is kept whole or not at all, is proved ours at its beginning, and nothing is ever committed after its end."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import apsw
import pytest
from faulty import Disk
from owned import NOW_MS, begin, commit_notes, events, note, own, seen, write_elsewhere
from runfile import new_run

from freehold.schema.errors import Error, Unavailable
from freehold.schema.hashes import request_digest
from freehold.storage.faults import Ended, Poisoned, SqliteError
from freehold.storage.path import RunPath, resolve
from freehold.storage.store import Store
from freehold.storage.transaction import immediate, snapshot

BIG = '"' + "x" * 3000 + '"'


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


@pytest.fixture
def store(path: RunPath) -> Iterator[Store]:
    store = own(path)
    commit_notes(store, "1")
    yield store
    store.close(clean=False)


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.unregister()


@pytest.fixture
def faulty(path: RunPath, disk: Disk) -> Iterator[Store]:
    """Return a store on a disk that fails where it is told to."""
    store = own(path, vfs=disk.name)
    commit_notes(store, "1")
    yield store
    disk.heal()
    store.close(clean=False)


def row(path: RunPath) -> tuple[int, int, int]:
    found: tuple[int, int, int] = seen(path, "SELECT txn, epoch, updated_at FROM run")
    return found


def said(db: apsw.Connection) -> Counter[str]:
    """Count the first words of every statement that the connection carries out from now on."""
    words: Counter[str] = Counter()

    def count(_cursor: apsw.Cursor, sql: str, _bindings: Any) -> bool:
        words[sql.split(maxsplit=1)[0].strip(";")] += 1
        return True

    db.set_exec_trace(count)
    return words


def fill_up(store: Store) -> SqliteError:
    """Append until SQLite says that the file may not grow, and has ended the transaction itself; return what it said."""
    store.db.pragma("max_page_count", store.db.pragma("page_count") + 2)
    with pytest.raises(SqliteError) as raised:
        for _ in range(50):
            note(store, BIG)
    store.db.pragma("max_page_count", 2**31)
    return raised.value


# Begun and ended


def test_every_write_transaction_counts_one(store: Store, path: RunPath) -> None:
    first = store.transaction.txn
    numbers = []
    for _ in range(3):
        begin(store)
        numbers.append(store.transaction.txn)
        store.commit()

    assert numbers == [first + 1, first + 2, first + 3]
    assert row(path)[:2] == (first + 3, store.epoch)


def test_a_rolled_back_transaction_uses_no_number_up(store: Store, path: RunPath) -> None:
    before, last = row(path), events(path)
    begin(store)
    number = store.transaction.txn
    note(store)
    store.rollback()

    assert (row(path), events(path), store.db.in_transaction) == (before, last, False)
    begin(store)
    assert store.transaction.txn == number
    store.rollback()


def test_the_moment_of_the_transaction_stands_in_the_run_row(store: Store, path: RunPath) -> None:
    store.begin(NOW_MS + 7)
    store.commit()

    assert row(path)[2] == NOW_MS + 7


def test_it_is_seen_by_others_at_its_commit_and_not_before(store: Store, path: RunPath) -> None:
    begin(store)
    note(store)
    assert events(path) == 2

    store.commit()
    assert events(path) == 3


def test_the_write_lock_is_ours_from_the_beginning(store: Store, path: RunPath) -> None:
    begin(store)
    other = apsw.Connection(path.file)
    with pytest.raises(apsw.BusyError):
        other.execute("BEGIN IMMEDIATE")
    other.close()

    store.rollback()


def test_a_foreign_write_lock_is_told_as_busy_and_passes(store: Store, path: RunPath) -> None:
    store.db.set_busy_timeout(0)
    other = apsw.Connection(path.file)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable) as raised:
        begin(store)
    assert (raised.value.code, store.db.in_transaction, store.transaction.poisoned) == ("database_busy", False, None)
    assert not store.transaction.is_open

    other.close()
    commit_notes(store, "1")
    assert events(path) == 3


def test_a_commit_of_a_second_process_ends_the_ownership(store: Store, path: RunPath) -> None:
    before = row(path)
    write_elsewhere(path, "UPDATE run SET project = 'theirs'")
    with pytest.raises(Poisoned) as raised:
        begin(store)

    assert raised.value.error.details["fence"] == "foreign_writer"
    assert row(path) == before
    assert seen(path, "SELECT project FROM run") == "theirs"


# Ended by SQLite


def test_a_full_file_ends_the_transaction_and_the_connection_goes_on(store: Store, path: RunPath) -> None:
    before, last = row(path), events(path)
    begin(store)
    error = fill_up(store)
    with pytest.raises(Ended) as raised:
        store.transaction.after(error)
    told = raised.value.error
    assert (told.details["phase"], told.details["rolled_back"], told.executed, told.retryable) == ("body", True, "no", True)
    assert told.details["sqlite_extended_code"] == apsw.SQLITE_FULL
    assert not store.transaction.is_open
    store.rollback()
    assert (row(path), events(path), store.transaction.poisoned) == (before, last, None)

    commit_notes(store, "1")
    assert events(path) == last + 1


def test_a_full_disk_ends_the_transaction_and_the_connection_goes_on(faulty: Store, path: RunPath, disk: Disk) -> None:
    faulty.db.pragma("cache_size", 10)  # so that the body itself has to write
    before, last = row(path), events(path)
    begin(faulty)
    disk.arm("write", "-wal", code=apsw.SQLITE_FULL)
    with pytest.raises(SqliteError) as raised:
        for _ in range(200):
            note(faulty, BIG)
    with pytest.raises(Ended):
        faulty.transaction.after(raised.value)
    faulty.rollback()
    assert (row(path), events(path), faulty.transaction.poisoned) == (before, last, None)

    disk.heal()
    commit_notes(faulty, "1")
    assert events(path) == last + 1


def test_an_end_that_nobody_was_told_of_does_not_fence_us(faulty: Store, path: RunPath, disk: Disk) -> None:
    faulty.db.pragma("cache_size", 10)
    begin(faulty)
    disk.arm("write", "-wal", code=apsw.SQLITE_FULL)
    with pytest.raises(SqliteError):
        for _ in range(200):
            note(faulty, BIG)
    disk.heal()
    assert not faulty.db.in_transaction
    faulty.rollback()

    commit_notes(faulty, "1")
    assert events(path) == 3


def test_the_first_end_is_told_again(store: Store) -> None:
    begin(store)
    error = fill_up(store)
    told = []
    for _ in range(2):
        with pytest.raises(Ended) as raised:
            store.transaction.after(error)
        told.append(raised.value)

    assert told[0] is told[1]
    store.rollback()


def test_an_end_that_leaves_us_unsure_poisons(store: Store) -> None:
    begin(store)
    store.db.execute("ROLLBACK")
    ended = store.transaction.ended(apsw.IOError("the disk refuses"))

    assert poison_of(store) is ended


def test_the_next_beginning_forgets_an_end(store: Store) -> None:
    begin(store)
    error = fill_up(store)
    with pytest.raises(Ended):
        store.transaction.after(error)
    with pytest.raises(Ended):
        store.transaction.guard()
    begin(store)
    store.transaction.guard()
    store.rollback()

    assert store.transaction.poisoned is None


def test_a_transaction_knows_whether_it_has_written_a_row(store: Store) -> None:
    begin(store)
    found = [store.transaction.has_changed]
    store.db.execute("SELECT * FROM event").fetchall()
    found.append(store.transaction.has_changed)
    note(store)
    found.append(store.transaction.has_changed)
    store.rollback()

    assert found == [False, False, True]


def test_a_foreign_commit_is_not_overlooked_among_the_ruins_of_our_own(faulty: Store, path: RunPath, disk: Disk) -> None:
    faulty.db.pragma("cache_size", 10)
    begin(faulty)
    disk.arm("write", "-wal", code=apsw.SQLITE_FULL)
    with pytest.raises(SqliteError) as raised:
        for _ in range(200):
            note(faulty, BIG)
    disk.heal()
    write_elsewhere(path, "UPDATE run SET project = 'theirs'")
    with pytest.raises(Ended):
        faulty.transaction.after(raised.value)
    faulty.rollback()

    with pytest.raises(Poisoned) as fenced:
        begin(faulty)
    assert fenced.value.error.details["fence"] == "foreign_writer"


def test_an_error_at_the_beginning_that_nobody_expects_poisons(store: Store, path: RunPath) -> None:
    before = row(path)
    store.db.set_authorizer(denied("run", apsw.SQLITE_UPDATE))
    with pytest.raises(Poisoned) as raised:
        begin(store)
    store.db.set_authorizer(None)

    assert raised.value.error.details == {"phase": "begin", "rolled_back": True, "sqlite_extended_code": apsw.SQLITE_AUTH}
    assert not store.db.in_transaction
    assert poison_of(store) is raised.value
    assert row(path) == before


def test_a_harmless_error_at_the_beginning_loses_that_transaction_and_no_more(store: Store, path: RunPath) -> None:
    before = row(path)
    store.db.set_progress_handler(lambda: True, 1)  # the only harmless error that comes when it is called for
    with pytest.raises(Ended) as raised:
        begin(store)
    store.db.set_progress_handler(None)
    assert (raised.value.error.details["phase"], raised.value.error.details["rolled_back"]) == ("begin", True)
    assert (row(path), store.db.in_transaction, store.transaction.poisoned) == (before, False, None)

    commit_notes(store, "1")
    assert events(path) == 3


def test_a_beginning_that_cannot_be_undone_poisons(store: Store, path: RunPath) -> None:
    before = row(path)
    store.db.set_authorizer(denied("ROLLBACK"))
    with pytest.raises(Poisoned) as raised:
        store.begin(-1)  # a moment that the run row does not take: harmless by itself
    store.db.set_authorizer(None)

    assert raised.value.error.details["rolled_back"] is False
    assert poison_of(store) is raised.value
    store.close(clean=True)
    assert row(path) == before


EVERYTHING = "SELECT max(seq), (SELECT count(*) FROM object), status, txn FROM event, run"
STATEMENTS: list[Callable[[Store], object]] = [
    note,
    lambda store: note(store, BIG * 2),
    lambda store: store.append_once("r", request_digest("append"), "n", "1", NOW_MS),
    lambda store: store.executions.begin(NOW_MS),
    *(
        settling := [
            lambda store: store.executions.settle("failed", "tired", None, NOW_MS),
            lambda store: store.executions.settle("failed", None, None, NOW_MS),
            lambda store: store.executions.settle("failed", None, 1, NOW_MS),
        ]
    ),
    lambda store: store.savepoints.open(),
    lambda store: store.savepoints.release("s1"),
    lambda store: store.savepoints.undo("s1"),
    lambda store: store.savepoints.scope().__enter__(),
    lambda store: store.transaction.guard(),
    lambda store: store.commit(),
]


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("told", [True, False])
def test_no_statement_after_the_end_is_committed_alone(
    store: Store, path: RunPath, statement: Callable[[Store], object], told: bool
) -> None:
    if statement in settling:
        begin(store)
        store.executions.begin(NOW_MS)
        store.commit()
    before = seen(path, EVERYTHING)
    begin(store)
    error = fill_up(store)
    if told:
        with pytest.raises(Ended):
            store.transaction.after(error)

    # An end that SQLite has told of is known; one that nobody has told of leaves us unsure.
    for _ in range(2):
        with pytest.raises(Ended if told else Poisoned):
            statement(store)
    assert not store.db.in_transaction
    assert seen(path, EVERYTHING) == before
    store.rollback()
    with pytest.raises(Poisoned):
        statement(store)
    assert seen(path, EVERYTHING) == before


@pytest.mark.parametrize("statement", STATEMENTS)
def test_no_statement_before_the_beginning_is_committed_alone(store: Store, path: RunPath, statement: Callable[[Store], object]) -> None:
    if statement in settling:
        begin(store)
        store.executions.begin(NOW_MS)
        store.commit()
    before = seen(path, EVERYTHING)
    with pytest.raises(Poisoned):
        statement(store)

    assert not store.db.in_transaction
    assert seen(path, EVERYTHING) == before


def test_an_interrupted_write_ends_the_transaction_and_is_no_poison(store: Store, path: RunPath) -> None:
    begin(store)
    note(store)
    # SQLite asks this every few steps of a statement; a write that is cut short takes the whole transaction with it.
    store.db.set_progress_handler(lambda: True, 1)
    with pytest.raises(SqliteError) as raised:
        store.db.execute("UPDATE event SET recorded_at = recorded_at")
    store.db.set_progress_handler(None)
    with pytest.raises(Ended):
        store.transaction.after(raised.value)

    store.rollback()
    commit_notes(store, "1")
    assert events(path) == 3


# What poisons, and what does not


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO run SELECT * FROM run",
        "UPDATE event SET kind = 'other'",
        "UPDATE event SET root = 99",
        "UPDATE event SET id = NULL",
        "UPDATE event SET name = x'00'",
        "INSERT INTO object (id, hash, kind, size, codec, data) VALUES ('x', zeroblob(32), 0, 0, 0, x'')",
    ],
)
def test_a_broken_constraint_loses_its_statement_and_no_more(store: Store, path: RunPath, sql: str) -> None:
    begin(store)
    note(store)
    with pytest.raises(SqliteError) as raised:
        store.db.execute(sql)
    told = store.transaction.after(raised.value)
    note(store)
    store.commit()

    assert (told.details["phase"], told.executed, store.transaction.poisoned) == ("body", "no", None)
    assert events(path) == 4


def poison_of(store: Store) -> Poisoned:
    """Return what every later call on the connection is answered with, the same each time."""
    errors = []
    for call in (begin, note, lambda store: store.commit(), lambda store: store.savepoints.open(), lambda store: store.executions.begin(1)):
        with pytest.raises(Poisoned) as raised:
            call(store)
        errors.append(raised.value)
    assert len({id(error) for error in errors}) == 1
    assert not store.transaction.is_open
    return errors[0]


def test_a_read_that_fails_in_the_body_poisons(faulty: Store, path: RunPath, disk: Disk) -> None:
    commit_notes(faulty, *[BIG] * 40)
    last = events(path)
    faulty.db.pragma("cache_size", 1)
    faulty.db.execute("PRAGMA shrink_memory")
    begin(faulty)
    disk.arm("read", "-wal", code=apsw.SQLITE_IOERR_READ)
    with pytest.raises(SqliteError) as raised:
        faulty.db.execute("SELECT sum(length(record)) FROM event").fetchall()
    with pytest.raises(Poisoned):
        faulty.transaction.after(raised.value)
    disk.heal()

    assert poison_of(faulty).error.details["sqlite_extended_code"] == apsw.SQLITE_IOERR_READ
    faulty.close(clean=True)
    assert events(path) == last


def test_a_write_that_fails_in_the_body_poisons(faulty: Store, path: RunPath, disk: Disk) -> None:
    faulty.db.pragma("cache_size", 10)
    begin(faulty)
    disk.arm("write", "-wal", code=apsw.SQLITE_IOERR_WRITE)
    with pytest.raises(SqliteError) as raised:
        for _ in range(200):
            note(faulty, BIG)
    with pytest.raises(Poisoned):
        faulty.transaction.after(raised.value)
    disk.heal()

    assert poison_of(faulty).error.details["sqlite_extended_code"] == apsw.SQLITE_IOERR_WRITE
    assert poison_of(faulty).unknown_txn is None
    faulty.close(clean=True)
    assert events(path) == 2


def test_damage_that_is_met_in_the_body_poisons(store: Store, path: RunPath, tmp_path: Path) -> None:
    begin(store)
    error = apsw.CorruptError("SECRET")
    error.result = error.extendedresult = apsw.SQLITE_CORRUPT  # type: ignore[attr-defined]
    with pytest.raises(Poisoned) as raised:
        store.transaction.after(error)

    assert poison_of(store) is raised.value
    assert "SECRET" not in f"{raised.value!r}{raised.value.error}{raised.value.__cause__}"


@pytest.mark.parametrize(
    ("operation", "code", "nth"),
    [
        ("sync", apsw.SQLITE_IOERR_FSYNC, 1),
        ("write", apsw.SQLITE_IOERR_WRITE, 1),
        ("write", apsw.SQLITE_IOERR_WRITE, 2),
        ("write", apsw.SQLITE_IOERR_WRITE, 4),
        ("write", apsw.SQLITE_FULL, 1),
        ("write", apsw.SQLITE_FULL, 4),
    ],
)
@pytest.mark.parametrize("sticky", [False, True])
def test_a_commit_that_fails_is_unknown_and_never_tried_again(
    faulty: Store, path: RunPath, disk: Disk, operation: str, code: int, nth: int, sticky: bool
) -> None:
    begin(faulty)
    note(faulty, BIG)
    note(faulty, BIG)
    txn, words = faulty.transaction.txn, said(faulty.db)
    disk.arm(operation, "-wal", code=code, nth=nth, sticky=sticky)
    with pytest.raises(Poisoned) as raised:
        faulty.commit()

    assert raised.value.unknown_txn == txn
    told = raised.value.error
    assert (told.executed, told.details["phase"], told.details["rolled_back"]) == ("unknown", "commit", False)
    assert told.details["sqlite_extended_code"] == code
    assert poison_of(faulty) is raised.value
    assert (words["COMMIT"], words.keys() - {"COMMIT", "SELECT"}) == (1, set())
    faulty.db.set_exec_trace(None)


def test_after_a_failed_commit_the_file_may_say_either_and_is_believed(faulty: Store, path: RunPath, disk: Disk, tmp_path: Path) -> None:
    begin(faulty)
    written = note(faulty)
    txn, epoch = faulty.transaction.txn, faulty.epoch
    disk.arm("sync", "-wal")
    with pytest.raises(Poisoned):
        faulty.commit()
    disk.heal()
    # What a crash would leave now: the -wal holds the whole commit, although its sync has failed.
    (tmp_path / "crashed").mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(path.file + suffix, tmp_path / "crashed")
    faulty.close(clean=True)

    for file, happened in ((path, False), (resolve(tmp_path / "crashed", "a"), True)):
        reopened = own(file)
        assert reopened.happened(txn, epoch) == happened
        assert reopened.journal.head.seq == written.seq - (not happened)
        assert reopened.tenure.first_txn == txn + happened
        reopened.close(clean=True)


def denied(word: str, action: int = apsw.SQLITE_TRANSACTION) -> Callable[..., int]:
    """Return an authorizer that lets SQLite itself refuse one kind of statement."""
    return lambda kind, first, *_: apsw.SQLITE_DENY if (kind, first) == (action, word) else apsw.SQLITE_OK


def test_a_rollback_that_fails_poisons(store: Store, path: RunPath) -> None:
    begin(store)
    note(store)
    store.db.set_authorizer(denied("ROLLBACK"))
    with pytest.raises(Poisoned) as raised:
        store.rollback()
    store.db.set_authorizer(None)

    assert raised.value.error.details["rolled_back"] is False
    assert raised.value.unknown_txn is None
    assert poison_of(store) is raised.value
    store.close(clean=True)
    assert events(path) == 2


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_whatever_is_raised_while_committing_is_unknown(store: Store, path: RunPath, error: type[BaseException]) -> None:
    begin(store)
    note(store)

    def interrupt(*_: object) -> int:
        raise error

    store.db.set_wal_hook(interrupt)  # called when the commit is already in the -wal
    with pytest.raises(Poisoned) as raised:
        store.commit()

    assert raised.value.unknown_txn == store.transaction.txn
    assert events(path) == 3
    poison_of(store)


def test_a_poisoned_connection_says_the_first_reason_for_ever(store: Store) -> None:
    first = store.transaction.poison(Unavailable("first"))
    second = store.transaction.poison(Unavailable("second"))

    assert first is second
    assert str(poison_of(store).error) == "first"


# One transaction of its own


def test_an_immediate_block_is_kept_whole(store: Store, path: RunPath) -> None:
    with immediate(store.db):
        assert store.db.txn_state("main") == apsw.SQLITE_TXN_WRITE
        store.db.execute("UPDATE run SET project = 'new'")

    assert seen(path, "SELECT project FROM run") == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_immediate_block_that_fails_leaves_nothing(store: Store, path: RunPath, error: type[BaseException]) -> None:
    with pytest.raises(error), immediate(store.db):
        store.db.execute("UPDATE run SET project = 'new'")
        raise error

    assert not store.db.in_transaction
    assert seen(path, "SELECT project FROM run") == "paint"


def test_an_immediate_block_whose_transaction_sqlite_has_ended_raises_that(store: Store) -> None:
    with pytest.raises(apsw.FullError), immediate(store.db):
        store.db.pragma("max_page_count", store.db.pragma("page_count"))
        store.db.execute("INSERT INTO object (hash, kind, size, codec, data) VALUES (zeroblob(32), 0, 100000, 0, zeroblob(100000))")

    assert not store.db.in_transaction


def test_the_reads_of_a_snapshot_agree_with_each_other(store: Store, path: RunPath) -> None:
    reader = apsw.Connection(path.file, flags=apsw.SQLITE_OPEN_READONLY)
    with snapshot(reader):
        first = reader.execute("SELECT count(*) FROM event").get
        commit_notes(store, "1", "1")
        assert reader.execute("SELECT count(*) FROM event").get == first
    assert reader.execute("SELECT count(*) FROM event").get == first + 2
    assert not reader.in_transaction
    reader.close()


@pytest.mark.parametrize(
    ("deed", "rule"),
    [
        (lambda path: truncate(f"{path.file}-wal"), "wal_cut"),
        (lambda path: Path(f"{path.file}-wal").unlink(), "wal_replaced"),
        (lambda path: Path(path.file).rename(f"{path.file}.moved"), "file_replaced"),
        (lambda path: Path(path.file).unlink(), "file_replaced"),
        (lambda path: truncate(path.file), "file_rewritten"),
    ],
    ids=["-wal cut", "-wal removed", "file moved", "file removed", "file cut"],
)
def test_what_is_done_to_the_files_during_a_turn_is_found_before_it_is_committed(
    store: Store, path: RunPath, deed: Callable[[RunPath], object], rule: str
) -> None:
    begin(store)
    note(store)
    deed(path)

    with pytest.raises(Poisoned) as raised:
        store.commit()

    assert (raised.value.error.details["fence"], raised.value.error.executed, raised.value.unknown_txn) == (rule, "no", None)


def test_a_wal_that_is_taken_away_between_the_last_look_and_the_commit_leaves_its_outcome_unknown(
    store: Store, path: RunPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    fence = store.transaction._fence
    look = fence.moved

    def moved() -> Error | None:
        found = look()
        Path(f"{path.file}-wal").unlink()
        return found

    begin(store)
    note(store)
    monkeypatch.setattr(fence, "moved", moved)

    with pytest.raises(Poisoned) as raised:
        store.commit()

    assert (raised.value.error.details["fence"], raised.value.error.executed) == ("wal_replaced", "unknown")


def test_the_path_is_looked_at_once_before_a_callable_and_once_before_the_commit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fence = store.transaction._fence
    look, looks = fence.moved, count()

    def moved() -> Error | None:
        next(looks)
        return look()

    monkeypatch.setattr(fence, "moved", moved)
    store.begin(5, look=False)
    store.transaction.look()
    store.transaction.look()
    note(store)
    store.commit()
    assert next(looks) == 2
    store.begin(5)
    store.transaction.look()
    store.rollback()
    assert next(looks) == 4


def truncate(file: str) -> None:
    """Cut a file in another process, as a program would that knows nothing of us."""
    subprocess.run(["truncate", "-s", "0", file], check=True, timeout=20)
