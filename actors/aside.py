"""What must not be cut short, done where no signal reaches it.

Python raises what a signal's handler raises (Ctrl-C: KeyboardInterrupt) in the main thread, and there between any two steps of
whatever it is at: also while a lock, a file or a lease is on its way from one hand to the other. So in the main thread such work
is done by a thread of its own, which comes to its end by itself, and the main thread only waits for it.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Generic, TypeVar

from freehold.actors.deadline import DEADLINE, exceeded, monotonic
from freehold.actors.reply import Reply
from freehold.storage import forks

T = TypeVar("T")
Gone = Callable[[], bool]
"""Says that nobody waits for the work any more: it should end soon, and undo what only its asker could use."""

_GRACE_S = 1.0


def aside(work: Callable[[Gone], T], drop: Callable[[T], object] | None = None, *, bounded: bool = True) -> T:
    """Return *work(gone)*; whole, whatever signals come. *drop* takes what it returned when its asker has gone meanwhile.

    In every other thread than the main one it is simply called. Raises what it raises, and DeadlineExceeded (executed:
    unknown) when it goes on long after the deadline it stands under, unless it is not *bounded*: what it waits for looks at
    that deadline itself, and knows better.
    """
    if _thread.get_ident() != threading.main_thread().ident:
        return work(_never)
    errand = _Errand(work, drop, copy_context())
    return errand.result(DEADLINE.get() if bounded else None)


def _never() -> bool:
    return False


class _Errand(Generic[T]):
    """One work and its asker. Whoever takes the ticket of its reply first decides whether the two still meet."""

    __slots__ = ("__weakref__", "_context", "_drop", "_reply", "_value", "_work")

    def __init__(self, work: Callable[[Gone], T], drop: Callable[[T], object] | None, context: Context) -> None:
        self._work = work
        self._drop = drop
        self._context = context
        self._reply = Reply()
        self._value: T | None = None
        forks.watch(self)

    def result(self, deadline: float | None) -> T:
        """Have it done and wait for it."""
        reply = self._reply
        try:
            try:
                # One call of C: it has begun or not, whenever the signal comes.
                _thread.start_new_thread(self._run, ())
            except RuntimeError:  # there is no room for a thread, or the interpreter is about to end
                self._run()
            reply.get(None if deadline is None else max(0.0, deadline - monotonic()) + _GRACE_S)
            # From here to the caller's own variable nothing is called, and so nothing can come in between.
            value, self._value = self._value, None
            return value  # type: ignore[return-value] # set before the answer
        except BaseException as error:
            if error is reply.error:
                raise
            if reply.abandon():
                if isinstance(error, TimeoutError):
                    raise exceeded("unknown") from None
                raise
            # It is handed over in this very moment.
            if isinstance(error, TimeoutError):
                reply.get()
                value, self._value = self._value, None
                return value  # type: ignore[return-value] # as above
            self._drop_answer()
            raise

    def _run(self) -> None:
        reply = self._reply
        if reply.is_taken:
            return  # its asker has gone before it has begun
        try:
            self._value = self._context.run(self._work, self._is_left)
        except BaseException as error:  # noqa: BLE001 - told to whoever waits, whatever it is
            if reply.claim():
                reply.fail(error)
            return
        if reply.claim():
            reply.set()
            return
        value, self._value = self._value, None
        self._put_away(value)

    def _is_left(self) -> bool:
        return self._reply.is_taken

    def _drop_answer(self) -> None:
        with suppress(BaseException):  # what it raised: its asker has gone with an exception of its own
            self._reply.get()
        value, self._value = self._value, None
        self._put_away(value)

    def _put_away(self, value: T | None) -> None:
        if self._drop is not None and value is not None:
            self._drop(value)

    def forked(self) -> None:
        """In a forked child: the thread that would answer is not here."""
        self._reply.fail(forks.forked_process())
