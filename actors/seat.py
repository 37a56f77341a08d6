"""What of a run outlives the restarts of its actor: its path, its leases, who is at its steps, and what a failed COMMIT has left open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from freehold.actors.claims import Claims
from freehold.actors.envelope import Envelope
from freehold.actors.leases import LeaseBook
from freehold.schema.errors import Error, StorageFailed
from freehold.schema.rows import RunRow
from freehold.schema.secrets import SecretFilter
from freehold.storage.clock import Clock
from freehold.storage.journal import Head
from freehold.storage.path import RunPath
from freehold.storage.pin import Pin


class PinBox:
    """The pin of a file that was just created. Whoever takes it first has it, once: its new owner, or its creator again."""

    __slots__ = ("_pins",)

    def __init__(self, pin: Pin) -> None:
        self._pins = [pin]

    def take(self) -> Pin | None:
        """Return the pin, or None if it was taken before."""
        try:
            return self._pins.pop()
        except IndexError:
            return None


@dataclass(slots=True)
class Doubt:
    """Turns whose COMMIT failed. Whether transaction *txn* of *epoch* is in the file, the next incarnation will see."""

    txn: int
    epoch: int
    turns: list[Envelope]
    code: int = 0
    """What SQLite said of the COMMIT."""

    def settle(self, *, happened: bool, error: Error) -> None:
        """Answer the truth."""
        for envelope in self.turns:
            if not happened and envelope.error is None:
                envelope.error = error.copy()
            envelope.answer()


class Seat:
    """One run's place in its host."""

    def __init__(
        self,
        path: RunPath,
        clock: Clock,
        *,
        idle_timeout: float,
        vfs: str | None = None,
        box: PinBox | None = None,
        socket: Callable[[], str | None] | None = None,
        secrets: SecretFilter | None = None,
    ) -> None:
        self.path = path
        self.clock = clock
        self.idle_timeout = idle_timeout
        self.vfs = vfs
        self.socket = socket
        """Returns the name under which other processes can ask the host, which is made when it is needed first."""
        self.secrets = secrets
        self.book = LeaseBook(path.id)
        self.claims = Claims()
        self.epoch: int | None = None
        self.head: Head | None = None
        """What the last incarnation has acknowledged; a file without it is another one, or an older copy."""
        self.doubt: Doubt | None = None
        self.is_suspect = False
        """Whether somebody has overwritten the file under us: it is not owned again before all of it was checked."""
        self.closed: Callable[[Pin, RunRow, int], None] | None = None
        """Told what the file says at its clean close, while its lock is still held."""
        self._box = box

    def last_word(self, pin: Pin, row: RunRow, events: int) -> None:
        """Tell whoever wants to know what the file says at its end."""
        if self.closed is not None:
            self.closed(pin, row, events)

    def take_pin(self) -> Pin | None:
        """Return the pin that a creation has left, once."""
        return None if self._box is None else self._box.take()

    def resolve(self, *, happened: bool | None) -> None:
        """Answer what a failed COMMIT left open; None when the file could not be asked."""
        doubt, self.doubt = self.doubt, None
        if doubt is None:
            return
        what = "nothing of this request was kept" if happened is False else "whether this request was kept is not known"
        error = StorageFailed(
            f"the commit failed; {what}",
            executed="no" if happened is False else "unknown",
            phase="commit",
            rolled_back=happened is False,
            sqlite_extended_code=doubt.code,
        )
        doubt.settle(happened=happened is True, error=error)
