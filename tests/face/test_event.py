"""Events as users see them: immutable, equal by their hash, and readable as they were written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

import freehold
from freehold import Damaged, Event, EventId, Host, Root
from freehold.schema.roots import EMPTY_ROOT
from freehold.schema.rows import EventRow, Written

MS = 1_796_000_000_123


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path) as host:
        yield host


def row(record: str, spilled: bytes | None = None) -> EventRow:
    return EventRow(3, bytes(16), "note", "x", None, None, None, None, record, None, bytes(32), MS, bytes(32), spilled)


def test_its_names_are_text_of_the_right_shape(host: Host) -> None:
    before = datetime.now(UTC)
    with host.create("a") as run:
        event = run.append("x")
    assert isinstance(event.id, EventId)
    assert UUID(event.id).version == 7
    assert isinstance(event.root, Root)
    assert event.root == EMPTY_ROOT.hash.hex()
    assert re.fullmatch("[0-9a-f]{64}", event.hash)
    assert event.time.tzinfo is UTC
    assert -0.001 <= (event.time - before).total_seconds() < 30
    assert event.outcome is None
    assert event.execution is None


def test_its_time_is_exact_to_the_millisecond() -> None:
    for ms in range(1000):
        made = Event(Written(2, bytes(16), "note", "x", None, "null", bytes(32), MS - MS % 1000 + ms, bytes(32)))
        assert made.time.microsecond == ms * 1000


def test_it_is_equal_to_the_same_event_only(host: Host) -> None:
    with host.create("a") as run:
        first, second = run.append("x"), run.append("x")
        again = next(iter(run.history(name="x")))
    assert first == again
    assert hash(first) == hash(again)
    assert first != second
    assert first != first.seq
    assert len({first, second, again}) == 2


def test_its_repr_shows_no_value(host: Host) -> None:
    with host.create("a") as run:
        event = run.append("canary", {"canary": "canary"})
    assert repr(event) == "<Event 2 note>"


def test_the_first_event_says_what_was_created(host: Host) -> None:
    with host.create("a", project="paint", props={"colour": "blue"}) as run:
        created = next(run.history())
    assert (created.seq, created.kind, created.name) == (1, "created", None)
    assert created.data == {"run": "a", "project": "paint", "workflow": None, "props": {"colour": "blue"}}


def test_a_record_that_does_not_come_back_is_damage() -> None:
    with pytest.raises(Damaged):
        _ = Event(row('{"$bytes": 1}')).data
    with pytest.raises(Damaged) as caught:
        Event(row('{"$object":1}', b"\xff"))
    assert caught.value.code == "malformed_record"
    assert caught.value.__cause__ is None


def test_a_time_outside_of_the_calendar_is_damage() -> None:
    for ms in (-(10**15), 10**15, 2**63 - 1):
        made = Event(Written(2, bytes(16), "note", "x", None, "null", bytes(32), ms, bytes(32)))
        with pytest.raises(Damaged) as caught:
            _ = made.time
        assert caught.value.code == "malformed_record"
