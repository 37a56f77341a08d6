"""What a function is annotated to return decides what a stored value is made into again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypedDict, TypeVar

import msgspec
import pytest

from freehold.returned import type_returned

if TYPE_CHECKING:
    from decimal import Decimal

T = TypeVar("T")


class Struct(msgspec.Struct):
    """A Struct."""

    a: int


@dataclasses.dataclass
class Box(Generic[T]):
    """A dataclass of something."""

    a: T


class Colour(Enum):
    """An enum."""

    RED = 1


class Row(TypedDict):
    """A dict with known keys."""

    a: int


def struct() -> Struct: ...  # type: ignore[empty-body]
def box() -> Box[int]: ...  # type: ignore[empty-body]
def colour() -> Colour: ...  # type: ignore[empty-body]
def row() -> Row: ...  # type: ignore[empty-body]
def rows() -> list[Row] | None: ...
def marked() -> Annotated[Struct, "x"]: ...  # type: ignore[empty-body]
def by_key() -> dict[str, Colour]: ...  # type: ignore[empty-body]
def plain() -> int: ...  # type: ignore[empty-body]
def nothing() -> None: ...
def wide() -> Any: ...
def hidden() -> Decimal: ...  # type: ignore[empty-body]
def silent(): ...  # type: ignore[no-untyped-def]  # noqa: ANN201


class Maker:
    """Something that can be called, and has a method."""

    def make(self) -> Struct: ...  # type: ignore[empty-body]
    def __call__(self) -> Row: ...  # type: ignore[empty-body]


class Raising:
    """Whose annotations cannot be asked for."""

    def __getattribute__(self, name: str) -> Any:
        raise ZeroDivisionError

    def __call__(self) -> Row: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("fn", "made"),
    [
        (struct, Struct),
        (box, Box[int]),
        (colour, Colour),
        (row, Row),
        (rows, list[Row] | None),
        (marked, Struct),
        (by_key, dict[str, Colour]),
        (plain, None),
        (nothing, None),
        (wide, None),
        (hidden, None),
        (silent, None),
        (lambda: 1, None),
        (len, None),
        (Struct, Struct),
        (int, None),
        (partial(partial(struct)), Struct),
        (Maker().make, Struct),
        (Maker(), Row),
    ],
)
def test_only_what_plain_values_do_not_say_is_made_again(fn: Callable[..., Any], made: Any) -> None:
    assert type_returned(fn) == made


def test_what_cannot_be_asked_says_nothing() -> None:
    assert type_returned(Raising()) is None


def test_an_annotation_that_fails_is_none() -> None:
    def fn() -> Struct: ...  # type: ignore[empty-body]

    fn.__annotations__["return"] = "1 / 0"

    assert type_returned(fn) is None
