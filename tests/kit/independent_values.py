"""Values as docs/FORMAT.md writes them, read and written by the standard library alone: its section *Values* and nothing else."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID


def is_canonical(text: str) -> bool:
    """Return whether *text* is the one text of the value that it holds."""
    return write(value := read(text)) == text and depth(value) <= 100


def is_properties(text: str) -> bool:
    """Return whether *text* is the one text of an object, the members of every object in the order of their names."""
    value = read(text)
    return type(value) is dict and write(value, ordered=True) == text and depth(value) <= 100 and len(text.encode()) <= 65_536


def depth(value: Any) -> int:
    """Return how many containers stand in each other."""
    if not isinstance(value, dict | list | tuple | set | frozenset):
        return 0
    return 1 + max(map(depth, value.values() if isinstance(value, dict) else value), default=0)


def read(text: str) -> Any:
    """Return the value. Raises ValueError, TypeError, KeyError or ArithmeticError for what is none."""
    return _value(json.loads(text, parse_constant=lambda name: READ[name]))


def write(value: Any, *, ordered: bool = False) -> str:
    """Return the text of a value."""
    if type(value) is tuple:
        return _one("$tuple", write(list(value), ordered=ordered))
    for kind, tag, body in WRITE:
        if type(value) is kind:
            return _one(tag, body(value))
    if isinstance(value, list):
        return f"[{','.join(write(member, ordered=ordered) for member in value)}]"
    if isinstance(value, dict):
        escape = "$" if len(value) == 1 and next(iter(value)).startswith("$") else ""
        members = sorted(value.items()) if ordered else value.items()
        return f"{{{','.join(f'{_json(escape + name)}:{write(member, ordered=ordered)}' for name, member in members)}}}"
    if isinstance(value, float):
        return (
            _double(value)
            if math.isfinite(value)
            else _one("$float", _json({"inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), "NaN")))
        )
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return _one("$int", _json(hex(value)))
    return _json(value)


def _value(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_value(member) for member in tree]
    if not isinstance(tree, dict):
        return tree
    if len(tree) == 1 and (name := next(iter(tree))).startswith("$"):
        return {name[1:]: _value(tree[name])} if name.startswith("$$") else READ[name](tree[name])
    return {name: _value(member) for name, member in tree.items()}


def _one(tag: str, body: str) -> str:
    return f"{{{_json(tag)}:{body}}}"


def _json(plain: Any) -> str:
    return json.dumps(plain, ensure_ascii=False)


def _double(number: float) -> str:
    text = repr(number)
    if 1e-5 <= abs(number) < 1e-4:
        text = format(Decimal(text), "f")
    return text.replace("e+", "e").replace("e-0", "e-")


def _moment(body: Any, kind: Any) -> Any:
    text, fold = (body, 0) if isinstance(body, str) else body
    clock, sign, offset = re.fullmatch(r"(.*?:\d\d:\d\d\.\d{6})(?:([+-])([\d:.]+))?", text).groups()  # type: ignore[union-attr]
    moment = kind.fromisoformat(clock).replace(fold=fold)
    if sign is None:
        return moment
    # Python itself takes an offset of less than a second for none.
    parts = [Decimal(part) for part in (offset + ":0").split(":")[:3]]
    micros = int(sum(part * factor for part, factor in zip(parts, (3_600, 60, 1), strict=True)) * 1_000_000)
    return moment.replace(tzinfo=timezone(timedelta(microseconds=-micros if sign == "-" else micros)))


def _text_of(moment: datetime | time) -> str:
    text = _json(moment.isoformat(timespec="microseconds"))
    return f"[{text},{moment.fold}]" if moment.fold else text


def _sorted(members: Any) -> str:
    return f"[{','.join(sorted(set(map(write, members)), key=str.encode))}]"


READ: dict[str, Callable[[Any], Any]] = {
    "$int": lambda body: int(body, 16),
    "$float": float,
    "$bytes": lambda body: base64.b64decode(body, validate=True),
    "$datetime": lambda body: _moment(body, datetime),
    "$date": date.fromisoformat,
    "$time": lambda body: _moment(body, time),
    "$timedelta": lambda body: timedelta(*body),
    "$decimal": Decimal,
    "$uuid": UUID,
    "$tuple": lambda body: tuple(map(_value, body)),
    "$set": lambda body: set(map(_value, body)),
    "$frozenset": lambda body: frozenset(map(_value, body)),
}
WRITE: tuple[tuple[type, str, Callable[[Any], str]], ...] = (
    (bytes, "$bytes", lambda value: _json(base64.b64encode(value).decode())),
    (datetime, "$datetime", _text_of),
    (date, "$date", lambda value: _json(value.isoformat())),
    (time, "$time", _text_of),
    (timedelta, "$timedelta", lambda value: f"[{value.days},{value.seconds},{value.microseconds}]"),
    (Decimal, "$decimal", lambda value: _json(str(value))),
    (UUID, "$uuid", lambda value: _json(str(value))),
    (set, "$set", _sorted),
    (frozenset, "$frozenset", _sorted),
)
