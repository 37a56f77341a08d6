"""One answer for one asker: set once, claimed once, or abandoned before it was claimed."""

from __future__ import annotations

import math
import signal
import sys
from collections.abc import Callable
from threading import TIMEOUT_MAX, Event, Thread, get_ident

import pytest
from troupe import PATIENCE_S, run_together, until

from freehold.actors.reply import Reply


def test_an_answer_reaches_an_asker_in_another_thread() -> None:
    reply = Reply()
    thread = Thread(target=lambda: reply.set("answer"))
    thread.start()

    assert reply.get(PATIENCE_S) == "answer"
    thread.join()


def test_every_waiter_gets_the_answer_as_often_as_it_asks() -> None:
    reply = Reply()

    assert run_together(*[lambda: reply.get(PATIENCE_S)] * 4, lambda: reply.set(7)) == [7, 7, 7, 7, None]
    assert reply.get(0) == 7


def test_an_answer_may_be_asked_for_again() -> None:
    reply = Reply()
    reply.set(1)

    assert [reply.get(0), reply.get(0)] == [1, 1]


@pytest.mark.parametrize("first", [lambda reply: reply.set(1), lambda reply: reply.fail(KeyError())])
@pytest.mark.parametrize("second", [lambda reply: reply.set(2), lambda reply: reply.fail(OSError())])
def test_a_second_answer_is_ignored(first: Callable[[Reply], None], second: Callable[[Reply], None]) -> None:
    reply = Reply()
    first(reply)
    before = reply._value, reply.error
    second(reply)

    assert (reply._value, reply.error) == before
    assert reply.is_set


@pytest.mark.parametrize("error", [ValueError(), SystemExit(3), KeyboardInterrupt()])
def test_an_error_is_raised_where_the_answer_is_awaited(error: BaseException) -> None:
    reply = Reply()
    reply.fail(error)

    with pytest.raises(type(error)) as raised:
        reply.get(0)
    assert raised.value is error


@pytest.mark.parametrize("timeout", [0, -1, 0.001, math.nan])
def test_time_runs_out_without_an_answer_and_one_may_still_come(timeout: float) -> None:
    reply = Reply()

    with pytest.raises(TimeoutError):
        reply.get(timeout)
    assert not reply.is_set
    reply.set(1)
    assert reply.get(timeout) == 1


@pytest.mark.parametrize("timeout", [math.inf, 1e300, TIMEOUT_MAX, TIMEOUT_MAX * 2])
def test_one_may_wait_longer_than_a_lock_can(timeout: float) -> None:
    reply = Reply()
    reply.set("at once")

    assert reply.get(timeout) == "at once"


def test_what_was_abandoned_cannot_be_claimed() -> None:
    reply = Reply()

    assert reply.abandon()
    assert not reply.claim()
    assert not reply.abandon()


def test_what_was_claimed_cannot_be_abandoned() -> None:
    reply = Reply()

    assert reply.claim()
    assert not reply.abandon()
    assert not reply.claim()


def test_of_a_claim_and_an_abandon_at_the_same_moment_one_wins() -> None:
    replies = [Reply() for _ in range(5_000)]
    claimed, abandoned = run_together(lambda: [reply.claim() for reply in replies], lambda: [reply.abandon() for reply in replies])

    assert isinstance(claimed, list)
    assert isinstance(abandoned, list)
    assert all(one != other for one, other in zip(claimed, abandoned, strict=True))


def test_of_two_answers_at_the_same_moment_one_wins() -> None:
    replies = [Reply() for _ in range(2_000)]

    def succeed() -> None:
        for reply in replies:
            reply.set("a")

    def fail() -> None:
        for reply in replies:
            reply.fail(OSError())

    run_together(succeed, fail)

    assert all((reply.error is None) == (reply._value == "a") for reply in replies)


def test_pykka_may_set_an_error_in_its_own_words() -> None:
    reply, other = Reply(), Reply()
    error = ValueError()
    reply.set_exception((ValueError, error, None))
    other.set_exception()

    assert reply.error is error
    assert isinstance(other.error, RuntimeError)


def test_pykka_s_hook_is_not_called() -> None:
    reply = Reply()
    reply.set("ours")

    assert reply.set_get_hook(lambda timeout: "pykka's").get() == "ours"


class Interrupted(Exception):
    """What the handler of a signal raises."""


def test_a_signal_that_does_not_interrupt_the_wait_is_handled_all_the_same() -> None:
    reply, waiter, came, answered = Reply(), get_ident(), Event(), list[bool]()

    def handle(*_: object) -> None:
        answered.append(reply.is_set)
        came.set()
        raise Interrupted

    def send() -> None:
        until(lambda: sys._current_frames()[waiter].f_code is Reply.get.__code__)
        # It reaches this thread, and the wait of the other one goes on: as where it comes in the moment before that wait.
        signal.pthread_kill(get_ident(), signal.SIGUSR1)
        came.wait(PATIENCE_S / 4)
        reply.set()

    before = signal.signal(signal.SIGUSR1, handle)
    sender = Thread(target=send)
    try:
        with pytest.raises(Interrupted):
            sender.start()
            reply.get()
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, before)
    assert answered == [False]


def test_all_who_wait_get_the_answer_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.actors.reply._PIECE_S", 2 * PATIENCE_S)  # so that no look comes by itself
    reply = Reply()
    waiters = [Thread(target=reply.get, daemon=True) for _ in range(3)]
    for waiter in waiters:
        waiter.start()
    until(lambda: all(sys._current_frames()[waiter.ident or 0].f_code is Reply.get.__code__ for waiter in waiters))
    reply.set()
    for waiter in waiters:
        waiter.join(PATIENCE_S / 4)

    assert not any(waiter.is_alive() for waiter in waiters)


def test_an_answer_that_a_signal_kept_from_its_asker_is_still_there() -> None:
    reply = Reply()
    reply.set("answer")
    assert reply._ready.acquire(timeout=0)  # and here the signal came

    assert reply.get(0) == "answer"
