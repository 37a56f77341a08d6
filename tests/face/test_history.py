"""Reading the journal from inside a transaction: what it sees is what it decides by."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import freehold
from freehold import Refused, Run, Transaction


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with freehold.open(tmp_path) as host, host.create("a") as run:
        yield run


def count_up(tx: Transaction) -> int:
    last = next(tx.history(name="count", reverse=True), None)
    tx.append("count", 1 if last is None else last.data + 1)
    return last.data + 1 if last else 1


def test_many_threads_that_read_and_then_write_lose_no_update(run: Run) -> None:
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda _number: run.transact(count_up), range(80)))

    assert sorted(counts) == list(range(1, 81))
    assert [event.data for event in run.history(name="count")] == list(range(1, 81))


def test_a_transaction_sees_its_own_events_and_nobody_else_does(run: Run) -> None:
    def work(tx: Transaction) -> list[Any]:
        tx.append("x", 1)
        tx.append("x", 2)
        return [event.data for event in tx.history(after=1)]

    assert run.transact(work) == [1, 2]
    with run.transaction() as tx:
        tx.append("x", 3)
        assert [event.data for event in tx.history(name="x")] == [1, 2, 3]
        with pytest.raises(ZeroDivisionError), tx.savepoint():
            tx.append("x", 4)
            _ = 1 / 0
        assert [event.data for event in tx.history(reverse=True, after=1)] == [3, 2, 1]


def test_a_history_kept_after_its_transaction_is_dead(run: Run) -> None:
    def work(tx: Transaction) -> list[Any]:
        return [tx.history()]

    (kept,) = run.transact(work)
    with pytest.raises(Refused) as caught:
        next(kept)
    assert caught.value.code == "transaction_over"


def test_a_wrong_moment_is_refused_inside_a_transaction_and_loses_only_itself(run: Run) -> None:
    with pytest.raises(Refused) as caught:
        run.transact(lambda tx: list(tx.history(after="nonsense")))
    assert caught.value.code == "bad_position"
    assert run.append("x").seq == 2


def test_a_moment_of_a_run_that_is_not_there_is_before_everything(tmp_path: Path) -> None:
    view = freehold.view(tmp_path / "nobody.sqlite")
    assert list(view.history(after=datetime.now(UTC))) == []
    assert list(view.history(after="2030-01-01T00:00:00Z", reverse=True)) == []
    assert list(tmp_path.iterdir()) == []
