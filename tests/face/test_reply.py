"""What a request id remembers of a transaction: values as the codec hands them on, and events by their place."""

from __future__ import annotations

from typing import Any

import pytest

from freehold import Damaged, Event, ValueRefused
from freehold.reply import keep, restore
from freehold.schema.messages import FindId, Message
from freehold.schema.rows import Written
from freehold.schema.secrets import SecretFilter

FILTER = SecretFilter()


def event(seq: int) -> Event:
    return Event(Written(seq, seq.to_bytes(16, "big"), "note", "x", None, "null", bytes(32), 0, seq.to_bytes(32, "big")))


def ask(message: Message) -> int | None:
    """Answer as a journal of nine events does."""
    assert isinstance(message, FindId)
    seq = int.from_bytes(message.id, "big")
    return seq if seq < 10 else None


VALUES: list[Any] = [
    None,
    7,
    event(2),
    [event(2), event(2)],
    (event(2), (event(3), [event(4)])),
    {"a": event(2), "b": {"c": (1, event(3))}, "$": event(4), "$event": 5},
    [[2, event(2)], [0, 1], (0, [1])],
    {"$tuple": [1]},
    (),
    [[]],
    {"plain": {1, 2}, "bytes": b"x"},
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_the_first_answer_and_every_later_one_are_equal(value: Any) -> None:
    first, text = keep(value, FILTER, ask)
    assert first == value
    later = restore(text, event)
    assert later == value
    assert type(later) is type(value)


@pytest.mark.parametrize("member", [event(2), "plain"], ids=["event", "plain"])
def test_the_answer_is_detached_from_the_callers_object(member: object) -> None:
    value = {"members": [member]}
    first, _ = keep(value, FILTER, ask)
    value["members"].append("later")
    assert first == {"members": [member]}


def test_an_event_that_the_journal_does_not_have_is_refused() -> None:
    with pytest.raises(ValueRefused):
        keep([event(11)], FILTER, ask)
    moved = event(3)
    moved.seq = 4
    with pytest.raises(ValueRefused):
        keep(moved, FILTER, ask)


@pytest.mark.parametrize("value", [{event(2)}, frozenset({event(2)}), {event(2): 1}], ids=["set", "frozenset", "key"])
def test_an_event_where_none_can_be_put_back_is_refused(value: Any) -> None:
    with pytest.raises(ValueRefused):
        keep(value, FILTER, ask)


KEY = "AKIA" + "IOSFODNN7EXAMPLQ"


@pytest.mark.parametrize("value", [{KEY: event(2)}, {"a": 1, KEY: {"b": (0, event(3))}, "c": event(4)}, [{KEY: [event(2)]}, event(3)]])
def test_an_event_under_a_key_that_is_masked_is_remembered_under_the_mask(value: Any) -> None:
    first, text = keep(value, SecretFilter(on_secret_shape="mask"), ask)
    assert KEY not in text
    assert KEY not in repr(first)
    assert restore(text, event) == first
    assert repr(first) == repr(value).replace(KEY, "***")


def test_a_masked_reply_with_its_ways_to_events_is_bounded() -> None:
    with pytest.raises(ValueRefused) as caught:
        keep({KEY: [event(2)] * 8_000}, SecretFilter(on_secret_shape="mask"), ask)
    assert caught.value.code == "value_too_large"
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("text", ["null", "[]", "[1]", "[1,2]", "[1,[],3]", "{", '"x"'])
def test_a_malformed_reply_is_damage(text: str) -> None:
    with pytest.raises(Damaged) as caught:
        restore(text, event)
    assert caught.value.code == "malformed_record"


@pytest.mark.parametrize("text", ["[1,[[0]]]", "[[],[[0]]]", '[{},[["a"]]]', "[[1],[5]]", '[["x"],[[0]]]', '[[1],[["a"]]]'])
def test_a_reply_whose_places_are_not_there_is_damage(text: str) -> None:
    with pytest.raises(Damaged):
        restore(text, event)
