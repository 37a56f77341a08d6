"""Exceptions and values that others made: what is asked of one is asked past its class, which may say anything of itself, or raise."""

from __future__ import annotations

from types import TracebackType, UnionType
from typing import Any

_traceback = BaseException.__dict__["__traceback__"].__get__
_cause = BaseException.__dict__["__cause__"].__get__
_name = type.__dict__["__name__"].__get__


def is_a(thing: object, kind: type[Any] | UnionType) -> bool:
    """Return whether *thing* was made as a *kind*. `isinstance` would believe its `__class__`."""
    return issubclass(type(thing), kind)


def type_name(thing: object) -> str:
    """Return the name of the class of *thing*."""
    return str.__str__(_name(type(thing)))


def traceback_of(error: BaseException) -> TracebackType | None:
    """Return where *error* was raised."""
    found: TracebackType | None = _traceback(error)
    return found


def cause_of(error: BaseException) -> BaseException | None:
    """Return what *error* was raised from."""
    found: BaseException | None = _cause(error)
    return found
