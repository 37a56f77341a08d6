"""The tables `host` and `driver`: which processes own runs of the folder, and which of them drives a run.

A row of a process that has ended is removed by whoever notices. Of a process in another pid namespace, as in another
container, only its own boot's end is seen; it is taken to live.
"""

from __future__ import annotations

import os
from typing import Any

import apsw

from freehold.schema.errors import Unavailable
from freehold.schema.rows import DriverRow, HostRow, Process
from freehold.storage import platform

_HOST = "h.id, h.hostname, h.boot, h.pid, h.pid_ns, h.pid_start, h.socket, h.opened_at"
_HOSTS = f"SELECT {_HOST} FROM host h ORDER BY h.opened_at, h.id"  # noqa: S608 - names of ours
_DRIVER = f"SELECT d.run, d.since, {_HOST} FROM driver d JOIN host h ON h.id = d.host WHERE d.run = ?"  # noqa: S608 - as above
_ENTER = (
    "INSERT INTO host (id, hostname, boot, pid, pid_ns, pid_start, socket, opened_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET socket = excluded.socket"
)


def this_process() -> Process:
    """Return who we are."""
    pid = os.getpid()
    return Process(platform.hostname(), platform.boot_id(), pid, platform.pid_namespace(), platform.process_start(pid))


def is_living(process: Process) -> bool:
    """Return whether *process* runs, as far as this one can see. A folder is in use by one machine at a time, so another boot is over."""
    if process.boot != platform.boot_id():
        return False
    return process.pid_ns != platform.pid_namespace() or platform.is_running(process.pid, process.pid_start)


def enter_host(db: apsw.Connection, host: HostRow) -> None:
    """Enter *host*, or the socket that it has now, and remove those that have ended."""
    remove_dead(db)
    db.execute(_ENTER, (host.id, *host.process, host.socket, host.opened_at))


def leave_host(db: apsw.Connection, host_id: bytes) -> None:
    """Remove a host, and with it all that it drives."""
    db.execute("DELETE FROM host WHERE id = ?", (host_id,))


def read_hosts(db: apsw.Connection) -> list[HostRow]:
    """Return the hosts whose processes live, the eldest first."""
    return [host for host in _all(db) if is_living(host.process)]


def remove_dead(db: apsw.Connection) -> None:
    """Remove the hosts whose processes have ended."""
    for host in _all(db):
        if not is_living(host.process):
            leave_host(db, host.id)


def claim_driver(db: apsw.Connection, run: str, host: HostRow, now_ms: int) -> DriverRow:
    """Make *host* the driver of *run*, unless a living one drives it already; return the row of whoever drives it now."""
    enter_host(db, host)
    db.execute("INSERT OR IGNORE INTO driver (run, host, since) VALUES (?, ?, ?)", (run, host.id, now_ms))
    found = read_driver(db, run)
    assert found is not None
    return found


def release_driver(db: apsw.Connection, run: str, host_id: bytes) -> None:
    """End what `claim_driver` began, if *host_id* drives the run."""
    db.execute("DELETE FROM driver WHERE run = ? AND host = ?", (run, host_id))


def read_driver(db: apsw.Connection, run: str) -> DriverRow | None:
    """Return which host drives *run*, or None. Whether it lives, `is_living` says."""
    row: tuple[Any, ...] | None = db.execute(_DRIVER, (run,)).fetchone()
    return None if row is None else DriverRow(row[0], _host(row[2:]), row[1])


def driven_elsewhere(found: DriverRow) -> Unavailable:
    """Return what is said to who may not drive a run because another host does."""
    process = found.host.process
    return Unavailable(
        f"{found.run} is driven by pid {process.pid} on {process.hostname} already; nothing was changed",
        code="driven_elsewhere",
        pid=process.pid,
        hostname=process.hostname,
        since=found.since,
    )


def _all(db: apsw.Connection) -> list[HostRow]:
    return [_host(row) for row in db.execute(_HOSTS).fetchall()]


def _host(row: tuple[Any, ...]) -> HostRow:
    return HostRow(row[0], Process._make(row[1:6]), row[6], row[7])
