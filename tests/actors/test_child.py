"""A supervisor's record of one child: how far its stop has come, and who waits for what."""

from __future__ import annotations

from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import pytest
from troupe import PATIENCE_S, Diary, Doer, Hold

from freehold.actors import ChildSpec
from freehold.actors.cell import Exited, Started
from freehold.actors.child import Child, State
from freehold.actors.deadline import monotonic
from freehold.actors.envelope import Envelope, Lane
from freehold.actors.refusal import refuse, stopping
from freehold.actors.reply import Reply
from freehold.schema.errors import Refused, Unavailable


class Interruptible(Doer):
    """Writes down that it was interrupted."""

    def interrupt(self) -> None:
        self.diary.write(f"{self.ref.name} interrupted")


class Kept(Child):
    """A child with the reports that a supervisor would get."""

    def __init__(self, diary: Diary) -> None:
        super().__init__(ChildSpec("a", lambda: Interruptible(diary), shutdown=10), PATIENCE_S)
        self.diary = diary
        self.reports: SimpleQueue[Any] = SimpleQueue()
        self.hold = Hold()
        self.launch(self.reports.put)
        assert isinstance(self.reports.get(timeout=PATIENCE_S), Started)

    def hold_fast(self) -> None:
        """Keep it in a turn."""
        self.ref.tell(self.hold)
        assert self.hold.begun.wait(PATIENCE_S)


@pytest.fixture
def child() -> Iterator[Kept]:
    child = Kept(Diary())
    yield child
    child.hold.release.set()
    child.ref.mailbox.close(stopping)
    assert child.cell is not None
    child.cell.join(PATIENCE_S)


def test_a_stop_takes_one_rung_after_the_other(child: Kept) -> None:
    child.hold_fast()
    child.begin_stop(100.0, 10.0)
    rungs = []
    for now in (100.0, 106.0, 108.0, 110.0):
        child.climb(now)
        child.climb(now)
        rungs.append((child.state, len(child.ref.mailbox), "a interrupted" in child.diary.lines))

    assert rungs == [
        (State.STOPPING, 1, False),
        (State.STOPPING, 2, False),
        (State.STOPPING, 2, True),
        (State.ABANDONED, 2, True),
    ]
    assert child.diary.lines.count("a interrupted") == 1


def test_who_has_nothing_left_to_do_ends_on_the_first_rung(child: Kept) -> None:
    child.begin_stop(monotonic(), 1_000.0)

    assert isinstance(child.reports.get(timeout=PATIENCE_S / 4), Exited)
    assert child.diary.lines == ["a started", "a stopped"]


def test_no_rung_is_left_out_however_late_the_climb_is(child: Kept) -> None:
    child.hold_fast()
    child.begin_stop(100.0, 10.0)
    child.climb(1_000.0)

    assert child.state is State.ABANDONED
    assert len(child.ref.mailbox) == 2
    assert child.diary.lines == ["a started", "a interrupted"]


def test_without_any_time_it_is_told_to_stop_before_it_is_abandoned(child: Kept) -> None:
    child.begin_stop(monotonic(), 0.0)

    assert child.state is State.ABANDONED
    assert isinstance(child.reports.get(timeout=PATIENCE_S), Exited)
    assert child.diary.lines[-1] == "a stopped"


@pytest.mark.parametrize(("second", "expected"), [(2.0, 103.0), (50.0, 106.0)])
def test_a_second_stop_may_only_shorten_the_first(child: Kept, second: float, expected: float) -> None:
    child.hold_fast()
    child.begin_stop(100.0, 10.0)
    child.begin_stop(103.0, second)

    due = child.wake_at()
    assert due is not None
    assert due == (100.0 + 0.6 * 5.0 if second == 2.0 else expected)


def test_what_cannot_be_interrupted_is_logged_and_stops_all_the_same(child: Kept, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise AttributeError("a stored value")

    assert child.cell is not None
    child.cell.actor.interrupt = fail  # type: ignore[method-assign]
    child.hold_fast()
    child.begin_stop(100.0, 10.0)
    child.climb(109.0)
    child.climb(110.0)

    assert child.state is State.ABANDONED
    assert "interrupt crashed: AttributeError" in caplog.text
    assert "a stored value" not in caplog.text


def test_nothing_is_due_for_a_child_that_runs(child: Kept) -> None:
    child.state = State.RUNNING

    assert child.wake_at() is None


def test_a_restart_is_due_for_a_child_that_waits_for_one(child: Kept) -> None:
    child.state, child.due = State.WAITING, 42.0

    assert child.wake_at() == 42.0


def test_everybody_who_waits_is_answered_each_with_an_error_of_its_own(child: Kept) -> None:
    first, second, third = Reply(), Reply(), Reply()
    error = Refused("no", code="bad_name")
    waiting = [first, second]
    child.answer(waiting, error=error)
    child.answer([third], "value")

    assert waiting == []
    assert first.error is not second.error
    assert [str(reply.error) for reply in (first, second)] == ["no", "no"]
    assert third.get(0) == "value"


def test_what_was_never_taken_up_is_refused_and_what_was_told_is_counted() -> None:
    asked, another, abandoned = Reply(), Reply(), Reply()
    abandoned.abandon()
    lost = refuse(
        [Envelope("m", asked), Envelope("m", another), Envelope("m", abandoned), Envelope("told"), Envelope("stop", lane=Lane.SYSTEM)],
        lambda: Unavailable("gone", code="stopping"),
    )

    assert lost == 1
    assert isinstance(asked.error, Unavailable)
    assert asked.error is not another.error
    assert not asked.abandon()
    assert not abandoned.is_set
