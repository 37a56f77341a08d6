"""How an actor is known to others: asks with a deadline, tells, and never a call that could only wait for itself."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextvars import copy_context
from functools import partial
from typing import Any

import pytest
from troupe import PATIENCE_S, Diary, Doer, Hold, doers, run_together, tree_of

from freehold.actors import ActorRef, Supervisor
from freehold.actors.deadline import CHAIN, DEADLINE, fail_after, monotonic
from freehold.actors.envelope import Envelope, Lane
from freehold.actors.mailbox import Mailbox
from freehold.actors.reply import Reply
from freehold.schema.errors import DeadlineExceeded, InsideTransaction, MailboxFull, Refused, Unavailable


@pytest.fixture
def tree() -> Iterator[Supervisor]:
    with tree_of("a", "b", "c") as tree:
        yield tree


def asking(ref: ActorRef[Any], message: Any = "unread", **options: Any) -> Any:
    """Return a message for a Doer: ask *ref* in your turn."""
    return lambda _actor: ref.ask(message, **options)


def test_an_ask_is_answered_and_a_tell_is_not_waited_for(tree: Supervisor) -> None:
    hold = Hold()
    tree["a"].tell(hold)
    assert hold.begun.wait(PATIENCE_S)
    hold.release.set()

    assert tree["a"].ask(lambda actor: actor.ref.name) == "a"


def test_a_full_mailbox_is_told_to_the_asker_and_nothing_is_left_in_it() -> None:
    ref: ActorRef[str] = ActorRef("lonely", Mailbox(messages_max=1))
    ref.tell("first")

    with pytest.raises(MailboxFull):
        ref.ask("second")
    with pytest.raises(MailboxFull):
        ref.tell("third")
    assert len(ref.mailbox) == 1
    ref.system("comes in")
    assert len(ref.mailbox) == 2


# Time


def test_an_ask_that_nobody_took_up_says_so_and_never_runs(tree: Supervisor) -> None:
    hold, diary = Hold(), Diary()
    tree["a"].tell(hold)
    assert hold.begun.wait(PATIENCE_S)
    with pytest.raises(DeadlineExceeded) as raised:
        tree["a"].ask(lambda _actor: diary.write("ran"), timeout=0.02)
    assert raised.value.executed == "no"

    hold.release.set()
    tree["a"].ask(lambda _actor: diary.write("next"))
    assert diary.lines == ["next"]


def test_an_ask_that_was_taken_up_says_that_its_outcome_is_unknown(tree: Supervisor) -> None:
    hold = Hold()
    with pytest.raises(DeadlineExceeded) as raised:
        tree["a"].ask(hold, timeout=0.2)
    began = hold.begun.is_set()
    hold.release.set()

    assert began
    assert raised.value.executed == "unknown"
    assert tree["a"].ask(lambda _actor: "lives") == "lives"


@pytest.mark.parametrize("timeout", [0, -1])
def test_a_call_whose_time_is_up_already_is_not_even_sent(timeout: float) -> None:
    ref: ActorRef[str] = ActorRef("lonely")

    with pytest.raises(DeadlineExceeded) as raised:
        ref.ask("x", timeout=timeout)
    with fail_after(0), pytest.raises(DeadlineExceeded):
        ref.ask("x")
    assert raised.value.executed == "no"
    assert len(ref.mailbox) == 0


def test_a_deadline_travels_through_every_actor_of_a_call(tree: Supervisor) -> None:
    with fail_after(5):
        outer = DEADLINE.get()
        inner = tree["a"].ask(asking(tree["b"], lambda _actor: DEADLINE.get()), timeout=60)

    assert inner == outer


def test_a_deadline_does_not_stay_with_the_actor(tree: Supervisor) -> None:
    with fail_after(5):
        tree["a"].ask(lambda _actor: None)
    told = Diary()
    tree["a"].tell(lambda _actor: told.write(str(DEADLINE.get())))

    told.wait("None")
    assert told.lines == ["None"]


def test_a_caller_in_a_hurry_ends_no_actor_on_the_way(tree: Supervisor) -> None:
    hold = Hold()
    tree["b"].tell(hold)
    assert hold.begun.wait(PATIENCE_S)
    with fail_after(0.05), pytest.raises(DeadlineExceeded):
        tree["a"].ask(asking(tree["b"], lambda _actor: None))
    hold.release.set()

    assert tree["a"].ask(lambda _actor: "lives") == "lives"
    assert [node.restarts for node in tree.tree().children] == [0, 0, 0]


def test_a_timeout_that_is_the_actor_s_own_answer_comes_as_itself(tree: Supervisor) -> None:
    own = TimeoutError("of something else")

    def fail(_actor: Doer) -> None:
        raise own

    with pytest.raises(TimeoutError) as raised:
        tree["a"].ask(fail)
    assert raised.value is own


# Cycles


def test_a_self_ask_is_refused_at_once_and_the_actor_lives(tree: Supervisor) -> None:
    began = monotonic()
    with pytest.raises(InsideTransaction, match="a was called from inside"):
        tree["a"].ask(asking(tree["a"]))

    assert monotonic() - began < PATIENCE_S / 4
    assert len(tree["a"].mailbox) == 0
    assert tree.tree().children[0].restarts == 0


def test_a_cycle_is_refused_at_once_with_the_names_of_all_in_it_and_all_live(tree: Supervisor) -> None:
    a, b, c = tree["a"], tree["b"], tree["c"]
    with pytest.raises(Refused, match="b asks c asks b") as raised:
        a.ask(asking(b, asking(c, asking(b))))

    assert raised.value.code == "ask_cycle"
    assert raised.value.details["chain"] == ["b", "c", "b"]
    assert [ref.ask(lambda _actor: 1) for ref in (a, b, c)] == [1, 1, 1]


def test_two_actors_that_ask_each_other_are_told_so(tree: Supervisor) -> None:
    a, b = tree["a"], tree["b"]
    with pytest.raises(Refused) as raised:
        a.ask(asking(b, asking(a)))

    assert raised.value.details["chain"] == ["a", "b", "a"]


def test_to_tell_oneself_or_one_s_asker_is_fine(tree: Supervisor) -> None:
    a, b, diary = tree["a"], tree["b"], Diary()
    a.ask(lambda actor: actor.ref.tell(lambda _actor: diary.write("self")))
    a.ask(asking(b, lambda _actor: a.tell(lambda _actor: diary.write("uphill"))))

    diary.wait("self")
    diary.wait("uphill")
    assert sorted(diary.lines) == ["self", "uphill"]


def test_a_told_message_has_come_through_nobody(tree: Supervisor) -> None:
    a, b, diary = tree["a"], tree["b"], Diary()
    a.ask(lambda _actor: b.tell(lambda _actor: diary.write(" ".join(ref.name for ref in [link.ref for link in CHAIN.get()]))))

    diary.wait("b")
    assert diary.lines == ["b"]


def test_an_actor_asked_before_in_the_same_turn_may_be_asked_again(tree: Supervisor) -> None:
    b = tree["b"]

    assert tree["a"].ask(lambda _actor: [b.ask(lambda _actor: 1), b.ask(lambda _actor: 2)]) == [1, 2]


def test_a_context_that_was_copied_in_a_turn_may_ask_when_the_turn_has_ended(tree: Supervisor) -> None:
    ref = tree["a"]
    context = ref.ask(lambda _actor: copy_context())

    assert context.run(ref.ask, lambda _actor: [link.ref for link in CHAIN.get()]) == [ref]


# Nothing is lost


def test_fifty_thousand_asks_raced_with_stops_are_all_answered() -> None:
    rounds, senders, each = 250, 4, 50
    accepted: list[Reply] = []
    refused = 0

    def send(ref: ActorRef[Any]) -> int:
        turned_away = 0
        for _ in range(each):
            reply = Reply()
            try:
                ref.mailbox.put(Envelope(lambda _actor: "done", reply))
            except Unavailable:
                turned_away += 1
            else:
                accepted.append(reply)
        return turned_away

    with tree_of() as tree:
        (spec,) = doers("a", diary=Diary())
        for _ in range(rounds):
            ref = tree.start_child(spec)
            *counts, stopped = run_together(*[partial(send, ref)] * senders, lambda: tree.stop_child("a"))
            assert stopped is None
            refused += sum(count for count in counts if isinstance(count, int))

    assert len(accepted) + refused == rounds * senders * each
    assert all(reply.is_set for reply in accepted)
    assert {str(getattr(reply.error, "code", reply._value)) for reply in accepted} <= {"done", "stopping"}


INTERRUPTED = """
    import os, signal, sys, threading
    from freehold.actors import Actor, ChildSpec, Supervisor, SupervisorSpec

    class Doer(Actor):
        def receive(self, message):
            return message()

    release, holding, ran = threading.Event(), threading.Event(), []

    def hold():
        os.write(1, b"ready\\n")
        holding.set()
        release.wait()

    def interrupt_when_asked(ref):
        while not len(ref.mailbox):
            os.sched_yield()
        os.write(1, b"asked\\n")

    tree = Supervisor(SupervisorSpec("tree", [ChildSpec("a", Doer)]))
    ref = tree["a"]
    taken_up = sys.argv[1] == "taken up"
    if not taken_up:
        ref.tell(hold)
        holding.wait()
        threading.Thread(target=interrupt_when_asked, args=(ref,)).start()
    try:
        ref.ask(hold if taken_up else lambda: ran.append("abandoned"))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    release.set()
    print(ref.ask(lambda: "lives"), ran, flush=True)
    tree.stop()
"""


@pytest.mark.parametrize(("case", "cue"), [("taken up", ["ready"]), ("waiting", ["ready", "asked"])])
def test_ctrl_c_reaches_whoever_waits_in_an_ask_and_what_was_not_taken_up_never_runs(case: str, cue: list[str]) -> None:
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(INTERRUPTED), case], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            said = {child.stdout.readline().strip() for _ in cue}
            child.send_signal(signal.SIGINT)
            rest = child.communicate(timeout=PATIENCE_S)[0]
        finally:
            child.kill()

    assert said == set(cue)
    assert rest.splitlines() == ["interrupted", "lives []"]
    assert child.returncode == 0


def test_whoever_is_interrupted_while_sending_leaves_no_message_that_runs() -> None:
    class Interrupting(Mailbox):
        def put(self, envelope: Envelope) -> None:
            super().put(envelope)
            raise KeyboardInterrupt

    ref: ActorRef[str] = ActorRef("lonely", Interrupting())
    with pytest.raises(KeyboardInterrupt):
        ref.ask("x")

    (envelope,) = ref.mailbox.take(1, 1)
    assert envelope.reply_to is not None
    assert not envelope.reply_to.claim()


def test_a_ref_shows_its_name_alone() -> None:
    ref: ActorRef[str] = ActorRef("lonely")
    ref.tell("a stored value")

    assert repr(ref) == "<ActorRef lonely>"


@pytest.mark.parametrize("lane", [Lane.SYSTEM, Lane.USER])
def test_also_a_call_in_another_lane_is_refused_in_its_own_turn(tree: Supervisor, lane: Lane) -> None:
    ref = tree["a"]
    call: Callable[[Doer], object] = lambda _actor: ref.call("x", None, lane=lane)  # noqa: E731

    with pytest.raises(InsideTransaction):
        ref.ask(call)
