"""What the journal tells of steps: every intent follows from their events, and events that do not follow are found."""

from __future__ import annotations

from typing import Any

import pytest

from freehold.schema.failure import Failure
from freehold.schema.ours import Underivable
from freehold.schema.rows import EventRow
from freehold.schema.steps import ended_record, intent_record, position_of
from freehold.schema.told import Intent, Steps

FAILURE = Failure("E", "m").text
TEXTS = {0: intent_record(None, "park", "k"), 1: ended_record(None, failure=FAILURE), 2: ended_record(None, result="1")}


def event(seq: int, phase: int, attempt: int, key: str = "a", **changes: Any) -> EventRow:
    row = EventRow(seq, b"", "step", key, None, position_of(key), phase, attempt, TEXTS[phase], None, b"", 0, b"", None)
    return row._replace(**changes)


def told(*places: tuple[int, int]) -> list[Intent]:
    """Return the intents after events of these phases and attempts, the first of which has seq 2."""
    steps = Steps()
    for seq, (phase, attempt) in enumerate(places, 2):
        steps.add(event(seq, phase, attempt))
    return steps.intents


def intent(attempt: int, opened: int, settled: int | None, state: str) -> Intent:
    return Intent("key/a", attempt, "park", "k", opened, settled, state)


@pytest.mark.parametrize(
    ("places", "intents"),
    [
        ([(2, 1)], []),
        ([(1, 1), (1, 2), (2, 3)], []),
        ([(0, 1)], [intent(1, 2, None, "open")]),
        ([(0, 1), (2, 1)], [intent(1, 2, 3, "done")]),
        ([(0, 1), (1, 1)], [intent(1, 2, 3, "not_done")]),
        ([(0, 1), (1, 1), (0, 2)], [intent(1, 2, 3, "not_done"), intent(2, 4, None, "open")]),
        ([(0, 1), (2, 2)], [intent(1, 2, None, "unknown")]),
        ([(0, 1), (1, 2)], [intent(1, 2, None, "unknown")]),
        ([(0, 1), (1, 2), (0, 3), (2, 3)], [intent(1, 2, None, "unknown"), intent(3, 4, 5, "done")]),
        ([(1, 1), (0, 2), (1, 2), (1, 3), (2, 4)], [intent(2, 3, 4, "not_done")]),
    ],
)
def test_every_intent_follows_from_the_events(places: list[tuple[int, int]], intents: list[Intent]) -> None:
    assert told(*places) == intents


@pytest.mark.parametrize(
    "places",
    [
        [(2, 2)],
        [(0, 2)],
        [(2, 1), (2, 1)],
        [(2, 1), (1, 2)],
        [(2, 1), (0, 2)],
        [(1, 1), (1, 1)],
        [(1, 1), (2, 1)],
        [(1, 1), (1, 3)],
        [(0, 1), (0, 1)],
        [(0, 1), (0, 2)],
        [(0, 1), (1, 1), (1, 1)],
        [(0, 1), (1, 1), (2, 1)],
        [(0, 1), (1, 2), (1, 1)],
        [(0, 1), (1, 3)],
        [(0, 1), (2, 1), (2, 2)],
    ],
)
def test_an_event_that_does_not_follow_is_found(places: list[tuple[int, int]]) -> None:
    told(*places[:-1])

    with pytest.raises(Underivable):
        told(*places)


@pytest.mark.parametrize(
    "changes",
    [
        {"position": "key/b"},
        {"position": None},
        {"position": "a"},
        {"position": "1", "execution": 1},
        {"name": "b"},
        {"name": None},
        {"execution": 1},
        {"attempt": None},
        {"phase": None},
        {"phase": 1},
        {"record": "{}"},
        {"record": ended_record(None, result="1 ")},
        {"name": "x" * 129, "position": "key/" + "x" * 129},
    ],
)
def test_an_event_that_is_wrong_by_itself_is_found(changes: dict[str, Any]) -> None:
    Steps().add(event(2, 2, 1))

    with pytest.raises(Underivable):
        Steps().add(event(2, 2, 1)._replace(**changes))


def test_steps_know_nothing_of_each_other() -> None:
    steps = Steps()
    steps.add(event(2, 0, 1))
    steps.add(event(3, 0, 1, key="b"))
    steps.add(event(4, 2, 1))

    assert [(found.position, found.state) for found in steps.intents] == [("key/a", "done"), ("key/b", "open")]
