"""The careful walk over a value: what is stored for each member, or where it had to be refused.

It counts at least the bytes that will be written, so that a huge value is refused before a copy is made.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable
from enum import Enum
from math import isfinite
from typing import Any, Never

from freehold.schema import tags, typed
from freehold.schema.jsonpath import Refusal, Step
from freehold.schema.limits import VALUE_DEPTH_MAX

CARE = -1
"""What `plain_size` says of a value that needs the careful walk."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN = "{type} cannot be stored; use plain values, or write it to a file"


def plain_size(value: Any, bytes_max: int, levels: int = VALUE_DEPTH_MAX) -> int:
    """Return at least how many bytes a dict or list takes that is plain JSON through and through, else CARE.

    Plain are the exact types of JSON, integers of 64 bit, finite floats, keys that are text. Lone surrogates are
    not looked for: the encoder finds them. No subclass is plain, and nothing beyond the limits.
    """
    if type(value) is dict:
        if len(value) == 1 and type(key := next(iter(value))) is str and key[:1] == "$":
            return CARE
        size = 5 * len(value) + 1  # quotes, colon, comma and at least one byte of each member
        for key in value:
            if type(key) is not str:
                return CARE
            size += len(key)
        members: Iterable[Any] = value.values()
    elif type(value) is list:
        size = 2 * len(value) + 1
        members = value
    else:
        return CARE
    if levels == 0 or size > bytes_max:
        return CARE
    for member in members:
        kind = type(member)
        if kind is str:
            size += len(member) + 1
        elif kind is int:
            if not -0x8000_0000_0000_0000 <= member <= 0x7FFF_FFFF_FFFF_FFFF:
                return CARE
        elif member is None or kind is bool:
            size += 3
        elif kind is float:
            if not isfinite(member):
                return CARE
        else:
            inner = plain_size(member, bytes_max, levels - 1)
            if inner < 0:
                return CARE
            size += inner - 1
            if size > bytes_max:
                return CARE
    return size


class Walk:
    """One walk over one value. Raises Refusal at the first member that cannot be stored."""

    __slots__ = ("_bytes_max", "_size", "_steps")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._size = 0
        self._steps: list[Step] = []

    def take(self, value: object, level: int = 0) -> Any:
        """Return the JSON tree that is stored for *value*."""
        while isinstance(value, Enum):
            value = value.value
        if value is None or isinstance(value, bool):
            self._count(3, value)
            return value
        if isinstance(value, str):
            return self._text(str.__str__(value))
        if isinstance(value, int):
            return self._number(int.__index__(value))
        if isinstance(value, float):
            return self._number(float.__float__(value))
        if isinstance(value, dict | list | tuple | set | frozenset) or typed.is_typed(value):
            if level == VALUE_DEPTH_MAX:
                self._refuse(f"nested deeper than {VALUE_DEPTH_MAX} levels, or a value that holds itself", value, "value_too_deep")
            return self._container(value, level + 1)
        return self._scalar(value)

    def too_large(self, size: int, member: object) -> Never:
        """Refuse *member*, with which the value takes *size* bytes at least."""
        reason = f"at least {size} bytes, the limit is {self._bytes_max}; write large content to a file"
        raise Refusal(self._steps, reason, "value_too_large", member, size=size, limit=self._bytes_max)

    def _container(self, value: Any, level: int) -> Any:
        if isinstance(value, dict):
            items = value.items() if isinstance(value, OrderedDict) else dict.items(value)
            return self._object(items, dict.__len__(value), value, level)
        if isinstance(value, list):
            return self._array(list.__iter__(value), list.__len__(value), value, level)
        if isinstance(value, tuple):
            return {tags.TUPLE: self._array(tuple.__iter__(value), tuple.__len__(value), value, level)}
        if isinstance(value, set):
            return {tags.SET: self._set(set.__iter__(value), set.__len__(value), value, level)}
        if isinstance(value, frozenset):
            return {tags.FROZENSET: self._set(frozenset.__iter__(value), frozenset.__len__(value), value, level)}
        try:
            fields = typed.members(value)
        except AttributeError:
            fields = None
        if fields is None:
            self._refuse("{type} has a field without a value and cannot be stored; set it", value)
        if isinstance(fields, list):
            return self._array(iter(fields), len(fields), value, level)
        return self._object(fields.items(), len(fields), value, level)

    def _object(self, items: Iterable[tuple[Any, Any]], length: int, value: object, level: int) -> dict[str, Any]:
        self._count(5 * length, value)
        tree: dict[str, Any] = {}
        for key, member in items:
            self._steps.append(key if isinstance(key, str) else "*")
            if not isinstance(key, str):
                self._refuse("a dict key of type {type} cannot be stored; use text", key)
            name = str.__str__(key)
            self._count(len(name), value)
            self._check(name, "a dict key")
            if name in tree:
                self._refuse("two dict keys are the same text and cannot be stored; use one", key)
            tree[name] = self.take(member, level)
            self._steps.pop()
        if tags.opens_tag(tree):
            return {f"${name}": member for name, member in tree.items()}
        return tree

    def _array(self, members: Iterable[Any], length: int, value: object, level: int) -> list[Any]:
        self._count(2 * length, value)
        tree = []
        for index, member in enumerate(members):
            self._steps.append(index)
            tree.append(self.take(member, level))
            self._steps.pop()
        return tree

    def _set(self, members: Iterable[Any], length: int, value: object, level: int) -> list[Any]:
        # Members may turn out equal when they are written (an enum and its value), so only one byte each is sure.
        self._count(min(length, 1), value)
        tree = []
        for member in members:
            self._steps.append(None)
            tree.append(self.take(member, level))
            self._steps.pop()
        kept = tags.distinct(tree)
        if kept is None:
            self._refuse("{type} has a member that would not be hashable when read back; use a list", value)
        return kept

    def _text(self, text: str) -> str:
        self._count(len(text) + 1, text)
        self._check(text, "text")
        return text

    def _number(self, number: float) -> Any:
        if isinstance(number, int):
            self._count(number.bit_length() // 4 if number.bit_length() > 64 else 0, number)
        tag = tags.tagged(number)
        return number if tag is None else tag

    def _scalar(self, value: object) -> dict[str, Any]:
        try:
            if isinstance(value, bytes | bytearray | memoryview):
                self._count((value.nbytes if isinstance(value, memoryview) else len(value)) * 4 // 3, value)
            tag = tags.tagged(value)
        except (ValueError, TypeError, ArithmeticError, AttributeError):
            # A foreign subclass (or a released memoryview) that does not keep its base's promises.
            tag = None
        if tag is None:
            self._refuse(_PLAIN, value)
        return tag

    def _check(self, text: str, what: str) -> None:
        if not text.isascii() and _SURROGATE.search(text):
            self._refuse(f"{what} with a lone surrogate cannot be stored; replace it, or store bytes", text)

    def _count(self, size: int, member: object) -> None:
        self._size += size
        if self._size > self._bytes_max:
            self.too_large(self._size, member)

    def _refuse(self, reason: str, member: object, code: str = "value_refused") -> Never:
        raise Refusal(self._steps, reason, code, member)
