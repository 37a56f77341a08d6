"""Threads that send one message after the other, and what that took: rate, CPU, latency."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

Send = Callable[[int], object]


class Pace(NamedTuple):
    """How fast messages were answered: wall clock for rate and latency, CPU of the whole process for the rest."""

    per_second: float
    cpu_us: float
    p50_us: float
    p99_ms: float


def one(send: Send, messages: int) -> Pace:
    """Send from this thread alone."""
    return _timed(lambda: _send(send, messages), messages)


def many(sends: Sequence[Send], messages: int) -> Pace:
    """Send from as many threads as there are *sends*, *messages* each, all from the same moment on."""
    spent: list[list[float]] = []
    failed: list[BaseException] = []
    barrier = threading.Barrier(len(sends) + 1)

    def go(send: Send) -> None:
        barrier.wait()
        try:
            spent.append(_send(send, messages))
        except BaseException as error:  # noqa: BLE001 - raised in the measuring thread
            failed.append(error)

    threads = [threading.Thread(target=go, args=(send,)) for send in sends]
    for thread in threads:
        thread.start()

    def together() -> list[float]:
        barrier.wait()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]
        return [each for spans in spent for each in spans]

    return _timed(together, messages * len(sends))


def _send(send: Send, messages: int) -> list[float]:
    spans: list[float] = []
    clock = time.perf_counter
    for number in range(messages):
        begun = clock()
        send(number)
        spans.append(clock() - begun)
    return spans


def _timed(work: Callable[[], list[float]], messages: int) -> Pace:
    wall, cpu = time.perf_counter(), time.process_time()
    spans = sorted(work())
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    p50_us, p99_ms = spans[len(spans) // 2] * 1e6, spans[int(len(spans) * 0.99)] * 1e3
    return Pace(messages / wall, cpu / messages * 1e6, p50_us, p99_ms)
