"""What an actor is: sequential code. Its exceptions end it alone and in the same way for both verbs; refusals end nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from troupe import PATIENCE_S, Diary, Doer, Hold, Watcher, doers, tree_of

from freehold.actors import Actor, ChildSpec, Supervisor, SupervisorSpec
from freehold.actors.actor import LATER
from freehold.actors.envelope import Envelope
from freehold.actors.reply import Reply
from freehold.schema.errors import Crashed, Damaged, DeadlineExceeded, Error, MailboxFull, Quarantined, Refused, Unavailable


class Outcome(BaseException):
    """Like pytest's own outcomes, which are no Exceptions."""


CRASHES = [ValueError, SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit, Outcome, pytest.fail.Exception]
ANSWERS = [
    Refused("no"),
    Unavailable("later"),
    MailboxFull("full"),
    Quarantined("aside"),
    DeadlineExceeded("late", executed="unknown"),
]


@pytest.fixture
def diary() -> Diary:
    return Diary()


@pytest.fixture
def tree(diary: Diary) -> Iterator[Supervisor]:
    with tree_of("a", "other", diary=diary) as tree:
        yield tree


def raising(error: BaseException) -> Callable[[Doer], None]:
    def fail(_actor: Doer) -> None:
        raise error

    return fail


@pytest.mark.parametrize("verb", ["ask", "tell"])
@pytest.mark.parametrize("kind", CRASHES)
def test_an_exception_ends_its_own_actor_alone_whatever_the_verb(
    tree: Supervisor, diary: Diary, kind: type[BaseException], verb: str
) -> None:
    watcher = Watcher()
    tree.monitor("a", watcher.ref)
    error = kind("of the actor")
    if verb == "tell":
        tree["a"].tell(raising(error))
    else:
        with pytest.raises(kind) as raised:
            tree["a"].ask(raising(error))
        assert raised.value is error

    down = watcher.next()
    assert (down.reason, down.restarting) == (error, True)
    assert tree["a"].ask(lambda _actor: "again") == "again"
    assert diary.lines == ["a started", "other started", f"a stopped by {kind.__name__}", "a started"]


@pytest.mark.parametrize("error", [Crashed("ours"), Damaged("look")])
def test_an_error_of_ours_that_is_no_answer_ends_the_actor_too(tree: Supervisor, diary: Diary, error: Error) -> None:
    with pytest.raises(type(error)):
        tree["a"].ask(raising(error))

    diary.wait("a started", times=2)


@pytest.mark.parametrize("verb", ["ask", "tell"])
@pytest.mark.parametrize("error", ANSWERS, ids=lambda error: type(error).__name__)
def test_a_refusal_answers_and_ends_nothing_whatever_the_verb(
    tree: Supervisor, diary: Diary, error: Error, verb: str, caplog: pytest.LogCaptureFixture
) -> None:
    if verb == "ask":
        with pytest.raises(type(error)) as raised:
            tree["a"].ask(raising(error))
        assert raised.value is error
    else:
        tree["a"].tell(raising(error))

    assert tree["a"].ask(lambda _actor: "lives") == "lives"
    assert diary.lines == ["a started", "other started"]
    assert [record.levelno for record in caplog.records] == ([logging.ERROR] if verb == "tell" else [])


def test_a_refused_tell_is_logged_with_its_code_and_without_its_text(tree: Supervisor, caplog: pytest.LogCaptureFixture) -> None:
    tree["a"].tell(raising(Refused("a stored value", code="bad_name")))
    tree["a"].ask(lambda _actor: None)

    assert caplog.messages == ["a refused a function that was told: bad_name"]


def test_an_actor_that_takes_no_such_message_crashes_with_its_kind_alone(caplog: pytest.LogCaptureFixture) -> None:
    with Supervisor(SupervisorSpec("tree", [ChildSpec("a", Actor)])) as tree, pytest.raises(TypeError) as raised:
        tree["a"].ask("a stored value")

    assert str(raised.value) == "Actor takes no str"
    assert "a stored value" not in caplog.text


def test_messages_are_handled_one_at_a_time_in_the_order_of_their_sender(tree: Supervisor, diary: Diary) -> None:
    for number in range(100):
        tree["a"].tell(lambda _actor, number=number: diary.write(str(number)))
    tree["a"].ask(lambda _actor: None)

    assert diary.lines[2:] == [str(number) for number in range(100)]


def test_what_waits_survives_a_restart_in_its_order(tree: Supervisor, diary: Diary) -> None:
    hold = Hold()
    tree["a"].tell(hold)
    assert hold.begun.wait(PATIENCE_S)
    tree["a"].tell(raising(ValueError()))
    replies = [Reply(), Reply()]
    for number, reply in enumerate(replies):
        tree["a"].mailbox.put(Envelope(lambda _actor, number=number: diary.write(f"message {number}"), reply))
    hold.release.set()
    for reply in replies:
        reply.get(PATIENCE_S)

    assert diary.lines[2:] == ["a stopped by ValueError", "a started", "message 0", "message 1"]


def test_the_rest_of_a_batch_survives_the_crash_of_one_message(diary: Diary) -> None:
    class Taker(Doer):
        batch_messages = 10
        batch_bytes = 1 << 20

    with Supervisor(SupervisorSpec("tree", [ChildSpec("a", lambda: Taker(diary))])) as tree:
        hold = Hold()
        tree["a"].tell(hold)
        assert hold.begun.wait(PATIENCE_S)
        replies = [Reply() for _ in range(4)]
        for number, reply in enumerate(replies):
            tree["a"].mailbox.put(Envelope(raising(ValueError()) if number == 1 else lambda _actor, number=number: number, reply))
        hold.release.set()

        answers: list[Any] = []
        for reply in replies:
            try:
                answers.append(reply.get(PATIENCE_S))
            except ValueError:
                answers.append("crashed")
    assert answers == [0, "crashed", 2, 3]


def test_the_rest_of_a_batch_is_answered_when_its_actor_was_left_behind(diary: Diary) -> None:
    class Taker(Doer):
        batch_messages = 10
        batch_bytes = 1 << 20

    with tree_of(diary=diary) as tree:
        ref = tree.start_child(ChildSpec("a", lambda: Taker(diary), shutdown=0.0))
        first, hold, reply = Hold(), Hold(), Reply()
        ref.tell(first)
        assert first.begun.wait(PATIENCE_S)
        ref.tell(hold)
        ref.tell(raising(ValueError()))
        ref.mailbox.put(Envelope(lambda _actor: diary.write("ran"), reply))
        first.release.set()
        assert hold.begun.wait(PATIENCE_S)
        with pytest.raises(Unavailable):
            tree.stop_child("a")
        hold.release.set()

        diary.wait("a stopped by ValueError")
        assert isinstance(reply.error, Unavailable)
    assert "ran" not in diary.lines


def test_an_abandoned_message_is_passed_over(tree: Supervisor, diary: Diary) -> None:
    hold, reply = Hold(), Reply()
    tree["a"].tell(hold)
    assert hold.begun.wait(PATIENCE_S)
    tree["a"].mailbox.put(Envelope(lambda _actor: diary.write("ran"), reply))
    assert reply.abandon()
    hold.release.set()
    tree["a"].ask(lambda _actor: None)

    assert "ran" not in diary.lines
    assert not reply.is_set


def test_a_receive_may_keep_the_reply_and_answer_later(tree: Supervisor) -> None:
    kept: list[Reply | None] = []

    def keep(actor: Doer) -> object:
        kept.append(actor.asker)
        return LATER

    reply = Reply()
    tree["a"].mailbox.put(Envelope(keep, reply))
    tree["a"].ask(lambda _actor: None)
    assert not reply.is_set
    assert kept == [reply]
    reply.set("later")

    assert reply.get(0) == "later"


def test_nobody_is_the_asker_of_a_told_message(tree: Supervisor) -> None:
    tree["a"].ask(lambda _actor: None)
    seen = Diary()
    tree["a"].tell(lambda actor: seen.write(str(actor.asker)))

    seen.wait("None")
    assert seen.lines == ["None"]


def test_an_actor_may_end_itself_and_takes_no_further_message(diary: Diary) -> None:
    def end(actor: Doer) -> None:
        actor.ending = True

    watcher = Watcher()
    with tree_of(diary=diary) as tree:
        (spec,) = doers("a", diary=diary, restart="transient")
        ref = tree.start_child(spec)
        tree.monitor("a", watcher.ref)
        ref.ask(end)
        down = watcher.next()

        assert (down.reason, down.restarting) == (None, False)
        with pytest.raises(Unavailable) as raised:
            ref.ask(lambda _actor: "too late")
    assert raised.value.code == "stopping"
    assert diary.lines == ["a started", "a stopped"]
