"""Following a run: its events as they come, whoever owns it, and an end when nothing more can come."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from other import owns
from turns import Busy, owner, until

import freehold
from freehold import DeadlineExceeded, Host, LeaseClosed, MailboxFull, Refused, Run, RunView
from freehold.actors import following, waiters, waiting
from freehold.actors.deadline import deadline_in, monotonic, pause
from freehold.schema.messages import ReadEvent, WaitBeyond


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path, timeout=30) as host:
        yield host


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a") as run:
        yield run


class Follower:
    """Follows in a thread of its own, and notes what comes."""

    def __init__(self, view: RunView, after: Any = None, **how: Any) -> None:
        self.names: list[str] = []
        self.error: BaseException | None = None
        self._events = view.follow(after, **how)
        self._thread = threading.Thread(target=self._follow, daemon=True)  # one that fails must not keep the tests from ending
        self._thread.start()

    def _follow(self) -> None:
        try:
            for event in self._events:
                self.names.append(event.name or event.kind)
        except freehold.Error as error:
            self.error = error

    def has(self, *names: str) -> None:
        """Wait until exactly these have come."""
        until(lambda: len(self.names) >= len(names))
        assert self.names == list(names)

    def ended(self) -> bool:
        """Wait for the end."""
        self._thread.join(30)
        return not self._thread.is_alive()


def nothing() -> None:
    """Stay."""


def complete(run: Run, **how: Any) -> None:
    run.transact(lambda tx: (tx.begin_execution(), tx.settle("completed", **how)))


def views(host: Host, run: Run) -> list[RunView]:
    return [run, host.view("a"), freehold.view(run.path)]


def test_events_come_in_order_as_they_are_added_and_the_end_of_the_run_ends_it(host: Host, run: Run) -> None:
    followers = [Follower(view) for view in views(host, run)]
    for number in range(3):
        run.append(f"n{number}")
        for follower in followers:
            follower.has("created", *(f"n{earlier}" for earlier in range(number + 1)))
    complete(run)

    for follower in followers:
        assert follower.ended()
        follower.has("created", "n0", "n1", "n2", "began", "settled")


@pytest.mark.parametrize("how", [{}, {"code": "done"}])
def test_an_end_for_a_code_which_is_no_event_ends_it_too(
    host: Host, run: Run, how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (waiting, following):
        monkeypatch.setattr(module, "WAIT_BEYOND_S", 100.0)  # it is told of it, and does not find out by asking again
    run.transact(lambda tx: tx.begin_execution())
    followers = [Follower(view) for view in views(host, run)]
    for follower in followers:
        follower.has("created", "began")
    run.transact(lambda tx: tx.settle("completed", **how))

    assert [follower.ended() for follower in followers] == [True] * 3


def test_a_run_that_has_ended_is_told_to_its_end_with_the_notes_after_it(host: Host, run: Run) -> None:
    complete(run)
    run.append("late")

    assert [[event.name or event.kind for event in view.follow()] for view in views(host, run)] == [
        ["created", "began", "settled", "late"]
    ] * 3


def test_only_what_lies_beyond_a_moment_is_told(run: Run) -> None:
    note = run.append("first")
    run.append("second")
    complete(run)

    assert [event.seq for event in run.follow(note)] == [3, 4, 5]
    assert [event.seq for event in run.follow(str(note.id))] == [3, 4, 5]
    assert [event.seq for event in run.follow(5)] == []
    with pytest.raises(Refused):
        run.follow("no moment")


def test_what_is_not_there_yet_is_waited_for_beyond_a_seq_to_come(host: Host, run: Run) -> None:
    follower = Follower(run, 3)
    for name in ("one", "two", "three"):
        run.append(name)
    complete(run)

    assert follower.ended()
    assert follower.names == ["three", "began", "settled"]


def test_what_is_not_wanted_is_passed_over_also_at_the_end(run: Run) -> None:
    run.publish("edit", lambda files: files.write_text("a", "1"))
    run.append("note")
    complete(run)
    beside = freehold.view(run.path)

    def seqs(**wanted: Any) -> list[int]:
        return [event.seq for event in beside._follow(None, wanted.get("name"), wanted.get("path"), nothing)]

    with freehold.fail_after(20):
        assert (seqs(name="note"), seqs(path="a"), seqs(path="b"), seqs(name="note", path="a")) == ([3], [2], [], [])
        for wrong in ({"name": ""}, {"path": "../x"}):
            with pytest.raises(Refused):
                seqs(**wrong)


def test_what_is_wanted_comes_once_and_as_it_comes(tmp_path: Path, host: Host, run: Run) -> None:
    names: list[int] = []
    follower = threading.Thread(target=lambda: names.extend(event.seq for event in host.view("a")._follow(None, "x", None, nothing)))
    follower.start()
    for name in ("x", "other", "x", "other"):
        run.append(name)
    complete(run)
    follower.join(30)

    assert names == [2, 4]


def test_whoever_follows_a_file_can_be_called_away(tmp_path: Path) -> None:
    def away() -> None:
        raise BrokenPipeError

    with freehold.open(tmp_path) as host:
        host.create("a").close()
    events = freehold.view(tmp_path / "a.sqlite")._follow(None, None, None, away)
    assert next(events).seq == 1
    with pytest.raises(BrokenPipeError), freehold.fail_after(20):
        next(events)


def test_a_run_of_another_process_is_followed_at_its_file(tmp_path: Path) -> None:
    with owns(tmp_path, "a", "one", "two") as process:
        follower = Follower(freehold.view(tmp_path / "a.sqlite"))
        follower.has("created", "one", "two")
        process.kill()
        process.wait()
    with freehold.open(tmp_path) as host, host.open("a") as run:
        run.append("three")
        follower.has("created", "one", "two", "three")
        complete(run)
    assert follower.ended()


def test_a_file_that_nobody_owns_is_followed_through_its_owners(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as host:
        host.create("a").close()
    follower = Follower(freehold.view(tmp_path / "a.sqlite"))
    follower.has("created")
    for name in ("one", "two"):
        with freehold.open(tmp_path) as host, host.open("a") as run:
            run.append(name)
    follower.has("created", "one", "two")
    with freehold.open(tmp_path) as host:
        host.delete("a")

    assert follower.ended()
    assert follower.names == ["created", "one", "two"]


def test_a_run_that_is_not_there_has_no_events_and_one_that_was_made_anew_is_another(tmp_path: Path) -> None:
    assert list(freehold.view(tmp_path / "a.sqlite").follow()) == []
    with freehold.open(tmp_path) as host:
        with host.create("a") as run:
            run.append("one")
        follower = Follower(freehold.view(run.path))
        follower.has("created", "one")
        host.delete("a")
        with host.create("a") as again:
            again.append("other")
            assert follower.ended()
    assert follower.names == ["created", "one"]


def test_it_goes_on_over_a_crash_and_reopening_of_its_owner(host: Host, run: Run) -> None:
    followers = [Follower(view) for view in views(host, run)]
    for follower in followers:
        follower.has("created")
    os.utime(run.path)  # the fence takes this for somebody else's writing
    with pytest.raises(freehold.StorageFailed):
        run.append("lost")
    run.append("kept")

    for follower in followers:
        follower.has("created", "kept")
    complete(run)
    assert [follower.ended() for follower in followers] == [True] * 3


def test_a_follower_of_a_lease_ends_with_it_and_that_of_a_view_goes_on(host: Host, run: Run) -> None:
    lease = host.open("a")
    ended, going = Follower(lease), Follower(host.view("a"))
    ended.has("created")
    going.has("created")
    lease.close()
    run.append("after")

    assert ended.ended()
    assert isinstance(ended.error, LeaseClosed)
    going.has("created", "after")
    complete(run)
    assert going.ended()


def test_whoever_follows_keeps_no_run_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "WAIT_BEYOND_S", 0.02)  # it asks again all the time
    with freehold.open(tmp_path, idle_timeout=0.1) as host:
        run = host.create("a")
        follower = Follower(host.view("a"))
        follower.has("created")
        run.close()
        until(lambda: not (tmp_path / "a.sqlite-wal").exists())
        with host.open("a") as run:
            run.append("again")
            follower.has("created", "again")
            complete(run)
        assert follower.ended()


def test_whoever_looks_on_without_a_lease_is_no_use_of_the_run(host: Host, run: Run) -> None:
    run.append("used")
    before = owner(host, run)._active_at
    assert host.view("a").info.events == 2
    with freehold.fail_after(0.1):
        assert run._ref.call(WaitBeyond(2), None) is None
    assert owner(host, run)._active_at == before
    run.append("used again")
    assert owner(host, run)._active_at > before


def test_a_deadline_ends_it(host: Host, run: Run) -> None:
    for view in (run, host.view("a"), freehold.view(run.path)):
        events = view.follow()
        assert next(events).seq == 1
        with pytest.raises(DeadlineExceeded), freehold.fail_after(0.2):
            next(events)
    run.append("on")


def test_a_deadline_ends_it_at_a_file_too(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as host:
        host.create("a").close()
    with pytest.raises(DeadlineExceeded), freehold.fail_after(0.3):
        list(freehold.view(tmp_path / "a.sqlite").follow())


def test_it_ends_when_its_time_is_up_and_has_told_what_came_by_then(host: Host, run: Run) -> None:
    followers = [Follower(view, timeout=0.6) for view in views(host, run)]
    for follower in followers:
        follower.has("created")
    run.append("in time")

    assert [follower.ended() for follower in followers] == [True] * 3
    assert [(follower.names, follower.error) for follower in followers] == [(["created", "in time"], None)] * 3


def test_a_file_is_not_looked_at_beyond_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with freehold.open(tmp_path) as host:
        host.create("a").close()
    view, pauses = freehold.view(tmp_path / "a.sqlite"), [0.0]

    def rest(duration: float) -> None:
        pauses.append(duration)
        pause(duration)

    monkeypatch.setattr(following, "pause", rest)
    for timeout in (0.05, timedelta(milliseconds=50)):
        assert [event.seq for event in view.follow(timeout=timeout)] == [1]

    assert max(pauses) <= 0.05


def test_what_the_body_does_meanwhile_counts(run: Run) -> None:
    for number in range(3):
        run.append(f"n{number}")
    seen = []
    for event in run.follow(timeout=0.3):
        seen.append(event.seq)
        threading.Event().wait(0.35)

    assert seen == [1]


def test_its_time_begins_with_the_call(run: Run) -> None:
    events = run.follow(timeout=0.2)
    threading.Event().wait(0.25)

    assert list(events) == list(run.follow(timeout=0)) == []


def test_a_turn_that_takes_long_does_not_keep_it_from_ending(run: Run) -> None:
    note = run.append("x")
    with Busy(run):
        for after in (None, note.time):  # a time has to be asked for
            begun = monotonic()
            assert (list(run.follow(after, timeout=0.2)), monotonic() - begun < 10) == ([], True)


def test_a_deadline_of_ones_own_that_is_nearer_is_one(run: Run) -> None:
    events = run.follow(timeout=0.5)
    assert next(events).seq == 1
    with pytest.raises(DeadlineExceeded), freehold.fail_after(0.2):
        next(events)
    with freehold.fail_after(20):
        assert [event.seq for event in run.follow(timeout=0.2)] == [1]


def test_what_the_body_asks_is_bounded_by_its_own_deadlines_alone(run: Run) -> None:
    for _ in run.follow(timeout=0.5):
        assert deadline_in(None) is None


def test_an_answer_that_does_not_come_in_the_hosts_time_is_no_end(tmp_path: Path) -> None:
    with freehold.open(tmp_path, timeout=0.2) as host, host.create("a") as run, Busy(run), pytest.raises(DeadlineExceeded):
        list(run.follow(timeout=20))


@pytest.mark.parametrize("wrong", [-1, "1", float("nan"), True])
def test_what_is_no_time_is_refused_at_once(run: Run, wrong: Any) -> None:
    with pytest.raises(Refused) as caught:
        run.follow(timeout=wrong)
    assert caught.value.code == "bad_option"


def test_ctrl_c_ends_it(host: Host, run: Run) -> None:
    for view in (run, freehold.view(run.path)):
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        events = view.follow()
        assert next(events).seq == 1
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            next(events)
        timer.join()
    run.append("on")


def test_a_long_turn_of_another_is_waited_out(run: Run) -> None:
    follower = Follower(run)
    follower.has("created")
    with Busy(run):
        sender = threading.Thread(target=run.append, args=("after",))
        sender.start()
    sender.join()
    follower.has("created", "after")
    complete(run)
    assert follower.ended()


def test_what_a_transaction_has_not_committed_is_not_told(host: Host, run: Run) -> None:
    follower = Follower(host.view("a"))
    follower.has("created")
    with pytest.raises(ZeroDivisionError), run.transaction() as tx:
        tx.append("lost")
        raise ZeroDivisionError
    with run.transaction() as tx:
        tx.append("kept")

    follower.has("created", "kept")
    complete(run)
    assert follower.ended()


def test_no_more_than_so_many_wait_at_once(host: Host, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiters, "WAITERS_MAX", 2)
    followers = [Follower(run) for _ in range(2)]
    until(lambda: _waiting(host, run) == 2)
    with pytest.raises(MailboxFull):
        run._ask(WaitBeyond(1))

    complete(run)
    assert [follower.ended() for follower in followers] == [True, True]


def _waiting(host: Host, run: Run) -> int:
    return len(owner(host, run)._waiters._waiting)


def test_whoever_waits_is_told_the_last_seq_or_nothing_shortly_before_its_deadline(run: Run) -> None:
    assert run._ask(WaitBeyond(0)) == 1
    with freehold.fail_after(0.2):
        assert run._ask(WaitBeyond(1)) is None
    run.append("two")
    assert run._ask(WaitBeyond(1)) == 2


def test_whoever_has_seen_another_standing_or_another_run_does_not_wait(run: Run) -> None:
    first = run._ask(ReadEvent(1)).id
    for seen in (WaitBeyond(1, "running", first), WaitBeyond(1, "created", bytes(16))):
        assert run._ask(seen) == 1
    with freehold.fail_after(0.2):
        assert run._ask(WaitBeyond(1, "created", first)) is None


def test_everybody_who_waits_is_told_at_once_when_the_owner_goes(tmp_path: Path) -> None:
    answers: list[object] = []
    with freehold.open(tmp_path, timeout=30) as host:
        run = host.create("a")
        asker = threading.Thread(target=lambda: answers.append(run._ask(WaitBeyond(1))))
        asker.start()
        until(lambda: _waiting(host, run) == 1)
    asker.join(5)

    assert answers == [None]
