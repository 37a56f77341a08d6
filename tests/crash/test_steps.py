"""Wherever the process dies that is at a step, the next one does what the step's rule says: the effect is made as often as declared."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from nursery import KILLED, Nursery, nursery

import freehold

RULES = (None, "repeat", "probe", "park")
PLACES = (
    "before the commit of the intent",
    "after the commit of the intent",
    "at its first line",
    "after its effect",
    "before the commit of the outcome",
    "after the commit of the outcome",
    "after it has returned",
    "in its probe",
    "nowhere",
)
Life = tuple[str | None, str]
"""The rule that a process asks for the step with, and where it is killed."""


class Killed(Exception):
    """The life of a twin has come to its end."""


@dataclass
class Twin:
    """What must be true of one step, by what its processes have done so far."""

    effects: int = 0
    intended: bool = False
    outcome: list[Any] = field(default_factory=list)

    def live(self, rule: str | None, where: str) -> list[list[Any]]:
        """Lead one life; return what it is told, and how it ends."""
        told: list[list[Any]] = []
        try:
            told.append(self._asked(rule, where))
            self._end_at(where, "after it has returned")
        except Killed:
            return [*told, ["end", KILLED]]
        return [*told, ["end", 0]]

    def _asked(self, rule: str | None, where: str) -> list[Any]:
        if not self.outcome and self.intended:
            if rule in (None, "park"):
                return ["refused", "step_unknown"]
            if rule == "probe":
                self._probe(where)
        if not self.outcome:
            if rule in ("probe", "park"):
                self._commit(where, "intent", intended=True)
            self._end_at(where, "at its first line")
            self.effects += 1
            self._end_at(where, "after its effect")
            self._commit(where, "outcome", intended=False, outcome=[{"n": 7}])
        return ["done", self.outcome[0]]

    def _probe(self, where: str) -> None:
        self._end_at(where, "in its probe")
        self._commit(where, "intent", intended=False, outcome=[None] if self.effects else [])

    def _commit(self, where: str, what: str, **changes: Any) -> None:
        self._end_at(where, f"before the commit of the {what}")
        for name, change in changes.items():
            setattr(self, name, change)
        self._end_at(where, f"after the commit of the {what}")

    def _end_at(self, where: str, there: str) -> None:
        if where == there:
            raise Killed


def lead(others: Nursery, root: Path, lives: list[Life]) -> None:
    """Let one process after the other be at the step; show that each was told, and the world holds, what the twin says."""
    twin, world = Twin(), root / "world"
    root.mkdir()
    for rule, where in lives:
        others.lead(do="step", root=str(root), run="a", rule=rule, where=where, world=str(world))
        assert others.rest() == twin.live(rule, where), (lives, rule, where)
        assert (len(world.read_bytes()) if world.exists() else 0) == twin.effects, (lives, rule, where)
    view = freehold.view(root / "a.sqlite")
    view.verify()
    outcomes = [event.data["result"] for event in view.history(name="step") if event.outcome == "ok"]
    assert outcomes == twin.outcome


def lives_of(rule: str | None, *places: str) -> list[Life]:
    """Return lives that end at these places, and one that ends well, at the latest because somebody has looked."""
    return [*((rule, place) for place in places), (rule, "nowhere"), ("repeat", "nowhere"), (None, "nowhere")]


@pytest.mark.parametrize("rule", RULES)
def test_a_step_whose_process_dies_is_done_as_often_as_its_rule_says(rule: str | None, tmp_path: Path) -> None:
    with nursery() as others:
        for number, place in enumerate(PLACES):
            lead(others, tmp_path / str(number), lives_of(rule, place))


def test_with_a_probe_the_effect_is_made_once_wherever_processes_die(tmp_path: Path) -> None:
    with nursery() as others:
        for number, place in enumerate(PLACES):
            lead(others, tmp_path / str(number), lives_of("probe", place))
            assert (tmp_path / str(number) / "world").read_bytes() == b"x"


def test_a_step_whose_processes_die_again_and_again(seed: int, tmp_path: Path) -> None:
    dice = Random(seed)
    with nursery() as others:
        for number in range(15):
            lives = [(dice.choice(RULES), dice.choice(PLACES)) for _ in range(5)]
            lead(others, tmp_path / str(number), [*lives, ("repeat", "nowhere"), (None, "nowhere")])


@pytest.mark.prove
@pytest.mark.parametrize("rule", RULES)
def test_a_step_whose_processes_die_at_any_three_places(rule: str | None, tmp_path: Path) -> None:
    with nursery() as others:
        for number, places in enumerate(product(PLACES, repeat=3)):
            lead(others, tmp_path / str(number), lives_of(rule, *places))


def test_processes_that_take_turns_do_a_step_once(tmp_path: Path) -> None:
    with nursery() as others:
        lead(others, tmp_path / "a", [(rule, "nowhere") for rule in RULES * 2])


def test_two_processes_that_want_the_run_at_once_do_the_step_once(tmp_path: Path) -> None:
    with nursery() as one, nursery() as other:
        for number in range(8):
            root = tmp_path / str(number)
            root.mkdir()
            for nest in (one, other):
                nest.lead(do="step", root=str(root), run="a", rule=None, where="nowhere", world=str(root / "world"))
            assert [nest.rest() for nest in (one, other)] == [[["done", {"n": 7}], ["end", 0]]] * 2
            assert (root / "world").read_bytes() == b"x"
