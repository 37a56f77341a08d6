"""Instances of a msgspec Struct or a dataclass, as the plain members that msgspec reads them back from."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec


def is_typed(value: object) -> bool:
    """Say whether *value* is an instance (not a class) whose fields can be written."""
    return isinstance(value, msgspec.Struct) or (dataclasses.is_dataclass(value) and not isinstance(value, type))


def members(value: Any) -> dict[str, Any] | list[Any]:
    """Return the fields by their written names, or in order for an `array_like` Struct, its tag first.

    Raises AttributeError if a field was never set.
    """
    if not isinstance(value, msgspec.Struct):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    config = value.__struct_config__
    fields = [getattr(value, name) for name in value.__struct_fields__]
    if config.array_like:
        return fields if config.tag is None else [config.tag, *fields]
    named = dict(zip(value.__struct_encode_fields__, fields, strict=True))
    return named if config.tag is None or config.tag_field is None else {config.tag_field: config.tag, **named}
