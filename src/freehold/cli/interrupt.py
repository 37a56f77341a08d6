"""Ctrl-C while a document is written: it comes between two of its pieces, so that the document can be ended."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def postponed() -> Iterator[Callable[[], bool]]:
    """Yield what says whether Ctrl-C has been pressed inside the block. Pressed a second time, it interrupts at once."""
    pressed = False

    def press(_number: int, _frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    # Whoever started us may have had it ignored, or taken otherwise; then that stays.
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield lambda: False
        return
    signal.signal(signal.SIGINT, press)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
