"""The journal is read in pages that are bounded in events, bytes and rows, and nothing is left out or told twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from owned import NOW_MS, SetClock, begin, commit_notes, note, own
from runfile import forge, new_run

from freehold.schema.errors import Damaged
from freehold.schema.limits import HISTORY_PAGE_EVENTS
from freehold.schema.rows import EventRow
from freehold.schema.values import decode, encode
from freehold.storage import events as module
from freehold.storage.events import last_seq, read_event, read_page, read_run, read_tenure, seq_at_time, seq_of_id
from freehold.storage.path import RunPath
from freehold.storage.store import Store


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


@pytest.fixture
def store(path: RunPath) -> Iterator[Store]:
    store = own(path)
    yield store
    store.close(clean=False)


def pages(store: Store, after: int = 0, *, name: str | None = None, reverse: bool = False) -> list[list[EventRow]]:
    """Return every page from *after* to the end."""
    found = []
    position: int | None = after
    while position is not None:
        page, position = read_page(store.db, position, name=name, reverse=reverse)
        found.append(page)
        assert len(found) < 1000
    return found


def seqs(found: list[list[EventRow]]) -> list[int]:
    return [event.seq for page in found for event in page]


@pytest.mark.parametrize("number", [1, 2, HISTORY_PAGE_EVENTS - 1, HISTORY_PAGE_EVENTS, HISTORY_PAGE_EVENTS + 1, 3 * HISTORY_PAGE_EVENTS])
def test_every_event_is_told_once_and_in_order(store: Store, number: int) -> None:
    commit_notes(store, *["1"] * (number - 1))

    assert seqs(pages(store)) == list(range(1, number + 1))
    assert seqs(pages(store, number + 1, reverse=True)) == list(range(number, 0, -1))
    assert max(len(page) for page in pages(store)) <= HISTORY_PAGE_EVENTS
    assert last_seq(store.db) == number


@pytest.mark.parametrize(
    ("after", "forward", "backward"),
    [
        (0, [1, 2, 3, 4, 5], []),
        (1, [2, 3, 4, 5], []),
        (3, [4, 5], [2, 1]),
        (5, [], [4, 3, 2, 1]),
        (6, [], [5, 4, 3, 2, 1]),
        (10**6, [], [5, 4, 3, 2, 1]),
        (2**63 - 1, [], [5, 4, 3, 2, 1]),
        (-5, [1, 2, 3, 4, 5], []),
    ],
)
def test_a_page_begins_beyond_a_seq(store: Store, after: int, forward: list[int], backward: list[int]) -> None:
    commit_notes(store, "1", "2", "3", "4")

    assert seqs(pages(store, after)) == forward
    assert seqs(pages(store, after, reverse=True)) == backward


def test_a_name_is_looked_for_in_windows_and_found_wherever_it_stands(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SCANNED_AT_ONCE", 10)
    begin(store)
    for number in range(2, 60):
        note(store, name="rare" if number in (2, 11, 12, 33, 59) else "n")
    store.commit()

    assert seqs(pages(store, name="rare")) == [2, 11, 12, 33, 59]
    assert seqs(pages(store, 60, name="rare", reverse=True)) == [59, 33, 12, 11, 2]
    assert seqs(pages(store, 11, name="rare")) == [12, 33, 59]
    assert seqs(pages(store, name="none")) == seqs(pages(store, name="")) == []
    assert len(pages(store, name="none")) == 6  # each turn looks through ten rows and no more
    for end in range(51, 61):  # wherever the windows fall
        assert seqs(pages(store, end, reverse=True)) == list(range(end - 1, 0, -1))
        assert seqs(pages(store, 60 - end)) == list(range(61 - end, 60))


@pytest.mark.parametrize(("length", "most"), [(100, 3), (5000, 2)])  # a spilled record's place in its row counts too
def test_a_page_is_bounded_in_bytes(store: Store, monkeypatch: pytest.MonkeyPatch, length: int, most: int) -> None:
    monkeypatch.setattr(module, "HISTORY_PAGE_BYTES", 2 * length)
    commit_notes(store, *[encode(str(number) * length)[: length - 1] + '"' for number in range(1, 9)])
    found = pages(store)

    assert seqs(found) == list(range(1, 10))
    assert max(len(page) for page in found[1:]) == most
    assert seqs(pages(store, 10, reverse=True)) == list(range(9, 0, -1))


def test_one_record_larger_than_a_page_is_a_page(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HISTORY_PAGE_BYTES", 10)
    commit_notes(store, '"' + "x" * 9000 + '"', "1")

    assert [len(page) for page in pages(store)][:2] == [1, 1]
    assert seqs(pages(store)) == [1, 2, 3]


def test_a_row_has_hashes_in_place_of_row_ids(store: Store) -> None:
    text = '"' + "x" * 9000 + '"'
    short, long = commit_notes(store, "7", text)
    rows = {row.seq: row for row in pages(store)[0]}

    assert rows[short.seq] == read_event(store.db, short.seq)
    assert (rows[short.seq].spilled, rows[short.seq].value_hash, rows[short.seq].text) == (None, None, "7")
    assert (rows[long.seq].record, rows[long.seq].text) == ('{"$object":9002}', text)
    assert rows[long.seq].value_hash == store.db.execute("SELECT hash FROM object WHERE kind = 4").get
    assert rows[long.seq].root_hash == long.root_hash


@pytest.mark.parametrize(
    "value",
    [
        {"$object": 5},
        {"$object": 5, "more": 1},
        {"more": 1, "$object": 5},
        {"$object": None, "b": 2},
        {"$object": {"a": 1}, "b": [1]},
        [{"$object": 5}],
        '{"$object":5}',
    ],
)
def test_a_users_value_that_looks_like_a_spilled_record_is_the_users(store: Store, value: object) -> None:
    (written,) = commit_notes(store, encode(value))

    assert decode(read_event(store.db, written.seq).text) == value
    assert read_page(store.db, 1)[0][0].text == encode(value)


def test_a_spilled_record_whose_object_is_not_named_is_malformed(store: Store, path: RunPath) -> None:
    commit_notes(store, '"' + "SECRET" * 2000 + '"', "1")
    store.close(clean=True)
    forge(path, "PRAGMA foreign_keys = 0", "UPDATE event SET value = NULL")
    db = apsw.Connection(path.file)
    for read in (lambda: read_page(db, 0), lambda: read_event(db, 2)):
        with pytest.raises(Damaged) as raised:
            read()
        assert raised.value.code == "malformed_record"
        # Nothing of the failed read is left open, although its error is still at hand.
        assert db.txn_state("main") == apsw.SQLITE_TXN_NONE
    db.close()


def test_a_spilled_record_that_was_altered_is_malformed(store: Store, path: RunPath) -> None:
    commit_notes(store, '"' + "SECRET" * 2000 + '"')
    store.close(clean=True)
    forge(path, "UPDATE object SET size = size + 1 WHERE kind = 4")
    db = apsw.Connection(path.file)
    with pytest.raises(Damaged) as raised:
        read_page(db, 0)
    db.close()

    assert raised.value.code == "malformed_record"
    assert "SECRET" not in str(raised.value)


def test_an_event_that_others_name_and_is_missing_is_damage(store: Store) -> None:
    with pytest.raises(Damaged) as raised:
        read_event(store.db, 99)

    assert raised.value.details["rule"] == "journal"


def test_reading_leaves_no_transaction_open(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit_notes(store, *["1"] * 20)
    monkeypatch.setattr(module, "HISTORY_PAGE_BYTES", 1)  # so that a cursor is given up in the middle
    for read in (
        lambda: read_page(store.db, 0),
        lambda: read_run(store.db),
        lambda: read_tenure(store.db),
        lambda: read_event(store.db, 2),
    ):
        read()
        assert store.db.txn_state("main") == apsw.SQLITE_TXN_NONE


def test_an_event_is_found_by_its_id(store: Store) -> None:
    written = commit_notes(store, "1", "2")

    assert [seq_of_id(store.db, event.id) for event in written] == [2, 3]
    assert seq_of_id(store.db, bytes(16)) is None
    assert seq_of_id(store.db, b"") is None


def test_an_event_is_found_by_its_time_also_when_the_clock_stepped_back(path: RunPath) -> None:
    clock = SetClock()
    store = own(path, clock)
    begin(store)
    times = [NOW_MS, NOW_MS + 5, NOW_MS + 5, NOW_MS - 100, NOW_MS + 9]
    store.db.execute("UPDATE event SET recorded_at = ?", (times[0],))
    for clock.now in times[1:]:
        note(store)
    store.commit()

    found = {at - NOW_MS: seq_at_time(store.db, at) for at in (0, NOW_MS - 101, NOW_MS - 100, NOW_MS, NOW_MS + 5, NOW_MS + 8, NOW_MS + 9)}
    assert found == {-NOW_MS: 0, -101: 0, -100: 4, 0: 4, 5: 4, 8: 4, 9: 5}
    store.close(clean=True)


def test_the_run_row_and_the_last_tenure(store: Store, path: RunPath) -> None:
    run, tenure = read_run(store.db), read_tenure(store.db)

    assert (run.id, run.project, run.status, run.epoch, run.txn) == ("a", "paint", "created", 1, 2)
    assert tenure is not None
    assert (tenure.epoch, tenure.first_txn, tenure.closed_at) == (1, 2, None)


def test_a_file_that_was_never_owned_has_no_tenure(path: RunPath) -> None:
    db = apsw.Connection(path.file)
    assert read_tenure(db) is None
    db.execute("DELETE FROM run")
    with pytest.raises(Damaged):
        read_run(db)
    db.close()
