"""Whatever is asked of steps, in whatever order, over interruptions and new owners: they are what a dictionary says they are."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import freehold
from freehold import Done, Refused, Run
from freehold.schema.lifecycle import Status

KEYS = st.sampled_from(["a", "b", "é/1"])
INPUTS = st.sampled_from([(), (1,), (object(),)])
ENDS = st.sampled_from(["returns", "raises", "interrupted", "cannot be kept"])
RULES = st.sampled_from([None, "repeat", "park", "probe"])
FOUND = st.sampled_from([True, False, Done([7])])
VALUES = st.one_of(st.none(), st.integers(), st.text(), st.lists(st.booleans(), max_size=2), st.just("long " * 2000))


MEMORY = "/dev/shm"


class Twin:
    """What a dictionary says of one step."""

    def __init__(self) -> None:
        self.input: Any = None
        self.attempt = 0
        self.open: str | None = None
        self.outcome: list[Any] = []
        self.journal: list[tuple[int, str | None]] = []

    def tell(self, attempt: int, outcome: str | None, input_: Any) -> None:
        """Note an event."""
        self.attempt = attempt
        self.input = input_
        self.journal.append((attempt, outcome))


class Steps(RuleBasedStateMachine):
    """One run, its steps, and the dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(mkdtemp(dir=MEMORY if Path(MEMORY).is_dir() else None))
        self.host = freehold.open(self.folder)
        self.run = self.host.create("a")
        self.twins: dict[str, Twin] = {}
        self.calls: list[int] = []

    def teardown(self) -> None:
        self.host.close()
        freehold.view(self.folder / "a.sqlite").verify()
        rmtree(self.folder)

    @rule(key=KEYS, given=INPUTS, ends=ENDS, unknown=RULES, found=FOUND, value=VALUES)
    def once(self, key: str, given: Any, ends: str, unknown: Any, found: Any, value: Any) -> None:
        """Ask for a step, by some rule, with a function that comes to some end."""
        self.calls = []
        twin = self.twins.setdefault(key, Twin())
        expected = self._expected(twin, given, ends, unknown, found, value)
        assert self._told(key, given, ends, unknown, found, value) == expected

    def _expected(self, twin: Twin, given: Any, ends: str, unknown: Any, found: Any, value: Any) -> tuple[Any, ...]:
        input_ = None if any(type(one) is object for one in given) else given
        if None not in (twin.input, input_) and twin.input != input_:
            return ("input_changed", [])
        if twin.outcome:
            return (*twin.outcome, [])
        if twin.open is not None and unknown != "repeat":
            if unknown != "probe":
                return ("step_unknown", [])
            twin.open = None
            if found is not False:
                twin.tell(twin.attempt, "ok", input_)
                twin.outcome = ["ok", None if found is True else [7]]
                return (*twin.outcome, [])
            twin.tell(twin.attempt, "failed", input_)
        attempt = twin.attempt + 1
        if unknown in ("park", "probe"):
            twin.tell(attempt, None, input_)
            twin.open = unknown
        if ends == "interrupted":
            return ("interrupted", [attempt])
        twin.open = None
        twin.tell(attempt, "ok" if ends == "returns" else "failed", input_)
        if ends == "raises":
            return ("raised", [attempt])
        twin.outcome = ["ok", value] if ends == "returns" else ["value_refused"]
        return (*twin.outcome, [attempt])

    def _told(self, key: str, given: Any, ends: str, unknown: Any, found: Any, value: Any) -> tuple[Any, ...]:
        def fn(*_: Any) -> Any:
            self.calls.append(freehold.current_step().attempt)
            if ends == "raises":
                raise ValueError(key)
            if ends == "interrupted":
                raise KeyboardInterrupt
            return value if ends == "returns" else {"x": object()}

        probe = (lambda *_: found) if unknown == "probe" else None
        run: Run = self.run.options(unknown=unknown, probe=probe)
        try:
            return ("ok", run.once(key, fn, *given), self.calls)
        except ValueError:
            return ("raised", self.calls)
        except KeyboardInterrupt:
            return ("interrupted", self.calls)
        except Refused as error:
            return (error.code, self.calls)

    @rule()
    def close_and_open(self) -> None:
        """Let another owner have the run."""
        self.host.close()
        self.host = freehold.open(self.folder)
        self.run = self.host.open("a")

    @rule()
    def take_another_lease(self) -> None:
        """Go on with another lease."""
        self.run.close()
        self.run = self.host.open("a")

    @precondition(lambda self: self.run.info.status == Status.CREATED)
    @rule()
    def execute(self) -> None:
        """Steps of keys belong to no execution."""
        self.run.transact(lambda tx: tx.begin_execution())

    @invariant()
    def the_journal_tells_the_same(self) -> None:
        """Every attempt is in the journal, in order."""
        told: dict[str, list[tuple[int, str | None]]] = {}
        for event in self.run.history():
            if event.kind == "step":
                assert event.name is not None
                assert event.attempt is not None
                assert event.execution is None
                told.setdefault(event.name, []).append((event.attempt, event.outcome))
        assert told == {key: twin.journal for key, twin in self.twins.items() if twin.journal}


Steps.TestCase.settings = settings(max_examples=12, stateful_step_count=20, suppress_health_check=list(HealthCheck), deadline=None)
TestSteps = Steps.TestCase


class Long(Steps):
    """The same, for longer."""


Long.TestCase.settings = settings(max_examples=600, stateful_step_count=60, suppress_health_check=list(HealthCheck), deadline=None)
TestStepsForLong = pytest.mark.prove(Long.TestCase)
