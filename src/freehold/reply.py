"""The value of a transaction that a request id remembers: plain values, and events by their seq."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from freehold.event import Event
from freehold.schema.errors import Damaged
from freehold.schema.limits import REPLY_BYTES_MAX
from freehold.schema.secrets import SecretFilter
from freehold.schema.values import decode


def keep(value: Any, secrets: SecretFilter) -> tuple[Any, str]:
    """Return *value* as every repetition of the request will get it, and the text that is stored.

    Raises ValueRefused for what cannot be stored, or is longer than 64 KiB.
    """
    events: dict[int, Event] = {}
    sealed = secrets.seal([_without_events(value, events), sorted(events)], bytes_max=REPLY_BYTES_MAX)
    return _with_events(sealed.data[0], events.__getitem__), sealed.record


def restore(text: str, event_at: Callable[[int], Event]) -> Any:
    """Return the value that *text* remembers; *event_at* reads the events in it. Raises Damaged."""
    stored = decode(text)
    if not isinstance(stored, list) or len(stored) != 2:
        raise Damaged("a stored reply is malformed; it was left alone", code="malformed_record", table="request", column="reply")
    return _with_events(stored[0], event_at)


# Every container is packed as a pair of its kind and its members, so that an event cannot be mistaken for anything else.
_PLAIN, _EVENT, _LIST, _TUPLE, _DICT = range(5)


def _without_events(value: Any, events: dict[int, Event]) -> list[Any]:
    if isinstance(value, Event):
        events[value.seq] = value
        return [_EVENT, value.seq]
    if isinstance(value, tuple):
        return [_TUPLE, [_without_events(member, events) for member in value]]
    if isinstance(value, list):
        return [_LIST, [_without_events(member, events) for member in value]]
    if isinstance(value, dict) and any(isinstance(member, Event | list | tuple | dict) for member in value.values()):
        return [_DICT, {key: _without_events(member, events) for key, member in value.items()}]
    return [_PLAIN, value]


def _with_events(packed: list[Any], event_at: Callable[[int], Event]) -> Any:
    kind, content = packed
    if kind == _EVENT:
        return event_at(content)
    if kind == _TUPLE:
        return tuple(_with_events(member, event_at) for member in content)
    if kind == _LIST:
        return [_with_events(member, event_at) for member in content]
    if kind == _DICT:
        return {key: _with_events(member, event_at) for key, member in content.items()}
    return content
