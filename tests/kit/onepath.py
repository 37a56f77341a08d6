"""One name in a folder that has no other: opens its file as a workspace would, all handles on it sharing one state."""

from __future__ import annotations

import errno
import os
from functools import partial
from typing import Any
from weakref import ref

from freehold.storage.content import Content
from freehold.storage.filestate import FileState
from freehold.storage.objects import Objects
from freehold.storage.opened import open_file
from freehold.storage.openmode import parse_mode

NAME = "file"


class OnePath:
    """What the name stands for, and every content that was told at a close while it stood for that file."""

    def __init__(self, objects: Objects, content: Content | None = None) -> None:
        self.objects = objects
        self.content = content
        self.told: list[Content] = []
        self._open: ref[FileState] | None = None

    @property
    def state(self) -> FileState | None:
        """The state of the file that the name stands for, while somebody has it open."""
        state = self._open() if self._open is not None else None
        return state if state is not None and state.handles and (state.writers or not state.is_new) else None

    def open(self, mode: str = "r", buffering: int = -1, **options: Any) -> Any:
        """Open the file as Python's `open` would."""
        asked = parse_mode(mode, buffering=buffering, **options)
        state = self.state
        is_there = state is not None or self.content is not None
        if is_there and asked.creates:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), NAME)
        if not is_there and not (asked.creates or asked.truncates or asked.appends):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), NAME)
        if state is None:
            state = FileState(self.objects, self.content)
            self._open = ref(state)
        return open_file(state, mode, buffering, name=NAME, closed=partial(self._closed, ref(state)), **options)

    def unlink(self) -> None:
        """Take the name away; handles go on reading and writing what no longer has one."""
        if self.state is None and self.content is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), NAME)
        self.content = self._open = None

    def _closed(self, state: ref[FileState], content: Content) -> None:
        if self._open == state:
            self.content = content
            self.told.append(content)
