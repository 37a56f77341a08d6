"""Exceptions and values of classes that misbehave: whatever is asked of one raises."""

from __future__ import annotations

from typing import Any, NoReturn

ATTRIBUTES = ("__traceback__", "__class__", "__cause__", "__context__", "__suppress_context__", "__notes__", "args", "__dict__")
METHODS = (
    "__getattribute__",
    "__setattr__",
    "__str__",
    "__repr__",
    "__bool__",
    "__len__",
    "__eq__",
    "__hash__",
    "__reduce__",
    "__reduce_ex__",
)
NAMES = (*ATTRIBUTES, *METHODS, "with_traceback", "add_note")


def refuse(*_: Any) -> NoReturn:
    """Stand for what a class of theirs does when it is touched."""
    raise ZeroDivisionError("nobody may touch this")


def unruly(name: str, base: type[Any] = Exception) -> Any:
    """Return an instance of a subclass of *base* that raises where *name* is asked of it."""
    member = property(refuse, refuse) if name in ATTRIBUTES else refuse
    made: Any = type("Unruly", (base,), {"__slots__": (), name: member})
    return made.__new__(made)


def raised_by(call: Any, *arguments: Any) -> BaseException | None:
    """Return what *call* raises, without a look at it."""
    try:
        call(*arguments)
    except BaseException as error:  # noqa: BLE001 - it is what the test asks for
        return error
    return None
