"""What a supervisor decides, without a thread: tables over their whole product, and pure functions over all numbers."""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.actors.policy import (
    BACKOFF_FIRST_S,
    BACKOFF_MAX_S,
    RESTARTS,
    Exit,
    Rung,
    Verdict,
    backoff,
    decide,
    kind_of,
    next_rung_at,
    rung,
    within,
)
from freehold.actors.spec import Excess, Restart
from freehold.schema.errors import (
    Crashed,
    Damaged,
    DeadlineExceeded,
    OwnedElsewhere,
    Refused,
    RunNotFound,
    StorageFailed,
    Unavailable,
)

RESTARTED = {("permanent", Exit.NORMAL), ("permanent", Exit.CRASH), ("transient", Exit.CRASH)}
"""What OTP restarts. What cannot come back is not restarted by anybody."""


def test_the_table_has_every_restart_type_and_every_kind_of_exit() -> None:
    assert RESTARTS.keys() == set(get_args(Restart))
    assert all(row.keys() == set(Exit) for row in RESTARTS.values())


@pytest.mark.parametrize(("restart", "ended", "on_excess"), list(product(get_args(Restart), Exit, get_args(Excess))))
@pytest.mark.parametrize(("ends", "max_restarts"), [(0, 0), (1, 0), (1, 1), (3, 3), (4, 3), (1_000, 3)])
def test_what_becomes_of_a_child(restart: Restart, ended: Exit, on_excess: Excess, ends: int, max_restarts: int) -> None:
    verdict = decide(restart, ended, ends, max_restarts, on_excess)

    if (restart, ended) not in RESTARTED:
        assert verdict is Verdict.STOP
    elif ends <= max_restarts:
        assert verdict is Verdict.RESTART
    else:
        assert verdict is (Verdict.QUARANTINE if on_excess == "quarantine" else Verdict.ESCALATE)


@pytest.mark.parametrize("failed_start", [True, False])
def test_an_end_without_a_reason_is_normal(failed_start: bool) -> None:
    assert kind_of(None, failed_start=failed_start) is Exit.NORMAL


CASES = [
    (ValueError(), Exit.CRASH),
    (SystemExit(), Exit.CRASH),
    (FileNotFoundError(), Exit.CRASH),
    (Crashed("ours"), Exit.CRASH),
    (StorageFailed("disk"), Exit.CRASH),
    (StorageFailed("disk full", sqlite_extended_code=13), Exit.FINAL),
    (DeadlineExceeded("late"), Exit.CRASH),
    (Unavailable("busy", code="database_busy"), Exit.CRASH),
    (Unavailable("changing", code="changed_while_reading"), Exit.CRASH),
    (Unavailable("stopping", code="stopping"), Exit.FINAL),
    (OwnedElsewhere("theirs"), Exit.FINAL),
    (RunNotFound("gone"), Exit.FINAL),
    (Refused("no"), Exit.FINAL),
    (Damaged("broken"), Exit.FINAL),
]


@pytest.mark.parametrize(("reason", "expected"), CASES, ids=repr)
def test_a_failed_start_is_final_where_a_restart_would_only_repeat_it(reason: BaseException, expected: Exit) -> None:
    assert kind_of(reason, failed_start=True) is expected


@pytest.mark.parametrize("reason", [case[0] for case in CASES], ids=repr)
def test_whatever_ends_a_running_actor_is_a_crash(reason: BaseException) -> None:
    assert kind_of(reason, failed_start=False) is Exit.CRASH


@given(st.lists(st.floats(0, 1_000)), st.floats(0, 1_000), st.floats(0.001, 1_000))
def test_the_window_holds_what_is_young_enough_in_its_order(ends: list[float], now: float, max_seconds: float) -> None:
    held = within(ends, now, max_seconds)

    assert held == [at for at in ends if at in held]
    assert all((at in held) == (now - at <= max_seconds) for at in ends)


def test_the_window_slides() -> None:
    assert within([0, 4, 5], 5, 5) == [0, 4, 5]
    assert within([0, 4, 5], 5.001, 5) == [4, 5]
    assert within([], 5, 5) == []


@given(st.integers(0, 1_000_000), st.floats(0, 1))
def test_a_back_off_is_positive_bounded_and_spread_by_half(ends: int, jitter: float) -> None:
    seconds = backoff(ends, jitter)

    assert BACKOFF_FIRST_S / 2 <= seconds <= BACKOFF_MAX_S
    assert backoff(ends, 0.0) <= seconds <= backoff(ends, 1.0) == 2 * backoff(ends, 0.0)


def test_a_back_off_doubles_until_its_bound() -> None:
    steps = [backoff(ends, 1.0) for ends in range(1, 12)]

    assert steps[0] == BACKOFF_FIRST_S
    assert all(after == min(2 * before, BACKOFF_MAX_S) for before, after in pairwise(steps))
    assert steps[-1] == BACKOFF_MAX_S


@pytest.mark.parametrize(
    ("waited", "expected"),
    [
        (0, Rung.DRAIN),
        (5.9, Rung.DRAIN),
        (6, Rung.STOP),
        (7.9, Rung.STOP),
        (8, Rung.INTERRUPT),
        (9.9, Rung.INTERRUPT),
        (10, Rung.ABANDON),
        (1e9, Rung.ABANDON),
    ],
)
def test_a_stop_climbs_with_its_time(waited: float, expected: Rung) -> None:
    assert rung(waited, 10) is expected


@pytest.mark.parametrize("allowed", [0, -1])
def test_a_stop_without_time_is_at_the_top(allowed: float) -> None:
    assert rung(0, allowed) is Rung.ABANDON


def test_a_stop_with_all_time_drains() -> None:
    assert rung(1e9, math.inf) is Rung.DRAIN
    assert next_rung_at(Rung.DRAIN, 5, math.inf) == math.inf


@given(st.floats(0, 1e6), st.floats(0.01, 1e6), st.sampled_from([step for step in Rung if step is not Rung.ABANDON]))
def test_the_next_rung_is_due_when_it_is_reached(began: float, allowed: float, current: Rung) -> None:
    due = next_rung_at(current, began, allowed)

    assert due is not None
    assert rung((due - began) * (1 + 1e-6) + 1e-6, allowed).value > current.value


def test_there_is_nothing_after_abandoning() -> None:
    assert next_rung_at(Rung.ABANDON, 0, 10) is None
