"""Walking a journal in pages, forward or in reverse, whoever answers: an owner, a reader, or the transaction at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from freehold.event import Event
from freehold.position import At, seq_of
from freehold.schema.errors import RunNotFound
from freehold.schema.ids import check_name
from freehold.schema.messages import Message, ReadPage

Ask = Callable[[Message], Any]
_BEYOND_THE_LAST = 2**62


def walk(ask: Ask, name: str | None, after: At | None, *, reverse: bool) -> Iterator[Event]:
    """Return the events of one *name*, if given, and beyond *after*, if given. Name and moment are checked at once."""
    if name is not None:
        name = check_name(name)
    beyond = 0 if after is None else _seq(after, ask)
    return _reversed(ask, name, beyond) if reverse else _forward(ask, name, beyond)


def _seq(at: At, ask: Ask) -> int:
    try:
        return seq_of(at, ask)
    except RunNotFound:
        return 0


def _forward(ask: Ask, name: str | None, after: int) -> Iterator[Event]:
    at: int | None = after
    while at is not None:
        rows, at = _page(ask, ReadPage(at, name))
        yield from map(Event, rows)


def _reversed(ask: Ask, name: str | None, beyond: int) -> Iterator[Event]:
    at: int | None = _BEYOND_THE_LAST
    while at is not None:
        rows, at = _page(ask, ReadPage(at, name, reverse=True))
        for row in rows:
            if row.seq <= beyond:
                return
            yield Event(row)


def _page(ask: Ask, message: ReadPage) -> tuple[list[Any], int | None]:
    try:
        rows, at = ask(message)
    except RunNotFound:
        return [], None
    return rows, at
