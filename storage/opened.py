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
from freehold.storage.openfile import OpenFile, nobody
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


def _known(call: Callable[..., Any]) -> Any:
    """Return a method of Python's own, so that its file error is known for one of this file."""

    def known(self: _Around, *given: Any, **options: Any) -> Any:
        try:
            return call(self, *given, **options)
        except OSError as error:
            if self.file is not None:
                self.file.failed(error)
            raise

    return known


class BufferedReader(_Around, io.BufferedReader):
    """Python's own, around a handle."""

    write = _known(io.BufferedReader.write)
    truncate = _known(io.BufferedReader.truncate)


class BufferedWriter(_Around, io.BufferedWriter):
    """Python's own, around a handle."""

    read = _known(io.BufferedWriter.read)
    read1 = _known(io.BufferedWriter.read1)


class BufferedRandom(_Around, io.BufferedRandom):
    """Python's own, around a handle."""


class TextFile(_Around, io.TextIOWrapper):
    """Python's own, around a handle and its buffer."""

    seek = _known(io.TextIOWrapper.seek)
    tell = _known(io.TextIOWrapper.tell)
    reconfigure = _known(io.TextIOWrapper.reconfigure)


class TextReader(TextFile):
    """A text file that is only read."""

    write = _known(io.TextIOWrapper.write)


class TextWriter(TextFile):
    """A text file that is only written."""

    read = _known(io.TextIOWrapper.read)
    readline = _known(io.TextIOWrapper.readline)
    __next__ = _known(io.TextIOWrapper.__next__)


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
    failed: Callable[[BaseException], None] = nobody,
) -> File:
    """Return a file on *state* as `open` would: raw without buffering, buffered in binary mode, else text.

    Whether there is such a file, and may be, was decided by whoever calls. *closed* and *failed* are as `OpenFile` has them.
    Raises what `open` raises for its arguments, and then *state* is as it was.
    """
    asked = parse_mode(mode, buffering=buffering, encoding=encoding, errors=errors, newline=newline)
    if buffering == 1 and not asked.is_text:
        message = "line buffering (buffering=1) isn't supported in binary mode, the default buffer size will be used"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    raw = OpenFile(state, asked, name, closed, failed)
    if buffering == 0:
        return raw
    try:
        buffered = _buffered(raw, asked, CHUNK_BYTES if buffering < 0 or buffering == 1 else buffering)
        buffered.file = raw
        if not asked.is_text:
            return buffered
        around = TextFile if asked.reads and asked.writes else TextReader if asked.reads else TextWriter
        text = around(buffered, encoding, errors, newline, line_buffering=buffering == 1)
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
