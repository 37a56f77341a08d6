"""The supervisor at work: who is restarted, set aside or stopped, in which order, and what everybody else is told."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

import pytest
from troupe import PATIENCE_S, Diary, Doer, Hold, Watcher, aside, boom, doers, ended, run_together, tree_of, until
from unruly import NAMES, raised_by, unruly

from freehold.actors import Actor, ActorRef, ChildSpec, Down, Supervisor, SupervisorSpec
from freehold.actors.deadline import monotonic
from freehold.actors.envelope import Envelope
from freehold.actors.policy import BACKOFF_FIRST_S
from freehold.actors.reply import Reply
from freehold.actors.spec import Restart
from freehold.actors.supervision import StartChild
from freehold.schema.errors import Crashed, Error, Quarantined, Refused, Unavailable
from freehold.storage.clock import Clock


@pytest.fixture
def diary() -> Diary:
    return Diary()


def child(diary: Diary, name: str = "a", **options: Any) -> ChildSpec:
    return doers(name, diary=diary, **options)[0]


def end(actor: Doer) -> None:
    actor.ending = True


def crash(ref: ActorRef[Any]) -> None:
    with pytest.raises(ZeroDivisionError):
        ref.ask(boom)


def held(ref: ActorRef[Any]) -> Hold:
    hold = Hold()
    ref.tell(hold)
    assert hold.begun.wait(PATIENCE_S)
    return hold


class Flaky(Doer):
    """Fails to start as *fails* says, start by start; then it is a Doer."""

    def __init__(self, diary: Diary, fails: Iterator[BaseException | None]) -> None:
        super().__init__(diary)
        self._fails = fails

    def started(self) -> None:
        self.diary.write("try")
        if (error := next(self._fails, None)) is not None:
            raise error
        super().started()


# Starting


def test_children_start_from_left_to_right_and_stop_from_right_to_left(diary: Diary) -> None:
    with tree_of("a", "b", "c", diary=diary) as tree:
        assert tree.children() == ["a", "b", "c"]

    assert diary.lines == [f"{name} started" for name in "abc"] + [f"{name} stopped" for name in "cba"]
    assert tree.state == "stopped"


@pytest.mark.parametrize("error", [OSError("a disk"), Refused("no", code="bad_name"), SystemExit(3), KeyboardInterrupt()])
def test_one_that_cannot_start_takes_down_those_before_it_and_is_raised_as_itself(
    diary: Diary, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    before = set(threading.enumerate())
    flaky = ChildSpec("b", lambda: Flaky(diary, iter([error])))
    with pytest.raises(type(error)) as raised:
        Supervisor(SupervisorSpec("tree", [child(diary), flaky, child(diary, "c")]))

    assert raised.value is error
    assert diary.lines == ["a started", "try", "a stopped"]
    assert set(threading.enumerate()) <= before  # others may have ended meanwhile
    assert caplog.messages == []


def test_a_child_that_starts_slowly_is_waited_for_by_the_next(diary: Diary) -> None:
    class Slow(Doer):
        def started(self) -> None:
            until(lambda: tree.ref.mailbox._asleep)  # its supervisor has done what it could do meanwhile
            super().started()

    class Next(Doer):
        def __init__(self, diary: Diary) -> None:
            super().__init__(diary)
            diary.write("b made")

    tree = Supervisor.__new__(Supervisor)
    Supervisor.__init__(tree, SupervisorSpec("tree", [ChildSpec("a", lambda: Slow(diary)), ChildSpec("b", lambda: Next(diary))]))
    tree.stop()

    assert diary.lines[:2] == ["a started", "b made"]


def test_a_stuck_child_does_not_keep_a_tree_from_saying_why_it_cannot_start(diary: Diary) -> None:
    hold = Hold()

    class Stuck(Doer):
        def started(self) -> None:
            super().started()
            self.ref.tell(hold)

    class Failing(Doer):
        def started(self) -> None:
            assert hold.begun.wait(PATIENCE_S)
            raise LookupError

    children = [ChildSpec("a", lambda: Stuck(diary), shutdown=0.05), ChildSpec("b", lambda: Failing(diary))]
    with pytest.raises(LookupError):
        Supervisor(SupervisorSpec("tree", children), timeout=PATIENCE_S / 4)
    hold.release.set()

    diary.wait("a stopped")
    until(lambda: "freehold-a" not in {thread.name for thread in threading.enumerate()})
    assert diary.lines == ["a started", "a stopped"]


@pytest.mark.parametrize("error", [OSError("a disk"), Refused("no", code="bad_name"), SystemExit(3)])
def test_a_failed_first_start_is_raised_and_neither_restarted_nor_counted_nor_logged(
    diary: Diary, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    fails = iter([error, error, error, None])
    spec = ChildSpec("a", lambda: Flaky(diary, fails))
    with tree_of(diary=diary, max_restarts=0) as tree:
        for _ in range(3):
            with pytest.raises(type(error), match=str(error)):
                tree.start_child(spec)
            assert tree.children() == []
        ref = tree.start_child(spec)

        assert diary.lines == ["try"] * 4 + ["a started"]
        assert ref.ask(lambda _actor: "lives") == "lives"
        assert tree.tree().children[0].restarts == 0
    assert caplog.messages == []


@pytest.mark.parametrize("error", [OSError("a disk"), SystemExit(3), Refused("no", code="bad_name")])
def test_what_cannot_even_be_made_is_raised_at_once_and_the_tree_lives(diary: Diary, error: BaseException) -> None:
    def make() -> Doer:
        raise error

    began = monotonic()
    with tree_of("other", diary=diary) as tree:
        with pytest.raises(type(error)):
            tree.start_child(ChildSpec("a", make))

        assert tree.children() == ["other"]
        assert tree.start_child(child(diary)).ask(lambda _actor: 1) == 1
    with pytest.raises(type(error)):
        Supervisor(SupervisorSpec("tree", [ChildSpec("a", make)]))
    assert monotonic() - began < PATIENCE_S


def test_eight_starters_join_one_start(diary: Diary) -> None:
    gate = threading.Event()

    class Slow(Doer):
        def started(self) -> None:
            assert gate.wait(PATIENCE_S)
            super().started()

    spec = ChildSpec("a", lambda: Slow(diary))
    with tree_of(diary=diary) as tree:

        def open_when_all_wait() -> None:
            until(lambda: "a" in tree.actor.children and len(tree.actor.children["a"].starters) == 8)
            gate.set()

        *refs, _ = run_together(*[lambda: tree.start_child(spec)] * 8, open_when_all_wait)

        assert refs == [tree["a"]] * 8
    assert diary.lines == ["a started", "a stopped"]


def test_eight_starters_of_one_failing_start_are_each_told_the_cause(diary: Diary) -> None:
    gate = threading.Event()

    class Failing(Doer):
        def started(self) -> None:
            assert gate.wait(PATIENCE_S)
            raise Refused("cannot be", code="bad_name")

    spec = ChildSpec("a", lambda: Failing(diary))
    with tree_of(diary=diary) as tree:

        def open_when_all_wait() -> None:
            until(lambda: "a" in tree.actor.children and len(tree.actor.children["a"].starters) == 8)
            gate.set()

        *errors, _ = run_together(*[lambda: tree.start_child(spec)] * 8, open_when_all_wait)

    assert [str(error) for error in errors] == ["cannot be"] * 8
    assert len({id(error) for error in errors}) == 8


def test_a_running_child_is_joined_and_keeps_its_ref_through_a_restart(diary: Diary) -> None:
    with tree_of("a", diary=diary) as tree:
        ref = tree["a"]
        crash(ref)

        assert tree.start_child(child(diary)) is ref
        assert ref.ask(lambda _actor: "lives") == "lives"
    assert diary.lines.count("a started") == 2


def test_a_running_child_is_joined_at_once(diary: Diary) -> None:
    with tree_of("a", diary=diary) as tree:
        assert tree.ref.ask(StartChild(child(diary)), timeout=1.0) is tree["a"]


# Restarting


class Slack(Clock):
    """A clock whose restarts are never spread."""

    def jitter(self) -> float:
        return 1.0


@pytest.mark.parametrize("how", ["normal", "crash"])
@pytest.mark.parametrize("restart", ["permanent", "transient", "temporary"])
def test_who_is_restarted(diary: Diary, restart: Restart, how: str) -> None:
    watcher = Watcher()
    with tree_of(diary=diary) as tree:
        ref = tree.start_child(child(diary, restart=restart))
        tree.monitor("a", watcher.ref)
        if how == "crash":
            crash(ref)
        else:
            ref.ask(end)
        restarted = restart == "permanent" or (restart == "transient" and how == "crash")

        down = watcher.next()
        assert (down.child, down.restarting) == ("a", restarted)
        assert isinstance(down.reason, ZeroDivisionError) == (how == "crash")
        if restarted:
            assert ref.ask(lambda _actor: "lives") == "lives"
            assert tree.tree().children[0].restarts == 1
        else:
            assert tree.tree().children == ()
            with pytest.raises(Unavailable):
                ref.ask(lambda _actor: None)
    assert diary.lines.count("a started") == 1 + restarted


def test_a_restart_comes_after_its_back_off(diary: Diary) -> None:
    times: list[float] = []

    class Timed(Doer):
        def started(self) -> None:
            times.append(monotonic())

    with Supervisor(SupervisorSpec("tree", [ChildSpec("a", Timed)]), clock=Slack()) as tree:
        crashed = monotonic()
        crash(tree["a"])
        tree["a"].ask(lambda _actor: None)

    assert times[1] - crashed >= BACKOFF_FIRST_S


def test_a_restart_that_is_due_later_waits_for_its_own_time(diary: Diary) -> None:
    jitters = iter([1e6, 0.0])

    class Uneven(Clock):
        def jitter(self) -> float:
            return next(jitters)

    with Supervisor(SupervisorSpec("tree", [child(diary), child(diary, "b")]), clock=Uneven()) as tree:
        watcher = Watcher()
        tree.monitor("a", watcher.ref)
        crash(tree["a"])
        watcher.next()
        crash(tree["b"])
        tree["b"].ask(lambda _actor: None)

        assert tree.tree().children[0].state == "waiting"


def test_a_restart_that_fails_is_tried_again_and_counted(diary: Diary) -> None:
    fails = iter([None, OSError(), OSError(), None])
    with Supervisor(SupervisorSpec("tree", [ChildSpec("a", lambda: Flaky(diary, fails))])) as tree:
        crash(tree["a"])

        assert tree["a"].ask(lambda _actor: "lives") == "lives"
        assert tree.tree().children[0].restarts == 3


def test_a_restart_that_can_never_succeed_is_not_tried_again(diary: Diary, caplog: pytest.LogCaptureFixture) -> None:
    watcher = Watcher()
    fails = iter([None, Refused("owned elsewhere", code="not_a_file")])
    with tree_of("other", diary=diary) as tree:
        ref = tree.start_child(ChildSpec("a", lambda: Flaky(diary, fails)))
        tree.monitor("a", watcher.ref)
        crash(ref)

        downs = [watcher.next(), watcher.next()]
        assert [(type(down.reason), down.restarting) for down in downs] == [(ZeroDivisionError, True), (Refused, False)]
        assert tree.children() == ["other"]
        with pytest.raises(Unavailable):
            ref.ask(lambda _actor: None)
    assert [message.split(" at ")[0] for message in caplog.messages] == ["tree/a crashed: ZeroDivisionError", "tree/a crashed: Refused"]


def test_starters_join_a_child_that_waits_for_its_restart(diary: Diary) -> None:
    with tree_of("a", diary=diary) as tree:
        crash(tree["a"])

        assert tree.start_child(child(diary)).ask(lambda _actor: 1) == 1


# Too often


def test_a_child_that_fails_too_often_stops_the_whole_tree_in_reverse(diary: Diary) -> None:
    tree = tree_of("a", "b", "c", diary=diary, max_restarts=1)
    crash(tree["b"])
    tree["b"].ask(lambda _actor: None)
    diary.lines.clear()
    crash(tree["b"])
    ended(tree)

    assert diary.lines == ["b stopped by ZeroDivisionError", "c stopped", "a stopped"]
    assert tree.state == tree.tree().state == "escalated"
    assert isinstance(tree._cell.reason, Crashed)
    for name in "abc":
        with pytest.raises(Unavailable):
            tree[name].ask(lambda _actor: None)
    with pytest.raises(Unavailable):
        tree.start_child(child(diary, "d"))
    tree.stop()


def test_the_end_that_was_one_too_many_is_told_once_also_of_an_only_child(diary: Diary) -> None:
    watcher = Watcher()
    tree = tree_of("a", diary=diary, max_restarts=0)
    tree.monitor("a", watcher.ref)
    crash(tree["a"])
    ended(tree)

    assert watcher.next().restarting is False
    assert watcher.waiting == 0


def test_a_child_that_fails_too_often_is_set_aside_and_the_others_live(diary: Diary) -> None:
    watcher = Watcher()
    with tree_of("a", "b", diary=diary, max_restarts=0, on_excess="quarantine") as tree:
        tree.monitor("b", watcher.ref)
        hold = held(tree["b"])
        tree["b"].tell(boom)
        waiting = Reply()
        tree["b"].mailbox.put(Envelope(lambda _actor: None, waiting))
        hold.release.set()
        assert watcher.next().restarting is False

        for call in (lambda: waiting.get(0), lambda: tree["b"].ask(1), lambda: tree.start_child(child(diary, "b"))):
            with pytest.raises(Quarantined) as raised:
                call()
            assert isinstance(raised.value.__cause__, ZeroDivisionError)
        assert tree.children() == ["a"]
        assert [node.state for node in tree.tree().children] == ["running", "quarantined"]
        assert tree["a"].ask(lambda _actor: "lives") == "lives"

        tree.stop_child("b")
        assert tree.start_child(child(diary, "b")).ask(lambda _actor: "anew") == "anew"


def test_a_child_that_keeps_ending_by_itself_is_one_too_many_too(diary: Diary) -> None:
    class Brief(Doer):
        def started(self) -> None:
            super().started()
            self.ending = True

    tree = Supervisor(SupervisorSpec("tree", [ChildSpec("a", lambda: Brief(diary))]))
    ended(tree)

    assert tree.state == "escalated"
    assert diary.lines.count("a started") == 4


def test_crashes_outside_of_the_window_are_forgotten(diary: Diary) -> None:
    with tree_of("a", diary=diary, max_restarts=0, max_seconds=1e-9) as tree:
        # Each crash stands alone in its window, and one is too many already.
        crash(tree["a"])
        ended(tree)
        assert tree.state == "escalated"

    with tree_of("a", diary=diary, max_restarts=1, max_seconds=1e-9) as tree:
        for _ in range(5):
            crash(tree["a"])
            tree["a"].ask(lambda _actor: None)
        assert tree.state == "running"


# Telling


def test_one_down_is_told_of_each_end_and_only_after_all_is_closed(diary: Diary) -> None:
    closing, closed = threading.Event(), threading.Event()

    class Slow(Doer):
        def stopped(self, reason: BaseException | None) -> None:
            closing.set()
            assert closed.wait(PATIENCE_S)

    watcher = Watcher()
    with Supervisor(SupervisorSpec("tree", [ChildSpec("a", lambda: Slow(diary))])) as tree:
        tree.monitor("a", watcher.ref)
        crash(tree["a"])
        assert closing.wait(PATIENCE_S)
        tree.monitor("a", Watcher().ref)  # the supervisor has handled all that came before
        assert watcher.waiting == 0
        closed.set()

        assert isinstance(watcher.next().reason, ZeroDivisionError)
        tree["a"].ask(lambda _actor: None)
    assert [watcher.next().reason, watcher.waiting] == [None, 0]


@pytest.mark.parametrize("state", ["closed", "full"])
def test_a_watcher_that_cannot_be_told_harms_nobody(diary: Diary, state: str, caplog: pytest.LogCaptureFixture) -> None:
    gone, other = Watcher(), Watcher()
    if state == "closed":
        gone.ref.mailbox.close(lambda: Unavailable("gone", code="stopping"))
    else:
        gone.ref.mailbox.messages_max = 0
    with tree_of("a", "b", diary=diary) as tree:
        tree.monitor("a", gone.ref)
        tree.monitor("a", other.ref)
        crash(tree["a"])

        assert isinstance(other.next(), Down)
        assert [tree[name].ask(lambda _actor: 1) for name in "ab"] == [1, 1]
    assert any("watcher was not told" in message for message in caplog.messages)


def test_a_child_that_is_not_there_cannot_be_monitored(diary: Diary) -> None:
    with tree_of("a", diary=diary) as tree:
        with pytest.raises(Refused):
            tree.monitor("b", Watcher().ref)

        assert tree.state == "running"


# Stopping


def test_those_without_an_order_stop_before_the_ordered_ones(diary: Diary) -> None:
    with tree_of("a", "b", diary=diary) as tree:
        for name in "xyz":
            tree.start_child(child(diary, name))

    stops = diary.lines[5:]
    assert set(stops[:3]) == {"x stopped", "y stopped", "z stopped"}
    assert stops[3:] == ["b stopped", "a stopped"]


def test_the_ordered_ones_wait_for_those_without_an_order(diary: Diary) -> None:
    tree = tree_of("registry", diary=diary)
    hold = held(tree.start_child(child(diary, "run", shutdown=PATIENCE_S)))
    stopper = aside(lambda: tree.stop(PATIENCE_S))
    answered = tree["registry"].ask(lambda _actor: "lives")
    hold.release.set()
    assert stopper() is None

    assert answered == "lives"
    assert diary.lines[2:] == ["run stopped", "registry stopped"]


def test_a_tree_with_work_in_every_mailbox_answers_all_of_it_and_stops_in_order(diary: Diary, caplog: pytest.LogCaptureFixture) -> None:
    tree = tree_of("registry", diary=diary)
    refs = [tree.start_child(child(diary, f"run {number}")) for number in range(20)]
    holds = [held(ref) for ref in refs]
    replies = [Reply() for _ in range(100)]
    for number, reply in enumerate(replies):
        refs[number % 20].mailbox.put(Envelope(lambda _actor: "done", reply))
    stopper = aside(tree.stop)
    for hold in holds:
        hold.release.set()
    assert stopper() is None

    assert [reply.get(0) for reply in replies] == ["done"] * 100
    assert diary.lines[-1] == "registry stopped"
    assert len(diary.lines) == 42
    assert caplog.messages == []


def test_a_stopping_child_refuses_what_comes_and_finishes_what_waits(diary: Diary) -> None:
    watcher = Watcher()
    with tree_of(diary=diary) as tree:
        ref = tree.start_child(child(diary, shutdown=PATIENCE_S))
        tree.monitor("a", watcher.ref)
        hold, waiting = held(ref), Reply()
        ref.mailbox.put(Envelope(hold, waiting))
        sealed: list[object] = []

        def last(actor: Doer) -> None:
            # Its mailbox is sealed by now: the stop was taken before this message.
            try:
                actor.ref.tell(lambda _actor: None)
            except Unavailable as error:
                sealed.append(error.code)

        ref.tell(last)
        stopper = aside(lambda: tree.stop_child("a"))
        until(lambda: len(ref.mailbox) == 3)
        hold.release.set()
        assert stopper() is None

    assert waiting.get(0) == "held"
    assert sealed == ["stopping"]


def test_a_child_that_is_being_stopped_is_not_joined(diary: Diary) -> None:
    with tree_of(diary=diary) as tree:
        hold = held(tree.start_child(child(diary, shutdown=PATIENCE_S)))
        stopper = aside(lambda: tree.stop_child("a"))
        until(lambda: tree.tree().children[0].state == "stopping")
        with pytest.raises(Unavailable):
            tree.ref.ask(StartChild(child(diary)), timeout=1.0)
        hold.release.set()
        assert stopper() is None


def test_a_child_that_crashes_while_the_tree_stops_is_not_restarted(diary: Diary) -> None:
    watcher = Watcher()
    tree = tree_of("a", diary=diary)
    tree.monitor("a", watcher.ref)
    hold = held(tree.start_child(child(diary, "run", shutdown=PATIENCE_S)))
    stopper = aside(lambda: tree.stop(PATIENCE_S))
    until(lambda: tree.state == "stopping")
    crash(tree["a"])
    assert watcher.next().restarting is False
    hold.release.set()
    assert stopper() is None

    assert diary.lines.count("a started") == 1


def test_each_ordered_child_waits_for_the_one_after_it(diary: Diary) -> None:
    tree = tree_of("a", "b", diary=diary)
    hold = held(tree["b"])
    stopper = aside(lambda: tree.stop(PATIENCE_S))
    until(lambda: tree.tree().children[1].state == "stopping")
    answered = tree["a"].ask(lambda _actor: "lives")
    hold.release.set()
    assert stopper() is None

    assert answered == "lives"
    assert diary.lines[2:] == ["b stopped", "a stopped"]


def test_a_stuck_child_leaves_half_of_the_time_to_those_who_stop_after_it(diary: Diary) -> None:
    tree, waiting = tree_of("a", "stuck", diary=diary), Reply()
    holds = [held(tree[name]) for name in ("stuck", "a")]
    tree["a"].mailbox.put(Envelope(lambda _actor: "done", waiting))
    stopper = aside(lambda: tree.stop(2.0))
    until(lambda: tree.tree().children[1].state == "abandoned")
    holds[1].release.set()
    late = stopper()
    holds[0].release.set()
    diary.wait("stuck stopped")

    assert isinstance(late, Unavailable)
    assert late.details == {"actors": ["stuck"]}
    assert waiting.get(0) == "done"


def test_a_second_shutdown_gives_no_more_time_than_the_first(diary: Diary) -> None:
    tree = Supervisor(SupervisorSpec("tree", [child(diary, "a", shutdown=1_000), child(diary, "b", shutdown=1_000)]))
    holds = [held(tree[name]) for name in "ab"]
    first = aside(lambda: tree.stop(0.4))
    until(lambda: tree.tree().children[1].state == "stopping")
    tree._shut_down(1_000)
    late = first()
    for hold in holds:
        hold.release.set()
    diary.wait("a stopped")
    diary.wait("b stopped")

    assert isinstance(late, Unavailable)
    assert late.details == {"actors": ["a", "b"]}


def test_told_messages_that_are_lost_with_a_child_are_counted_in_the_log(diary: Diary, caplog: pytest.LogCaptureFixture) -> None:
    with tree_of(diary=diary) as tree:
        ref = tree.start_child(child(diary, shutdown=0.0))
        hold = held(ref)
        ref.tell("a stored value")
        ref.tell("a stored value")
        with pytest.raises(Unavailable):
            tree.stop_child("a")
        hold.release.set()
        diary.wait("a stopped")

    assert "tree/a: 2 messages were never taken up" in caplog.messages
    assert "a stored value" not in caplog.text


def test_a_child_that_takes_too_long_is_told_to_stop_now_and_what_waits_is_answered(diary: Diary) -> None:
    class Released(Doer):
        def interrupt(self) -> None:
            self.diary.write("interrupted")
            hold.release.set()

    with tree_of(diary=diary) as tree:
        ref = tree.start_child(ChildSpec("a", lambda: Released(diary), shutdown=0.2))
        hold, waiting = held(ref), Reply()
        ref.mailbox.put(Envelope(lambda _actor: "too late", waiting))
        tree.stop_child("a")

        with pytest.raises(Unavailable) as raised:
            waiting.get(0)
        assert raised.value.code == "stopping"
        assert tree.children() == []
    assert diary.lines == ["a started", "interrupted", "a stopped"]


def test_a_stuck_child_is_named_and_all_others_are_stopped_within_the_deadline(diary: Diary) -> None:
    tree = tree_of("a", "b", "stuck", "c", diary=diary)
    hold = held(tree["stuck"])
    began = monotonic()
    with pytest.raises(Unavailable) as raised:
        tree.stop(1.0)
    took = monotonic() - began
    stops = diary.lines[4:]
    hold.release.set()
    diary.wait("stuck stopped")

    assert raised.value.code == "still_stopping"
    assert raised.value.details == {"actors": ["stuck"]}
    assert stops == ["c stopped", "b stopped", "a stopped"]
    assert took < 2.0


def test_a_child_that_was_left_behind_ends_when_it_comes_back_and_is_not_late_any_more(diary: Diary) -> None:
    watcher = Watcher()
    tree = tree_of("other", diary=diary)
    ref = tree.start_child(child(diary, shutdown=0.05))
    tree.monitor("a", watcher.ref)
    hold, waiting = held(ref), Reply()
    ref.mailbox.put(Envelope(lambda _actor: "never", waiting))
    with pytest.raises(Unavailable, match="not stopped in time: a"):
        tree.stop_child("a")
    # Asked again it says so at once; it is not replaced; and whoever waited for it does so no more.
    with pytest.raises(Unavailable, match="not stopped in time: a"):
        tree.stop_child("a")
    with pytest.raises(Unavailable):
        tree.start_child(child(diary))
    with pytest.raises(Unavailable):
        waiting.get(0)
    assert (watcher.waiting, tree.tree().children[1].state) == (0, "abandoned")
    hold.release.set()

    assert watcher.next().restarting is False
    assert diary.lines == ["other started", "a started", "a stopped"]
    assert tree.start_child(child(diary)).ask(lambda _actor: 1) == 1
    tree.stop()


def test_a_busy_child_that_has_no_time_to_stop_at_all_is_named_at_once(diary: Diary) -> None:
    with tree_of(diary=diary) as tree:
        hold = held(tree.start_child(child(diary, shutdown=0.0)))
        with pytest.raises(Unavailable, match="not stopped in time: a"):
            tree.stop_child("a")
        hold.release.set()
        diary.wait("a stopped")

    assert diary.lines == ["a started", "a stopped"]


def test_a_child_stuck_in_its_start_is_left_behind_and_closes_when_it_comes_back(diary: Diary) -> None:
    gate, begun = threading.Event(), threading.Event()

    class Slow(Doer):
        def started(self) -> None:
            begun.set()
            assert gate.wait(PATIENCE_S)
            super().started()

    tree = tree_of(diary=diary)
    starter = aside(lambda: tree.start_child(ChildSpec("a", lambda: Slow(diary))))
    assert begun.wait(PATIENCE_S)
    with pytest.raises(Unavailable, match="not stopped in time: a"):
        tree.stop(0.05)
    assert isinstance(starter(), Unavailable)
    gate.set()

    diary.wait("a stopped")
    assert diary.lines == ["a started", "a stopped"]


def test_a_child_that_was_stopped_in_its_start_does_not_run_when_it_comes_back(diary: Diary) -> None:
    gate, begun = threading.Event(), threading.Event()

    class Slow(Doer):
        def started(self) -> None:
            begun.set()
            assert gate.wait(PATIENCE_S)
            super().started()

    with tree_of("other", diary=diary) as tree:
        starter = aside(lambda: tree.start_child(ChildSpec("a", lambda: Slow(diary), shutdown=0.05)))
        assert begun.wait(PATIENCE_S)
        with pytest.raises(Unavailable):
            tree.stop_child("a")
        assert isinstance(starter(), Unavailable)
        gate.set()
        until(lambda: tree.children() == ["other"] and len(tree.tree().children) == 1)

    assert diary.lines == ["other started", "a started", "a stopped", "other stopped"]


def test_a_shutdown_shortens_a_stop_that_is_under_way(diary: Diary) -> None:
    tree = tree_of("a", diary=diary)
    hold = held(tree.start_child(child(diary, "slow", shutdown=1_000)))
    waiting = aside(lambda: tree.stop_child("slow"))
    until(lambda: tree.tree().children[1].state == "stopping")
    with pytest.raises(Unavailable, match="not stopped in time: slow;"):
        tree.stop(0.2)
    assert isinstance(waiting(), Unavailable)
    hold.release.set()

    diary.wait("slow stopped")
    assert diary.lines[2:] == ["a stopped", "slow stopped"]


@pytest.mark.parametrize("broken", [True, False])
def test_an_interrupt_that_fails_harms_nobody(diary: Diary, broken: bool, caplog: pytest.LogCaptureFixture) -> None:
    class Touchy(Doer):
        def interrupt(self) -> None:
            hold.release.set()
            if broken:
                raise AttributeError("a stored value")

    with tree_of("other", diary=diary) as tree:
        hold = held(tree.start_child(ChildSpec("a", lambda: Touchy(diary), shutdown=0.1)))
        tree.stop_child("a")

        assert tree["other"].ask(lambda _actor: 1) == 1
    assert ("AttributeError" in caplog.text) == broken
    assert "a stored value" not in caplog.text


def test_a_crash_on_the_way_down_is_logged_and_told_and_not_restarted(diary: Diary, caplog: pytest.LogCaptureFixture) -> None:
    watcher = Watcher()
    tree = tree_of("a", diary=diary)
    tree.monitor("a", watcher.ref)
    hold = held(tree["a"])
    tree["a"].tell(boom)
    stopper = aside(tree.stop)
    until(lambda: tree.tree().children[0].state == "stopping")
    hold.release.set()
    assert stopper() is None

    down = watcher.next()
    assert (type(down.reason), down.restarting) == (ZeroDivisionError, False)
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert diary.lines == ["a started", "a stopped by ZeroDivisionError"]


def test_nothing_is_started_once_the_tree_is_stopping(diary: Diary) -> None:
    tree = tree_of("a", diary=diary)
    hold = held(tree["a"])
    stopper = aside(tree.stop)
    until(lambda: tree.state == "stopping")
    with pytest.raises(Unavailable) as raised:
        tree.start_child(child(diary, "b"))
    hold.release.set()
    assert stopper() is None

    assert raised.value.code == "stopping"
    assert diary.lines == ["a started", "a stopped"]


def test_a_child_that_waits_for_its_restart_is_forgotten_by_a_stop(diary: Diary) -> None:
    class Late(Clock):
        def jitter(self) -> float:
            return 1e6

    watcher = Watcher()
    tree = Supervisor(SupervisorSpec("tree", [child(diary), child(diary, "b")]), clock=Late())
    refs = [tree[name] for name in "ab"]
    for name, ref in zip("ab", refs, strict=True):
        tree.monitor(name, watcher.ref)
        crash(ref)
        watcher.next()
    assert [node.state for node in tree.tree().children] == ["waiting", "waiting"]
    tree.stop_child("a")
    tree.stop()

    for ref in refs:
        with pytest.raises(Unavailable):
            ref.ask(lambda _actor: None)
    assert diary.lines.count("a started") == 1


def test_to_stop_who_is_not_there_is_fine(diary: Diary) -> None:
    with tree_of("a", diary=diary) as tree:
        tree.stop_child("nobody")
        tree.stop_child("a")
        tree.stop_child("a")

        assert tree.children() == []
        assert tree.start_child(child(diary)).ask(lambda _actor: 1) == 1


@pytest.mark.parametrize("name", NAMES)
def test_an_exception_that_may_not_be_touched_ends_its_actor_and_no_other(diary: Diary, name: str) -> None:
    error = unruly(name)

    def fail(_actor: Doer) -> object:
        raise error

    with tree_of("a", "b", diary=diary) as tree:
        watcher = Watcher()
        tree.monitor("a", watcher.ref)
        assert raised_by(tree["a"].ask, fail) is error
        assert watcher.next().reason is error
        diary.wait("a started", times=2)
        assert tree["a"].ask(lambda _actor: 1) == 1
        assert tree["b"].ask(lambda _actor: 1) == 1
        for late in (unruly(name), unruly(name, Refused)):
            spec = ChildSpec("c", partial(Flaky, diary, iter([late])))
            assert raised_by(tree.start_child, spec) is late
        assert tree.children() == ["a", "b"]
    assert diary.lines.count("b started") == 1


# Our own faults


@pytest.mark.parametrize("verb", ["ask", "tell"])
def test_a_fault_of_the_supervisor_leaves_no_child_and_nobody_waiting(diary: Diary, verb: Literal["ask", "tell"]) -> None:
    class Late(Clock):
        def jitter(self) -> float:
            return 1e6

    tree = Supervisor(SupervisorSpec("tree", [child(diary), child(diary, "b")]), clock=Late(), timeout=PATIENCE_S)
    watcher = Watcher()
    tree.monitor("b", watcher.ref)
    crash(tree["b"])
    watcher.next()
    unknown: Callable[[], object] = lambda: getattr(tree.ref, verb)("what no supervisor takes")  # noqa: E731

    def fault() -> object:
        until(lambda: tree.actor.children["b"].starters)
        return unknown()

    joined, _ = run_together(lambda: tree.start_child(child(diary, "b")), fault)
    ended(tree)
    diary.wait("a stopped")

    assert isinstance(joined, (ZeroDivisionError, Unavailable))
    assert tree.state == "stopped"
    assert tree.children() == [] or all(node.state == "stopping" for node in tree.tree().children)
    with pytest.raises(Unavailable):
        tree["a"].ask(lambda _actor: None)
    tree.stop()


def test_a_supervisor_answers_a_refusal_and_lives(diary: Diary) -> None:
    with tree_of("a", diary=diary) as tree:
        with pytest.raises(Error):
            tree.monitor("nobody", Watcher().ref)

        assert isinstance(tree["a"], ActorRef)
        assert tree["a"].ask(lambda actor: isinstance(actor, Actor))
