"""The value of a transaction that a request id remembers: plain values, and events of this run by their place in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from freehold.event import Event
from freehold.schema.errors import Damaged, ValueRefused
from freehold.schema.limits import REPLY_BYTES_MAX, VALUE_DEPTH_MAX
from freehold.schema.messages import FindId, Message
from freehold.schema.repeated import reply_text
from freehold.schema.secrets import SecretFilter
from freehold.schema.values import decode

Step = str | int
Place = tuple[Step, ...]
"""The way from a value to an event in it: keys and indices."""


def keep(value: Any, secrets: SecretFilter, ask: Callable[[Message], Any]) -> tuple[Any, str]:
    """Return *value* as every repetition of the request will get it, and the text that is stored.

    Raises ValueRefused for what cannot be stored, is longer than 64 KiB, or is an event that is not in this journal.
    """
    events: dict[tuple[int, ...], Event] = {}
    bare = _lift(value, (), events)
    for event in events.values():
        if seq_here(event, ask) != event.seq:
            raise ValueRefused("an event that is not in this run's journal cannot be remembered as a reply; nothing was kept")
    stored = secrets.seal(bare, bytes_max=REPLY_BYTES_MAX).data if events else None
    ways = [_way(stored, place) for place in events]
    sealed = secrets.seal(bare, bytes_max=REPLY_BYTES_MAX - len(reply_text("", ways).encode()))
    data = sealed.data
    for way, event in zip(ways, events.values(), strict=True):
        data = _put(data, way, event)
    return data, reply_text(sealed.record, ways)


def restore(text: str, event_at: Callable[[int], Event]) -> Any:
    """Return the value that *text* remembers; *event_at* reads the events in it. Raises Damaged."""
    try:
        data, places = decode(text)
        for place in map(tuple, places):
            seq = _at(data, place)
            if type(seq) is not int:
                raise TypeError
            data = _put(data, place, event_at(seq))
    except (TypeError, ValueError, LookupError):
        raise malformed() from None
    return data


def malformed() -> Damaged:
    """Return what is said of a stored reply that nobody of ours has written."""
    return Damaged("a stored reply is malformed; it was left alone", code="malformed_record", table="request", column="reply")


def seq_here(event: Event, ask: Callable[[Message], Any]) -> int | None:
    """Return the seq of *event* if it is in the run that *ask* asks, else None: seqs alone are equal in every run."""
    seq: int | None = ask(FindId(event._id))  # noqa: SLF001 - the same package
    return seq


def _lift(value: Any, place: tuple[int, ...], events: dict[tuple[int, ...], Event]) -> Any:
    """Return *value* with a seq in place of each event, which goes to *events* under the numbers of its members on the way."""
    if isinstance(value, Event):
        events[place] = value
        return value.seq
    if len(place) > VALUE_DEPTH_MAX:
        return value  # too deep for what comes next, or a value that holds itself
    if isinstance(value, tuple):
        return tuple(_lift(member, (*place, index), events) for index, member in enumerate(value))
    if isinstance(value, list):
        return [_lift(member, (*place, index), events) for index, member in enumerate(value)]
    if isinstance(value, dict):
        members = dict(value.items())
        return {key: _lift(member, (*place, index), events) for index, (key, member) in enumerate(members.items())}
    return value


def _way(data: Any, place: tuple[int, ...]) -> Place:
    """Return the way to *place* by the keys that are stored, which are others than the user's where they were masked."""
    way: list[Step] = []
    for index in place:
        way.append(list(data)[index] if isinstance(data, dict) else index)
        data = data[way[-1]]
    return tuple(way)


def _put(value: Any, place: Place, event: Event) -> Any:
    if not place:
        return event
    step, rest = place[0], place[1:]
    member = _put(value[step], rest, event)
    if isinstance(value, tuple):
        assert isinstance(step, int)
        return (*value[:step], member, *value[step + 1 :])
    value[step] = member
    return value


def _at(value: Any, place: Place) -> Any:
    for step in place:
        value = value[step]
    return value
