"""A message on its way: it answers whoever waits, and shows nothing of what it carries."""

from __future__ import annotations

import pytest

from freehold.actors.envelope import Envelope, Lane
from freehold.actors.reply import Reply


def test_the_lanes_are_served_system_first_and_user_last() -> None:
    assert list(Lane) == [Lane.SYSTEM, Lane.SPAN, Lane.USER] == sorted(Lane)


def test_also_an_empty_message_weighs_something() -> None:
    assert Envelope(None).size > 0
    assert Envelope(None, size=1_000).size == Envelope(None).size + 1_000


def test_a_value_answers_whoever_waits() -> None:
    envelope = Envelope("m", Reply())
    envelope.value = 7
    envelope.answer()

    assert envelope.reply_to is not None
    assert envelope.reply_to.get(0) == 7


def test_an_error_answers_whoever_waits_also_beside_a_value() -> None:
    envelope = Envelope("m", Reply())
    envelope.value, envelope.error = 7, OSError()
    envelope.answer()

    assert envelope.reply_to is not None
    with pytest.raises(OSError):
        envelope.reply_to.get(0)


def test_where_nobody_waits_nobody_is_answered() -> None:
    envelope = Envelope("m")
    envelope.error = OSError()

    envelope.answer()
    assert envelope.reply_to is None


def test_its_repr_shows_the_kind_of_message_alone() -> None:
    assert repr(Envelope("a stored value")) == "<Envelope str>"
