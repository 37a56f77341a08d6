"""Walking a journal in pages, forward or in reverse, whoever answers: an owner, a reader, or the transaction at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from freehold.actors.deadline import Seconds, deadline_in, fail_after, monotonic, seconds
from freehold.event import Event
from freehold.pieces import Pieces
from freehold.position import At, seq_of
from freehold.schema.errors import DeadlineExceeded, RunNotFound
from freehold.schema.hashes import ObjectKind
from freehold.schema.ids import check_name
from freehold.schema.lifecycle import STEPS, Status
from freehold.schema.limits import COUNT_MAX
from freehold.schema.messages import Message, ReadEvent, ReadPage, ReadRoot, ReadRun, WaitBeyond
from freehold.schema.nodes import Directory
from freehold.schema.paths import Parts, PathObject, parse
from freehold.schema.roots import EMPTY_ROOT, tree_of
from freehold.schema.rows import EventRow
from freehold.storage.nodes import Nodes
from freehold.storage.trees import find

T = TypeVar("T")
Ask = Callable[[Message], Any]
About = Callable[[Callable[[Ask], Any]], Any]
"""Calls a function with somebody to ask, and returns what it returns."""
Wait = Callable[[WaitBeyond], None]
"""Returns when there may be an answer to the message, sooner or later: what was seen is to be looked at again then."""
_BEYOND_THE_LAST = COUNT_MAX + 1


def walk(
    about: About, *, name: str | None = None, path: str | PathObject | None = None, after: At | None = None, reverse: bool = False
) -> Iterator[Event]:
    """Return the events of one *name*, those that changed what stands at *path*, those beyond *after*: whatever of these is given.

    All of it is checked at once.
    """
    name, parts = _wanted(name, path)
    beyond = 0 if after is None else _seq(after, lambda message: about(lambda ask: ask(message)))
    return _reversed(about, name, parts, beyond) if reverse else _forward(about, name, parts, beyond)


def follow(
    about: About,
    wait: Wait,
    after: At | None = None,
    *,
    name: str | None = None,
    path: str | PathObject | None = None,
    timeout: Seconds | None = None,
) -> Iterator[Event]:
    """Return the events beyond *after*, those that are still to come too; *wait* returns when what was seen may be over.

    They are narrowed by *name* and *path* as those of `walk`, and end when *timeout* is over. All of it is checked at once.
    """
    until = None if timeout is None else monotonic() + seconds(timeout)
    name, parts = _wanted(name, path)
    beyond = _in_time(until, lambda: 0 if after is None else _seq(after, lambda message: about(lambda ask: ask(message))))
    if beyond is None:
        return iter(())
    events = _following(about, wait, name, parts, beyond)
    return events if until is None else iter(lambda: _in_time(until, lambda: next(events, None)), None)


def _in_time(until: float | None, step: Callable[[], T]) -> T | None:
    """Return what *step* returns, or None where that moment comes first. Under a nearer deadline of the caller's own it raises as ever."""
    if until is None:
        return step()
    own = deadline_in(None)
    if (left := until - monotonic()) <= 0:
        return None
    try:
        with fail_after(left):
            return step()
    except DeadlineExceeded:
        if monotonic() < until or (own is not None and own < until):
            raise
        return None


def _wanted(name: str | None, path: str | PathObject | None) -> tuple[str | None, Parts | None]:
    if name is not None:
        name = check_name(name)
    return name, None if path is None else parse(path)


def _following(about: About, wait: Wait, name: str | None, parts: Parts | None, at: int) -> Iterator[Event]:
    born: bytes | None = None
    while True:
        try:
            (row, last), first = about(lambda ask: (ask(ReadRun()), ask(ReadEvent(1)).id))
        except RunNotFound:
            return
        born = first if born is None else born
        if first != born:
            return  # another run of the same id
        for event in _forward(about, name, parts, at):
            at = event.seq
            yield event
        at = max(at, last)  # those that are not wanted were read as well
        # Asked before the events were read: what has come since is there too, and nothing comes after a run's end but notes.
        if at >= last and not STEPS[Status(row.status)]:
            return
        wait(WaitBeyond(at, row.status, born))


def _seq(at: At, ask: Ask) -> int:
    try:
        return seq_of(at, ask)
    except RunNotFound:
        return 0


def _forward(about: About, name: str | None, parts: Parts | None, after: int) -> Iterator[Event]:
    at: int | None = after
    while at is not None:
        rows, at = _page(about, ReadPage(at, name), parts)
        yield from map(Event, rows)


def _reversed(about: About, name: str | None, parts: Parts | None, beyond: int) -> Iterator[Event]:
    at: int | None = _BEYOND_THE_LAST
    while at is not None and at > beyond:
        rows, at = _page(about, ReadPage(at, name, reverse=True), parts)
        for row in rows:
            if row.seq <= beyond:
                return
            yield Event(row)


def _page(about: About, message: ReadPage, parts: Parts | None) -> tuple[list[EventRow], int | None]:
    def page(ask: Ask) -> tuple[list[EventRow], int | None]:
        rows, at = ask(message)
        return rows if parts is None else _changing(ask, rows, parts), at

    try:
        found: tuple[list[EventRow], int | None] = about(page)
    except RunNotFound:
        return [], None
    return found


def _changing(ask: Ask, rows: list[EventRow], parts: Parts) -> list[EventRow]:
    """Return the events after which something else stands at a path than before. Links on it are not followed."""
    nodes = Nodes(Pieces(ask))
    roots = {row.seq: row.root_hash for row in rows}

    def changes(row: EventRow) -> bool:
        before = roots.get(row.seq - 1) or ask(ReadRoot(row.seq - 1)) or EMPTY_ROOT.hash
        return before != row.root_hash and _differs(nodes, before, row.root_hash, parts)

    return [row for row in rows if changes(row)]


def _differs(nodes: Nodes, one: bytes, other: bytes, parts: Parts) -> bool:
    trees: list[bytes | None] = [tree_of(nodes.get(root, ObjectKind.ROOT)) for root in (one, other)]
    for name in parts:
        before, after = (None if tree is None else find(nodes, tree, name) for tree in trees)
        if before == after:
            return False  # nor is anything beneath it another
        trees = [entry.tree if isinstance(entry, Directory) else None for entry in (before, after)]
    return True
