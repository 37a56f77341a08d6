"""A step is recorded with its intent in one transaction each, and what may begin follows from what was recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from owned import NOW_MS, begin, begin_step, end_step, own, seen
from runfile import forge, new_run

from freehold.schema.errors import Damaged, Refused
from freehold.schema.failure import Failure
from freehold.schema.hashes import input_hash, step_key
from freehold.schema.messages import BeginStep
from freehold.schema.steps import Go, Recorded, ended_record, position_of
from freehold.storage.faults import SqliteError
from freehold.storage.path import RunPath
from freehold.storage.reader import reading
from freehold.storage.store import Store
from freehold.storage.verify import verify

FAILURE = Failure("E", "m").text
ONE, OTHER = (input_hash(text).hex() for text in ("[[1],{}]", "[[2],{}]"))
INTENTS = (
    "SELECT group_concat(position || ' ' || attempt || ' ' || policy || ' ' || state || coalesce(' ' || settled_seq, ''), '; ') FROM intent"
)


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


@pytest.fixture
def store(path: RunPath) -> Iterator[Store]:
    store = own(path)
    yield store
    store.close(clean=True)
    with reading(path) as db:
        verify(db, path)


def committed(store: Store, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    begin(store)
    found = call(store, *arguments, **options)
    store.commit()
    return found


def asked(store: Store, key: str = "a", policy: str | None = None, input_: str | None = None) -> Any:
    return committed(store, begin_step, key, policy, input_)


def ended(store: Store, attempt: int, result: str | None = None, *, final: bool = True, key: str = "a", input_: str | None = None) -> Any:
    failure = FAILURE if result is None else None
    return committed(store, end_step, key, attempt, result, failure, final=final, input_=input_)


def refused(store: Store, code: str, *arguments: Any) -> Refused:
    """Ask in a transaction that is committed all the same, and show that nothing but `txn` has changed."""
    before = store.db.execute(f"SELECT count(*), ({INTENTS}) FROM event").get
    begin(store)
    with pytest.raises(Refused) as raised:
        begin_step(store, *arguments)
    store.commit()
    assert raised.value.code == code
    assert store.db.execute(f"SELECT count(*), ({INTENTS}) FROM event").get == before
    return raised.value


def test_a_step_that_never_was_may_begin_and_nothing_is_written(store: Store, path: RunPath) -> None:
    assert asked(store) == Go(1, _own_key(store, "a"))
    assert asked(store, policy="repeat").attempt == 1
    assert (seen(path, "SELECT count(*) FROM event"), seen(path, INTENTS)) == (1, None)


def _own_key(store: Store, key: str) -> str:
    return step_key("a", store.written(1).id, position_of(key)).hex()


def test_its_outcome_is_one_event_and_answers_everybody_who_asks_later(store: Store, path: RunPath) -> None:
    written = ended(store, 1, '{"id":7}', input_=ONE)

    assert (written.kind, written.name, written.execution) == ("step", "a", None)
    assert json.loads(written.record) == {"input": ONE, "result": {"id": 7}}
    assert seen(path, "SELECT position, phase, attempt FROM event WHERE seq = ?", written.seq) == ("key/a", 2, 1)
    for policy in (None, "repeat", "probe", "park"):
        assert asked(store, "a", policy, ONE) == Recorded('{"id":7}')
    assert seen(path, "SELECT count(*) FROM event") == 2


def test_a_long_outcome_is_an_object_of_its_own_and_comes_back_whole(store: Store) -> None:
    result = json.dumps("x" * 50_000)
    ended(store, 1, result)

    assert asked(store) == Recorded(result)
    assert store.db.execute("SELECT record FROM event WHERE seq = 2").get == f'{{"$object":{len(ended_record(None, result=result))}}}'


def test_a_failed_attempt_counts_and_the_next_one_has_the_same_key(store: Store) -> None:
    first = asked(store)
    ended(store, 1, final=False)
    ended(store, 2, final=False)

    assert asked(store) == Go(3, first.idempotency_key)
    assert asked(store, "b").idempotency_key != first.idempotency_key


def test_a_step_that_has_failed_for_good_says_with_what(store: Store) -> None:
    ended(store, 1)

    assert asked(store) == Recorded(failure=FAILURE)


@pytest.mark.parametrize("policy", ["probe", "park"])
def test_an_intent_is_kept_before_the_step_begins(store: Store, path: RunPath, policy: str) -> None:
    go = asked(store, "a", policy, ONE)
    event = store.written(store.journal.head.seq)

    assert go == Go(1, _own_key(store, "a"))
    assert json.loads(event.record) == {"input": ONE, "policy": policy, "key": go.idempotency_key}
    assert seen(path, INTENTS) == f"key/a 1 {policy} open"


@pytest.mark.parametrize(("final", "state"), [(True, "done"), (False, "not_done")])
def test_an_intent_is_settled_by_the_end_of_its_attempt(store: Store, path: RunPath, final: bool, state: str) -> None:
    asked(store, "a", "park")
    written = ended(store, 1, final=final)

    assert seen(path, INTENTS) == f"key/a 1 park {state} {written.seq}"


def test_of_an_intent_without_an_end_its_own_policy_decides_where_none_is_asked_for(store: Store) -> None:
    key = asked(store, "a", "park").idempotency_key
    for policy in (None, "park"):
        error = refused(store, "step_unknown", "a", policy)
        assert error.details == {"key": "a", "attempt": 1, "event": 2, "policy": "park"}
    asked(store, "b", "probe")

    assert "probe" in str(refused(store, "step_unknown", "b", None))
    assert asked(store, "a", "probe") == Go(1, key, unsure=True)
    assert asked(store, "b", "probe").unsure
    assert asked(store, "a", "repeat") == Go(2, key)


def test_an_intent_that_others_went_on_without_is_unknown_for_ever(store: Store, path: RunPath) -> None:
    asked(store, "a", "park")
    ended(store, 2, final=False)
    assert seen(path, INTENTS) == "key/a 1 park unknown"
    asked(store, "a", "probe")
    written = ended(store, 3, "null")

    assert seen(path, INTENTS) == f"key/a 1 park unknown; key/a 3 probe done {written.seq}"


def test_what_a_probe_has_found_settles_the_attempt_that_was_in_doubt(store: Store, path: RunPath) -> None:
    asked(store, "a", "probe")
    written = ended(store, asked(store, "a", "probe").attempt, final=False)
    go = asked(store, "a", "probe")

    assert go == Go(2, _own_key(store, "a"))
    assert seen(path, INTENTS) == f"key/a 1 probe not_done {written.seq}; key/a 2 probe open"


def test_a_key_that_was_given_goes_with_every_later_attempt(store: Store) -> None:
    begin(store)
    store.steps.begin(BeginStep("key/a", "a", None, "park", "mine"), NOW_MS)
    store.commit()
    ended(store, 1, final=False)

    assert asked(store).idempotency_key == asked(store, "a", "park").idempotency_key == "mine"


@pytest.mark.parametrize("first", ["outcome", "failed", "intent"])
def test_other_input_than_was_recorded_is_refused(store: Store, first: str) -> None:
    if first == "intent":
        asked(store, "a", "park", ONE)
    else:
        ended(store, 1, "1" if first == "outcome" else None, final=first == "outcome", input_=ONE)
    for policy in (None, "repeat", "probe", "park"):
        error = refused(store, "input_changed", "a", policy, OTHER)
        assert error.details == {"key": "a", "recorded": ONE, "asked": OTHER}
        assert "'a'" in str(error)

    assert asked(store, "a", "repeat", ONE)
    assert asked(store, "a", "repeat", None)


def test_input_that_has_no_fingerprint_is_not_compared(store: Store) -> None:
    ended(store, 1, "1")

    assert asked(store, "a", None, OTHER) == Recorded("1")


def test_a_position_has_one_outcome_for_ever(store: Store, path: RunPath) -> None:
    ended(store, 1, "1")
    begin(store)
    with pytest.raises(SqliteError):
        end_step(store, "a", 2, "2")
    store.commit()

    assert asked(store) == Recorded("1")
    assert seen(path, "SELECT count(*) FROM event") == 2


def test_what_is_rolled_back_was_never_asked(store: Store, path: RunPath) -> None:
    begin(store)
    begin_step(store, "a", "park")
    store.rollback()

    assert seen(path, INTENTS) is None
    assert asked(store, "a", "park").attempt == 1


def test_steps_are_known_to_the_next_owner(path: RunPath) -> None:
    for number in range(3):
        store = own(path)
        committed(store, begin_step, f"left {number}", "park")
        ended(store, 1, str(number), key=f"done {number}")
        store.close(clean=bool(number % 2))
    store = own(path)

    assert [asked(store, f"done {number}") for number in range(3)] == [Recorded(str(number)) for number in range(3)]
    for number in range(3):
        refused(store, "step_unknown", f"left {number}")
    store.close(clean=True)


def test_a_record_that_is_none_of_a_step_is_damage(path: RunPath) -> None:
    store = own(path)
    ended(store, 1, "1")
    committed(store, begin_step, "b")
    store.close(clean=True)
    store = own(path)
    forge(path, "UPDATE event SET record = '7' WHERE name = 'a'")
    with pytest.raises(Damaged) as raised:
        begin_step(store, "a")
    store.close(clean=False)

    assert raised.value.code == "malformed_record"
