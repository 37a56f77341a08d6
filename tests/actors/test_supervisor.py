"""The supervisor as its owner holds it: nothing stays behind, however it was started, stopped, forgotten or forked."""

from __future__ import annotations

import threading
from contextvars import copy_context
from functools import partial

import pytest
from troupe import PATIENCE_S, Diary, Doer, Hold, aside, boom, doers, ended, run_together, script, tree_of, until

from freehold.actors import ChildSpec, Supervisor, SupervisorSpec
from freehold.actors.cell import Cell, Exited
from freehold.actors.envelope import Envelope
from freehold.actors.mailbox import Mailbox
from freehold.actors.reply import Reply
from freehold.actors.supervision import StartChild
from freehold.actors.supervisor import _RUNNING
from freehold.schema.errors import DeadlineExceeded, InsideTransaction, Unavailable
from freehold.storage import forks


@pytest.fixture
def diary() -> Diary:
    return Diary()


# Starting


def test_a_tree_that_does_not_start_in_time_says_so_and_leaves_nothing_behind(diary: Diary) -> None:
    gate = threading.Event()

    class Slow(Doer):
        def started(self) -> None:
            assert gate.wait(PATIENCE_S)
            super().started()

    slow = ChildSpec("slow", lambda: Slow(diary))
    with pytest.raises(DeadlineExceeded):
        Supervisor(SupervisorSpec("late tree", [*doers("a", diary=diary), slow, *doers("b", diary=diary)]), timeout=0.05)
    gate.set()

    diary.wait("slow stopped")
    diary.wait("a stopped")
    until(lambda: "freehold-late tree" not in {thread.name for thread in threading.enumerate()})
    assert "b started" not in diary.lines


def test_a_timeout_that_a_child_raises_in_its_start_comes_as_itself(diary: Diary) -> None:
    own = TimeoutError("of something else")

    class Failing(Doer):
        def started(self) -> None:
            raise own

    with pytest.raises(TimeoutError) as raised:
        Supervisor(SupervisorSpec("tree", [ChildSpec("a", lambda: Failing(diary))]))
    assert raised.value is own


def test_a_child_that_is_not_there_has_no_ref(diary: Diary) -> None:
    with tree_of("a", diary=diary) as tree:
        with pytest.raises(KeyError):
            tree["b"]

        assert tree["a"].name == "a"


# Stopping


def test_a_stopped_tree_has_no_threads_and_may_be_stopped_again(diary: Diary) -> None:
    before = set(threading.enumerate())
    tree = tree_of("a", "b", diary=diary)
    tree.stop()
    assert set(threading.enumerate()) <= before  # others may have ended meanwhile
    tree.stop()
    tree.stop(0)

    assert (tree.state, tree.children(), tree.ended) == ("stopped", [], True)
    assert diary.lines[2:] == ["b stopped", "a stopped"]


def test_several_may_stop_a_tree_at_the_same_moment(diary: Diary) -> None:
    for _ in range(20):
        tree = tree_of("a", "b", diary=diary)

        assert run_together(*[tree.stop] * 4) == [None] * 4
    assert diary.lines.count("a stopped") == 20


def test_a_stop_at_the_moment_of_the_tree_s_own_end_is_fine(diary: Diary) -> None:
    for _ in range(30):
        tree = tree_of("a", diary=diary, max_restarts=0)
        ref = tree["a"]
        stopped, _ = run_together(tree.stop, partial(ref.tell, boom))

        assert stopped is None
        ended(tree)


def test_a_stop_that_comes_after_the_tree_s_last_message_finds_it_ended(diary: Diary) -> None:
    tree = tree_of("a", diary=diary, max_restarts=0)
    with pytest.raises(ZeroDivisionError):
        tree["a"].ask(boom)
    ended(tree)
    tree._shut_down(PATIENCE_S)  # as a stop does that has not yet seen the end

    assert (tree.ended, tree.state) == (True, "escalated")


def test_a_stop_without_any_time_names_who_is_busy_and_all_end_as_soon_as_they_can(diary: Diary) -> None:
    tree = tree_of("a", "b", diary=diary)
    hold = Hold()
    tree.start_child(doers("busy", diary=diary)[0]).tell(hold)
    assert hold.begun.wait(PATIENCE_S)
    with pytest.raises(Unavailable) as raised:
        tree.stop(0)

    assert raised.value.code == "still_stopping"
    assert "busy" in raised.value.details["actors"]
    diary.wait("a stopped")
    diary.wait("b stopped")
    hold.release.set()
    diary.wait("busy stopped")
    until(lambda: not tree.actor.late)
    tree.stop()


def test_who_did_not_stop_is_named_again_until_it_has(diary: Diary) -> None:
    tree = tree_of("a", diary=diary)
    hold = Hold()
    tree["a"].tell(hold)
    assert hold.begun.wait(PATIENCE_S)
    for _ in range(2):
        with pytest.raises(Unavailable, match="not stopped in time: a;"):
            tree.stop(0.05)
    hold.release.set()

    diary.wait("a stopped")
    until(lambda: not tree.actor.late)
    tree.stop()
    assert diary.lines == ["a started", "a stopped"]


def test_a_supervisor_that_is_stuck_itself_is_named(diary: Diary) -> None:
    gate, begun = threading.Event(), threading.Event()

    def make() -> Doer:
        begun.set()
        assert gate.wait(PATIENCE_S)
        return Doer(diary)

    tree = tree_of(diary=diary)
    starter = aside(lambda: tree.start_child(ChildSpec("a", make)))
    assert begun.wait(PATIENCE_S)
    with pytest.raises(Unavailable) as raised:
        tree.stop(0.05)
    gate.set()
    starter()
    ended(tree)

    assert raised.value.details == {"actors": ["tree"]}
    tree.stop(PATIENCE_S)


def test_whoever_asks_a_supervisor_that_ends_just_then_is_answered(diary: Diary) -> None:
    tree, reply = tree_of("a", diary=diary), Reply()
    with tree.ref.mailbox._lock:
        tree.ref.tell("what no supervisor takes")
        tree.ref.mailbox.put(Envelope(StartChild(doers("b", diary=diary)[0]), reply))
    with pytest.raises(Unavailable):
        reply.get(PATIENCE_S)
    ended(tree)
    diary.wait("a stopped")

    assert diary.lines == ["a started", "a stopped"]


def test_an_end_that_comes_as_the_supervisor_ends_is_seen_all_the_same(diary: Diary) -> None:
    tree = tree_of("a", diary=diary)
    tree.stop()
    ended_child, ended_tree = Exited(Cell(tree.actor, print), None, failed_start=False), Exited(tree._cell, None, failed_start=False)
    tree.ref.mailbox, tree.actor.late = Mailbox(), ["tree"]
    tree.ref.system(ended_child)  # told to the supervisor after the last message that it took
    tree._report(ended_tree)

    assert tree.actor.late == []


def test_a_context_that_was_copied_in_a_turn_may_stop_the_tree_afterwards(diary: Diary) -> None:
    tree = tree_of("a", diary=diary)
    context = tree["a"].ask(lambda _actor: copy_context())
    context.run(tree.stop)

    assert tree.state == "stopped"


def test_a_tree_hears_of_a_fork_and_is_not_stopped_in_the_child(diary: Diary) -> None:
    with tree_of("a", diary=diary) as tree:
        assert any(watched() is tree for watched in forks._inherited.values())
        assert tree in _RUNNING
        tree.forked()
        assert tree not in _RUNNING


def test_leaving_the_block_by_an_error_stops_the_tree_and_lets_the_error_through(diary: Diary) -> None:
    with pytest.raises(KeyError), tree_of("a", diary=diary):
        raise KeyError

    assert diary.lines == ["a started", "a stopped"]


def test_an_actor_cannot_wait_for_its_own_end_nor_for_that_of_its_tree(diary: Diary) -> None:
    with tree_of("a", "b", diary=diary) as tree:
        b = tree["b"]
        for call in (tree.stop, lambda: tree.stop(0), lambda: tree.stop_child("a"), lambda: b.ask(lambda _actor: tree.stop_child("a"))):
            with pytest.raises(InsideTransaction) as raised:
                tree["a"].ask(lambda _actor, call=call: call())
            assert raised.value.details == {"run": "a"}

        assert tree.state == "running"
        assert tree.children() == ["a", "b"]
        assert tree["a"].ask(lambda _actor: "lives") == "lives"


def test_an_actor_may_stop_another_child_and_start_one(diary: Diary) -> None:
    with tree_of("a", "b", diary=diary) as tree:
        tree["a"].ask(lambda _actor: tree.stop_child("b"))
        tree["a"].ask(lambda _actor: tree.start_child(doers("c", diary=diary)[0]))

        assert tree.children() == ["a", "c"]


def test_whoever_makes_a_child_cannot_wait_for_the_end_of_the_tree_either(diary: Diary) -> None:
    with tree_of("a", diary=diary) as tree:

        def make() -> Doer:
            tree.stop()
            return Doer(diary)

        with pytest.raises(InsideTransaction):
            tree.start_child(ChildSpec("b", make))
        assert tree.children() == ["a"]


def test_a_tree_that_was_left_inside_another_may_be_stopped_from_its_actors(diary: Diary) -> None:
    with tree_of("a", diary=diary) as outer:
        inner = tree_of("b", diary=diary)
        outer["a"].ask(lambda _actor: inner.stop())

        assert (inner.state, outer.state) == ("stopped", "running")


def test_an_ask_that_waits_while_the_tree_stops_is_answered(diary: Diary) -> None:
    tree = tree_of("a", diary=diary)
    hold = Hold()
    asker = aside(lambda: tree["a"].ask(hold))
    assert hold.begun.wait(PATIENCE_S)
    stopper = aside(tree.stop)
    until(lambda: tree.state == "stopping")
    hold.release.set()

    assert asker() == "held"
    assert stopper() is None


# The end of the interpreter

FORGOTTEN = """
    import logging, sys, threading
    from freehold.actors import Actor, ChildSpec, Supervisor, SupervisorSpec

    logging.basicConfig(format="%(message)s", stream=sys.stdout)

    class Doer(Actor):
        def receive(self, message):
            return message()
        def stopped(self, reason):
            print(self.ref.name, "stopped", flush=True)
"""


def test_a_forgotten_tree_is_stopped_in_order_and_does_not_keep_the_interpreter() -> None:
    done = script(FORGOTTEN + """\n    Supervisor(SupervisorSpec("tree", [ChildSpec("a", Doer), ChildSpec("b", Doer)]))""")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["tree was not stopped; stopping it now", "b stopped", "a stopped"]


STUCK = """
    begun = threading.Event()
    tree["stuck"].tell(lambda: (begun.set(), threading.Event().wait()))
    begun.wait()
"""


def test_also_a_stuck_actor_does_not_keep_the_interpreter_and_the_others_are_stopped() -> None:
    done = script(
        FORGOTTEN
        + """
    tree = Supervisor(SupervisorSpec("tree", [ChildSpec("a", Doer), ChildSpec("stuck", Doer, shutdown=0.2)]))
    """
        + STUCK
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "tree was not stopped; stopping it now",
        "tree/stuck did not stop in time; its thread was left behind",
        "a stopped",
        "tree: not stopped in time: stuck; what was acknowledged is safe",
    ]


def test_ctrl_c_ends_a_program_that_waits_for_a_forgotten_tree() -> None:
    done = script(
        FORGOTTEN
        + """
    import logging, signal
    class Interrupts(logging.Handler):
        def emit(self, record):
            if "still running" in record.getMessage():
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    logging.getLogger().addHandler(Interrupts())
    tree = Supervisor(SupervisorSpec("tree", [ChildSpec("stuck", Doer)]))
    """
        + STUCK
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "tree was not stopped; stopping it now",
        "tree is stopping; still running: stuck; 10 seconds are left to it",
        "tree is left as it is",
    ]


def test_a_tree_that_was_stopped_is_not_stopped_again() -> None:
    done = script(FORGOTTEN + """\n    Supervisor(SupervisorSpec("tree", [ChildSpec("a", Doer)])).stop()""")

    assert (done.returncode, done.stdout, done.stderr) == (0, "a stopped\n", "")


def test_an_error_that_ends_the_program_is_shown_and_the_tree_is_stopped() -> None:
    done = script(FORGOTTEN + """\n    Supervisor(SupervisorSpec("tree", [ChildSpec("a", Doer)]))\n    raise SystemExit(7)""")

    assert done.returncode == 7
    assert done.stdout.splitlines()[-1] == "a stopped"


# Forks


def test_a_forked_child_is_refused_at_once_and_the_parent_goes_on() -> None:
    done = script(
        FORGOTTEN
        + """
    import os
    tree = Supervisor(SupervisorSpec("tree", [ChildSpec("a", Doer)]))
    ref = tree["a"]
    begun, go_on = threading.Event(), threading.Event()
    ref.tell(lambda: (begun.set(), go_on.wait()))
    begun.wait()
    with ref.mailbox._lock:  # as it would be, had another thread been sending just then
        child = os.fork()
    if child == 0:
        calls = {
            "ask": lambda: ref.ask(lambda: 1),
            "tell": lambda: ref.tell(lambda: 1),
            "start_child": lambda: tree.start_child(ChildSpec("b", Doer)),
            "stop_child": lambda: tree.stop_child("a"),
            "stop": tree.stop,
        }
        for name, call in calls.items():
            try:
                call()
            except Exception as error:
                print(name, getattr(error, "code", error), flush=True)
        with Supervisor(SupervisorSpec("another", [ChildSpec("b", Doer)])) as another:
            print(another["b"].ask(lambda: "a tree of its own"), flush=True)
        sys.exit(3)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    go_on.set()
    print(ref.ask(lambda: "the parent goes on"), flush=True)
    tree.stop()
    """
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        *[f"{name} forked_process" for name in ("ask", "tell", "start_child", "stop_child", "stop")],
        "a tree of its own",
        "b stopped",
        "3",
        "the parent goes on",
        "a stopped",
    ]
