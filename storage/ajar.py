"""Folders that bar their own user, opened to him for a while: at the end each has the mode that it had, or is to have."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Self

from freehold.schema.skipped import Parts
from freehold.storage import platform
from freehold.storage.entries import Out
from freehold.storage.folders import Descent, Naming, is_folder, look, open_folder, raw


class Ajar:
    """The folders beneath *top_fd* that stand open until the block ends, however it does."""

    def __init__(self, top_fd: int) -> None:
        self._top_fd = top_fd
        self.modes: dict[Parts, int] = {}
        """What each of them had; then what it is to have at the end."""

    def open_all(self, entries: Iterable[Out]) -> None:
        """Open the folders among *entries* that stand there and cannot be read or entered.

        One that we may not open, since it is another user's, is left: whoever needs it will be refused.
        """
        missing: Parts | None = None
        with Descent(self._top_fd) as descent:
            for out in entries:
                if out.kind != "directory" or (missing is not None and out.parts[: len(missing)] == missing):
                    continue
                dir_fd = descent.at(out.parts[:-1])
                with Naming(out.parts):
                    found = look(out.parts[-1], dir_fd)
                missing = None if is_folder(found) else out.parts
                if found is not None and missing is None and not _may_enter(out.parts[-1], dir_fd, found):
                    try:
                        self._open(out.parts, dir_fd)
                    except PermissionError:
                        missing = out.parts

    def open(self, parts: Parts) -> None:
        """Open one folder. Raises OSError with its path."""
        if parts not in self.modes:
            with Descent(self._top_fd) as descent:
                self._open(parts, descent.at(parts[:-1]))

    def leave(self, parts: Parts, mode: int) -> None:
        """Give a folder this mode at the end."""
        self.modes[parts] = mode

    def close(self, *, sync: bool = False) -> None:
        """Give every folder its mode, from the leaves up: one may take away our own right to enter it. Twice changes nothing."""
        with Descent(self._top_fd) as descent, ExitStack() as each:
            for parts in sorted(self.modes):
                each.callback(_set, descent, parts, self.modes[parts], sync=sync)
            self.modes = {}

    def _open(self, parts: Parts, dir_fd: int) -> None:
        with Naming(parts):
            self.modes[parts] = platform.open_passable(raw(parts[-1]), dir_fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _may_enter(name: str, dir_fd: int, found: os.stat_result) -> bool:
    """Return whether a folder can be read and entered. What its mode says is the truth only for its own user, who is not root."""
    if found.st_uid == os.geteuid() and found.st_mode & 0o500 == 0o500:
        return True
    try:
        fd = open_folder(name, dir_fd)
    except PermissionError:
        return False
    try:
        look(".", fd)
    except PermissionError:
        return False
    finally:
        os.close(fd)
    return True


def _set(descent: Descent, parts: Parts, mode: int, *, sync: bool) -> None:
    with suppress(FileNotFoundError):  # whoever took it away has its mode, too
        fd = descent.at(parts)
        if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
            os.fchmod(fd, mode)
        if sync:
            os.fsync(fd)
