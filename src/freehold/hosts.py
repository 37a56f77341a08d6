"""The hosts that live on a folder, in whatever process, and what each says of itself. Nothing is created or changed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from freehold.actors.asking import ask_hosts
from freehold.actors.deadline import monotonic
from freehold.actors.knowing import look_at_hosts
from freehold.actors.tree import Node, node_of
from freehold.schema.errors import DeadlineExceeded, Error, Refused, Unavailable
from freehold.schema.ids import is_socket_name
from freehold.schema.messages import ShowTree
from freehold.schema.rows import HostRow
from freehold.schema.times import utc


@dataclass(frozen=True, slots=True)
class LivingHost:
    """A host that lives on a folder, as the folder's host file names it: its process, and its tree, or else why there is none."""

    pid: int
    hostname: str
    since: datetime
    """When it was opened (UTC)."""
    socket: str | None
    """The name, in the folder, of the socket at which it can be asked, or None where it has none."""
    tree: Node | None = None
    """Its supervision tree, as `Host.tree` returns it in its own process."""
    error: Error | None = None
    """Why it could not be asked: DeadlineExceeded, Unavailable (not_reached, no_answer, …), Refused (other_protocol, …)."""

    @property
    def is_gone(self) -> bool:
        """Whether it has ended while it was being asked."""
        return self.tree is None and self.error is None

    def __str__(self) -> str:
        return f"pid {self.pid} on {self.hostname} since {utc(self.since)}"


def living_hosts(folder: str, timeout: float) -> list[LivingHost]:
    """Return the hosts that own, or have owned, runs of *folder* and live, the eldest first; none where there is no host file.

    All are asked side by side, and one that has not answered in *timeout* seconds has that for its error. Raises Refused
    (no_permission; not_a_host_file, host_file_version), Damaged (host_file_damaged), Unavailable of a file that cannot be read now.
    """
    until = monotonic() + timeout
    _check_reachable(folder)
    rows = look_at_hosts(folder, timeout) or []
    names = {row.socket for row in rows if row.socket is not None and is_socket_name(row.socket)}
    answers = ask_hosts(folder, names, ShowTree(), max(0.0, until - monotonic()))
    found = [_host(row, answers.get(row.socket or ""), timeout) for row in rows]
    if all(host.error is None for host in found):
        return found
    living = _still_living(folder, rows)
    return [
        host if host.error is None or row.id in living else LivingHost(host.pid, host.hostname, host.since, host.socket)
        for row, host in zip(rows, found, strict=True)
    ]


def _host(row: HostRow, answer: Any, timeout: float) -> LivingHost:
    tree: Node | None = None
    error: Error | None = None
    if answer is None:
        error = _not_reached("it has no socket")
    elif isinstance(answer, Error):
        error = _as_of_a_host(answer, timeout)
    else:
        try:
            tree = node_of(answer)
        except Refused as malformed:
            error = malformed
    return LivingHost(row.process.pid, row.process.hostname, _utc(row.opened_at), row.socket, tree, error)


def _as_of_a_host(error: Error, timeout: float) -> Error:
    """Return what is to be said of a host where *error* speaks of a request, or of the owner of a run."""
    if isinstance(error, DeadlineExceeded):
        return DeadlineExceeded(f"it did not answer within {timeout:g} seconds")
    if error.code == "not_owner":
        return _not_reached("nobody is reached at its socket")
    if error.code == "no_answer":
        return Unavailable("it hung up before it answered", code="no_answer")
    return error


def _not_reached(why: str) -> Unavailable:
    return Unavailable(f"it cannot be asked: {why}", code="not_reached")


def _still_living(folder: str, rows: list[HostRow]) -> set[bytes]:
    """Return the ids of those that have not ended meanwhile, as far as the host file says."""
    try:
        now = look_at_hosts(folder, 0.0)
    except Error:
        now = None
    return {row.id for row in (rows if now is None else now)}


def _check_reachable(folder: str) -> None:
    try:
        os.stat(f"{folder}/.")  # noqa: PTH116 - pathlib takes the dot away, and with it the need to enter
    except PermissionError:
        raise Refused(f"the folder {folder} may not be entered by this user; nothing was changed", code="no_permission") from None
    except (FileNotFoundError, NotADirectoryError):
        return  # there is none, and so no host either


def _utc(time_ms: int) -> datetime:
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)  # the host file is a cache, and proves nothing
