"""A step's position is its own, and its records have one text each."""

from __future__ import annotations

from typing import Any

import pytest

from freehold.schema.failure import Failure
from freehold.schema.hashes import input_hash
from freehold.schema.ours import Underivable
from freehold.schema.steps import Again, Go, Recorded, Told, check_step, ended_record, intent_record, key_at, position_of, read_step

INPUT = input_hash("[[],{}]").hex()
FAILURE = Failure("E", "m").text


@pytest.mark.parametrize("key", ["a", "1", "key/a", "é" * 128, " ", "/", "a/b"])
def test_a_key_has_a_position_of_its_own(key: str) -> None:
    assert key_at(position_of(key)) == key
    assert not position_of(key).isdecimal()


@pytest.mark.parametrize("position", ["", "key/", "a", "1", "Key/a", "key/\n", "key/a\x00", "key/" + "x" * 129, None, 7, b"key/a"])
def test_what_is_no_keys_position_has_no_key(position: Any) -> None:
    assert key_at(position) is None


@pytest.mark.parametrize("input_", [None, INPUT])
def test_a_record_is_read_as_it_was_written(input_: str | None) -> None:
    assert read_step(0, intent_record(input_, "park", "k")) == Told(input_, "park", "k")
    assert read_step(1, ended_record(input_, failure=FAILURE)) == Told(input_, failure=FAILURE)
    assert read_step(2, ended_record(input_, failure=FAILURE)) == Told(input_, failure=FAILURE)
    assert read_step(2, ended_record(input_, result='{"a":[1]}')) == Told(input_, result='{"a":[1]}')


@pytest.mark.parametrize(
    ("phase", "text"),
    [
        (0, ended_record(None, result="1")),
        (1, intent_record(None, "park", "k")),
        (1, ended_record(None, result="1")),
        (2, intent_record(None, "park", "k")),
        (3, intent_record(None, "park", "k")),
        (None, "{}"),
        (0, "{}"),
        (0, "[]"),
        (0, "{"),
        (0, intent_record(None, "repeat", "k")),
        (0, intent_record(None, "", "k")),
        (0, intent_record("x", "park", "k")),
        (0, intent_record(INPUT.upper(), "park", "k")),
        (0, intent_record(None, "park", "")),
        (0, intent_record(None, "park", "x" * 256)),
        (0, intent_record(None, "park", "a\n")),
        (0, intent_record(None, "park", "k").replace(",", ", ")),
        (0, intent_record(None, "park", "k").replace('"key":"k"', '"key":7')),
        (0, '{"policy":"park","input":null,"key":"k"}'),
        (0, '{"input":null,"policy":"park","key":"k","more":1}'),
        (0, '{"input":1,"policy":"park","key":"k"}'),
        (2, "{}"),
        (2, '{"input":null}'),
        (2, '{"input":null,"result":1'),
        (2, ' {"input":null,"result":1}'),
        (2, '{"input": null,"result":1}'),
        (2, '{"input":"x","result":1}'),
        (2, '{"result":1,"input":null}'),
        (2, f'{{"input":"{INPUT.upper()}","result":1}}'),
    ],
)
def test_what_is_no_record_of_a_step_is_found(phase: int | None, text: str) -> None:
    with pytest.raises(Underivable):
        read_step(phase, text)


@pytest.mark.parametrize(
    "told",
    [
        Told(None, result=""),
        Told(None, result=" 1"),
        Told(None, result='1,"x":2'),
        Told(None, result='{"a": 1}'),
        Told(None, result='{"$nosuch":1}'),
        Told(None, result="[" * 101 + "]" * 101),
        Told(None, failure="1"),
        Told(None, failure=FAILURE.replace(",", ", ", 1)),
        Told(None, failure=FAILURE + ',"x":1'),
        Told(None, failure=Failure("E", "m" * 70_000).text),
    ],
)
def test_a_value_that_is_not_written_as_one_is_found(told: Told) -> None:
    with pytest.raises(Underivable):
        check_step(told)


@pytest.mark.parametrize("told", [Told(None, result="[" * 100 + "]" * 100), Told(None, failure=FAILURE), Told(None, "park", "k")])
def test_one_that_is_passes(told: Told) -> None:
    check_step(told)
    assert told.input is None


def test_an_answer_shows_no_value() -> None:
    assert repr(Recorded("SECRET", "SECRET")) == "<Recorded>"
    assert not Go(1, "k").unsure
    assert Again() == Again()
