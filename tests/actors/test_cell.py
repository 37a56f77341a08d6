"""One incarnation of an actor on pykka's seams: closed once whatever happens, and nobody else's business."""

from __future__ import annotations

import inspect
import logging
import re
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any, NoReturn

import pykka
import pytest
from pykka import messages
from troupe import PATIENCE_S, Diary, Doer, Hold, Watcher, aside, boom, doers, ended, tree_of, until

from freehold.actors import Actor, ActorRef, ChildSpec, Supervisor, SupervisorSpec
from freehold.actors.cell import Cell, Exited, Feed, Started, crash_report
from freehold.actors.deadline import CHAIN, DEADLINE, fail_after, monotonic
from freehold.actors.refusal import stopping
from freehold.actors.reply import Reply
from freehold.schema.errors import InsideTransaction


@pytest.fixture
def diary() -> Diary:
    return Diary()


# The four seams. Where one of these fails, pykka has changed under us and cell.py has to be thought through again.


@pytest.mark.parametrize("seam", ["_create_actor_inbox", "_create_future"])
def test_pykka_makes_its_inbox_and_its_future_by_static_methods_without_arguments(seam: str) -> None:
    assert isinstance(inspect.getattr_static(pykka.ThreadingActor, seam), staticmethod)
    assert not inspect.signature(getattr(pykka.ThreadingActor, seam)).parameters


def test_pykka_starts_its_loop_by_a_method_without_arguments() -> None:
    assert list(inspect.signature(pykka.ThreadingActor._start_actor_loop).parameters) == ["self"]
    assert list(inspect.signature(pykka.Actor._actor_loop).parameters) == ["self"]


@pytest.mark.parametrize(
    ("hook", "parameters"),
    [("on_start", ["self"]), ("on_stop", ["self"]), ("on_receive", ["self", "message"]), ("stop", ["self"])],
)
def test_pykka_has_its_public_hooks(hook: str, parameters: list[str]) -> None:
    assert list(inspect.signature(getattr(pykka.Actor, hook)).parameters) == parameters


def test_pykka_asks_the_seams_for_its_inbox_and_future_and_nothing_else() -> None:
    class Bare(Actor[Any]):
        pass

    actor = Bare()
    with tree_of("a") as tree:
        actor.ref = tree["a"]
        cell = Cell(actor, print)

    assert type(cell.actor_inbox).__name__ == Feed.__name__
    assert isinstance(cell._create_future(), Reply)
    assert isinstance(cell.actor_stopped, threading.Event)
    assert Cell.use_daemon_thread is True


def test_pykka_s_loop_runs_one_incarnation_through_the_seams_in_order() -> None:
    seen: list[str] = []

    class Watched(pykka.ThreadingActor):
        @staticmethod
        def _create_actor_inbox() -> Any:
            return Inbox()

        def on_start(self) -> None:
            seen.append("on_start")
            self.stop()

        def on_stop(self) -> None:
            seen.append("on_stop")

    class Inbox:
        def put(self, envelope: Any) -> None:
            assert isinstance(envelope.message, messages._ActorStop)
            assert envelope.reply_to is None
            seen.append("put")
            self.stop = envelope

        def get(self) -> Any:
            seen.append("get")
            return self.stop

        def empty(self) -> bool:
            seen.append("empty")
            return True

    Watched()._actor_loop()

    assert seen == ["on_start", "put", "get", "on_stop", "empty"]


# Nobody else's business


class Bystander(pykka.ThreadingActor):
    """An actor of the application around us."""

    def on_receive(self, message: Any) -> Any:
        return message


@pytest.fixture
def bystander() -> Iterator[pykka.ActorRef[Bystander]]:
    ref = Bystander.start()
    yield ref
    ref.stop()


def test_nothing_of_ours_is_in_pykka_s_registry(bystander: pykka.ActorRef[Bystander]) -> None:
    with tree_of("a", "b") as tree:
        tree["a"].ask(lambda _actor: None)

        assert pykka.ActorRegistry.get_all() == [bystander]


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, pytest.fail.Exception])
def test_a_crash_of_ours_stops_no_actor_of_the_application(bystander: pykka.ActorRef[Bystander], kind: type[BaseException]) -> None:
    def fail(_actor: Doer) -> NoReturn:
        raise kind

    with tree_of("a") as tree, pytest.raises(kind):
        tree["a"].ask(fail)

    assert bystander.is_alive()
    assert bystander.ask("x", timeout=PATIENCE_S) == "x"


def test_the_application_that_stops_all_its_actors_stops_none_of_ours(bystander: pykka.ActorRef[Bystander], diary: Diary) -> None:
    with tree_of("a", diary=diary) as tree:
        stop_all = getattr(pykka.ActorRegistry, "stop" + "_all")  # nobody writes it: a rule of the house
        stop_all(timeout=PATIENCE_S)

        assert not bystander.is_alive()
        assert tree["a"].ask(lambda _actor: "lives") == "lives"
        assert diary.lines == ["a started"]


# Closed once


def test_stopped_is_called_once_after_a_stop(diary: Diary) -> None:
    tree = tree_of("a", diary=diary)
    tree.stop()
    tree.stop()

    assert diary.lines == ["a started", "a stopped"]


def test_stopped_is_called_once_after_a_crash_and_is_given_the_reason(diary: Diary) -> None:
    with tree_of(diary=diary) as tree:
        ref = tree.start_child(doers("a", diary=diary, restart="temporary")[0])
        watcher = Watcher()
        tree.monitor("a", watcher.ref)
        with pytest.raises(ZeroDivisionError):
            ref.ask(boom)
        watcher.next()

    assert diary.lines == ["a started", "a stopped by ZeroDivisionError"]


@pytest.mark.parametrize("kind", [OSError, SystemExit, KeyboardInterrupt])
def test_stopped_is_not_called_after_a_failed_start(diary: Diary, kind: type[BaseException]) -> None:
    class Failing(Doer):
        def started(self) -> None:
            raise kind

    with pytest.raises(kind):
        Supervisor(SupervisorSpec("tree", [ChildSpec("a", lambda: Failing(diary))]))

    assert diary.lines == []


@pytest.mark.parametrize("crashed_before", [False, True])
def test_a_stopped_that_fails_is_told_and_logged_and_keeps_nobody(
    diary: Diary, caplog: pytest.LogCaptureFixture, crashed_before: bool
) -> None:
    class Failing(Doer):
        def stopped(self, reason: BaseException | None) -> None:
            super().stopped(reason)
            raise SystemExit("a stored value")

    watcher = Watcher()
    with tree_of("b", diary=diary) as tree:
        ref = tree.start_child(ChildSpec("a", lambda: Failing(diary), restart="temporary"))
        tree.monitor("a", watcher.ref)
        if crashed_before:
            with pytest.raises(ZeroDivisionError):
                ref.ask(boom)
        else:
            tree.stop_child("a")
        down = watcher.next()

        assert isinstance(down.reason, ZeroDivisionError if crashed_before else SystemExit)
        assert tree["b"].ask(lambda _actor: "lives") == "lives"
    assert diary.lines.count("a stopped" + (" by ZeroDivisionError" if crashed_before else "")) == 1
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "a stored value" not in caplog.text


@pytest.mark.parametrize("broken", ["wake_at", "may_end"])
def test_what_an_actor_holds_is_closed_also_when_its_own_hook_fails_between_two_turns(diary: Diary, broken: str) -> None:
    class Failing(Doer):
        def wake_at(self) -> float | None:
            if broken == "wake_at" and "told" in self.diary.lines:
                raise OSError
            return None

        def may_end(self) -> bool:
            if broken == "may_end":
                raise OSError
            return super().may_end()

    watcher = Watcher()
    with tree_of(diary=diary) as tree:
        ref = tree.start_child(ChildSpec("a", lambda: Failing(diary), restart="temporary"))
        tree.monitor("a", watcher.ref)
        if broken == "wake_at":
            ref.tell(lambda actor: actor.diary.write("told"))
        else:
            tree.stop_child("a")
        assert isinstance(watcher.next().reason, OSError)

    assert [line for line in diary.lines if line != "told"] == ["a started", "a stopped by OSError"]


def test_what_was_closed_is_not_closed_again(diary: Diary) -> None:
    actor, reports = Doer(diary), SimpleQueue[object]()
    actor.ref = ActorRef("a")
    cell = Cell(actor, reports.put)
    assert cell.join(0)  # there is nothing to wait for yet
    cell.launch()
    assert isinstance(reports.get(timeout=PATIENCE_S), Started)
    actor.ref.mailbox.close(stopping)
    assert isinstance(reports.get(timeout=PATIENCE_S), Exited)
    assert cell.join(PATIENCE_S)
    cell.on_stop()

    assert diary.lines == ["a started", "a stopped"]


def test_who_had_its_mailbox_closed_is_told_to_end_and_what_waits_is_not_pykka_s_to_answer() -> None:
    actor, feed = Doer(), Feed()
    actor.ref = ActorRef("a")
    feed.bind(actor, actor.ref.mailbox)
    actor.ref.tell("waits")
    assert feed.empty()
    actor.ref.mailbox.close(stopping)

    assert isinstance(feed.get().message, messages._ActorStop)


# By itself


def test_in_its_own_hooks_an_actor_stands_under_no_deadline_and_cannot_ask_itself(diary: Diary) -> None:
    class Hooked(Doer):
        due: float | None = None

        def _look(self, hook: str) -> None:
            chain = " ".join(link.ref.name for link in CHAIN.get())
            try:
                self.ref.ask("itself")
            except InsideTransaction:
                self.diary.write(f"{hook}: chain {chain}, deadline {DEADLINE.get()}, refused")

        def started(self) -> None:
            self._look("started")

        def wake_at(self) -> float | None:
            return self.due

        def idle(self) -> None:
            self.due = None
            self._look("idle")

        def stopped(self, reason: BaseException | None) -> None:
            self._look("stopped")

    def be_idle(actor: Hooked) -> None:
        actor.due = monotonic()

    with Supervisor(SupervisorSpec("tree", [ChildSpec("a", lambda: Hooked(diary))])) as tree:
        with fail_after(PATIENCE_S):
            tree["a"].ask(be_idle)
        diary.wait("idle: chain a, deadline None, refused")

    assert diary.lines == [f"{hook}: chain a, deadline None, refused" for hook in ("started", "idle", "stopped")]


def test_what_is_due_is_not_put_off_by_messages_that_never_stop(diary: Diary) -> None:
    class Busy(Doer):
        count = 0
        due: float | None = None

        def wake_at(self) -> float | None:
            return self.due

        def idle(self) -> None:
            self.due = None
            self.diary.write(f"idle after {self.count}")

    def again(actor: Busy) -> None:
        actor.count += 1
        if actor.count == 10:
            actor.due = monotonic()
        if actor.count < 50:
            actor.ref.tell(again)  # there is always one more
        else:
            actor.diary.write("no more")

    with Supervisor(SupervisorSpec("tree", [ChildSpec("a", lambda: Busy(diary))])) as tree:
        tree["a"].tell(again)
        diary.wait("no more")

    assert diary.lines == ["a started", "idle after 10", "no more", "a stopped"]


def test_an_actor_that_is_always_due_takes_its_messages_all_the_same(diary: Diary) -> None:
    class Restless(Doer):
        def wake_at(self) -> float | None:
            return 0.0

    with Supervisor(SupervisorSpec("tree", [ChildSpec("a", lambda: Restless(diary))])) as tree:
        assert [tree["a"].ask(lambda _actor, n=n: n) for n in range(10)] == list(range(10))


@pytest.mark.parametrize("due", [float("inf"), 1e300])
def test_an_actor_that_is_due_at_the_end_of_time_waits(diary: Diary, due: float) -> None:
    class Patient(Doer):
        def wake_at(self) -> float | None:
            return due

    with Supervisor(SupervisorSpec("tree", [ChildSpec("a", lambda: Patient(diary))])) as tree:
        assert tree["a"].ask(lambda _actor: 1) == 1
    assert diary.lines == ["a started", "a stopped"]


def test_a_thread_is_a_daemon_with_a_name_of_ours() -> None:
    with tree_of("a") as tree:
        name, daemon = tree["a"].ask(lambda _actor: (threading.current_thread().name, threading.current_thread().daemon))

    assert (name, daemon) == ("freehold-a", True)


# What is told of a crash


def test_a_crash_is_one_line_of_place_and_type_and_never_the_text(diary: Diary, caplog: pytest.LogCaptureFixture) -> None:
    with tree_of("a", diary=diary, max_restarts=0) as tree:
        with pytest.raises(ZeroDivisionError):
            tree["a"].ask(boom)
        ended(tree)

    crash, *rest = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert re.fullmatch(r"tree/a crashed: ZeroDivisionError at .*troupe\.py:\d+ in boom", crash.getMessage())
    assert crash.exc_info is None
    assert [record.getMessage().split(" at ")[0] for record in rest] == ["tree crashed: Crashed"]
    assert "a stored value" not in caplog.text


def test_a_crash_without_a_place_says_so(caplog: pytest.LogCaptureFixture) -> None:
    crash_report("a", OSError("a stored value"))

    assert caplog.messages == ["a crashed: OSError at outside of Python"]


def test_a_drained_actor_finishes_what_waits_and_refuses_what_comes(diary: Diary) -> None:
    hold = Hold()
    work: Callable[[Doer], object] = lambda actor: actor.diary.write("worked")  # noqa: E731
    tree = tree_of("a", diary=diary)
    ref = tree["a"]
    ref.tell(hold)
    assert hold.begun.wait(PATIENCE_S)
    ref.tell(work)
    ref.tell(work)
    stopper = aside(tree.stop)
    until(lambda: len(ref.mailbox) == 3)  # the stop comes before the work
    hold.release.set()
    assert stopper() is None

    assert diary.lines == ["a started", "worked", "worked", "a stopped"]
