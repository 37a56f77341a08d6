"""The machine's clock and dice."""

from __future__ import annotations

import time
from uuid import UUID

from freehold.storage.clock import Clock


def test_now_is_the_wall_clock_in_milliseconds() -> None:
    before = time.time_ns() // 1_000_000
    now = Clock().now_ms()

    assert before <= now <= time.time_ns() // 1_000_000


def test_monotonic_seconds_only_go_forward() -> None:
    clock = Clock()
    times = [time.monotonic(), *(clock.monotonic() for _ in range(1000)), time.monotonic()]

    assert times == sorted(times)


def test_an_event_id_is_new_and_holds_the_present() -> None:
    clock = Clock()
    before = clock.now_ms()
    ids = [clock.event_id(clock.now_ms()) for _ in range(1000)]

    assert len(set(ids)) == 1000
    assert {UUID(bytes=raw).version for raw in ids} == {7}
    assert all(before <= int.from_bytes(raw[:6], "big") <= clock.now_ms() for raw in ids)


def test_jitter_is_spread_between_zero_and_one() -> None:
    thrown = [Clock().jitter() for _ in range(1000)]

    assert 0 <= min(thrown) < 0.1
    assert 0.9 < max(thrown) < 1
