"""Leases: each closes alone, none can be forged, and a wrong one is refused with its own error, at once."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from turns import Busy, names, owner, senders, waiting

import freehold
from freehold import Host, LeaseClosed, LeaseLost, Refused, Run
from freehold.actors.leases import Lease, LeaseBook
from freehold.schema.errors import RunNotFound
from freehold.schema.messages import Append


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path, timeout=20) as host:
        yield host


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a") as run:
        yield run


def entered(book: LeaseBook) -> Lease:
    lease = Lease()
    book.enter(lease)
    return lease


def test_a_lease_that_was_given_up_before_it_was_entered_gives_no_right() -> None:
    book, lease = LeaseBook("a"), Lease()
    lease.closed = True
    with pytest.raises(LeaseClosed):
        book.enter(lease)
    assert not book.open


def test_a_new_lease_gives_its_right_until_it_is_closed() -> None:
    book = LeaseBook("a")
    one, two = entered(book), entered(book)
    assert book.check(one) is None
    book.close(one)
    book.close(one)
    assert isinstance(book.check(one), LeaseClosed)
    assert book.check(two) is None
    assert book.open == {two}


def test_no_lease_and_the_lease_of_another_book_are_foreign() -> None:
    book = LeaseBook("a")
    forged = entered(LeaseBook("a"))
    for lease in (None, forged, Lease(), entered(LeaseBook("b"))):
        refusal = book.check(lease)
        assert isinstance(refusal, Refused)
        assert refusal.code == "lease_foreign"


def test_when_all_are_lost_each_is_told_why_with_an_error_of_its_own() -> None:
    book = LeaseBook("a")
    lease, closed = entered(book), entered(book)
    book.close(closed)
    cause = RunNotFound("gone")
    book.lose_all(cause)
    first, second = book.check(lease), book.check(lease)
    assert isinstance(first, LeaseLost)
    assert first.__cause__ is cause
    assert first is not second
    assert isinstance(book.check(closed), LeaseClosed)
    assert not book.open


def test_the_owner_refuses_a_lease_on_another_run(host: Host, run: Run) -> None:
    with host.create("b") as other:
        for lease in (other._lease, None, Lease(), entered(LeaseBook("a"))):
            with pytest.raises(Refused) as caught:
                run._ref.call(Append("lost", "null"), lease)
            assert caught.value.code == "lease_foreign"
    assert names(run) == []


def test_closing_one_lease_leaves_the_others(host: Host, run: Run) -> None:
    with host.open("a") as other:
        other.append("x")
    with pytest.raises(LeaseClosed) as caught:
        other.append("lost")
    assert (caught.value.executed, caught.value.code) == ("no", "lease_closed")
    assert run.append("y").seq == 3
    assert len(owner(host, run)._seat.book.open) == 1


def test_every_call_on_a_closed_lease_is_refused(run: Run, host: Host) -> None:
    other = host.open("a")
    other.close()
    for call in (
        lambda: other.append("lost"),
        lambda: other.transact(lambda tx: tx.append("lost")),
        lambda: other.transaction().__enter__(),
        lambda: other.info,
        lambda: list(other.history()),
        lambda: list(other.history(reverse=True, name="x")),
    ):
        with pytest.raises(LeaseClosed):
            call()
    assert names(run) == []


def test_a_lease_is_closed_twice_and_from_any_thread(host: Host, run: Run) -> None:
    other = host.open("a")
    with senders(8) as go:
        for closing in [go(other.close) for _ in range(16)]:
            closing.result()
    other.close()
    assert run.append("x").seq == 2
    assert len(owner(host, run)._seat.book.open) == 1


def test_a_lease_is_closed_from_the_moment_of_its_close(host: Host, run: Run) -> None:
    with host.open("a") as other, Busy(run):
        other.close()  # its owner has not heard of it yet
        for call in (lambda: other.append("lost"), lambda: other.transaction().__enter__()):
            with freehold.fail_after(5), pytest.raises(LeaseClosed):
                call()
    assert names(run) == []


def test_of_a_lease_that_was_lost_nobody_is_warned(host: Host, run: Run) -> None:
    mine = host.open("a")
    host.close()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        del mine
        gc.collect()
    assert warned == []
    run.close()


def test_calls_that_wait_when_their_lease_is_closed_are_told_that_they_did_not_run(host: Host, run: Run) -> None:
    with host.open("a") as other, senders() as go:
        with Busy(run):
            calls: list[Any] = [go(other.append, "lost"), go(other.transact, lambda tx: tx.append("lost")), go(_span, other)]
            kept = go(run.append, "kept")
            waiting(run, 4)
            other.close()
        for call in calls:
            with pytest.raises(LeaseClosed) as caught:
                call.result()
            assert caught.value.executed == "no"
        assert kept.result().seq == 2
    assert names(run) == ["kept"]


def _span(run: Run) -> None:
    with run.transaction() as tx:
        tx.append("lost")


def test_a_lease_of_an_earlier_life_of_its_host_is_lost(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as host:
        stale = host.create("a")
    with freehold.open(tmp_path) as again, again.open("a") as run:
        for call in (lambda: stale.append("lost"), lambda: stale.info, lambda: stale.transaction().__enter__()):
            with pytest.raises(LeaseLost) as caught:
                call()
            assert (caught.value.executed, caught.value.retryable) == ("no", False)
        stale.close()
        assert run.append("x").seq == 2


def test_closing_the_host_loses_the_leases_that_are_open(host: Host, run: Run) -> None:
    host.close()
    with pytest.raises(LeaseLost):
        run.append("lost")
    assert isinstance(run._lease.lost, LeaseLost)
    run.close()


def test_a_lease_is_shared_by_threads(run: Run) -> None:
    with senders(8) as go:
        seqs = [call.result().seq for call in [go(run.append, "x", number) for number in range(100)]]
    assert sorted(seqs) == list(range(2, 102))


def test_a_lease_whose_close_was_interrupted_keeps_its_run_no_longer(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    run = host.create("b")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("freehold.actors.ref.ActorRef.post_system", interrupted)
        run.close()
    host.delete("b")
    assert [path.id for path in host.files()] == []


def test_a_lease_whose_finalizer_was_interrupted_is_given_back(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.create("b").close()
    run = host.open("b")
    monkeypatch.delattr(Run, "__del__")  # a signal may come at its very first step
    del run
    gc.collect()
    host.delete("b")
    assert [path.id for path in host.files()] == []


def test_a_lost_lease_that_its_own_warning_keeps_alive_is_given_back(host: Host) -> None:
    host.create("b").close()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        host.open("b")
        gc.collect()
        host.delete("b")
        assert any(isinstance(warning.source, Run) for warning in caught)
