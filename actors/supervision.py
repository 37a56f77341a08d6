"""The supervisor as an actor: starts children, restarts them by policy, and stops them in order.

It never waits for a child: starts, ends and times all come as messages, so one slow child holds up no other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from freehold.actors.actor import LATER, Actor
from freehold.actors.cell import Exited, Started, crash_report
from freehold.actors.child import ENDED, Child, State
from freehold.actors.policy import Exit, Verdict, backoff, decide, kind_of, within
from freehold.actors.ref import ActorRef
from freehold.actors.refusal import refuse, stopping
from freehold.actors.reply import Reply
from freehold.actors.spec import ChildSpec, Down, SupervisorSpec
from freehold.schema.errors import Crashed, Error, Quarantined, Refused, Unavailable, is_ours
from freehold.schema.limits import ASK_TIMEOUT_S, CLOSE_TIMEOUT_S
from freehold.storage.clock import Clock

SupervisorState = Literal["starting", "running", "stopping", "stopped", "escalated"]

_JOIN_S = 1.0

log = logging.getLogger("freehold.actors")


class StartChild(NamedTuple):
    """Start a child, or join the one of that name; the answer, its ref, comes when it is ready."""

    spec: ChildSpec


class StopChild(NamedTuple):
    """Stop a child; the answer comes when everything that it held is closed."""

    name: str


class Shutdown(NamedTuple):
    """Stop every child and then the supervisor."""

    timeout: float


class Monitor(NamedTuple):
    """Tell *watcher* a Down for each end of a child."""

    name: str
    watcher: ActorRef[Down]


class SupervisorActor(Actor[Any]):
    """Supervises the children of one spec, and others started later."""

    def __init__(self, spec: SupervisorSpec, clock: Clock, timeout: float = ASK_TIMEOUT_S) -> None:
        self.spec = spec
        self.clock = clock
        self.timeout = timeout
        self.children: dict[str, Child] = {}
        self.state: SupervisorState = "starting"
        self._ordered = [child.name for child in spec.children]
        self._shutdown_until: float | None = None
        self.late: list[str] = []

    def started(self) -> None:
        """Start the spec's children from left to right; a failing one takes down those before it, and is raised."""
        for spec in self.spec.children:
            child = self._launch(spec)
            self._live_until(lambda child=child: child.state is not State.STARTING)  # type: ignore[misc]
            if child.state is not State.RUNNING:
                self._begin_shutdown(CLOSE_TIMEOUT_S)
                self._live_until(lambda: self.ending)
                raise child.reason if child.reason is not None else Crashed(f"{spec.name} ended while it was being started")
        self.state = "running"

    def _live_until(self, come: Callable[[], bool]) -> None:
        """Handle reports and times before the mailbox is open to others."""
        while not come():
            if self.ref.mailbox.wait(self.wake_at()):
                for envelope in self.ref.mailbox.take(1, 1):
                    self.receive(envelope.message)
            else:
                self.idle()

    def receive(self, message: Any) -> object:
        """Handle a request from outside, or a report from a child."""
        match message:
            case StartChild(spec):
                return self._start_child(spec)
            case StopChild(name):
                return self._stop_child(name)
            case Shutdown(timeout):
                self._begin_shutdown(timeout)
            case Monitor(name, watcher):
                self._child(name).watchers.append(watcher)
                return None
            case Started():
                self._on_started(message)
            case Exited():
                self._on_exited(message)
            case _:
                return super().receive(message)
        return None

    def wake_at(self) -> float | None:
        """Return the next due restart or rung."""
        return min((at for child in self.children.values() if (at := child.wake_at()) is not None), default=None)

    def idle(self) -> None:
        """Do what is due."""
        now = self.clock.monotonic()
        for child in list(self.children.values()):
            if (at := child.wake_at()) is None or at > now:
                continue
            if child.state is State.WAITING:
                child.restarts += 1
                self._start(child)
            else:
                child.climb(now)
                if child.state is State.ABANDONED:
                    self._abandoned(child)
        self._advance_shutdown()

    def may_end(self) -> bool:
        """A supervisor ends when its children have, not before."""
        return False

    def stopped(self, reason: BaseException | None) -> None:
        """Leave no child behind, even if a fault of ours ends the supervisor: whose mailbox is closed comes to its end."""
        for child in list(self.children.values()):
            if child.state not in ENDED:
                child.state = State.STOPPING
                self._close(child)
        if reason is not None and self.state != "escalated":
            self.state = "stopped"

    # Starting

    def _start_child(self, spec: ChildSpec) -> object:
        if self.state != "running":
            raise stopping()
        child = self.children.get(spec.name)
        if child is None or child.state is State.STOPPED:
            self._launch(spec, self.asker)
            return LATER
        if child.state in ENDED:
            raise self.set_aside(child)
        if child.state is State.RUNNING:
            return child.ref
        if child.state is State.STOPPING:
            raise stopping()
        if self.asker is not None:
            child.starters.append(self.asker)
        return LATER

    def _launch(self, spec: ChildSpec, starter: Reply | None = None) -> Child:
        child = self.children[spec.name] = Child(spec, self.timeout)
        if starter is not None:
            child.starters.append(starter)  # before the start, which may fail here and now
        self._start(child)
        return child

    def _start(self, child: Child) -> None:
        try:
            child.launch(self._hear)
        except BaseException as error:  # noqa: BLE001 - its maker failed, or no thread could be had: a start that failed
            self._ended(child, error, failed_start=True)

    def _hear(self, report: Started | Exited) -> None:
        """Take a child's report, in the child's thread. A child that was left behind may end after its supervisor."""
        try:
            self.ref.system(report)
        except Unavailable:
            if isinstance(report, Exited):
                self.has_come_back(report)

    def has_come_back(self, report: Exited) -> None:
        """Take note of the end of a child that comes after the supervisor's own."""
        name = report.cell.actor.ref.name
        self._no_longer_late(name)
        log.info("%s: %s has ended at last", self.spec.name, name)

    def _on_started(self, report: Started) -> None:
        child = self._of(report)
        if child is None or child.state is not State.STARTING:
            return
        child.state = State.RUNNING
        child.answer(child.starters, child.ref)

    # Ending

    def _on_exited(self, report: Exited) -> None:
        child = self._of(report)
        report.cell.join(_JOIN_S)  # it has said its last word, and its thread is on the way out
        if child is not None:
            self._ended(child, report.reason, failed_start=report.failed_start)
        self._advance_shutdown()

    def _ended(self, child: Child, reason: BaseException | None, *, failed_start: bool) -> None:
        stopped = child.state in (State.STOPPING, State.ABANDONED)
        ended = Exit.NORMAL if stopped else kind_of(reason, failed_start=failed_start)
        first_start = failed_start and not child.restarts
        verdict = Verdict.STOP
        if not stopped and not first_start and self._shutdown_until is None:
            verdict = self._decide(child, ended)
        if reason is not None and not first_start:
            crash_report(f"{self.spec.name}/{child.spec.name}", reason)
        child.reason = self.told_reason(reason)
        child.cell = None
        self._no_longer_late(child.spec.name)
        self._carry_out(child, verdict)
        self._tell_down(child, Down(child.spec.name, reason, restarting=verdict is Verdict.RESTART))
        if verdict is Verdict.ESCALATE:
            self.state = "escalated"
            self._begin_shutdown(CLOSE_TIMEOUT_S)

    def _tell_down(self, child: Child, down: Down) -> None:
        for watcher in child.watchers:
            try:
                watcher.tell(down)
            except Error as error:  # the watcher's own affair: it has ended, or is full
                log.warning("%s/%s: %s was not told of its end: %s", self.spec.name, child.spec.name, watcher.name, error.code)

    def _no_longer_late(self, name: str) -> None:
        if name in self.late:
            self.late.remove(name)

    def _decide(self, child: Child, ended: Exit) -> Verdict:
        now = self.clock.monotonic()
        child.ends = [*within(child.ends, now, self.spec.max_seconds), now]
        verdict = decide(child.spec.restart, ended, len(child.ends), self.spec.max_restarts, self.spec.on_excess)
        if verdict is Verdict.RESTART:
            child.due = now + backoff(len(child.ends), self.clock.jitter())
        return verdict

    def _carry_out(self, child: Child, verdict: Verdict) -> None:
        if verdict is Verdict.RESTART:
            child.state = State.WAITING
            return
        child.state = State.QUARANTINED if verdict is Verdict.QUARANTINE else State.STOPPED
        self._close(child)
        if child.state is State.STOPPED and child.spec.name not in self._ordered:
            self.children.pop(child.spec.name, None)

    def _close(self, child: Child) -> None:
        """Tell everybody who still waits for the child how it is."""
        refusal = self.refusal(child)
        lost = refuse(child.ref.mailbox.close(refusal), refusal)
        if lost:
            log.warning("%s/%s: %d messages were never taken up", self.spec.name, child.spec.name, lost)
        child.answer(child.starters, error=_not_started(child.reason))
        child.answer(child.stoppers)

    def _abandoned(self, child: Child) -> None:
        self.late.append(child.spec.name)
        log.error("%s/%s did not stop in time; its thread was left behind", self.spec.name, child.spec.name)
        child.answer(child.stoppers, error=still_stopping([child.spec.name]))
        self._close(child)

    def told_reason(self, reason: BaseException | None) -> BaseException | None:
        """Return what others are told of why a child has ended."""
        return reason

    def refusal(self, child: Child) -> Callable[[], Error]:
        """Return what makes the error for messages to a child that has ended."""
        return (lambda: self.set_aside(child)) if child.state is State.QUARANTINED else stopping

    def set_aside(self, child: Child) -> Error:
        """Return what is said of a child that was quarantined or abandoned."""
        error = Quarantined(f"{child.spec.name} kept failing and was set aside; nothing was changed", actor=child.spec.name)
        error.__cause__ = child.reason
        return error

    # Stopping

    def _stop_child(self, name: str) -> object:
        child = self.children.get(name)
        if child is None or child.state is State.STOPPED:
            return None
        if child.cell is None:
            self._forget(child)
            return None
        if child.state is State.ABANDONED:
            raise still_stopping([name])
        if self.asker is not None:
            child.stoppers.append(self.asker)
        child.begin_stop(self.clock.monotonic(), child.spec.shutdown)
        if child.state in ENDED:
            self._abandoned(child)  # it had no time at all
        return LATER

    def _forget(self, child: Child) -> None:
        child.state = State.STOPPED
        self._close(child)
        self.children.pop(child.spec.name, None)

    def _begin_shutdown(self, timeout: float) -> None:
        until = self.clock.monotonic() + timeout
        self._shutdown_until = until if self._shutdown_until is None else min(until, self._shutdown_until)
        if self.state != "escalated":
            self.state = "stopping"
        self._advance_shutdown()

    def _advance_shutdown(self) -> None:
        """Stop those without an order at once, then the ordered ones from right to left, each when the next is down."""
        while self._shutdown_until is not None and not self.ending:
            left = [child for child in list(self.children.values()) if child.state not in ENDED]
            if not left:
                self._all_down()
                return
            unordered = [child for child in left if child.spec.name not in self._ordered]
            last = max(left, key=lambda child: self._ordered.index(child.spec.name)) if not unordered else None
            group = unordered if last is None else [last]
            down = [self._take_down(child, others=len(left) > len(group)) for child in group]
            if not any(down):
                return

    def _take_down(self, child: Child, *, others: bool) -> bool:
        """Begin to stop *child*; return whether it is down already. While *others* have to stop after it, half the time is theirs."""
        assert self._shutdown_until is not None
        if child.cell is None:
            self._forget(child)
        else:
            now = self.clock.monotonic()
            left = max(0.0, self._shutdown_until - now)
            child.begin_stop(now, min(child.spec.shutdown, left / 2 if others else left))
            if child.state is State.ABANDONED:
                self._abandoned(child)
        return child.state in ENDED

    def _all_down(self) -> None:
        self.ending = True
        if self.state == "escalated":
            raise Crashed(f"{self.spec.name}: a child ended more than {self.spec.max_restarts} times in {self.spec.max_seconds} seconds")
        self.state = "stopped"

    def _child(self, name: str) -> Child:
        try:
            return self.children[name]
        except KeyError:
            raise Refused(f"{self.spec.name} has no child of this name", code="bad_option") from None

    def _of(self, report: Started | Exited) -> Child | None:
        """Return the child whose present incarnation reports; an abandoned one's report comes too late to matter."""
        child = self.children.get(report.cell.actor.ref.name)
        return child if child is not None and child.cell is report.cell else None


def _not_started(reason: BaseException | None) -> BaseException:
    """Return what those are told who wanted a child that ended for this reason: whatever it did, nothing of theirs was done."""
    if reason is None:
        return stopping()
    if is_ours(reason):
        assert isinstance(reason, Error)
        reason = reason.copy()
        reason.executed = "no"
    return reason


def still_stopping(names: list[str]) -> Unavailable:
    """Return what is said when the time to stop was up before everything had stopped."""
    return Unavailable(f"not stopped in time: {', '.join(names)}; what was acknowledged is safe", code="still_stopping", actors=names)
