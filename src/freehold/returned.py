"""What a function says that it returns, as far as a stored value has to be made into it again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from enum import Enum
from functools import partial
from inspect import isroutine
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

import msgspec


def type_returned(fn: Callable[..., Any]) -> Any | None:
    """Return what the stored result of *fn* is to be made into, or None if it is handed on as plain values.

    By its annotation, where that holds a Struct, a dataclass, an enum or a TypedDict; or *fn* is such a class itself.
    """
    try:
        found = _annotation(fn)
    except Exception:  # noqa: BLE001 - a name that only a type checker knows, or whatever an annotation does
        return None
    return found if _is_made(found) else None


def _annotation(fn: Any) -> Any:
    while isinstance(fn, partial):
        fn = fn.func
    if isinstance(fn, type):
        return fn
    return get_type_hints(fn if isroutine(fn) else type(fn).__call__).get("return")


def _is_made(found: Any) -> bool:
    kind = get_origin(found) or found
    if isinstance(kind, type) and (issubclass(kind, msgspec.Struct | Enum) or dataclasses.is_dataclass(kind) or is_typeddict(kind)):
        return True
    return any(_is_made(part) for part in get_args(found))
