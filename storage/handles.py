"""The files that are open in a workspace: all handles on one file see each other, whatever happens to its name meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

from freehold.schema.paths import Parts
from freehold.storage.content import Content
from freehold.storage.filestate import FileState
from freehold.storage.objects import Objects
from freehold.storage.opened import File, open_file
from freehold.storage.openfile import nobody


class Handles:
    """Knows which open file has which name; *told* gets what was written, if the file still has one."""

    def __init__(self, objects: Objects, told: Callable[[Parts, Content], None]) -> None:
        self._objects = objects
        self._tell = told
        self._ways: WeakKeyDictionary[FileState, Parts | None] = WeakKeyDictionary()

    def open(
        self,
        way: Parts,
        content: Content | None,
        mode: str,
        buffering: int,
        encoding: str | None,
        errors: str | None,
        newline: str | None,
        failed: Callable[[BaseException], None] = nobody,
    ) -> File:
        """Return a file on the state that others share who have it open, or on *content*; None is a file that is not there yet.

        *failed* gets each file error before the file raises it.
        """
        if (state := self._find(way)) is None:
            state = FileState(self._objects, content)

        def closed(content: Content) -> None:
            if (now := self._ways.get(state)) is not None:
                self._tell(now, content)

        opened = open_file(state, mode, buffering, encoding, errors, newline, name="/".join(way), closed=closed, failed=failed)
        self._ways[state] = way
        return opened

    def has(self, way: Parts) -> bool:
        """Return whether the file at *way* is open."""
        return self._find(way) is not None

    def removed(self, way: Parts) -> None:
        """Take their names from the files at *way* and beneath it: who has them open goes on, and nobody is told."""
        self._move(way, None)

    def moved(self, way: Parts, to: Parts) -> None:
        """Give the files at *way* and beneath it their new names; what had such a name has none any more."""
        self.removed(to)
        self._move(way, to)

    def _find(self, way: Parts) -> FileState | None:
        if not self._ways:
            return None
        # A handle that was closed may be kept for long, and what it stood for be another by now.
        return next((state for state, known in self._ways.items() if known == way and state.handles), None)

    def _move(self, way: Parts, to: Parts | None) -> None:
        for state, known in list(self._ways.items()):
            if known is not None and known[: len(way)] == way:
                self._ways[state] = None if to is None else to + known[len(way) :]
