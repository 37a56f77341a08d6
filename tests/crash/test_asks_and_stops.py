"""Asks raced against everything that ends an owner: each is answered once, and the answer is what the file says."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from faulty import Disk, put_on
from power import scratch
from turns import until

import freehold
from freehold import Error, Event, Host, Run
from freehold import operations as op
from freehold.actors.actor import Actor
from freehold.actors.spec import ChildSpec, SupervisorSpec
from freehold.actors.supervisor import Supervisor

ASKS = 5_000
PARTS = 20
"""The long proof asks 100,000 times: so many times as many, each part with dice of its own."""
ASKERS = 12
PATIENCE_S = 60.0


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch() as path:
        yield path


class Race:
    """One run that is asked from many threads, while its owners are stopped, crashed, forgotten, and their leases closed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.dice = random.Random(seed)
        self.disk = Disk()
        self.numbers = count()
        self.asked = 0
        self.told: dict[str, Event | str] = {}
        """What each asker was told: an event, or what is known of it."""
        self.requests: dict[str, str] = {}
        self.done: Counter[str] = Counter()
        self.lost = 0
        """How many waited for an answer that never came."""
        self.set_aside = False
        self.pausing = False
        self.host = self.opened()
        self.host.create("a").close()

    def opened(self) -> Host:
        host = freehold.open(self.folder, timeout=PATIENCE_S, idle_timeout=0.05)
        put_on(self.disk, host)
        return host

    def ask(self, host: Host, dice: random.Random) -> None:
        """Ask a few times, and note what came of it. A thread keeps its lease as long as it can."""
        name = f"ask {next(self.numbers)}"
        try:
            with host.open("a") as run:
                for _ in range(dice.randrange(1, 12)):
                    patience = dice.choice((PATIENCE_S, PATIENCE_S, PATIENCE_S, 0.01, 0.003, 0.001))
                    with freehold.fail_after(patience):
                        self._ask(run, name, dice, patience)
                    name = f"ask {next(self.numbers)}"
        except Error as error:
            self.set_aside = self.set_aside or error.code == "quarantined"
            threading.Event().wait(0.001)  # there is no owner just now; all who ask at once for one would keep it from coming

    def _ask(self, run: Run, name: str, dice: random.Random, patience: float) -> None:
        how = dice.randrange(6)
        try:
            if how == 0:
                self.told[name] = run.append(name)
            elif how == 1:
                self.requests[name] = name
                self.told[name] = run.append(name, request_id=name)
            elif how == 2:
                self.told[name] = run.transact(lambda tx: tx.append(name))
            elif how == 3:
                result = run.apply([op.append(name), op.write_bytes("f", name.encode())])[0]
                assert isinstance(result, Event)
                self.told[name] = result
            elif how == 4:
                self.told[name] = run.options(durable=False).append(name)
            else:
                with run.transaction(timeout=5) as tx:
                    event = tx.append(name)
                self.told[name] = event
            self.done["yes"] += 1
        except Error as error:
            self.told[name] = error.executed
            self.done[f"{error.executed}: {error.code}"] += 1
            if error.code == "deadline_exceeded":
                self.lost += patience == PATIENCE_S
            else:
                raise  # else the lease is used on: closing it would keep from running what nobody waits for any more
        finally:
            self.asked += 1

    def disturb(self) -> None:
        """End the owner, or a lease, in one of the ways."""
        way = self.dice.randrange(6)
        if way <= 1:
            self.reopen()
        elif way <= 3:
            self.disk.arm(self.dice.choice(("write", "sync")), nth=self.dice.randrange(1, 6))
        elif way == 4:
            lease = self._leased()
            if lease is not None:
                lease.close()
        else:
            self._let_passivate()

    def reopen(self) -> None:
        """Close the host, whoever is at work with it, and open another one."""
        self.host.close()
        self.disk.heal()
        self.host = self.opened()

    def _leased(self) -> Run | None:
        try:
            return self.host.open("a")
        except Error:
            return None

    def _let_passivate(self) -> None:
        self.pausing = True
        try:
            threading.Event().wait(0.15)  # more than the run is kept without a lease
        finally:
            self.pausing = False

    def run(self, asks: int) -> None:
        """Let all of them race until so many asks were answered."""
        askers = [threading.Thread(target=self._asking, args=(asks, random.Random(self.dice.random()))) for _ in range(ASKERS)]
        for asker in askers:
            asker.start()
        while self.asked < asks:
            self.disturb()
            goal = min(asks, self.asked + self.dice.randrange(5, 120))
            until(partial(self._has_come_to, goal))
            if self.set_aside:
                self.set_aside = False
                self.reopen()
        for asker in askers:
            asker.join(60)
        assert not any(asker.is_alive() for asker in askers)
        self.host.close()

    def _has_come_to(self, goal: int) -> bool:
        return self.asked >= goal or self.set_aside

    def _asking(self, asks: int, dice: random.Random) -> None:
        while self.asked < asks:
            host = self.host
            if self.pausing:
                threading.Event().wait(0.001)
            else:
                self.ask(host, dice)

    def judge(self) -> None:
        """Hold what everybody was told against the file."""
        assert self.lost == 0
        self.disk.heal()
        with freehold.open(self.folder) as host, host.open("a") as run:
            found = {event.name: event for event in run.history() if event.kind == "note"}
            times = Counter(event.name for event in run.history() if event.kind == "note")
            assert set(times.values()) == {1}, "something was done twice"
            assert found.keys() <= self.told.keys()
            for name, told in self.told.items():
                if isinstance(told, Event):
                    assert found.get(name) == told, f"{name} was acknowledged and is not there"
                elif told == "no":
                    assert name not in found, f"{name} was said not to be done, and is there"
                elif told == "yes":
                    assert name in found
            self._ask_again(run, found)
            run.verify()

    def _ask_again(self, run: Run, found: dict[str | None, Event]) -> None:
        before = run.info.events
        new = 0
        for name in self.requests:
            event = run.append(name, request_id=name)
            new += name not in found
            assert found.get(name, event) == event
        assert run.info.events == before + new


def prove(folder: Path, seed: int, asks: int) -> Counter[str]:
    race = Race(folder, seed)
    try:
        race.run(asks)
    finally:
        race.host.close()
    race.judge()
    assert len(race.told) >= asks
    return race.done


def test_each_ask_is_answered_once_and_with_the_truth_whatever_ends_its_owner(seed: int, folder: Path) -> None:
    done = prove(folder, seed, ASKS)

    assert done["yes"] > ASKS // 4
    assert sum(number for how, number in done.items() if how.startswith("no: ")) > 0


@pytest.mark.prove
@pytest.mark.parametrize("part", range(PARTS))
def test_of_a_hundred_thousand_asks_none_is_lost_and_none_is_answered_twice(part: int, seed: int, folder: Path) -> None:
    assert prove(folder, seed + 1 + part, ASKS)["yes"] > ASKS // 4


class Counting(Actor[int]):
    """Answers with what it was asked, and notes it; some questions end it."""

    def __init__(self, taken: list[int]) -> None:
        self._taken = taken

    def receive(self, message: int) -> object:
        self._taken.append(message)
        if message % 503 == 0:
            raise ZeroDivisionError
        return message


def race_of_actors(asks: int, dice: random.Random) -> None:
    """Let threads ask an actor while its whole tree is stopped and started, and hold their answers against what it has taken."""
    taken: list[int] = []
    answers: dict[int, object] = {}
    numbers = count(1)
    spec = SupervisorSpec("tree", (ChildSpec("counting", partial(Counting, taken)),), max_restarts=1_000_000)
    trees = [Supervisor(spec)]
    refs = [trees[0]["counting"]]

    def ask(mine: random.Random) -> None:
        while (number := next(numbers)) <= asks:
            try:
                answers[number] = refs[-1].ask(number, timeout=mine.choice((20.0, 20.0, 0.0005)))
            except ZeroDivisionError:
                answers[number] = number
            except Error as error:
                answers[number] = error.executed

    askers = [threading.Thread(target=ask, args=(random.Random(dice.random()),)) for _ in range(ASKERS)]
    for asker in askers:
        asker.start()
    while any(asker.is_alive() for asker in askers):
        goal = min(asks, len(answers) + dice.randrange(1, asks // 20))
        until(partial(_has_come_to, answers, goal))
        trees[-1].stop()
        trees.append(Supervisor(spec))
        refs.append(trees[-1]["counting"])
    trees[-1].stop()

    assert len(answers) == asks
    times = Counter(taken)
    assert max(times.values()) == 1
    assert [number for number, told in answers.items() if told == number and number not in times] == []
    assert [number for number, told in answers.items() if told == "no" and number in times] == []


def _has_come_to(answers: dict[int, object], goal: int) -> bool:
    return len(answers) >= goal


def test_an_actor_answers_each_ask_once_while_its_tree_is_stopped_and_started(seed: int) -> None:
    race_of_actors(ASKS, random.Random(seed))


@pytest.mark.prove
def test_an_actor_answers_each_of_a_hundred_thousand_asks_once(seed: int) -> None:
    race_of_actors(ASKS * PARTS, random.Random(seed))
