"""Whatever leaves an owner unsure of its connection ends it, and the next one asks the file: the whole way, from the asker to the file.

The rows are those of storage/transaction.py and storage/faults.py, each met as it is met in life: inside a turn, or by its COMMIT.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from faulty import Disk, put_on
from turns import names, store

import freehold
from freehold import Error, Host, Run, StorageFailed, Transaction
from freehold.storage.store import Store

CODES = [
    "IOERR_WRITE",
    "IOERR_SHORT_READ",
    "CORRUPT",
    "NOTADB",
    "CANTOPEN",
    "READONLY_DBMOVED",
    "MISUSE",
    "PROTOCOL",
    "PERM",
    "INTERNAL",
]
"""What SQLite may say in the middle of a transaction that it never says of a healthy file."""
BIG = "x" * 300_000
"""More than the cache holds once it is small."""


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def host(tmp_path: Path, disk: Disk, caplog: pytest.LogCaptureFixture) -> Iterator[Host]:
    caplog.set_level(logging.CRITICAL, "freehold")
    with freehold.open(tmp_path, timeout=20) as host:
        put_on(disk, host)
        yield host
        disk.heal()


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a") as run:
        run.append("past")
        run.publish("files", lambda files: files.write_text("f", "1"))
        yield run


def failing(run: Run, work: Callable[[Transaction], object], executed: str) -> Error:
    """Let a turn fail; show that its owner has ended, and that the next one goes on where the file is."""
    epoch = run.info.epoch
    with pytest.raises(StorageFailed) as caught:
        run.transact(work)
    assert caught.value.executed == executed
    assert run.append("afterwards").name == "afterwards"  # on the same lease
    assert run.info.epoch == epoch + 1
    assert names(run) == ["past", "afterwards"]
    assert run.files.read_text("f") == "1"
    run.verify()
    return caught.value


def on(database: Store, deed: Callable[[Store], object], *, then: Callable[[Transaction], object] = lambda tx: tx.append("more")) -> Any:
    """Return work that does something to the owner's connection inside its turn, and goes on."""

    def work(tx: Transaction) -> None:
        tx.append("lost")
        deed(database)
        then(tx)

    return work


@pytest.mark.parametrize("name", CODES)
def test_what_is_met_in_the_body_of_a_turn(host: Host, run: Run, disk: Disk, name: str) -> None:
    code = getattr(apsw, f"SQLITE_{name}")

    def arm(database: Store) -> None:
        database.db.pragma("cache_size", 1)
        disk.arm("write", code=code)

    error = failing(run, on(store(host, run), arm, then=lambda tx: tx.append("large", BIG)), "no")
    assert error.details["sqlite_extended_code"] == code


@pytest.mark.parametrize("name", [*CODES, "FULL"])
def test_what_is_met_by_a_commit(host: Host, run: Run, disk: Disk, name: str) -> None:
    code = getattr(apsw, f"SQLITE_{name}")
    error = failing(run, on(store(host, run), lambda _: disk.arm("write", code=code)), "no")
    assert error.details["phase"] == "commit"


def deny(kind: int, word: str) -> Callable[[Store], None]:
    """Return what lets SQLite refuse a word of transactions."""

    def deed(database: Store) -> None:
        database.db.set_authorizer(lambda what, first, *_: apsw.SQLITE_DENY if (what, first) == (kind, word) else apsw.SQLITE_OK)

    return deed


def undone_in_a_savepoint(tx: Transaction) -> None:
    with tx.savepoint():
        tx.append("undone")
        raise ZeroDivisionError


def fail(_tx: Transaction) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("kind", "word", "then"),
    [
        (apsw.SQLITE_SAVEPOINT, "ROLLBACK", undone_in_a_savepoint),
        (apsw.SQLITE_SAVEPOINT, "BEGIN", undone_in_a_savepoint),
        (apsw.SQLITE_SAVEPOINT, "ROLLBACK", fail),
        (apsw.SQLITE_TRANSACTION, "COMMIT", lambda tx: tx.append("more")),
    ],
    ids=["ROLLBACK TO in a turn", "SAVEPOINT in a turn", "ROLLBACK TO at its end", "COMMIT"],
)
def test_a_word_of_its_own_that_is_refused(host: Host, run: Run, kind: int, word: str, then: Callable[[Transaction], object]) -> None:
    failing(run, on(store(host, run), deny(kind, word), then=then), "no")


def test_a_rollback_that_is_refused(host: Host, run: Run) -> None:
    database = store(host, run)
    epoch = run.info.epoch
    with pytest.raises(ZeroDivisionError), run.transaction() as tx:
        tx.append("lost")
        deny(apsw.SQLITE_TRANSACTION, "ROLLBACK")(database)
        raise ZeroDivisionError
    assert run.append("afterwards").seq == 4
    assert run.info.epoch == epoch + 1
    run.verify()


@pytest.mark.parametrize("word", ["ROLLBACK", "COMMIT"])
def test_a_transaction_that_somebody_else_has_ended(host: Host, run: Run, word: str) -> None:
    """Nothing after it is committed alone. What was ended by a COMMIT of others' cannot be undone."""
    epoch = run.info.epoch
    with pytest.raises(StorageFailed):
        run.transact(on(store(host, run), lambda database: database.db.execute(word)))
    assert run.append("afterwards").name == "afterwards"
    assert run.info.epoch == epoch + 1
    assert names(run) == (["past", "afterwards"] if word == "ROLLBACK" else ["past", "lost", "afterwards"])
    run.verify()


def test_a_connection_that_another_thread_is_at_work_with(host: Host, run: Run) -> None:
    """No code of SQLite's comes of that: apsw itself says so, and what has no code is never harmless."""
    inside, go = threading.Event(), threading.Event()
    database = store(host, run)

    def wait(*_: object) -> int:
        inside.set()
        return int(go.wait(20))

    def disturb(tx: Transaction) -> None:
        database.db.create_scalar_function("wait", wait)
        other = threading.Thread(target=lambda: database.db.execute("SELECT wait()").fetchall())
        other.start()
        assert inside.wait(20)
        try:
            tx.append("lost")
        finally:
            go.set()
            other.join(20)

    error = failing(run, disturb, "no")
    assert error.details["sqlite_extended_code"] == 0


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_what_a_hook_raises_while_a_commit_is_written(host: Host, run: Run, error: type[BaseException]) -> None:
    """It was in the -wal already: the asker is told that it was kept."""
    epoch = run.info.epoch

    def hook(*_: object) -> int:
        raise error

    told = "yes"
    try:
        run.transact(on(store(host, run), lambda database: database.db.set_wal_hook(hook)))
    except StorageFailed as failed:
        told = failed.executed
    assert run.append("afterwards").name == "afterwards"
    assert run.info.epoch == epoch + 1
    assert told == "yes"
    assert names(run) == ["past", "lost", "more", "afterwards"]
    run.verify()


# What is no poison: the owner goes on


def test_a_full_disk_in_the_body_ends_no_owner(host: Host, run: Run, disk: Disk) -> None:
    epoch, database = run.info.epoch, store(host, run)

    def arm(database: Store) -> None:
        database.db.pragma("cache_size", 1)
        disk.arm("write", code=apsw.SQLITE_FULL)

    with pytest.raises(StorageFailed) as caught:
        run.transact(on(database, arm, then=lambda tx: tx.append("large", BIG)))
    disk.heal()
    assert (caught.value.executed, caught.value.details["rolled_back"]) == ("no", True)
    assert run.append("afterwards").name == "afterwards"
    assert (run.info.epoch, names(run)) == (epoch, ["past", "afterwards"])


@pytest.mark.parametrize("statement", ["write", "read"])
def test_an_interrupted_statement_ends_no_owner(host: Host, run: Run, statement: str) -> None:
    epoch, database = run.info.epoch, store(host, run)
    run.append("long", BIG)

    def work(tx: Transaction) -> None:
        tx.append("lost")
        database.db.set_progress_handler(lambda: True, 1)
        try:
            tx.append("large", BIG) if statement == "write" else list(tx.history())
        finally:
            database.db.set_progress_handler(None)

    with pytest.raises(StorageFailed) as caught:
        run.transact(work)
    assert caught.value.executed == "no"
    assert run.append("afterwards").name == "afterwards"
    assert (run.info.epoch, names(run)) == (epoch, ["past", "long", "afterwards"])
