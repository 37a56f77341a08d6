"""A supervisor's own record of one child: which incarnation lives, how often it crashed, how far its stop has come."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from freehold.actors.cell import Cell, Stop, crash_report
from freehold.actors.policy import Rung, next_rung_at, rung
from freehold.actors.ref import ActorRef
from freehold.actors.reply import Reply
from freehold.actors.spec import ChildSpec
from freehold.schema.errors import is_ours


class State(StrEnum):
    """Where a child stands."""

    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"
    """It crashed, and its restart is due at a later time."""
    STOPPING = "stopping"
    STOPPED = "stopped"
    QUARANTINED = "quarantined"
    """It failed too often and was set aside."""
    ABANDONED = "abandoned"
    """Its thread did not come back in time. What it held stays held."""


ENDED = frozenset({State.STOPPED, State.QUARANTINED, State.ABANDONED})


class Child:
    """One child, through all its incarnations. Written by its supervisor alone, read by `tree()`."""

    def __init__(self, spec: ChildSpec, timeout: float) -> None:
        self.spec = spec
        self.ref: ActorRef[Any] = ActorRef(spec.name, timeout=timeout)
        self.state = State.STARTING
        self.cell: Cell | None = None
        self.reason: BaseException | None = None
        self.ends: list[float] = []
        self.restarts = 0
        self.due: float | None = None
        self.starters: list[Reply] = []
        self.stoppers: list[Reply] = []
        self.watchers: list[ActorRef[Any]] = []
        self._stop_began = 0.0
        self._stop_allowed = 0.0
        self._rung: Rung | None = None

    def launch(self, report: Any) -> None:
        """Start the next incarnation in a thread of its own."""
        self.state = State.STARTING
        self.due = None
        actor = self.spec.start()
        actor.ref = self.ref
        self.cell = Cell(actor, report)
        self.cell.launch()

    def begin_stop(self, now: float, allowed: float) -> None:
        """Set foot on the ladder; a second stop may only shorten the first."""
        if self._rung is not None:
            self._stop_allowed = min(self._stop_allowed, max(0.0, now + allowed - self._stop_began))
            return
        self.state = State.STOPPING
        self._stop_began = now
        self._stop_allowed = allowed
        self.climb(now)

    def climb(self, now: float) -> None:
        """Take the rungs whose time has come."""
        wanted = rung(now - self._stop_began, self._stop_allowed)
        steps = list(Rung)
        taken = 0 if self._rung is None else steps.index(self._rung) + 1
        # None is left out, however late it is: also who has no time at all is told to stop before it is abandoned.
        for step in steps[taken : steps.index(wanted) + 1]:
            self._rung = step
            self._take(step)

    def _take(self, step: Rung) -> None:
        match step:
            case Rung.DRAIN:
                self.ref.system(Stop(drain=True))
            case Rung.STOP:
                self.ref.system(Stop(drain=False))
            case Rung.INTERRUPT if self.cell is not None:
                try:
                    self.cell.actor.interrupt()
                except Exception as error:  # noqa: BLE001 - it may have nothing yet, or nothing any more, to interrupt
                    crash_report(f"{self.spec.name}: interrupt", error)
            case Rung.ABANDON:
                self.state = State.ABANDONED

    def wake_at(self) -> float | None:
        """Return when something is due for this child: a restart, or the next rung."""
        if self.state is State.WAITING:
            return self.due
        if self.state is State.STOPPING and self._rung is not None:
            return next_rung_at(self._rung, self._stop_began, self._stop_allowed)
        return None

    def answer(self, replies: list[Reply], value: Any = None, error: BaseException | None = None) -> None:
        """Answer everybody who waits in *replies*, each with an error of its own."""
        while replies:
            reply = replies.pop()
            if error is None:
                reply.set(value)
            else:
                reply.fail(error.copy() if is_ours(error) else error)
