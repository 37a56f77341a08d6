"""A disk that fails or holds on where a test says: SQLite's own file system with a fault at the nth write, sync or read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import apsw

from freehold.host import Host

EIO = apsw.SQLITE_IOERR_FSYNC
FULL = apsw.SQLITE_FULL
_NUMBERS = count(1)


@dataclass
class Fault:
    """The nth *operation* on the file with *suffix* fails with *code*, and with *sticky* every write and sync after it too."""

    operation: str
    suffix: str
    code: int
    nth: int
    sticky: bool
    until_closed: bool
    fired: int = 0

    def strikes(self, operation: str, suffix: str) -> bool:
        """Count one operation; return whether it is to fail."""
        if self.sticky and self.fired:
            return operation in ("write", "sync")
        if (operation, suffix) != (self.operation, self.suffix):
            return False
        self.nth -= 1
        return self.nth == 0


@dataclass
class Held:
    """An operation that waits. `reached` is set when it has come; it goes on with `release`."""

    operation: str
    suffix: str
    reached: threading.Event = field(default_factory=threading.Event)
    going: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        """Let it go on."""
        self.going.set()


class Disk(apsw.VFS):
    """A file system named `name`, healthy until `arm`ed. It exists for as long as this object does."""

    def __init__(self) -> None:
        self.name = f"faulty-{next(_NUMBERS)}"
        self.fault: Fault | None = None
        self.held: Held | None = None
        self.syncs = 0
        super().__init__(self.name, "")

    def arm(
        self, operation: str, suffix: str = "-wal", *, code: int = EIO, nth: int = 1, sticky: bool = False, until_closed: bool = False
    ) -> Fault:
        """Let the nth operation (write, sync, read) on the run file's *suffix* fail from now on.

        *sticky*: and every write and sync after it; *until_closed*: until the -wal has been closed.
        """
        self.fault = fault = Fault(operation, suffix, code, nth, sticky, until_closed)
        return fault

    def heal(self) -> None:
        """Fail no more."""
        self.fault = None

    @contextmanager
    def hold(self, operation: str = "sync", suffix: str = "-wal") -> Iterator[Held]:
        """Let the next such operation wait until it is released, at the latest at the end of the block."""
        self.held = held = Held(operation, suffix)
        try:
            yield held
        finally:
            held.release()

    def meet(self, operation: str, suffix: str) -> None:
        """Do to an operation what was asked for."""
        if operation == "sync" and suffix == "-wal":
            self.syncs += 1
        held = self.held
        if held is not None and (held.operation, held.suffix) == (operation, suffix):
            self.held = None
            held.reached.set()
            assert held.going.wait(30)
        if self.fault is not None and self.fault.strikes(operation, suffix):
            self.fault.fired += 1
            raise apsw.exception_for(self.fault.code)  # SQLite takes the code from there

    def xOpen(self, name: Any, flags: list[int]) -> _File:  # noqa: N802 - SQLite's own name
        return _File(self, name, flags)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        text = name if isinstance(name, str) else name.filename() if name is not None else ""
        self._suffix = text.rpartition(".sqlite")[2]
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's own name
        self._disk.meet("write", self._suffix)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's own name
        self._disk.meet("sync", self._suffix)
        super().xSync(flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's own name
        self._disk.meet("read", self._suffix)
        return super().xRead(amount, offset)

    def xClose(self) -> None:  # noqa: N802 - SQLite's own name
        super().xClose()
        fault = self._disk.fault
        if self._suffix == "-wal" and fault is not None and fault.until_closed and fault.fired:
            self._disk.heal()


def put_on(disk: Disk, host: Host) -> None:
    """Let *host* open the runs that it does not own yet through *disk*."""
    host._runs.actor._vfs = disk.name  # type: ignore[attr-defined]
