"""How long a caller is willing to wait: the nearest of nested deadlines wins, and none outlives its block."""

from __future__ import annotations

import math
from contextvars import copy_context
from datetime import timedelta
from threading import TIMEOUT_MAX

import pytest

from freehold.actors.deadline import DEADLINE, check_deadline, deadline_in, exceeded, fail_after, monotonic, seconds, to_wait
from freehold.schema.errors import DeadlineExceeded, Executed, Refused


@pytest.mark.parametrize(("duration", "expected"), [(0, 0.0), (1, 1.0), (0.5, 0.5), (timedelta(minutes=1), 60.0)])
def test_a_duration_is_seconds_or_a_timedelta(duration: float | timedelta, expected: float) -> None:
    assert seconds(duration) == expected
    assert type(seconds(duration)) is float


@pytest.mark.parametrize("duration", [-1, -0.1, math.nan, -math.inf, True, False, "5", None, 1j, timedelta(seconds=-1)])
def test_what_is_no_duration_is_refused(duration: object) -> None:
    with pytest.raises(Refused) as raised:
        seconds(duration)  # type: ignore[arg-type]

    assert raised.value.code == "bad_option"


@pytest.mark.parametrize("duration", [math.inf, 1e300, 10**400, timedelta.max])
def test_for_ever_is_as_long_as_a_lock_can_wait(duration: float | timedelta) -> None:
    assert seconds(duration) == TIMEOUT_MAX


@pytest.mark.parametrize(
    ("duration", "expected"), [(None, -1), (-5, 0), (math.nan, 0), (3, 3), (math.inf, TIMEOUT_MAX), (TIMEOUT_MAX + 1e9, TIMEOUT_MAX)]
)
def test_a_lock_waits_no_longer_than_it_can(duration: float | None, expected: float) -> None:
    assert to_wait(duration) == expected


def test_a_deadline_stands_inside_its_block_alone() -> None:
    with fail_after(60):
        inside = DEADLINE.get()

    assert inside is not None
    assert 0 < inside - monotonic() <= 60
    assert DEADLINE.get() is None


def test_a_deadline_ends_with_its_block_also_after_an_error() -> None:
    with pytest.raises(KeyError), fail_after(60):
        raise KeyError

    assert DEADLINE.get() is None


@pytest.mark.parametrize(("outer", "inner"), [(1, 1_000), (1_000, 1)])
def test_of_nested_deadlines_the_nearest_wins_and_the_outer_one_comes_back(outer: float, inner: float) -> None:
    with fail_after(outer):
        before = DEADLINE.get()
        with fail_after(inner):
            inside = DEADLINE.get()
        after = DEADLINE.get()

    assert inside is not None
    assert inside - monotonic() <= 1
    assert after == before


def test_a_refused_duration_leaves_the_outer_deadline() -> None:
    with fail_after(60):
        before = DEADLINE.get()
        with pytest.raises(Refused), fail_after(-1):
            pass
        assert DEADLINE.get() == before


def test_a_deadline_travels_in_a_copied_context_and_stays_out_of_others() -> None:
    with fail_after(60):
        context = copy_context()
        here = DEADLINE.get()

    assert context.run(DEADLINE.get) == here
    assert context.run(deadline_in, None) == here
    assert DEADLINE.get() is None


def test_a_call_has_its_own_time_or_the_nearer_one_it_stands_under() -> None:
    assert deadline_in(None) is None
    own = deadline_in(5)
    assert own is not None
    assert 4 < own - monotonic() <= 5

    with fail_after(1):
        assert deadline_in(None) == deadline_in(5) == DEADLINE.get()
    with fail_after(100):
        near = deadline_in(5)
        assert near is not None
        assert near - monotonic() <= 5


def test_who_is_called_when_the_time_is_up_already_is_told_so() -> None:
    with fail_after(60):
        check_deadline()
    with fail_after(0), pytest.raises(DeadlineExceeded) as raised:
        check_deadline()
    check_deadline()

    assert raised.value.executed == "no"


@pytest.mark.parametrize("executed", ["no", "yes", "unknown"])
def test_whoever_runs_out_of_time_is_told_what_became_of_the_request(executed: Executed) -> None:
    error = exceeded(executed)

    assert error.executed == executed
    assert error.retryable
    assert isinstance(error, TimeoutError)
