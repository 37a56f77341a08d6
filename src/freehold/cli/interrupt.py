"""Ctrl-C and SIGTERM: both end a command in order. While a document is written they come between two of its pieces."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


class Terminated(KeyboardInterrupt):
    """SIGTERM came: as Ctrl-C, from whoever ends processes."""


def terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    """Handle SIGTERM."""
    raise Terminated


_USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: terminate}


def heed_termination() -> None:
    """Let SIGTERM end the command as Ctrl-C does, unless whoever started us has taken it otherwise."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, terminate)


def heed_nothing() -> None:
    """Let neither disturb the end, which has begun."""
    for number in _USUAL:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def postponed() -> Iterator[Callable[[], KeyboardInterrupt | None]]:
    """Yield what returns the interrupt that has come inside the block, or None. The second one interrupts at once."""
    come: list[KeyboardInterrupt] = []
    # Whoever started us may have had one ignored, or taken otherwise; then that stays.
    ours = [number for number, usual in _USUAL.items() if signal.getsignal(number) is usual]

    def restore() -> None:
        for number in ours:
            signal.signal(number, _USUAL[number])

    def press(number: int, _frame: FrameType | None) -> None:
        come.append(Terminated() if number == signal.SIGTERM else KeyboardInterrupt())
        restore()

    for number in ours:
        signal.signal(number, press)
    try:
        yield lambda: come[0] if come else None
    finally:
        restore()
