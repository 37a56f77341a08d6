"""The whole way from the caller to a disk that fails: senders in threads, a supervisor that reopens, and answers that are true."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from folder import run_files
from ordeal import KINDS
from power import scratch

import freehold
from freehold import Error, Run, Transaction
from freehold.host import open_on
from freehold.storage.disk import DISK
from freehold.storage.registry import REGISTRY
from freehold.storage.vfs.faults import Faulty, Kind

SENDERS = 3
STEP = 10
KIND = pytest.mark.parametrize(("kind", "sticky"), KINDS)


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch() as path:
        yield path


def send(run: Run, sender: int) -> dict[str, str]:
    """Ask for things of every kind; return for each event's name whether it was kept: yes, no or unknown."""
    told: dict[str, str] = {}

    def note(name: str, request_id: str | None) -> None:
        run.append(name, "x" * 5_000, request_id=request_id)

    def twice(tx: Transaction) -> None:
        tx.append(f"{sender} first")
        with tx.savepoint():
            tx.append(f"{sender} second")

    calls: list[tuple[list[str], Callable[[], object]]] = [
        ([f"{sender} plain"], lambda: note(f"{sender} plain", None)),
        ([f"{sender} once"], lambda: note(f"{sender} once", f"request {sender}")),
        ([f"{sender} first", f"{sender} second"], lambda: run.transact(twice)),
        ([f"{sender} last"], lambda: note(f"{sender} last", None)),
    ]
    for names, call in calls:
        try:
            call()
            answer = "yes"
        except Error as error:
            answer = error.executed
        told.update(dict.fromkeys(names, answer))
    return told


def life(disk: Faulty, folder: Path) -> dict[str, str]:
    """Own a run on the disk, let the senders send, and give it back; return what they were told."""
    told: dict[str, str] = {}
    with open_on(disk, folder) as host:
        try:
            run = host.open("a")
        except Error:
            return told
        with closing(run), ThreadPoolExecutor(SENDERS) as pool:
            for answers in pool.map(lambda sender: send(run, sender), range(SENDERS)):
                told |= answers
        disk.heal()
    return told


def judge(told: dict[str, str], folder: Path) -> None:
    """Compare what was told with the file, which is owned once more for that."""
    with freehold.open(folder) as host, host.open("a") as run:
        found = [event.name for event in run.history() if event.name is not None]
        assert len(set(found)) == len(found)
        for name, answer in told.items():
            assert answer == "unknown" or (name in found) is (answer == "yes"), name
        for sender in range(SENDERS):
            assert (f"{sender} first" in found) is (f"{sender} second" in found)
            again = run.append(f"{sender} once", "x" * 5_000, request_id=f"request {sender}")
            assert again.name in found or told.get(f"{sender} once") != "yes"
        run.append("afterwards")
        run.verify()
    assert run_files(folder) == ["a.sqlite"]
    assert REGISTRY._places == {}


def prove(folder: Path, kind: Kind, *, sticky: bool, first: int, step: int) -> int:
    """Let every *step*th call fail, each in a life of its own; return how many failed."""
    struck = 0
    for nth in count(first, step):
        here = folder / str(nth)
        with freehold.open(here) as host:
            host.create("a").close()
        with Faulty() as disk:
            disk.arm(kind, nth, sticky=sticky)
            judge(life(disk, here), here)
            if not disk.struck:
                return struck  # there are no more calls than that
            struck += 1
    raise AssertionError("endless")


@KIND
def test_no_fault_makes_a_liar_of_a_host(folder: Path, kind: Kind, sticky: bool) -> None:
    assert prove(folder, kind, sticky=sticky, first=3, step=STEP) > 1


@pytest.mark.prove
@pytest.mark.parametrize("part", range(STEP))
@KIND
def test_no_fault_at_any_call_makes_a_liar_of_a_host(folder: Path, kind: Kind, sticky: bool, part: int) -> None:
    assert prove(folder, kind, sticky=sticky, first=1 + part, step=STEP) > 0


def test_a_disk_that_is_healed_in_time_costs_no_lease(folder: Path) -> None:
    with Faulty() as disk, open_on(disk, folder) as host, host.create("a") as run:
        before = run.append("before")
        disk.arm("eio", 1, calls=["xSync"])
        with pytest.raises(freehold.StorageFailed) as failed:
            run.append("during")
        after = run.append("after")

        assert disk.struck == ["xSync"]
        there = [event.id for event in run.history() if event.kind == "note"]
        assert there == [before.id, after.id]
        assert failed.value.executed == "no"


def test_the_machine_s_own_disk_never_fails_by_itself() -> None:
    assert DISK.vfs is None
