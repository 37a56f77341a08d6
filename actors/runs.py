"""The supervisor of a host's runs: one child a canonical file, started when asked for, set aside when it keeps failing."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from freehold.actors.cell import Started
from freehold.actors.child import ENDED, Child, State
from freehold.actors.deadline import monotonic, pause
from freehold.actors.envelope import Lane
from freehold.actors.knowing import look_at_known
from freehold.actors.leases import Lease, lost
from freehold.actors.listener import Door, Listen, Listener
from freehold.actors.ref import ActorRef
from freehold.actors.registrar import REGISTRAR, Listens, Ran, ReadKnown, Registrar
from freehold.actors.run import RunActor
from freehold.actors.seat import PinBox, Seat
from freehold.actors.spec import ChildSpec, SupervisorSpec
from freehold.actors.supervision import StartChild, SupervisorActor
from freehold.actors.supervisor import Supervisor
from freehold.actors.tree import picture
from freehold.schema.errors import Error, RunNotFound, Unavailable, is_ours
from freehold.schema.ids import socket_name
from freehold.schema.limits import ASK_TIMEOUT_S, CLOSE_TIMEOUT_S, HOST_FILE_END_S, KNOWN_TIMEOUT_S, OPENER_WAIT_S
from freehold.schema.messages import OpenLease
from freehold.schema.rows import Known, RunRow
from freehold.schema.secrets import SecretFilter
from freehold.storage.clock import Clock
from freehold.storage.entry import Entry
from freehold.storage.faults import Poisoned
from freehold.storage.known import known_as
from freehold.storage.path import RunPath
from freehold.storage.pin import Pin
from freehold.storage.platform import Inode, inode_of
from freehold.storage.registry import REGISTRY
from freehold.storage.stamp import seal

log = logging.getLogger("freehold.actors")

LISTENER = ".listener"
"""The child that others come in through; no run id begins with a dot."""


class StartRun(NamedTuple):
    """Own the run at *path*, or join the actor that does; *box* holds what its creation has left."""

    path: RunPath
    box: PinBox | None = None


class StartRegistrar(NamedTuple):
    """Start the registrar, if it is not there; the answer is its ref, or None of a host that has none."""


class RunsActor(SupervisorActor):
    """Keeps a seat for every run that is owned here."""

    def __init__(
        self,
        root: str,
        spec: SupervisorSpec,
        clock: Clock,
        timeout: float,
        *,
        idle_timeout: float,
        vfs: str | None,
        registers: bool,
        secrets: SecretFilter,
    ) -> None:
        super().__init__(spec, clock, timeout)
        self._entry = Entry(clock) if registers else None
        self._ordered = [REGISTRAR, LISTENER]  # stopped when no run is left to be asked for, the listener first
        door = Door(root, socket_name(clock.random(8)), self, secrets)
        self._listener = ChildSpec(LISTENER, lambda: Listener(door), shutdown=CLOSE_TIMEOUT_S)
        self._root = root
        self._secrets = secrets
        self._idle_timeout = idle_timeout
        self._vfs = vfs
        self._seats: dict[str, Seat] = {}
        self._listens: str | None = None  # before each run is owned its actor finds it out
        self._told: str | None = None

    def receive(self, message: Any) -> object:
        """Handle StartRun, and everything that a supervisor handles."""
        if isinstance(message, StartRun):
            return self._start_run(message.path, message.box)
        if isinstance(message, StartRegistrar):
            return None if (ref := self._registrar()) is None else ref
        return super().receive(message)

    def _registrar(self) -> ActorRef[Any] | None:
        """Return the registrar, which is started for the first run that is owned here, or for who asks for it."""
        entry = self._entry
        if entry is None or self.state != "running":
            return None
        child = self.children.get(REGISTRAR)
        if child is None:
            entry.host = entry.host._replace(socket=self._listens)  # whoever finds its row can ask it
            self._told = self._listens
            spec = ChildSpec(REGISTRAR, lambda: Registrar(self._root, self.clock, entry), shutdown=HOST_FILE_END_S)
            child = self._launch(spec)
        return child.ref

    def _on_started(self, report: Started) -> None:
        super()._on_started(report)
        seat = self._seats.get(report.cell.actor.ref.name)
        if seat is not None and seat.closed is None and (registrar := self._registrar()) is not None:
            seat.closed = lambda pin, row, events: self._closed(registrar, pin, row, events)
            if self._listens != self._told:
                with suppress(Error):  # it is full or has ended: then it is told with the next run
                    registrar.tell(Listens(self._listens))
                    self._told = self._listens

    def _closed(self, registrar: ActorRef[Any], pin: Pin, row: RunRow, events: int) -> None:
        """Tell the registrar what a file says that is just being given back, in its owner's thread and while that has its lock."""
        if (stamp := seal(pin, self.clock)) is not None:
            known = Known(known_as(pin.path, self._root), stamp, sealed=True, seen_at=self.clock.now_ms(), row=row, events=events)
            with suppress(Error):  # it is full or has ended: then the file is looked at when somebody wants to know
                registrar.tell(Ran((known,)))

    def _start_run(self, path: RunPath, box: PinBox | None) -> object:
        name = self.name_of(path)
        child = self.children.get(name)
        if name in self._seats and child is not None and child.state not in ENDED:
            if box is not None and child.state is not State.STOPPING and (pin := box.take()) is not None:
                pin.close()  # somebody saw the new file before its creator came here: this child waits for its place
            return self._start_child(child.spec)
        seat = Seat(path, self.clock, idle_timeout=self._idle_timeout, vfs=self._vfs, box=box, socket=self._socket, secrets=self._secrets)
        if child is None or child.state is State.STOPPED:
            self._seats[name] = seat
        return self._start_child(ChildSpec(name, lambda: RunActor(seat), restart="transient", shutdown=CLOSE_TIMEOUT_S))

    def _socket(self) -> str | None:
        """Return the name under which other processes can ask this host, or None where they cannot. Called by run actors.

        The listener is started by whoever is the first to own a run. A supervisor waits for nobody, so it may be asked.
        """
        name: str | None
        try:
            listener = self.ref.ask(StartChild(self._listener))
            name = listener.ask(Listen())
        except Error:
            name = None  # it could not be started, or all ends just now: the run is owned all the same
        self._listens = name
        return name

    def find(self, run_id: str, inode: Inode) -> ActorRef[Any] | None:
        """Return the ref of the child that owns this very file, or None. Called from other threads."""
        owner = REGISTRY.owner_of(inode)
        if not isinstance(owner, ActorRef):
            return None
        child, seat = self.children.get(owner.name), self._seats.get(owner.name)
        return owner if child is not None and child.ref is owner and seat is not None and seat.path.id == run_id else None

    def picture(self) -> dict[str, Any]:
        """Return the tree as plain data. Called from other threads."""
        return picture(self).record()

    def name_of(self, path: RunPath) -> str:
        """Return the child that owns this very file under whatever spelling, else the file's own name."""
        owner = owner_of(path)
        if owner is not None and (child := self.children.get(owner.name)) is not None and child.ref is owner:
            return owner.name  # not another host's, which may have the same name
        return path.id if path.folder == self._root else path.file

    def _abandoned(self, child: Child) -> None:
        """Wait for no registrar that is held up inside SQLite, where nothing cuts it short: its file is a cache, and it ends by itself."""
        if child.spec.name != REGISTRAR:
            super()._abandoned(child)
            return
        log.warning("%s: its host file is held by a process that stands still, and is left as it is", self._root)
        self._close(child)

    def told_reason(self, reason: BaseException | None) -> BaseException | None:
        """Tell of a run whose connection was given up why that was."""
        return reason.error if isinstance(reason, Poisoned) else reason

    def refusal(self, child: Child) -> Callable[[], Error]:
        """Say to those who hold a lease on a run that is owned here no longer that they have lost it."""
        seat = self._seats.get(child.spec.name)
        if seat is None or child.state is State.QUARANTINED:
            return super().refusal(child)
        cause = child.reason if is_ours(child.reason) else None
        return lambda: lost(seat.path.id, cause)

    def _close(self, child: Child) -> None:
        super()._close(child)
        if (seat := self._seats.pop(child.spec.name, None)) is not None:
            seat.book.lose_all(child.reason if is_ours(child.reason) else None)
            seat.resolve(happened=None)


class Runs(Supervisor):
    """The runs that one host owns, as the host holds them."""

    def __init__(
        self,
        root: str,
        clock: Clock,
        *,
        timeout: float = ASK_TIMEOUT_S,
        idle_timeout: float = 60.0,
        vfs: str | None = None,
        registers: bool = False,
        secrets: SecretFilter | None = None,
    ) -> None:
        """*registers*: whether the host tells the others of its folder that it is there, in the host file.

        *secrets* are those of this host: what other processes send is held against them once more.
        """
        self._root = root
        spec = SupervisorSpec(Path(root).name or root, max_restarts=3, max_seconds=5.0, on_excess="quarantine")
        filters = secrets if secrets is not None else SecretFilter()
        self._runs = RunsActor(root, spec, clock, timeout, idle_timeout=idle_timeout, vfs=vfs, registers=registers, secrets=filters)
        self._start(self._runs, timeout)

    def lease(self, path: RunPath, box: PinBox | None = None) -> tuple[ActorRef[Any], Lease]:
        """Own *path*, if it is not owned here yet, and return its ref and a new lease on it.

        What is still in *box* afterwards was not taken. Raises what keeps the run from being owned, as itself;
        Quarantined; Unavailable (stopping).
        """
        until = monotonic() + OPENER_WAIT_S
        while True:
            try:
                return self._lease(path, box)
            except RunNotFound:
                # Just created, it has joined a child that had looked for it before it was there.
                if box is None or monotonic() >= until:
                    raise
            except Unavailable as error:
                # The run is being given back just now, and can be had again in a moment.
                if error.code not in ("lease_lost", "stopping") or self.state != "running" or monotonic() >= until:
                    raise
            pause()

    def _lease(self, path: RunPath, box: PinBox | None) -> tuple[ActorRef[Any], Lease]:
        ref = self.ref.ask(StartRun(path, box))
        assert isinstance(ref, ActorRef)
        lease = Lease()
        try:
            ref.call(OpenLease(), lease, lane=Lane.SYSTEM)
        except BaseException:
            lease.closed = True  # it may have been entered all the same
            ref.mailbox.post(lease)
            raise
        return ref, lease

    @property
    def registrar(self) -> ActorRef[Any] | None:
        """The registrar, if this host has owned a run; it stays the same through restarts."""
        child = self._runs.children.get(REGISTRAR)
        return None if child is None else child.ref

    def start_registrar(self) -> ActorRef[Any]:
        """Return the registrar, started if it is not there yet. Raises Unavailable (no_host_file) where the host has none."""
        ref = self.ref.ask(StartRegistrar())
        if not isinstance(ref, ActorRef):
            raise Unavailable("this host keeps no host file; nothing was changed", code="no_host_file", reason="none")
        return ref

    def known(self) -> dict[str, Known]:
        """Return what the folder's host file knows of runs, by what it calls them; nothing, and a line in the log, if it cannot be read."""
        try:
            if (registrar := self.registrar) is None:
                return look_at_known(self._root)
            found: dict[str, Known] = registrar.ask(ReadKnown(), timeout=KNOWN_TIMEOUT_S)
        except Error as error:
            log.warning("%s: every run is looked at by itself, because the host file cannot be read: %s", self._root, error)
            return {}
        return found

    def tell_registrar(self, message: object) -> None:
        """Tell the registrar, if there is one; what it does not take is found again when it is wanted."""
        if (registrar := self.registrar) is not None:
            with suppress(Error):  # it is full or has ended
                registrar.tell(message)

    def owned(self, path: RunPath) -> ActorRef[Any] | None:
        """Return the ref of this host's own child for *path*, in whatever state it is, or None."""
        child = self._runs.children.get(self._runs.name_of(path))
        return None if child is None else child.ref


def owner_of(path: RunPath) -> ActorRef[Any] | None:
    """Return the ref of the actor of this process that owns *path*, whichever host's it is, or None."""
    try:
        found = os.lstat(path.file)
    except OSError:
        return None
    if found.st_nlink > 1:
        return None  # it may be owned by its other name; a hard link is refused, whoever owns it
    owner = REGISTRY.owner_of(inode_of(found))
    return owner if isinstance(owner, ActorRef) else None
