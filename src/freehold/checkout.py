"""A real folder that holds a root."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self

from freehold.schema.errors import Refused
from freehold.schema.ids import Root
from freehold.schema.roots import root_text
from freehold.schema.skipped import Parts, shown

Replace = Literal["never", "changed", "always"]
_REPLACE = ("never", "changed", "always")


class Held(Protocol):
    """A folder that is there for a while."""

    def close(self) -> None:
        """Remove it."""


class Checkout(os.PathLike[str]):
    """A folder that holds a root. A temporary one is removed at its close; any other stays, and closing it does nothing.

    `written`, `kept` and `removed` count the entries, `left_alone` lists what stands there and no root could hold.
    """

    def __init__(
        self, path: str, root: bytes, written: int, kept: int, removed: int, left_alone: tuple[Parts, ...], held: Held | None = None
    ) -> None:
        self.path = Path(path)
        self.root: Root = root_text(root)
        self.written = written
        self.kept = kept
        self.removed = removed
        self.left_alone = tuple(map(shown, left_alone))
        self._held = held

    def __fspath__(self) -> str:
        return str(self.path)

    def close(self) -> None:
        """Remove a temporary folder with all that is in it. Closing twice changes nothing."""
        if self._held is not None:
            self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Checkout {self.root[:8]} at {str(self.path)!r}>"


def check_replace(replace: object) -> Replace:
    """Return *replace* if it is one of the three words. Raises Refused (bad_option)."""
    for word in _REPLACE:
        if replace == word:
            return word  # type: ignore[return-value]
    raise Refused("replace is 'never', 'changed' or 'always'; nothing was written", code="bad_option")
