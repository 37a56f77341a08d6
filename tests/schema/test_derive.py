"""The journal alone tells status and executions; an event that does not follow from those before it is found."""

from __future__ import annotations

import json
from typing import Any

import pytest

from freehold.schema.derive import Derived, Execution
from freehold.schema.lifecycle import SETTLING
from freehold.schema.ours import Underivable
from freehold.schema.rows import EventRow
from freehold.schema.steps import intent_record, position_of

ROOT, OTHER = bytes(32), b"\x01" * 32
CREATED = {"run": "a", "project": "", "workflow": None, "props": {"colour": "blue"}}


def event(
    seq: int, kind: str, record: object, *, execution: int | None = None, root: bytes = ROOT, spilled: bytes | None = None
) -> EventRow:
    text = record if isinstance(record, str) else json.dumps(record, separators=(",", ":"))
    return EventRow(seq, bytes(16), kind, None, execution, None, None, None, text, None, root, 1000 + seq, bytes(32), spilled)


def began(seq: int, number: int, **changes: Any) -> EventRow:
    record = {"execution": number, "generation": 0, "epoch": 1, "definition": "ab"}
    return event(seq, "began", record | changes, execution=changes.get("row", number))


def settled(seq: int, number: int, status: Any = "failed", reason: Any = None, **changes: Any) -> EventRow:
    record = {"execution": number, "status": status, "reason": seq if reason is None else reason}
    return event(seq, "settled", record | changes, execution=number)


def told(*events: EventRow) -> Derived:
    derived = Derived()
    for one in (event(1, "created", CREATED), *events):
        derived.add(one)
    return derived


def test_the_first_event_tells_what_the_run_is_and_since_when() -> None:
    derived = told()

    assert (derived.created, derived.created_at, derived.executions) == (CREATED, 1001, [])


def test_a_long_first_record_is_read_where_it_is_kept() -> None:
    derived = Derived()
    derived.add(event(1, "created", '{"$object":9}', spilled=json.dumps(CREATED, separators=(",", ":")).encode()))

    assert derived.created == CREATED


def test_a_life_of_two_executions_is_told() -> None:
    derived = told(event(2, "note", "7"), began(3, 1), settled(4, 1, "suspended", 2), began(5, 2, generation=4, epoch=9))

    assert derived.executions == [
        Execution(0, 1, b"\xab", 3, 4, "suspended", 2),
        Execution(4, 9, b"\xab", 5),
    ]


def test_a_note_may_say_anything() -> None:
    assert told(event(2, "note", '"x"'), event(3, "note", '{"execution":1}'), event(4, "note", "[" * 500 + "]" * 500)).executions == []


def test_the_current_root_and_since_when_it_stands() -> None:
    derived = told(event(2, "note", "1"), event(3, "note", "1", root=OTHER), event(4, "note", "1", root=OTHER))

    assert (derived.root, derived.root_since_seq) == (OTHER, 3)


def test_an_execution_without_an_end_may_be_followed_by_the_next() -> None:
    # Its owner was lost, or stopped it for a code: that stands in no event.
    assert [one.status for one in told(began(2, 1), began(3, 2)).executions] == [None, None]


@pytest.mark.parametrize("status", sorted(SETTLING - {"completed", "cancelled"}))
def test_a_run_that_has_not_ended_begins_again(status: str) -> None:
    assert len(told(began(2, 1), settled(3, 1, status), began(4, 2)).executions) == 2


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_nothing_begins_after_the_end(status: str) -> None:
    with pytest.raises(Underivable):
        told(began(2, 1), settled(3, 1, status), began(4, 2))


def without(record: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != name}


@pytest.mark.parametrize(
    "record",
    [
        *(without(CREATED, name) for name in CREATED),
        CREATED | {"more": 1},
        CREATED | {"props": []},
        CREATED | {"props": None},
        [],
        "",
        "7",
        "null",
        "{",
        "[" * 100_000,
        '{"a":"\x00',
    ],
)
def test_a_first_event_that_tells_no_run_is_found(record: object) -> None:
    with pytest.raises(Underivable):
        Derived().add(event(1, "created", record))


@pytest.mark.parametrize(
    "wrong",
    [
        began(2, 2),
        began(2, 0),
        began(2, 1, execution=2),
        began(2, 1, execution="1"),
        began(2, 1, definition="xy"),
        began(2, 1, definition=None),
        began(2, 1, definition=7),
        began(2, 1, more=1),
        event(2, "began", {"execution": 1, "generation": 0, "epoch": 1}, execution=1),
        event(2, "began", {"execution": 1, "epoch": 1, "definition": "", "more": 1}, execution=1),
        event(2, "began", {"execution": 1, "generation": 0, "epoch": 1, "definition": ""}, execution=2),
        event(2, "began", {"execution": 1, "generation": 0, "epoch": 1, "definition": ""}),
        event(2, "began", "[]", execution=1),
        event(2, "settled", "[]", execution=1),
        settled(2, 1),
        settled(2, 0),
    ],
)
def test_a_beginning_that_does_not_follow_is_found(wrong: EventRow) -> None:
    with pytest.raises(Underivable):
        told(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        settled(3, 2),
        settled(3, 0),
        event(3, "settled", {"execution": 2, "status": "failed", "reason": 3}, execution=1),
        settled(3, 1, "running"),
        settled(3, 1, "created"),
        settled(3, 1, "SECRET"),
        settled(3, 1, None),
        settled(3, 1, ["failed"]),
        settled(3, 1, {"failed": 1}),
        settled(3, 1, reason=0),
        settled(3, 1, reason=-1),
        settled(3, 1, reason=4),
        settled(3, 1, reason="2"),
        settled(3, 1, reason=2.0),
        settled(3, 1, reason=[2]),
        settled(3, 1, more=1),
        event(3, "settled", {"execution": 1, "status": "failed"}, execution=1),
        event(3, "settled", {"execution": 1, "status": "failed", "reason": 2}),
    ],
)
def test_an_end_that_does_not_follow_is_found(wrong: EventRow) -> None:
    with pytest.raises(Underivable):
        told(began(2, 1), wrong)


def test_an_execution_ends_once() -> None:
    with pytest.raises(Underivable):
        told(began(2, 1), settled(3, 1), settled(4, 1))


@pytest.mark.parametrize(
    "record",
    [
        '{"status":"failed","execution":1,"reason":3}',
        '{"execution":1,"status":"failed", "reason":3}',
        '{"execution":1,"status":"failed","reason":3,"reason":3}',
    ],
    ids=["another order", "a space", "a name twice"],
)
def test_a_record_of_ours_in_another_text_does_not_follow(record: str) -> None:
    derived = told(began(2, 1))

    with pytest.raises(Underivable):
        derived.add(event(3, "settled", record, execution=1))

    derived.add(settled(3, 1))


FAILED = {"failed": "FileNotFoundError", "errno": "ENOENT", "path": "a/b"}


@pytest.mark.parametrize(
    ("record", "root"),
    [
        ({"changes": 0}, ROOT),
        ({"changes": 7}, OTHER),
        ({"changes": 0, "skipped": [["a", "fifo"], [None, "no_permission"]], "more": 3}, ROOT),
        ({"changes": 2, "skipped": [], "more": 0}, OTHER),
        (FAILED, ROOT),
        (FAILED | {"errno": None, "path": None}, ROOT),
    ],
)
def test_a_publish_says_how_much_it_changed_or_what_it_failed_with(record: dict[str, Any], root: bytes) -> None:
    assert told(event(2, "publish", record, root=root)).executions == []


@pytest.mark.parametrize(
    ("record", "root"),
    [
        ({"changes": 0}, OTHER),
        ({"changes": 7}, ROOT),
        ({"changes": True}, OTHER),
        ({"changes": False}, ROOT),
        ({"changes": 1.0}, OTHER),
        ({"changes": "1"}, OTHER),
        ({"changes": -1}, ROOT),
        ({"changes": 2**62 + 1}, OTHER),
        ({"changes": None}, ROOT),
        ({"changes": 0, "skipped": []}, ROOT),
        ({"changes": 0, "more": 0}, ROOT),
        ({"changes": 0, "more": 0, "skipped": []}, ROOT),
        ({"changes": 0, "skipped": {}, "more": 0}, ROOT),
        ({"changes": 0, "skipped": None, "more": 0}, ROOT),
        ({"changes": 0, "skipped": [], "more": True}, ROOT),
        ({"changes": 0, "skipped": [], "more": -1}, ROOT),
        ({"changes": 0, "skipped": ["ab"], "more": 0}, ROOT),
        ({"changes": 0, "skipped": [["a"]], "more": 0}, ROOT),
        ({"changes": 0, "skipped": [["a", None]], "more": 0}, ROOT),
        ({"changes": 0, "skipped": [[1, "fifo"]], "more": 0}, ROOT),
        ({"changes": 0, "skipped": [["a", "fifo", "b"]], "more": 0}, ROOT),
        (FAILED, OTHER),
        (FAILED | {"failed": None}, ROOT),
        (FAILED | {"errno": 2}, ROOT),
        (FAILED | {"path": 2}, ROOT),
        (FAILED | {"more": 0}, ROOT),
        ({"failed": "FileNotFoundError", "path": None, "errno": None}, ROOT),
        ({}, ROOT),
        ([], ROOT),
    ],
)
def test_a_publish_that_says_anything_else_is_found(record: object, root: bytes) -> None:
    with pytest.raises(Underivable):
        told(event(2, "publish", record, root=root))


def test_a_step_changes_no_root_and_is_told_by_its_own_fold() -> None:
    derived = Derived()
    derived.add(event(1, "created", CREATED))
    derived.add(step(2))

    assert [intent.position for intent in derived.steps.intents] == ["key/a"]
    with pytest.raises(Underivable):
        derived.add(step(3, "b")._replace(root_hash=OTHER))


def step(seq: int, key: str = "a") -> EventRow:
    return event(seq, "step", intent_record(None, "park", "k"))._replace(name=key, position=position_of(key), phase=0, attempt=1)
