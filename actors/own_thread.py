"""The thread that something belongs to: the one that has made it."""

from __future__ import annotations

import threading


class OwnThread:
    """Knows whether it is asked from the thread that it was made in."""

    __slots__ = ("_ident",)

    def __init__(self) -> None:
        self._ident = threading.get_ident()

    @property
    def is_here(self) -> bool:
        """Whether this is that thread."""
        return threading.get_ident() == self._ident
