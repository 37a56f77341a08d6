"""What of a run outlives its owner's restarts: the pin that creation has left, and who waits for the outcome of a COMMIT."""

from __future__ import annotations

from pathlib import Path

import pytest

from freehold.actors.envelope import Envelope
from freehold.actors.reply import Reply
from freehold.actors.seat import Doubt, PinBox, Seat
from freehold.schema.errors import Refused, StorageFailed
from freehold.storage.clock import Clock
from freehold.storage.create import create
from freehold.storage.path import resolve


def seat(folder: Path) -> Seat:
    return Seat(resolve(folder, "a"), Clock(), idle_timeout=1.0)


def in_doubt(seat: Seat) -> tuple[Envelope, Envelope]:
    done, refused = Envelope("done", Reply()), Envelope("refused", Reply())
    done.value = "value"
    refused.error = Refused("no", code="unknown_event")
    seat.doubt = Doubt(7, 1, [done, refused])
    return done, refused


def answer(envelope: Envelope) -> object:
    assert envelope.reply_to is not None
    return envelope.reply_to.get(0)


def test_what_happened_is_answered_as_what_it_was(tmp_path: Path) -> None:
    place = seat(tmp_path)
    done, refused = in_doubt(place)
    place.resolve(happened=True)
    assert answer(done) == "value"
    with pytest.raises(Refused):
        answer(refused)
    assert place.doubt is None


@pytest.mark.parametrize(("happened", "executed"), [(False, "no"), (None, "unknown")])
def test_what_did_not_happen_or_is_not_known_is_said(tmp_path: Path, *, happened: bool | None, executed: str) -> None:
    place = seat(tmp_path)
    done, refused = in_doubt(place)
    place.resolve(happened=happened)
    with pytest.raises(StorageFailed) as caught:
        answer(done)
    assert caught.value.executed == executed
    assert caught.value.details["phase"] == "commit"
    assert caught.value.details["rolled_back"] is (happened is False)
    with pytest.raises(Refused):
        answer(refused)


def test_each_who_waits_gets_an_error_of_its_own(tmp_path: Path) -> None:
    place = seat(tmp_path)
    one, two = Envelope("one", Reply()), Envelope("two", Reply())
    place.doubt = Doubt(7, 1, [one, two])
    place.resolve(happened=False)
    assert one.error is not two.error


def test_without_a_doubt_there_is_nothing_to_resolve(tmp_path: Path) -> None:
    place = seat(tmp_path)
    place.resolve(happened=True)
    assert place.doubt is None


def test_the_pin_of_a_creation_is_taken_once(tmp_path: Path) -> None:
    path = resolve(tmp_path, "a")
    pin = create(path, project="", props="{}", clock=Clock())
    place = Seat(path, Clock(), idle_timeout=1.0, box=PinBox(pin))
    assert place.take_pin() is pin
    assert place.take_pin() is None
    pin.close()
