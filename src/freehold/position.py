"""Naming a moment of a run's life: by seq, event, event id or time."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from freehold.event import Event
from freehold.schema.errors import Refused
from freehold.schema.ids import EventId, Root
from freehold.schema.limits import COUNT_MAX
from freehold.schema.messages import FindId, FindRoot, FindTime, Message, ReadRoot, ReadRun
from freehold.schema.roots import EMPTY_ROOT

At = Event | EventId | Root | int | datetime | str
"""text: digits are a seq (0: before everything), a UUID an event, 8 to 64 hexadecimal digits a root, an ISO time with an offset the last
event by then."""

_DIGITS = re.compile(r"[0-9]{1,18}")
_ROOT = re.compile(r"[0-9a-fA-F]{8,64}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def seq_of(at: At, ask: Callable[[Message], Any]) -> int:
    """Return the seq that *at* stands for; *ask* looks ids and times up in the run.

    Raises Refused (bad_position) for what is no moment or, as a root, many, a naive datetime, or an event that is not in this run.
    """
    if isinstance(at, Event):
        return _found(ask(FindId(at._id)))  # noqa: SLF001 - the same package
    if isinstance(at, bool):
        raise _bad("a moment is not a truth value")
    if isinstance(at, int):
        at = int.__index__(at)  # a subclass would go on answering for itself in the owner's thread
        if at < 0:
            raise _bad("a seq is 0 or more")
        return min(at, COUNT_MAX)
    if isinstance(at, datetime):
        return _at_time(at, ask)
    if isinstance(at, str):
        return _of_text(at, ask)
    raise _bad(f"a moment is an event, a seq, an event id or a time, not {type(at).__name__}")


def root_of(at: At | None, before: At | None, ask: Callable[[Message], Any]) -> bytes:
    """Return the hash of the root at a moment, or just *before* one: of the current root where neither is given.

    The moment *at* may also be a root itself, by its 64 hexadecimal digits or a beginning of 8 or more that only it has.
    Raises Refused (bad_position) as `seq_of` does, for both at once, for a seq beyond the last event, and for a root that this run
    does not have.
    """
    if at is not None and before is not None:
        raise _bad("it is either at a moment or before one")
    if before is not None:
        seq = _event_at(before, ask) - 1
    elif at is None:
        return bytes(ask(ReadRoot()))
    elif isinstance(at, str) and _is_root(at):
        return _found_root(at.lower(), ask)
    else:
        seq = _event_at(at, ask)
    return ask(ReadRoot(seq)) or EMPTY_ROOT.hash


def _event_at(at: At, ask: Callable[[Message], Any]) -> int:
    """As `seq_of`, but beyond the last event there is no moment yet."""
    seq = seq_of(at, ask)
    if isinstance(at, int | str) and seq > (last := ask(ReadRun())[1]):
        raise _bad(f"the last event of this run is {last}")
    return seq


def _is_root(text: str) -> bool:
    # Eight digits and nothing else are a seq; a whole root is a root, whatever its digits are.
    return bool(_ROOT.fullmatch(text)) and (len(text) == 64 or not _DIGITS.fullmatch(text))


def _found_root(digits: str, ask: Callable[[Message], Any]) -> bytes:
    found = ask(FindRoot(bytes.fromhex(digits.ljust(64, "0")), bytes.fromhex(digits.ljust(64, "f"))))
    if len(found) != 1:
        raise _bad("more than one root of this run begins so" if found else "no root of this run begins so")
    return bytes(found[0])


def _of_text(text: str, ask: Callable[[Message], Any]) -> int:
    if _DIGITS.fullmatch(text):
        return int(text)
    if _UUID.fullmatch(text):
        return _found(ask(FindId(UUID(text).bytes)))
    if _is_root(text):
        raise _bad("a root may have been current many times, so nothing is before or after it: name an event")
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise _bad("this text is no seq, no event id and no ISO time with an offset") from None
    return _at_time(time, ask)


def _at_time(time: datetime, ask: Callable[[Message], Any]) -> int:
    if time.utcoffset() is None:
        raise _bad("a time needs an offset, such as +00:00: a naive one means another moment on each machine")
    try:
        ms = int(time.astimezone(UTC).timestamp() * 1000)
    except OverflowError:
        raise _bad("with its offset, this time lies outside the years 1 to 9999") from None
    return int(ask(FindTime(max(0, ms))))


def _found(seq: int | None) -> int:
    if seq is None:
        raise _bad("this event is not in this run")
    return seq


def _bad(what: str) -> Refused:
    return Refused(f"{what}; nothing was changed", code="bad_position")
