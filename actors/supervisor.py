"""The supervisor as its owner holds it: start it, look at it, stop it. The actor behind it is in supervision.py."""

from __future__ import annotations

import atexit
import logging
from contextvars import Context
from types import TracebackType
from typing import Any, Self
from weakref import WeakSet

from freehold.actors.cell import Cell, Exited, Started, crash_report
from freehold.actors.child import ENDED, State
from freehold.actors.deadline import CHAIN, exceeded, monotonic
from freehold.actors.envelope import Envelope, Lane
from freehold.actors.ref import ActorRef
from freehold.actors.refusal import refuse, stopping
from freehold.actors.reply import Reply
from freehold.actors.spec import ChildSpec, Down, SupervisorSpec
from freehold.actors.supervision import Monitor, Shutdown, StartChild, StopChild, SupervisorActor, SupervisorState, still_stopping
from freehold.actors.tree import Node, picture
from freehold.schema.errors import Error, InsideTransaction, Unavailable
from freehold.schema.limits import ASK_TIMEOUT_S, CLOSE_TIMEOUT_S
from freehold.storage import forks
from freehold.storage.clock import Clock

_GRACE_S = 1.0
_QUIET_S = 1.0
"""A stop that takes no longer is not worth a word."""

log = logging.getLogger("freehold.actors")


class Supervisor:
    """A running supervision tree.

    >>> from freehold.actors import Actor, ChildSpec, Supervisor, SupervisorSpec
    >>> class Upper(Actor[str]):
    ...     def receive(self, message: str) -> str:
    ...         return message.upper()
    >>> with Supervisor(SupervisorSpec("letters", [ChildSpec("upper", Upper)])) as tree:
    ...     tree["upper"].ask("hi")
    'HI'
    """

    def __init__(self, spec: SupervisorSpec, *, clock: Clock | None = None, timeout: float = ASK_TIMEOUT_S) -> None:
        """Start the supervisor and the children of *spec*; whatever keeps one from starting is raised."""
        self._start(SupervisorActor(spec, clock or Clock(), timeout), timeout)

    def _start(self, actor: SupervisorActor, timeout: float) -> None:
        self.actor = actor
        self.ref: ActorRef[Any] = ActorRef(actor.spec.name, timeout=timeout)
        actor.ref = self.ref
        self._ready = Reply()
        self._ended = Reply()
        self._cell = Cell(actor, self._report)
        self._cell.launch()
        _RUNNING.add(self)
        forks.watch(self)
        try:
            self._ready.get(timeout)
        except BaseException as error:
            if error is not self._ready.error:
                self._shut_down(0.0)  # too slow, or the starter was interrupted: nothing stays behind
            else:
                self._cell.join(_GRACE_S)
            if error is not self._ready.error and isinstance(error, TimeoutError):
                raise exceeded("unknown") from None
            raise

    def _report(self, report: Started | Exited) -> None:
        if isinstance(report, Started):
            self._ready.set()
            return
        rest = self.ref.mailbox.close(stopping)
        refuse(rest, stopping)
        for envelope in rest:
            if isinstance(envelope.message, Exited):
                self.actor.has_come_back(envelope.message)
        if report.reason is not None:
            self._ready.fail(report.reason)
            if not report.failed_start:
                crash_report(self.ref.name, report.reason)
        self._ended.set()

    def __getitem__(self, name: str) -> ActorRef[Any]:
        """Return the ref of a child, which stays the same through its restarts. Raises KeyError."""
        return self.actor.children[name].ref

    def children(self) -> list[str]:
        """Return the names of the children that have not ended, in the order of their start."""
        return [child.spec.name for child in list(self.actor.children.values()) if child.state not in ENDED]

    @property
    def state(self) -> SupervisorState:
        """Where the supervisor stands; escalated: a child crashed too often and all were stopped."""
        return self.actor.state

    @property
    def ended(self) -> bool:
        """Whether the supervisor itself has ended."""
        return self._ended.is_set

    def tree(self) -> Node:
        """Return a picture of the tree; works while an actor is stuck."""
        return picture(self.actor)

    def start_child(self, spec: ChildSpec) -> ActorRef[Any]:
        """Start a child and return its ref when it is ready, or the ref of the running one of that name.

        Raises what kept it from starting, Quarantined, or Unavailable (stopping).
        """
        ref = self.ref.ask(StartChild(spec))
        assert isinstance(ref, ActorRef)
        return ref

    def stop_child(self, name: str) -> None:
        """Stop a child; return when everything that it held is closed.

        Raises Unavailable (still_stopping), and InsideTransaction in a turn of that child.
        """
        self.check_outside(name)
        self.ref.ask(StopChild(name))

    def monitor(self, name: str, watcher: ActorRef[Down]) -> None:
        """Tell *watcher* one Down for each end of the child *name*, after what it held is closed."""
        self.ref.ask(Monitor(name, watcher))

    def stop(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        """Stop the children, last started first, then the supervisor. Stopping twice is fine, and waits for who was late.

        Raises Unavailable (still_stopping) naming those that did not stop within *timeout* seconds; InsideTransaction in a
        turn of one of them, and then nothing was stopped.
        """
        self.check_outside()
        until = monotonic() + timeout
        waited = self._ended.is_set
        if not waited:
            self._shut_down(timeout)
            try:
                self._wait_for_end(until + _GRACE_S)
            except TimeoutError:
                raise still_stopping([self.ref.name]) from None
            self._cell.join(_GRACE_S)
        if late := sorted(name for name in self.actor.late if self._still_runs(name, until if waited else 0.0)):
            raise still_stopping(late)

    def _wait_for_end(self, until: float) -> None:
        """Raises TimeoutError at *until* (monotonic)."""
        try:
            self._ended.get(min(_QUIET_S, max(0.0, until - monotonic())))
        except TimeoutError:
            left = max(0.0, until - monotonic())
            log.warning("%s is stopping; still running: %s; %.0f seconds are left to it", self.ref.name, ", ".join(self._stopping()), left)
            self._ended.get(left)

    def _stopping(self) -> list[str]:
        """Return what is waited for; an ordered child that still runs waits itself."""
        return [child.spec.name for child in list(self.actor.children.values()) if child.state is State.STOPPING]

    def _still_runs(self, name: str, until: float) -> bool:
        child = self.actor.children.get(name)
        return child is None or child.cell is None or not child.cell.join(max(0.0, until - monotonic()))

    def check_outside(self, name: str | None = None) -> None:
        """Raise InsideTransaction in a turn of the child *name*, or of any actor of the tree: it would wait for its own end."""
        children = [child.ref for child in list(self.actor.children.values()) if name in (None, child.spec.name)]
        for ref in [link.ref for link in CHAIN.get() if not link.over]:
            if ref is self.ref or ref in children:
                raise InsideTransaction(f"{ref.name} cannot wait for its own end; stop it from outside. Nothing was changed", run=ref.name)

    def leave(self) -> None:
        """Let the program end without waiting for this tree."""
        _RUNNING.discard(self)

    def forked(self) -> None:
        """In a forked child: there is nothing here that could be stopped."""
        _RUNNING.discard(self)

    def _shut_down(self, timeout: float) -> None:
        try:
            self.ref.mailbox.put(Envelope(Shutdown(timeout), lane=Lane.SYSTEM))
        except Unavailable:
            log.info("%s has ended by itself just now", self.ref.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        self.stop()


_RUNNING: WeakSet[Supervisor] = WeakSet()


def stop_forgotten() -> None:
    """Stop, in order, the trees that nobody has stopped; one that does not stop is named in the log."""
    for tree in list(_RUNNING):
        if tree.ended:
            continue
        log.warning("%s was not stopped; stopping it now", tree.ref.name)
        try:
            Context().run(tree.stop)  # no block in which the program has ended holds it up
        except KeyboardInterrupt:
            log.warning("%s is left as it is", tree.ref.name)
            return
        except Error as error:
            log.error("%s: %s", tree.ref.name, error)  # noqa: TRY400 - our errors say it all in one line


# Before it the hosts close, which register later.
atexit.register(stop_forgotten)
