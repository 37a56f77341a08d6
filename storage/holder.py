"""Naming the process that owns a run: from the file's last tenure, checked against the kernel's own list of locks."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from freehold.schema.errors import Error, Holder, OwnedElsewhere
from freehold.schema.rows import TenureRow
from freehold.schema.times import utc
from freehold.storage import platform
from freehold.storage.clock import Clock
from freehold.storage.events import read_tenure
from freehold.storage.faults import SqliteError, unreadable
from freehold.storage.path import RunPath
from freehold.storage.reader import beside, is_owned, reading
from freehold.storage.registry import OwnedHere


def name_holder(error: OwnedElsewhere, path: RunPath) -> OwnedElsewhere:
    """Return *error* with the holder named, as far as it can be known."""
    holder = holder_of(path)
    if holder is None:
        return error
    return OwnedElsewhere(
        f"the run {path.id} is owned by pid {holder.pid} on {holder.hostname} since {utc(holder.since)}; nothing was changed", holder=holder
    )


def holder_of(path: RunPath) -> Holder | None:
    """Return who owns *path*, or None where that cannot be read."""
    try:
        with reading(path) as db:
            tenure = read_tenure(db)
        return _named(tenure, _lockers(path))
    except (Error, OwnedHere, SqliteError, OSError):
        return None


def holder_now(path: RunPath, *, here: bool = False, any_filesystem: bool = False) -> Holder | None:
    """Return who owns *path* now, this process where its owner is *here*, or None where nobody does.

    Raises OwnedHere (registry) where it is not said to be here and is, and what `reading` and `beside` raise.
    """
    try:
        with beside(path) if here else reading(path, any_filesystem=any_filesystem) as db:
            tenure, owned = read_tenure(db), is_owned(db)
        return _named(tenure, [os.getpid()] if here else _lockers(path)) if owned else None
    except FileNotFoundError:
        return None  # it was deleted just now
    except SqliteError as error:
        raise unreadable(error, path) from None


def _lockers(path: RunPath) -> list[int]:
    """Return the processes that hold the owner's lock, as far as the kernel tells this one."""
    locks = platform.lock_holders(platform.inode_of(os.stat(path.file)))
    return [lock.pid for lock in locks if lock.exclusive and lock.pid > 0]


def _named(tenure: TenureRow | None, pids: list[int]) -> Holder | None:
    if tenure is None or tenure.closed_at is not None or (pids and tenure.pid not in pids):
        # A new owner has the lock and has not signed yet: what the kernel says is all that is known.
        return Holder(pids[0], platform.hostname(), _utc(Clock().now_ms())) if pids else None
    return Holder(tenure.pid, tenure.host, _utc(tenure.opened_at))


def _utc(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)


def socket_of(path: RunPath, *, any_filesystem: bool = False) -> str | None:
    """Return the name of the socket on which the present owner of *path* can be asked, or None where it has none, or nobody owns it.

    Raises OwnedHere (registry), and what `reading` raises.
    """
    try:
        with reading(path, any_filesystem=any_filesystem) as db:
            tenure = read_tenure(db)
    except SqliteError as error:
        raise unreadable(error, path) from None
    return None if tenure is None or tenure.closed_at is not None else tenure.socket
