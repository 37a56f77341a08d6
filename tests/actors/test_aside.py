"""What is done aside comes to its end whatever signals come, and what it made reaches its asker or is put away."""

from __future__ import annotations

import _thread
import os
import signal
from collections.abc import Iterator
from contextvars import ContextVar
from threading import Event, get_ident

import pytest
from troupe import PATIENCE_S, run_together, script, until

from freehold import DeadlineExceeded, fail_after
from freehold.actors.aside import Gone, aside
from freehold.actors.reply import Reply

WORD: ContextVar[str] = ContextVar("word", default="none")


class Interrupted(BaseException):
    """What the handler of a signal raises."""


@pytest.fixture
def _interruptible() -> Iterator[None]:
    def handle(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, handle)
    yield
    signal.signal(signal.SIGUSR1, before)


def interrupt() -> None:
    """Send this process a signal, which the main thread handles."""
    signal.pthread_kill(MAIN, signal.SIGUSR1)


MAIN = get_ident()


def test_in_the_main_thread_it_is_done_in_another_one_and_in_the_same_context() -> None:
    WORD.set("here")

    def work(gone: Gone) -> tuple[int, str, bool]:
        seen = WORD.get()
        WORD.set("there")
        return get_ident(), seen, gone()

    ident, *rest = aside(work)
    assert ident != get_ident()
    assert rest == ["here", False]
    assert WORD.get() == "here"


def test_in_another_thread_it_is_simply_called() -> None:
    def ask() -> bool:
        return aside(lambda gone: get_ident() if not gone() else 0) == get_ident()

    assert run_together(ask) == [True]
    assert aside(lambda _gone: ask())


@pytest.mark.parametrize("error", [ValueError("a"), SystemExit(), TimeoutError("its own"), KeyboardInterrupt()])
def test_what_it_raises_comes_back_as_itself(error: BaseException) -> None:
    def work(_gone: Gone) -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        aside(work)
    assert raised.value is error


@pytest.mark.usefixtures("_interruptible")
def test_what_its_asker_did_not_wait_for_ends_by_itself_and_is_put_away() -> None:
    seen, dropped, ended = list[bool](), list[str](), Event()

    def work(gone: Gone) -> str:
        seen.append(gone())
        interrupt()
        while not gone():
            os.sched_yield()
        return "made"

    def drop(made: str) -> None:
        dropped.append(made)
        ended.set()

    with pytest.raises(Interrupted):
        aside(work, drop)
    assert ended.wait(PATIENCE_S)
    assert (seen, dropped) == ([False], ["made"])


@pytest.mark.usefixtures("_interruptible")
def test_an_asker_who_is_interrupted_while_it_is_handed_over_puts_it_away(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped = list[str]()

    class Late(Reply):
        """Its answer is there, and the signal comes before the asker has it."""

        cut = False

        def get(self, timeout: float | None = None) -> object:
            if self.cut:
                return super().get(timeout)
            self.cut = True
            until(lambda: self.is_set)
            raise Interrupted

    monkeypatch.setattr("freehold.actors.aside.Reply", Late)
    with pytest.raises(Interrupted):
        aside(lambda _gone: "made", dropped.append)
    assert dropped == ["made"]
    with pytest.raises(Interrupted):
        aside(lambda _gone: 1 // 0)


def test_it_is_waited_for_no_longer_than_the_deadline_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.actors.aside._GRACE_S", 0.0)
    go, dropped, begun, ended = Event(), list[str](), Event(), Event()

    def work(gone: Gone) -> str:
        begun.set()
        assert go.wait(PATIENCE_S)
        return f"gone: {gone()}"

    def drop(made: str) -> None:
        dropped.append(made)
        ended.set()

    while not begun.is_set():  # whose time is up before it has begun does not begin
        with pytest.raises(DeadlineExceeded) as raised, fail_after(0.01):
            aside(work, drop)
        assert raised.value.executed == "unknown"
    go.set()
    assert ended.wait(PATIENCE_S)
    assert dropped == ["gone: True"]
    with fail_after(0):
        assert aside(lambda _gone: "unbounded", bounded=False) == "unbounded"


def test_where_no_thread_can_be_had_it_is_done_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    assert aside(lambda _gone: get_ident()) == get_ident()


def test_in_a_child_that_a_signal_s_handler_forks_meanwhile_nobody_waits_for_ever() -> None:
    done = script("""
        import os, signal, threading, freehold
        from freehold.actors.aside import aside
        child, go, parent = [], threading.Event(), os.getpid()
        def handle(*_):
            child.append(os.fork())
            go.set()
        signal.signal(signal.SIGUSR1, handle)
        def work(_gone):
            os.kill(parent, signal.SIGUSR1)
            go.wait()
            return "done"
        try:
            print(aside(work), os.waitstatus_to_exitcode(os.waitpid(child[0], 0)[1]))
        except freehold.Refused as error:
            os._exit(7 if error.code == "forked_process" else 1)
    """)

    assert (done.stdout, done.stderr) == ("done 7\n", "")
