"""What JSON cannot say: each such value is a one-member object whose key begins with `$`.

A user's own one-member object with such a key gets one more `$` in front. Reading is strict: a tag is taken
only if writing its value again gives the same text.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
"""JSON numbers beyond these are not read alike everywhere, so they are tagged."""

TUPLE, SET, FROZENSET = "$tuple", "$set", "$frozenset"
_write = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder().decode
_T = TypeVar("_T")


class Malformed(Exception):
    """Stored text is not what `tagged` writes. It never leaves the schema: it becomes Damaged. Carries no value."""


def tagged(value: object) -> dict[str, Any] | None:
    """Return a scalar as its one-member object, or None if it has no tag.

    An aware datetime or time keeps its offset, not the name of its zone; `fold` is kept where it is 1. A subclass
    is taken as its base if it is equal to it, so one that holds more (nanoseconds, say) has no tag.
    """
    if isinstance(value, int):
        return None if INT_MIN <= value <= INT_MAX else {"$int": hex(value)}
    if isinstance(value, float):
        if math.isfinite(value):
            return None
        return {"$float": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$bytes": base64.b64encode(value if isinstance(value, bytes) else bytes(value)).decode("ascii")}
    for kind, write in _WRITERS:
        if isinstance(value, kind):
            return write(value)
    return None


def opens_tag(value: dict[str, Any]) -> bool:
    """Say whether an object would be read as a tag, so that its key must be escaped."""
    return len(value) == 1 and next(iter(value))[:1] == "$"


def distinct(members: Iterable[object]) -> list[object] | None:
    """Return a set's written members in their one order, those that are equal when read only once.

    None if a member cannot be in a set when it is read.
    """
    kept: dict[object, object] = {}
    for text, member in sorted({_write(member): member for member in members}.items()):
        try:
            kept.setdefault(revived(_read(text)), member)
        except TypeError:
            return None
    return list(kept.values())


def revived(tree: Any) -> Any:
    """Return the value of a decoded JSON tree, which is used up. Raises Malformed."""
    if type(tree) is list:
        for index, member in enumerate(tree):
            if type(member) is dict or type(member) is list:
                tree[index] = revived(member)
        return tree
    if type(tree) is not dict:
        return tree
    if opens_tag(tree):
        ((key, body),) = tree.items()
        return {key[1:]: revived(body)} if key[:2] == "$$" else _untagged(key, body)
    for key, member in tree.items():
        if type(member) is dict or type(member) is list:
            tree[key] = revived(member)
    return tree


def _untagged(key: str, body: Any) -> Any:
    if key in (TUPLE, SET, FROZENSET):
        if type(body) is not list:
            raise Malformed
        return tuple(revived(body)) if key == TUPLE else _set(body, set if key == SET else frozenset)
    read = _READERS.get(key)
    if read is None:
        raise Malformed
    try:
        value = read(body)
        same = _write(tagged(value)) == _write({key: body})
    except (ValueError, TypeError, ArithmeticError, AttributeError):
        raise Malformed from None
    if not same:
        raise Malformed
    return value


def _set(body: list[Any], kind: Callable[[list[Any]], Any]) -> Any:
    texts = [_write(member) for member in body]
    try:
        members = kind(revived(body))
    except TypeError:
        raise Malformed from None
    if len(members) != len(texts) or any(one >= other for one, other in pairwise(texts)):
        raise Malformed
    return members


def _base(value: _T, base: _T) -> bool:
    # `==` between two Decimals may raise for a signalling NaN; only subclasses are compared.
    return type(value) is type(base) or value == base


def _datetime(value: datetime) -> dict[str, Any] | None:
    zone = value.tzinfo
    if zone is not None and value.utcoffset() is None:
        return None
    base = datetime(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond, zone, fold=value.fold)
    return _moment("$datetime", base, base.fold) if _base(value, base) else None


def _time(value: time) -> dict[str, Any] | None:
    zone = value.tzinfo
    if zone is not None and value.utcoffset() is None:
        return None
    base = time(value.hour, value.minute, value.second, value.microsecond, zone, fold=value.fold)
    return _moment("$time", base, base.fold) if _base(value, base) else None


def _moment(key: str, base: datetime | time, fold: int) -> dict[str, Any]:
    text = base.isoformat(timespec="microseconds")
    return {key: [text, fold] if fold else text}


def _date(value: date) -> dict[str, Any] | None:
    base = date(value.year, value.month, value.day)
    return {"$date": base.isoformat()} if _base(value, base) else None


def _timedelta(value: timedelta) -> dict[str, Any] | None:
    base = timedelta(value.days, value.seconds, value.microseconds)
    return {"$timedelta": [base.days, base.seconds, base.microseconds]} if _base(value, base) else None


def _decimal(value: Decimal) -> dict[str, Any] | None:
    # The current decimal context may ask for a small e; the stored text must not depend on it.
    return {"$decimal": Decimal.__str__(value).replace("e", "E")}


def _uuid(value: UUID) -> dict[str, Any] | None:
    base = UUID(int=value.int)
    return {"$uuid": str(base)} if _base(value, base) else None


def _read_moment(read: Callable[[str], Any], naive_chars: int) -> Callable[[Any], Any]:
    def moment(body: Any) -> Any:
        text, fold = (body, 0) if type(body) is str else body
        naive = read(text[:naive_chars])
        offset = text[naive_chars:]
        return naive.replace(fold=fold, tzinfo=timezone(_read_offset(offset)) if offset else None)

    return moment


def _read_offset(text: str) -> timedelta:
    # Python's own fromisoformat takes an offset of less than a second for UTC.
    hours, minutes, *seconds = text[1:].split(":")
    whole, _, micros = seconds[0].partition(".") if seconds else ("0", "", "")
    offset = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(whole), microseconds=int(micros or 0))
    return -offset if text[0] == "-" else offset


def _read_float(body: str) -> float:
    # A new object each time: two NaNs in one set are two members to Python.
    return float(body)


# datetime is a date: the order matters.
_WRITERS: Final[tuple[tuple[type, Callable[[Any], dict[str, Any] | None]], ...]] = (
    (datetime, _datetime),
    (date, _date),
    (time, _time),
    (timedelta, _timedelta),
    (Decimal, _decimal),
    (UUID, _uuid),
)
_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "$int": lambda body: int(body, 16),
    "$float": _read_float,
    "$bytes": lambda body: base64.b64decode(body, validate=True),
    "$datetime": _read_moment(datetime.fromisoformat, 26),
    "$date": date.fromisoformat,
    "$time": _read_moment(time.fromisoformat, 15),
    "$timedelta": lambda body: timedelta(*body),
    "$decimal": Decimal,
    "$uuid": UUID,
}
