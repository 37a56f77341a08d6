"""A request id stands for one request: it is answered again with the same, and never carried out twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from owned import NOW_MS, SetClock, begin, events, own, seen
from runfile import new_run

from freehold.schema.errors import Refused, RequestExpired
from freehold.schema.hashes import request_digest
from freehold.schema.limits import REPLY_BYTES_MAX, REQUEST_KEEP_S
from freehold.schema.rows import Written
from freehold.storage.faults import SqliteError
from freehold.storage.path import RunPath
from freehold.storage.requests import Answered
from freehold.storage.store import Store

DIGEST, OTHER = request_digest("append", "n", "1"), request_digest("append", "n", "2")
KEEP_MS = REQUEST_KEEP_S * 1000


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def store(path: RunPath, clock: SetClock) -> Iterator[Store]:
    store = own(path, clock)
    yield store
    store.close(clean=False)


def once(store: Store, request_id: str = "r", digest: bytes = DIGEST, record: str = "1") -> Written:
    begin(store)
    written = store.append_once(request_id, digest, "n", record, store.clock.now_ms())
    store.commit()
    return written


def keep(store: Store, *request_ids: str, reply: str | None = '"done"') -> None:
    begin(store)
    for request_id in request_ids:
        store.requests.keep(request_id, DIGEST, store.transaction.txn, store.clock.now_ms(), reply=reply)
    store.commit()


def test_the_same_request_appends_once_and_is_answered_with_its_event(store: Store, path: RunPath, clock: SetClock) -> None:
    first = once(store)
    clock.now += 10 * KEEP_MS  # the reply to an append is its event, which stays for ever

    assert once(store) == first
    assert events(path) == 2
    assert seen(path, "SELECT id, digest, seq, reply, at FROM request") == ("r", DIGEST, first.seq, None, NOW_MS)


def test_a_long_record_is_answered_whole(store: Store) -> None:
    record = '"' + "x" * 9000 + '"'
    first = once(store, record=record)

    assert (first.record, once(store, record=record)) == (record, first)


def test_an_answer_outlives_its_owner(store: Store, path: RunPath) -> None:
    first = once(store)
    store.close(clean=True)

    again = own(path)
    assert once(again) == first
    again.close(clean=True)
    assert events(path) == 2


def test_the_transaction_that_answered_is_told(store: Store, path: RunPath) -> None:
    once(store)

    assert seen(path, "SELECT txn FROM request") == store.transaction.txn == seen(path, "SELECT txn FROM run")


@pytest.mark.parametrize("first", ["append", "reply"])
def test_an_id_that_stood_for_something_else_is_refused(store: Store, path: RunPath, first: str) -> None:
    if first == "append":
        once(store)
    else:
        keep(store, "r")
    before = events(path)
    begin(store)
    with pytest.raises(Refused) as raised:
        store.append_once("r", OTHER, "n", "2", NOW_MS)
    store.commit()

    assert (raised.value.code, events(path)) == ("request_conflict", before)


def test_a_request_that_was_rolled_back_never_came(store: Store, path: RunPath) -> None:
    begin(store)
    store.append_once("r", DIGEST, "n", "1", NOW_MS)
    assert store.requests.find("r", DIGEST) == Answered(2, None)
    store.rollback()

    assert store.requests.find("r", DIGEST) is None
    assert once(store).seq == 2


def test_an_id_is_exact(store: Store) -> None:
    once(store, "r")

    assert [store.requests.find(other, DIGEST) for other in ("R", "r ", "", "rr", "ř")] == [None] * 5


def test_a_reply_is_kept_and_returned(store: Store) -> None:
    for request_id, reply in (("a", "null"), ("b", '"naïve ☃"'), ("c", '"' + "x" * (REPLY_BYTES_MAX - 2) + '"')):
        keep(store, request_id, reply=reply)
        assert store.requests.find(request_id, DIGEST) == Answered(None, reply)


def test_a_reply_that_is_too_large_is_never_kept(store: Store) -> None:
    begin(store)
    for reply in ("x" * (REPLY_BYTES_MAX + 1), "é" * (REPLY_BYTES_MAX // 2 + 1)):
        with pytest.raises(SqliteError):
            store.requests.keep("r", DIGEST, store.transaction.txn, NOW_MS, reply=reply)
    store.rollback()

    assert store.requests.find("r", DIGEST) is None


@pytest.mark.parametrize(("age_ms", "dropped"), [(0, False), (KEEP_MS - 1, False), (KEEP_MS, False), (KEEP_MS + 1, True)])
def test_a_reply_is_dropped_after_thirty_days_and_its_request_is_never_run_again(
    store: Store, path: RunPath, clock: SetClock, age_ms: int, dropped: bool
) -> None:
    keep(store, "old")
    clock.now += age_ms
    keep(store, "new")

    if not dropped:
        assert store.requests.find("old", DIGEST) == Answered(None, '"done"')
        return
    with pytest.raises(RequestExpired) as raised:
        store.requests.find("old", DIGEST)
    assert raised.value.executed == "yes"
    assert seen(path, "SELECT count(*) FROM request") == 2
    with pytest.raises(Refused) as conflict:
        store.requests.find("old", OTHER)
    assert conflict.value.code == "request_conflict"


def test_at_most_sixteen_are_dropped_at_once_the_oldest_first(store: Store, path: RunPath, clock: SetClock) -> None:
    for number in range(40):
        clock.now += 1
        keep(store, f"r{number:02}")
    clock.now += 2 * KEEP_MS
    left = "SELECT count(*), min(id) FROM request WHERE reply IS NOT NULL AND id LIKE 'r%'"

    for new, expected in enumerate([(24, "r16"), (8, "r32"), (0, None), (0, None)]):
        keep(store, f"new{new}")
        assert seen(path, left) == expected
    assert seen(path, "SELECT count(*) FROM request") == 44


def test_an_append_drops_nothing(store: Store, path: RunPath, clock: SetClock) -> None:
    keep(store, "old")
    clock.now += 2 * KEEP_MS
    once(store)

    assert store.requests.find("old", DIGEST) == Answered(None, '"done"')
