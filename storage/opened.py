"""`open_file`: a handle with the buffer and the text around it that Python's own `open` gives, and a discard that reaches through them."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any

from freehold.schema.limits import CHUNK_BYTES
from freehold.storage.content import Content
from freehold.storage.filestate import FileState
from freehold.storage.openfile import OpenFile
from freehold.storage.openmode import OpenMode, parse_mode


class _Around(io.IOBase):
    """What is around a handle: it flushes or discards before the handle is closed, so that no half of a file is told."""

    file: OpenFile | None = None

    def discard(self) -> None:
        """Close it and tell nothing; what was written is taken back. Raises ValueError when it was detached."""
        if self.file is None:
            raise ValueError("raw stream has been detached")
        self.file.discard()

    def detach(self) -> Any:
        """Return what is inside; from now on that is what must be closed."""
        inner = super().detach()  # type: ignore[misc]  # of the other base
        self.file = None
        return inner

    def close(self) -> None:
        """Flush and close. When the flush fails, what was written is taken back."""
        if not self.closed:
            try:
                self.flush()
            except BaseException:
                self.discard()
                raise
        super().close()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        # Not Python's own, which flushes and closes.
        if self.file is not None and not self.file.closed:
            self.file.lose(self)


class BufferedReader(_Around, io.BufferedReader):
    """Python's own, around a handle."""


class BufferedWriter(_Around, io.BufferedWriter):
    """Python's own, around a handle."""


class BufferedRandom(_Around, io.BufferedRandom):
    """Python's own, around a handle."""


class TextFile(_Around, io.TextIOWrapper):
    """Python's own, around a handle and its buffer."""


File = OpenFile | BufferedReader | BufferedWriter | BufferedRandom | TextFile


def open_file(
    state: FileState,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    *,
    name: str,
    closed: Callable[[Content], None],
) -> File:
    """Return a file on *state* as `open` would: raw without buffering, buffered in binary mode, else text.

    Whether there is such a file, and may be, was decided by whoever calls. *closed* is told what was written; see `OpenFile`.
    Raises what `open` raises for its arguments, and then *state* is as it was.
    """
    asked = parse_mode(mode, buffering=buffering, encoding=encoding, errors=errors, newline=newline)
    if buffering == 1 and not asked.is_text:
        message = "line buffering (buffering=1) isn't supported in binary mode, the default buffer size will be used"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    raw = OpenFile(state, asked, name, closed)
    if buffering == 0:
        return raw
    try:
        buffered = _buffered(raw, asked, CHUNK_BYTES if buffering < 0 or buffering == 1 else buffering)
        buffered.file = raw
        if not asked.is_text:
            return buffered
        text = TextFile(buffered, encoding, errors, newline, line_buffering=buffering == 1)
        text.file = raw
        text.mode = mode  # type: ignore[misc]  # as `open` does
        return text
    except BaseException:
        raw.discard()
        raise


def _buffered(raw: OpenFile, mode: OpenMode, size: int) -> BufferedReader | BufferedWriter | BufferedRandom:
    if mode.reads and mode.writes:
        return BufferedRandom(raw, size)
    return BufferedWriter(raw, size) if mode.writes else BufferedReader(raw, size)
