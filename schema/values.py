"""The value codec: what a step hands on is what a replay hands on.

A value is stored as JSON text, and what a caller gets back is always `decode(encode(value))`, on the first run too.
Values that JSON cannot say are tagged (see tags.py); anything else is refused with the path to it. Nothing here
shows a value: not in a message, not in a repr. The caller's object must not be changed by another thread meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from freehold.schema import tags
from freehold.schema.errors import Damaged, ValueRefused
from freehold.schema.jsonpath import Refusal
from freehold.schema.limits import VALUE_BYTES_MAX, VALUE_DEPTH_MAX
from freehold.schema.walk import Walk, plain_size

Value: TypeAlias = Any
"""None, bool, int, float, str, list, dict with text keys, bytes, datetime, date, time, timedelta, Decimal, UUID, tuple,
set, frozenset; and, when stored, subclasses of the plain ones, enums, dataclasses and msgspec Structs."""

_T = TypeVar("_T")
_write: Final = msgspec.json.Encoder().encode
_write_sorted: Final = msgspec.json.Encoder(order="sorted").encode
_read: Final = msgspec.json.Decoder().decode
_PATH_IN_MESSAGE = re.compile(r" - at `\$([\w.\[\]-]*)`\Z", re.ASCII)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')


class Sealed(msgspec.Struct, frozen=True):
    """A value as it is stored, and as it is handed on. No later change of the caller's object shows in either."""

    record: str
    data: Value

    def __repr__(self) -> str:
        return f"<Sealed {len(self.record)} characters>"


_NOTHING = Sealed("null", None)


def encode(value: object, *, bytes_max: int = VALUE_BYTES_MAX) -> str:
    """Return *value* as compact JSON text of at most *bytes_max* bytes, the order of keys kept.

    Raises ValueRefused: `value_refused` for a member that cannot be stored, `value_too_deep` beyond 100 levels or for a
    value that holds itself, `value_too_large` beyond *bytes_max*. Message and details name the path, never the value.
    """
    return _shown(_encoded, value, bytes_max, _write)[0].decode()


def canonical(value: object, *, bytes_max: int = VALUE_BYTES_MAX) -> str:
    """Return what `encode` returns, with keys in order of their characters: for digests and comparisons. Raises as it."""
    return _shown(_encoded, value, bytes_max, _write_sorted)[0].decode()


def seal(value: object, *, bytes_max: int = VALUE_BYTES_MAX) -> Sealed:
    """Return *value* as record and detached data, `encode` and `decode` in one. Raises what `encode` raises."""
    return _shown(sealed, value, bytes_max)


def decode(text: str) -> Value:
    """Return the value that *text* holds. Raises Damaged (`malformed_record`) unless `encode` could have written it.

    Not everything is looked at that another writer may have done (spaces, a key twice): `is_canonical` is the whole test.
    """
    try:
        tree = _read(text)
        return tags.revived(tree) if '"$' in text or '"\\u0024' in text else tree
    except (tags.Malformed, msgspec.MsgspecError, ValueError):
        # ValueError: text that is not UTF-8, or a number of more digits than Python reads.
        problem = "it is not JSON with the tags of this format"
    except RecursionError:
        if _levels(text) <= 2 * VALUE_DEPTH_MAX:
            raise  # The caller's own stack is nearly full: the text is innocent.
        problem = "it is nested too deeply"
    raise Damaged(f"a stored value is malformed: {problem}; it was left alone", code="malformed_record")


def is_canonical(text: str) -> bool:
    """Say whether *text* is, to the last character, what `encode` writes for the value that it holds."""
    return _is_written(encode, text, object)


def is_canonical_object(text: str) -> bool:
    """Say whether *text* is, to the last character, what `canonical` writes for a dict: the properties of a run."""
    return _is_written(canonical, text, dict)


def _is_written(write: Callable[..., str], text: str, kind: type[Any]) -> bool:
    try:
        value = decode(text)
        return isinstance(value, kind) and write(value, bytes_max=len(text.encode())) == text
    except (Damaged, ValueRefused):
        return False


def decode_as(text: str, type: type[_T] | Any) -> _T:  # noqa: A002
    """Return the value that *text* holds as an instance of *type*: a Struct, dataclass, enum, TypedDict, annotation.

    Raises ValueRefused, with the path where there is one, if the value does not fit; Damaged as `decode` does.
    """
    data = decode(text)
    try:
        made: _T = msgspec.convert(data, type)
        return made
    except msgspec.ValidationError as error:
        # Its text may quote the value, or come from the type's own checks; only the path at its end is taken.
        quoted = error.__cause__ is not None or " - at `" in text
        found = None if quoted else _PATH_IN_MESSAGE.search(str(error))
        path = "$" + (found[1] if found else "")
        reason = "the stored value is not what the type asks for"
    except Exception:  # noqa: BLE001  a type's own code may raise anything, and may quote the value
        path = "$"
        reason = "no value of this type can be made"
    name = getattr(type, "__name__", "annotation")
    raise ValueRefused(f"{path}: {reason} ({name}); nothing was changed", path=path, type=name)


def sealed(value: object, bytes_max: int) -> Sealed:
    """Do what `seal` does, but raise Refusal, whose path nobody has yet looked through for secrets."""
    if value is None:
        return _NOTHING
    raw, plain = _encoded(value, bytes_max, _write)
    text = raw.decode()
    # Parsing what was just written is the cheapest copy there is.
    return Sealed(text, _read(raw) if plain else decode(text))


def _encoded(value: object, bytes_max: int, write: Callable[[object], bytes]) -> tuple[bytes, bool]:
    """Return the text and whether it is free of tags."""
    try:
        if plain_size(value, bytes_max) >= 0:
            raw = _try(write, value)
            if raw is not None and len(raw) <= bytes_max:
                return raw, True
        walk = Walk(bytes_max)
        raw = write(walk.take(value))
    except RecursionError:
        raise Refusal((), "nested too deeply for what is left of the call stack", "value_too_deep", value) from None
    if len(raw) > bytes_max:
        walk.too_large(len(raw), value)
    return raw, False


def _try(write: Callable[[object], bytes], value: object) -> bytes | None:
    try:
        return write(value)
    except UnicodeEncodeError:
        # A lone surrogate. The error holds the text; the careful walk finds the place.
        return None


def _shown(work: Callable[..., _T], *args: Any) -> _T:
    try:
        return work(*args)
    except Refusal as refusal:
        error = refusal.error()
    # Raised out here, so that it carries no context.
    raise error


def _levels(text: str) -> int:
    level = deepest = 0
    for char in _STRING.sub("", text):
        if char in "[{":
            level += 1
            deepest = max(deepest, level)
        elif char in "]}":
            level -= 1
    return deepest
