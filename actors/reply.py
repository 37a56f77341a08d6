"""One answer for one asker: set once, claimed once, or abandoned before it was claimed.

A request that was abandoned before its actor took it up never runs. Which of the two comes first is decided by
taking the one ticket that a reply holds, which is atomic.
"""

from __future__ import annotations

import _thread
from types import TracebackType
from typing import Any

from freehold.actors.deadline import to_wait

_PIECE_S = 0.5

ExcInfo = tuple[type[BaseException] | None, BaseException | None, TracebackType | None]


class Reply:
    """A one-shot mail slot between two threads; also what pykka takes for a future."""

    __slots__ = ("_done", "_open", "_ready", "_ticket", "_value", "error")

    def __init__(self) -> None:
        self._ready = _thread.allocate_lock()
        self._ready.acquire()
        self._ticket = [None]
        self._open = [None]
        self._done = False
        self._value: Any = None
        self.error: BaseException | None = None

    def claim(self) -> bool:
        """Take the request up; False if its asker has gone."""
        return self._take(self._ticket)

    def abandon(self) -> bool:
        """Give the request up; False if it was taken up already, and then nobody knows yet how it ends."""
        return self._take(self._ticket)

    def set(self, value: Any = None) -> None:
        """Answer. A second answer is ignored."""
        if self._take(self._open):
            self._value = value
            self._done = True
            self._ready.release()

    def fail(self, error: BaseException) -> None:
        """Answer with an error, to be raised where the answer is awaited. A second answer is ignored."""
        if self._take(self._open):
            self.error = error
            self._done = True
            self._ready.release()

    def get(self, timeout: float | None = None) -> Any:
        """Wait for the answer and return it, or raise it. Raises TimeoutError after *timeout* seconds."""
        left = to_wait(timeout)
        # In pieces: a signal that comes in the moment before a lock is waited for is seen only when that wait returns. One that
        # comes right after it leaves the lock taken: whoever asks once more, or waits with it, does not need it then.
        while not self._done:
            if self._ready.acquire(timeout=_PIECE_S if left < 0 or left > _PIECE_S else left):
                self._ready.release()
            elif left >= 0 and (left := left - _PIECE_S) <= 0:
                raise TimeoutError
        if self.error is not None:
            raise self.error
        return self._value

    @property
    def is_taken(self) -> bool:
        """Whether the request was taken up, or given up."""
        return not self._ticket

    @property
    def is_set(self) -> bool:
        """Whether an answer is there."""
        return not self._open

    def set_exception(self, exc_info: ExcInfo | None = None) -> None:
        """Answer with an error, in pykka's words."""
        error = exc_info[1] if exc_info is not None else None
        self.fail(error if error is not None else RuntimeError("failed without an error"))

    def set_get_hook(self, _hook: object) -> Reply:
        """Take pykka's hook and ignore it: our answers are ready when they are set."""
        return self

    @staticmethod
    def _take(tickets: list[None]) -> bool:
        try:
            tickets.pop()
        except IndexError:
            return False
        return True
