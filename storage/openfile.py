"""A handle on an open file, as Python's own files are; what was written is told to whoever opened it, once, at its close.

A handle that is discarded, left by an exception or lost tells nothing, and what was written is taken back.
"""

from __future__ import annotations

import errno
import io
import os
import warnings
from collections.abc import Callable
from operator import index
from types import TracebackType
from typing import TYPE_CHECKING

from freehold.schema.errors import PathRefused
from freehold.schema.limits import FILE_BYTES_MAX
from freehold.storage.content import Content
from freehold.storage.filestate import Era, FileState
from freehold.storage.openmode import OpenMode
from freehold.storage.sight import failed

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer


def nobody(_error: BaseException) -> None:
    """Tell nobody of a file error: whoever has called meets it."""


class OpenFile(io.RawIOBase):
    """One handle: a position and a mode on a state that other handles may share, so that they see each other's writes at once.

    *closed* is called with the content at the close of a handle that has written, or of the first writer of a new file. A
    close tells all that was written until then, by whomever; a discard takes back what was written since the last that was
    told. Another handle whose writes were among it raises OSError (ESTALE) at its next write and at its close, and tells nothing.
    *failed* gets each file error before it is raised.
    """

    def __init__(
        self,
        state: FileState,
        mode: OpenMode,
        name: str,
        closed: Callable[[Content], None],
        failed: Callable[[BaseException], None] = nobody,
    ) -> None:
        super().__init__()
        self.name = name
        self._state = state
        self._mode = mode
        self._tell_closed = closed
        self.failed = failed
        self._dropped = False
        self._wrote_in: Era | None = None  # the last one
        self._position = state.size if mode.appends else 0
        state.enter(writes=mode.writes)
        if mode.truncates:
            self.truncate(0)

    @property
    def mode(self) -> str:
        """The mode, as `io.FileIO` says it."""
        return self._mode.raw

    def __repr__(self) -> str:
        return "<OpenFile [closed]>" if self.closed else f"<OpenFile name={self.name!r} mode={self.mode!r}>"

    def readable(self) -> bool:
        """Return whether the file was opened for reading."""
        self._check_open()
        return self._mode.reads

    def writable(self) -> bool:
        """Return whether the file was opened for writing."""
        self._check_open()
        return self._mode.writes

    def seekable(self) -> bool:
        """Return True."""
        self._check_open()
        return True

    def fileno(self) -> int:
        """Raise io.UnsupportedOperation: the system does not know this file."""
        self._check_open()
        raise self.unsupported("fileno")

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read from the position on, as much as there is and *buffer* takes."""
        self._check_readable()
        with memoryview(buffer).cast("B") as target:
            count = self._state.read_into(self._position, target)
        self._position += count
        return count

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to *size* bytes, all there are for None or a negative number."""
        self._check_readable()
        there = max(0, self._state.size - self._position)
        found = bytearray(there if size is None or size < 0 else min(size, there))
        self.readinto(found)
        return bytes(found)

    def readall(self) -> bytes:
        """Return all from the position on."""
        return self.read()

    def write(self, data: ReadableBuffer, /) -> int:
        """Write *data* whole: at the position, or in append mode at the end as it is now. Raises OSError (EFBIG) past FILE_BYTES_MAX."""
        self._check_open()
        with memoryview(data) as view, view.cast("B") as source:
            if self._dropped:  # the last flush of a wrapper that was lost; it must not fail
                return len(source)
            self._check_writable()
            start = self._state.size if self._mode.appends else self._position
            self._check_size(start + len(source))
            if source:
                self._note_write()
                self._state.write(start, source)
                self._position = start + len(source)
            return len(source)

    def truncate(self, size: int | None = None, /) -> int:
        """Cut the file at *size*, by default the position, or lengthen it by zero bytes; the position stays."""
        self._check_writable()
        size = self._position if size is None else index(size)
        if size < 0:
            raise self._refusal(errno.EINVAL)
        self._check_size(size)
        self._note_write()
        self._state.truncate(size)
        return size

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Move the position and return it. The whole file is data, so that the one hole is at its end."""
        self._check_open()
        offset, size = index(offset), self._state.size
        if whence in (os.SEEK_DATA, os.SEEK_HOLE):
            if not 0 <= offset < size:
                raise self._refusal(errno.ENXIO)
            position = offset if whence == os.SEEK_DATA else size
        elif whence in (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END):
            position = offset + (0, self._position, size)[whence]
        else:
            raise self._refusal(errno.EINVAL)
        if not 0 <= position <= FILE_BYTES_MAX:
            raise self._refusal(errno.EINVAL)
        self._position = position
        return position

    def tell(self) -> int:
        """Return the position."""
        self._check_open()
        return self._position

    def close(self) -> None:
        """Close the handle and tell the content, if there is something to tell. Whatever is raised, it is closed, and nothing waits.

        Where the content cannot be kept, or whoever is told refuses it, what was written is taken back.
        """
        if self.closed:
            return
        super().close()
        try:
            if self._mode.writes and not self._dropped and (self._wrote_in is not None or self._state.is_new):
                self._tell()
        finally:
            self._state.leave(writes=self._mode.writes)

    def discard(self) -> None:
        """Close the handle and tell nothing; what was written is taken back. Harmless on one that is closed."""
        if not self.closed:
            self._drop()
            self.close()

    def lose(self, source: object) -> None:
        """Discard, and warn that *source* was never closed."""
        told = repr(source)  # a closed one no longer says its name
        self.discard()
        self._warn(told, source)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        if not self.closed:
            self.lose(self)

    def unsupported(self, what: str) -> io.UnsupportedOperation:
        """Return Python's own error for what the mode does not allow."""
        error = io.UnsupportedOperation(what)
        self.failed(error)
        return error

    def _tell(self) -> None:
        try:
            self._check_stale()
            content = self._state.content()
            self._tell_closed(content)
        except BaseException as error:
            self._drop()
            if isinstance(error, OSError | PathRefused):
                self.failed(error)
            raise
        self._state.tell(content)

    def _dealloc_warn(self, source: object) -> None:
        # Python's own wrappers call this before the flush of one that was lost. The flush comes all the same, so the handle stays open.
        self._drop()
        self._warn(repr(source), source)

    def _warn(self, told: str, source: object) -> None:
        lost = "; what was written to it was discarded" if self._mode.writes else ""
        warnings.warn(f"unclosed file {told}{lost}", ResourceWarning, stacklevel=2, source=source)

    def _drop(self) -> None:
        self._dropped = True
        if self._wrote_in is self._state.era:
            self._state.take_back()

    def _note_write(self) -> None:
        self._check_stale()
        self._wrote_in = self._state.era

    def _check_stale(self) -> None:
        if self._wrote_in is not None and self._wrote_in.taken_back:
            raise self._refusal(errno.ESTALE)

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")

    def _check_readable(self) -> None:
        self._check_open()
        if not self._mode.reads:
            raise self.unsupported("File not open for reading")

    def _check_writable(self) -> None:
        self._check_open()
        if not self._mode.writes:
            raise self.unsupported("File not open for writing")

    def _check_size(self, size: int) -> None:
        if size > FILE_BYTES_MAX:
            raise self._refusal(errno.EFBIG)

    def _refusal(self, number: int) -> OSError:
        error = failed(number, (self.name,))
        self.failed(error)
        return error
