"""Actors for tests: one that does what it is told, a watcher of ends, a diary to wait for, and a seat for a script."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from threading import Barrier, Condition, Event, Thread
from typing import Any

from freehold.actors import Actor, ActorRef, ChildSpec, Down, Supervisor, SupervisorSpec
from freehold.actors.deadline import monotonic

PATIENCE_S = 20.0
"""How long a test waits for what must come. Nothing is proved by its passing."""


class Diary:
    """Lines in the order in which they were written, by whatever thread."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._changed = Condition()

    def write(self, line: str) -> None:
        """Add *line*."""
        with self._changed:
            self.lines.append(line)
            self._changed.notify_all()

    def wait(self, line: str, times: int = 1) -> None:
        """Wait until *line* stands here *times* times."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.lines.count(line) >= times, PATIENCE_S), (line, self.lines)


class Doer(Actor[Any]):
    """Does what it is told: a message is a callable, called with the actor. Writes its life into *diary*."""

    def __init__(self, diary: Diary | None = None) -> None:
        self.diary = diary if diary is not None else Diary()

    def started(self) -> None:
        self.diary.write(f"{self.ref.name} started")

    def receive(self, message: Any) -> object:
        return message(self)

    def stopped(self, reason: BaseException | None) -> None:
        self.diary.write(f"{self.ref.name} stopped" + (f" by {type(reason).__name__}" if reason is not None else ""))


class Hold:
    """A message for a Doer: keeps it in its turn until released."""

    def __init__(self) -> None:
        self.begun = Event()
        self.release = Event()

    def __call__(self, _actor: Doer) -> str:
        self.begun.set()
        assert self.release.wait(PATIENCE_S)
        return "held"


class Watcher:
    """Reads the Downs that it is told."""

    def __init__(self) -> None:
        self.ref: ActorRef[Down] = ActorRef("watcher")

    def next(self) -> Down:
        """Return the next Down."""
        assert self.ref.mailbox.wait(monotonic() + PATIENCE_S)
        (envelope,) = self.ref.mailbox.take(1, 1)
        assert isinstance(envelope.message, Down)
        return envelope.message

    @property
    def waiting(self) -> int:
        """How many Downs have been told and not read."""
        return len(self.ref.mailbox)


def boom(_actor: Doer) -> object:
    """End a Doer's incarnation. The text stands for a value that nobody may see."""
    raise ZeroDivisionError("a stored value")


def doers(*names: str, diary: Diary, **options: Any) -> list[ChildSpec]:
    """Return child specs of Doers with one diary."""
    return [ChildSpec(name, lambda: Doer(diary), **options) for name in names]


def tree_of(*names: str, diary: Diary | None = None, **options: Any) -> Supervisor:
    """Return a running tree of Doers."""
    return Supervisor(SupervisorSpec("tree", doers(*names, diary=diary or Diary()), **options), timeout=PATIENCE_S)


def ended(tree: Supervisor) -> None:
    """Wait until the supervisor itself has ended, without asking it to."""
    tree._ended.get(PATIENCE_S)


def script(text: str, *, timeout: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
    """Run *text* in an interpreter of its own; what hangs is killed, and is an error."""
    return subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=timeout, check=False)


def until(condition: Callable[[], object]) -> None:
    """Wait for what has no event of its own, giving way to others."""
    end = monotonic() + PATIENCE_S
    while not condition():
        assert monotonic() < end
        os.sched_yield()


def aside(call: Callable[[], object]) -> Callable[[], object]:
    """Begin *call* in a thread of its own; return what waits for its end, and returns what it returned or raised."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - handed to the test
            results.append(error)

    def result() -> object:
        thread.join(PATIENCE_S)
        return results[0]

    thread = Thread(target=run, daemon=True)  # one that is stuck for ever fails its test, and keeps no interpreter
    thread.start()
    return result


def run_together(*calls: Callable[[], object]) -> list[object]:
    """Run *calls* in a thread each, at the same moment, and return what each returned or raised."""
    barrier = Barrier(len(calls))

    def together(call: Callable[[], object]) -> Callable[[], object]:
        def run() -> object:
            barrier.wait(PATIENCE_S)
            return call()

        return aside(run)

    results = [together(call) for call in calls]
    return [result() for result in results]
