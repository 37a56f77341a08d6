"""Exceptions and values that others made: what is asked of one is asked past its class, which may say anything of itself, or raise."""

from __future__ import annotations

from types import TracebackType, UnionType
from typing import Any

_traceback = BaseException.__dict__["__traceback__"].__get__
_cause = BaseException.__dict__["__cause__"].__get__
_context = BaseException.__dict__["__context__"].__get__
_suppresses = BaseException.__dict__["__suppress_context__"].__get__
_members = BaseException.__dict__["__dict__"].__get__
_name = type.__dict__["__name__"].__get__
_qualified = type.__dict__["__qualname__"].__get__
_module = type.__dict__["__module__"].__get__


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


def origin_of(error: BaseException) -> BaseException | None:
    """Return what a traceback of *error* tells of before it: its cause, or what was being handled when it was raised."""
    if (cause := cause_of(error)) is not None:
        return cause
    found: BaseException | None = None if _suppresses(error) else _context(error)
    return found


def members_of(error: BaseException) -> dict[object, object]:
    """Return the attributes that *error* holds itself, whatever its class says of them."""
    return dict(dict.items(_members(error)))


def full_name(thing: object) -> str:
    """Return the name of the class of *thing* with its module, as code would say it; without one for Python's own."""
    kind = type(thing)
    name, module = str.__str__(_qualified(kind)), _module(kind)
    return name if not is_a(module, str) or module == "builtins" else f"{str.__str__(module)}.{name}"


def is_frame_of_ours(trace: TracebackType) -> bool:
    """Return whether *trace* stands in code of this library. The names of a frame of theirs may be anything."""
    name = dict.get(trace.tb_frame.f_globals, "__name__")
    return type(name) is str and name.startswith("freehold.")
