"""Savepoints live inside our own transaction, have names that never come twice, and take the journal's head back with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import apsw
import pytest
from owned import begin, commit_notes, note, own, seen
from runfile import new_run

from freehold.schema.errors import Refused
from freehold.storage.faults import Ended, Poisoned, SqliteError
from freehold.storage.path import RunPath
from freehold.storage.store import Store


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


@pytest.fixture
def store(path: RunPath) -> Iterator[Store]:
    """Return a store inside an open transaction."""
    store = own(path)
    begin(store)
    yield store
    store.close(clean=False)


def kept(store: Store, path: RunPath) -> list[str]:
    """Commit, and return the records of the notes that another connection then sees."""
    store.commit()
    found = seen(path, "SELECT group_concat(record, ' ' ORDER BY seq) FROM event WHERE kind = 'note'")
    assert seen(path, "SELECT max(seq), count(*) FROM event") == (store.journal.head.seq, store.journal.head.seq)
    assert seen(path, "SELECT hash FROM event ORDER BY seq DESC LIMIT 1") == store.journal.head.hash
    return str(found).split() if found is not None else []


def test_no_name_comes_twice(store: Store) -> None:
    names = []
    for end in (store.savepoints.release, store.savepoints.undo, store.savepoints.release):
        for _ in range(3):
            names.append(store.savepoints.open())
            end(names[-1])
    store.commit()
    begin(store)
    names.append(store.savepoints.open())
    store.rollback()
    begin(store)
    names.append(store.savepoints.open())

    assert len(set(names)) == len(names) == 11


def test_outside_of_a_transaction_none_is_opened(store: Store) -> None:
    store.commit()
    for call in (store.savepoints.open, store.savepoints.scope().__enter__):
        with pytest.raises(Poisoned):
            call()

    # A bare one would have opened a transaction of its own, whose release is a commit.
    assert not store.db.in_transaction


def test_what_was_done_since_is_kept_or_undone(store: Store, path: RunPath) -> None:
    note(store, "1")
    one = store.savepoints.open()
    note(store, "2")
    store.savepoints.undo(one)
    two = store.savepoints.open()
    note(store, "3")
    store.savepoints.release(two)
    note(store, "4")

    assert kept(store, path) == ["1", "3", "4"]


def test_savepoints_nest(store: Store, path: RunPath) -> None:
    outer = store.savepoints.open()
    note(store, "1")
    inner = store.savepoints.open()
    note(store, "2")
    store.savepoints.undo(inner)
    inner = store.savepoints.open()
    note(store, "3")
    store.savepoints.release(inner)
    store.savepoints.release(outer)

    assert kept(store, path) == ["1", "3"]


def test_undoing_the_outer_undoes_a_released_inner(store: Store, path: RunPath) -> None:
    note(store, "1")
    outer = store.savepoints.open()
    inner = store.savepoints.open()
    note(store, "2")
    store.savepoints.release(inner)
    note(store, "3")
    store.savepoints.undo(outer)

    assert kept(store, path) == ["1"]


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_undoing_the_outer_undoes_every_open_inner(store: Store, path: RunPath, depth: int) -> None:
    note(store, "1")
    outer = store.savepoints.open()
    for _ in range(depth):
        note(store, "2")
        store.savepoints.open()
    note(store, "3")
    store.savepoints.undo(outer)
    again = store.savepoints.open()
    note(store, "4")
    store.savepoints.release(again)

    assert kept(store, path) == ["1", "4"]


@pytest.mark.parametrize("end", ["release", "undo"])
def test_an_inner_that_ended_with_its_outer_is_refused_and_the_transaction_goes_on(store: Store, path: RunPath, end: str) -> None:
    outer = store.savepoints.open()
    note(store, "1")
    inner = store.savepoints.open()
    note(store, "2")
    store.savepoints.release(outer)
    for name in (inner, outer, "s999", "no such; COMMIT"):
        with pytest.raises(Refused) as raised:
            getattr(store.savepoints, end)(name)
        assert raised.value.code == "transaction_over"

    assert store.transaction.poisoned is None
    assert kept(store, path) == ["1", "2"]


@pytest.mark.parametrize("end", [Store.commit, Store.rollback])
def test_a_savepoint_does_not_outlive_its_transaction(store: Store, path: RunPath, end: Callable[[Store], None]) -> None:
    name = store.savepoints.open()
    end(store)
    begin(store)
    with pytest.raises(Refused):
        store.savepoints.release(name)

    assert kept(store, path) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit, Refused])
def test_a_scope_that_ends_in_an_error_leaves_nothing_and_raises_it(store: Store, path: RunPath, error: type[BaseException]) -> None:
    note(store, "1")
    mine = error("mine")
    with pytest.raises(error) as raised, store.savepoints.scope():
        note(store, "2")
        with store.savepoints.scope():
            note(store, "3")
            raise mine

    assert raised.value is mine
    assert kept(store, path) == ["1"]


def test_a_scope_whose_statement_breaks_a_constraint_is_undone_and_no_more(store: Store, path: RunPath) -> None:
    note(store, "1")
    with pytest.raises(SqliteError), store.savepoints.scope():
        note(store, "2")
        store.db.execute("UPDATE event SET root = 99")
    note(store, "3")

    assert kept(store, path) == ["1", "3"]


def test_a_scope_whose_transaction_sqlite_ended_says_that_and_commits_nothing(store: Store, path: RunPath) -> None:
    note(store, "1")
    head = store.journal.head
    with pytest.raises(Ended), store.savepoints.scope(), store.savepoints.scope():
        store.db.pragma("max_page_count", store.db.pragma("page_count"))
        for _ in range(50):
            note(store, '"' + "x" * 3000 + '"')

    assert store.journal.head != head  # nobody has put it back yet, and nothing can be appended to it
    store.rollback()
    assert store.journal.head.seq == 1
    assert seen(path, "SELECT count(*) FROM event") == 1


@pytest.mark.parametrize("word", ["BEGIN", "RELEASE", "ROLLBACK"])
def test_a_savepoint_that_cannot_be_opened_or_ended_poisons(store: Store, path: RunPath, word: str) -> None:
    name = store.savepoints.open()
    note(store)
    store.db.set_authorizer(lambda kind, first, *_: apsw.SQLITE_DENY if (kind, first) == (apsw.SQLITE_SAVEPOINT, word) else apsw.SQLITE_OK)
    with pytest.raises(Poisoned):
        if word == "BEGIN":
            store.savepoints.open()
        elif word == "RELEASE":
            store.savepoints.release(name)
        else:
            store.savepoints.undo(name)
    store.db.set_authorizer(None)

    with pytest.raises(Poisoned):
        store.commit()
    store.close(clean=True)
    assert seen(path, "SELECT count(*) FROM event") == 1


def test_many_levels_open_and_close(store: Store, path: RunPath) -> None:
    with ExitStack() as nested:
        for level in range(200):
            nested.enter_context(store.savepoints.scope())
            note(store, str(level))

    assert len(kept(store, path)) == 200
    commit_notes(store, "1")
