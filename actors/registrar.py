"""The registrar: alone holds this host's connection on the folder's host file, and says there that the host lives and what it drives.

Nobody waits for it who works on runs. Where there can be no host file, whoever asks is told so, and it tries again later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from freehold.actors.actor import Actor
from freehold.actors.deadline import monotonic
from freehold.schema.errors import Error, Unavailable
from freehold.schema.limits import BUSY_TIMEOUT_MS, HOST_FILE_LOOK_S, HOST_FILE_TELL_BUSY_MS
from freehold.schema.rows import Known, WakeupRow
from freehold.storage.clock import Clock
from freehold.storage.entry import Entry
from freehold.storage.hostfile import HostFile
from freehold.storage.known import forget, put_known, read_known
from freehold.storage.living import claim_driver, driven_elsewhere, leave_host, read_driver, read_hosts, release_driver
from freehold.storage.wakeups import next_due, put_wakeup, take_due

REGISTRAR = ".registrar"
"""Its name in the tree, which no run can have."""

_PASSING = frozenset({"database_busy", "changed_while_reading", "no_descriptors"})
"""Errors after which the connection is as good as before."""

T = TypeVar("T")
log = logging.getLogger("freehold.actors")


class Ran(NamedTuple):
    """Tell: these runs were looked at or closed, and this is what they said."""

    known: Sequence[Known]


class Gone(NamedTuple):
    """Tell: the files of these runs are not there any more."""

    runs: Sequence[str]


class Listens(NamedTuple):
    """Tell: the host has a socket of this name, or none."""

    socket: str | None


class ReadKnown(NamedTuple):
    """Ask: what is known of runs, by what the host file calls them."""


class ReadHosts(NamedTuple):
    """Ask: the hosts that live, this one too."""


class ClaimDriver(NamedTuple):
    """Ask: let this host drive a run. The answer is its row; refused (driven_elsewhere) while another host that lives does."""

    run: str


class ReleaseDriver(NamedTuple):
    """Ask: this host drives that run no longer."""

    run: str


class ReadDriver(NamedTuple):
    """Ask: the row of the host that drives a run, or None."""

    run: str


class PutWakeup(NamedTuple):
    """Ask: have a run looked at later."""

    wakeup: WakeupRow


class TakeDue(NamedTuple):
    """Ask: the wake-ups that are due. No other host gets them."""


class NextDue(NamedTuple):
    """Ask: when the next wake-up is due, in milliseconds since 1970, or None."""


class Registrar(Actor[Any]):
    """One incarnation of it, for the folder *root*, which is there."""

    def __init__(self, root: str, clock: Clock, entry: Entry) -> None:
        self._root = root
        self._clock = clock
        self._entry = entry
        self._file: HostFile | None = None
        self._without: Error | None = None
        self._said: Error | None = None
        self._busy_ms = BUSY_TIMEOUT_MS
        self._is_held = False
        """Whether somebody was found to hold the file for longer than anybody should: a process that stands still, perhaps."""
        self._due = monotonic()

    def wake_at(self) -> float | None:
        """Return when to look for the file next: at once, for a start."""
        return self._due

    def idle(self) -> None:
        """Look whether the file is there, and say again what this host says if it is a new one."""
        self._due = monotonic() + HOST_FILE_LOOK_S
        self._said, self._without = self._without, None  # once more
        self._leave_it_or(lambda: self._use().look())

    def stopped(self, reason: BaseException | None) -> None:
        """Take the host's row out after a clean end, and give the file back."""
        file, self._file = self._file, None
        if file is None:
            return
        file.wait_at_most(self._moment_ms())
        try:
            if reason is None and file.is_there():
                file.write(lambda db: leave_host(db, self._entry.host.id))
        except Error as error:
            log.info("%s: the host is not taken out of it: %s", file.file, error.code)  # its process ends, and so does its row
        finally:
            file.close()

    def interrupt(self) -> None:
        """Cut short a statement that runs too long."""
        if (file := self._file) is not None:
            file.interrupt()

    def doing(self) -> str | None:
        """Return why there is no host file, if there is none."""
        return None if self._without is None else f"without a host file: {self._without.code}"

    def receive(self, message: Any) -> object:
        """Handle one message. Raises Unavailable: no_host_file with its cause, driven_elsewhere, database_busy."""
        match message:
            case Ran(known):
                self._tell(lambda db: put_known(db, known))
            case Gone(runs):
                self._tell(lambda db: forget(db, runs))
            case Listens(socket):
                self._entry.host = self._entry.host._replace(socket=socket)
                self._tell(self._entry.say)
            case ReadKnown():
                return self._ask(lambda: self._use().read(read_known))
            case ReadHosts():
                return self._ask(lambda: self._use().read(read_hosts))
            case ReadDriver(run):
                return self._ask(lambda: self._use().read(lambda db: read_driver(db, run)))
            case ClaimDriver(run):
                return self._claim(run)
            case ReleaseDriver(run):
                self._entry.driven.pop(run, None)
                return self._write(lambda db: release_driver(db, run, self._entry.host.id))
            case PutWakeup(wakeup):
                return self._write(lambda db: put_wakeup(db, wakeup))
            case TakeDue():
                return self._write(lambda db: take_due(db, self._clock.now_ms()))
            case NextDue():
                return self._ask(lambda: self._use().read(next_due))
            case _:
                return super().receive(message)
        return None

    def _claim(self, run: str) -> object:
        found = self._write(lambda db: claim_driver(db, run, self._entry.host, self._clock.now_ms()))
        if found.host.id != self._entry.host.id:
            self._entry.driven.pop(run, None)
            raise driven_elsewhere(found)
        self._entry.driven[run] = found.since
        return found

    def _write(self, work: Callable[[Any], T]) -> T:
        return self._ask(lambda: self._use().write(work))

    def _ask(self, work: Callable[[], T], busy_ms: int | None = None) -> T:
        """Return what *work* returns. Raises what is said without a host file, at once, until it is looked for again."""
        if self._file is None and self._without is not None:
            raise _no_host_file(self._without)
        self._busy_ms = BUSY_TIMEOUT_MS if busy_ms is None else busy_ms
        if self._file is not None:
            self._file.wait_at_most(self._busy_ms)
        try:
            return work()
        except Error as error:
            if error.code in _PASSING:
                raise
            self._give_up(error)
            raise _no_host_file(error) from None

    def _tell(self, work: Callable[[Any], None]) -> None:
        """Do *work*, or leave it: nobody waits for it, and what is not written is looked for when it is wanted."""
        self._leave_it_or(lambda: self._use().write(work))

    def _leave_it_or(self, work: Callable[[], object]) -> None:
        try:
            self._ask(work, self._moment_ms())
            self._is_held = False
        except Unavailable as error:
            self._is_held = error.code == "database_busy"
            log.info("%s: something was not written into its host file: %s", self._root, error.code)

    def _moment_ms(self) -> int:
        """Return how long to wait for others where nobody waits for us: the end of a host must not take as long as they do."""
        return 0 if self._is_held else HOST_FILE_TELL_BUSY_MS

    def _use(self) -> HostFile:
        if self._file is None:
            file = HostFile(self._root, self._entry.say, busy_ms=self._busy_ms)
            try:
                file.write(self._entry.say)
            except BaseException:
                file.close()
                raise
            self._file, self._said = file, None
        return self._file

    def _give_up(self, error: Error) -> None:
        """Go on without the file until it is looked for again; what is wrong with it is said once."""
        if self._said is None or self._said.code != error.code:
            log.warning("%s; the hosts of this folder go on without it", error)
        self._without = self._said = error
        file, self._file = self._file, None
        if file is not None:
            file.close()


def _no_host_file(cause: Error) -> Unavailable:
    error = Unavailable(f"there is no host file to ask ({cause.code}); nothing was changed", code="no_host_file", reason=cause.code)
    error.__cause__ = cause
    return error
