"""Whichever call of the disk fails, and however: what was told is true of the file, nothing is left behind, and the run lives on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import pytest
from driver import Driver
from ordeal import Fault, endure, faults
from power import scratch
from scenario import SCENARIOS, path_in
from verdict import judge

from freehold.storage import tenure
from freehold.storage.faults import Poisoned, failed
from freehold.storage.transaction import Transaction
from freehold.storage.vfs.faults import CALLS

STEP = 10
LONG = {"staged publish": 10, "publish elsewhere": 10}
"""Scenarios with so many more calls than the others that they are gone through in larger steps, so many times as large."""


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch() as path:
        yield path


def prove(name: str, part: int, folder: Path) -> int:
    """Let every tenth fault happen (of a long scenario, every hundredth), each to a scenario of its own; return how many did."""
    wrong: list[str] = []
    struck = 0
    for number, fault in enumerate(faults(name, folder / "healthy", STEP * LONG.get(name, 1), part)):
        try:
            struck += bool(endure(name, folder / str(number), fault))
        except AssertionError as violation:
            wrong.append(f"{name}: {fault}: {violation}")
        rmtree(folder / str(number))

    assert wrong == []
    return struck


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_fault_makes_a_liar_of_an_owner(name: str, folder: Path) -> None:
    assert prove(name, 0, folder) > 0


@pytest.mark.prove
@pytest.mark.parametrize("part", range(STEP))
@pytest.mark.parametrize("name", SCENARIOS)
def test_no_fault_at_any_call_makes_a_liar_of_an_owner(name: str, part: int, folder: Path) -> None:
    for more in range(LONG.get(name, 1)):
        prove(name, part + more * STEP, folder / f"part {more}")


@pytest.mark.parametrize("call", CALLS["eio"])
def test_every_kind_of_call_is_met_somewhere(call: str, folder: Path) -> None:
    once = Fault("eio", sticky=False, nth=1)

    assert any(endure(name, folder / name, once, [call]) == [call] for name in ("create", "delete"))


def test_a_wrong_answer_about_a_failed_commit_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenure, "happened", lambda _db, _txn, _epoch: True)

    with pytest.raises(AssertionError):
        for nth in range(1, 100):
            endure("append", folder / str(nth), Fault("eio", sticky=True, nth=nth), ["xWrite"])


def test_a_commit_that_failed_after_it_was_kept_is_told_as_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(path_in(folder))
    driver.create()
    driver.own()
    commit = Transaction.commit

    def commit_and_fail(self: Transaction) -> None:
        commit(self)
        raise self.poison(failed(RuntimeError(), "commit", rolled_back=False, executed="unknown"), unknown_txn=self.txn)

    monkeypatch.setattr(Transaction, "commit", commit_and_fail)
    with pytest.raises(Poisoned):
        driver.append("kept")
    monkeypatch.undo()
    driver.crash()
    driver.own()

    assert [line.name for line in driver.state.lines] == [None, "kept"]
    driver.close()
    assert judge(driver.path, driver.book) == driver.state
