"""Taking a file over and giving it back: one small transaction each, and nothing else is written by opening and closing."""

from __future__ import annotations

import os
from typing import NamedTuple

import apsw

from freehold.schema.errors import Error, Unavailable
from freehold.schema.lifecycle import Status
from freehold.storage import platform
from freehold.storage.executions import host_stop
from freehold.storage.fence import Fence
from freehold.storage.recognise import Recognised
from freehold.storage.transaction import immediate

OWNER_LOST = "owner_lost"
"""Stop code of an execution whose owner ended without settling it."""

HOST_CLOSED = "host_closed"
"""Stop code of an execution that was running when its host closed."""


class Tenure(NamedTuple):
    """An ownership that has begun: its epoch, its first transaction, and whether it continues *our* earlier one."""

    epoch: int
    first_txn: int
    continues: bool


def take_over(
    db: apsw.Connection, recognised: Recognised, fence: Fence, now_ms: int, own_epoch: int | None, socket: str | None = None
) -> Tenure:
    """Make the next epoch ours, in one transaction that first makes sure that the file is still what was recognised.

    The released lock is the only proof that an earlier owner is gone, and we hold it now: an execution that it left
    running is settled as interrupted. After our own reopening (*own_epoch*) whoever drives it is still here. *socket* is the
    name under which the owner can be asked from other processes, if it can.
    """
    with immediate(db):
        run = recognised.run
        found = db.execute("SELECT id, epoch, txn, (SELECT max(seq) FROM event) FROM run WHERE one = 1").get
        if db.pragma("schema_version") != recognised.schema_cookie or found != (run.id, run.epoch, run.txn, recognised.last_seq):
            raise _changed()
        epoch, txn = db.execute(
            "UPDATE run SET epoch = epoch + 1, txn = txn + 1, updated_at = ? WHERE one = 1 RETURNING epoch, txn", (now_ms,)
        ).get
        continues = own_epoch is not None and epoch == own_epoch + 1
        db.execute(
            "INSERT INTO tenure (epoch, first_txn, host, boot, pid, pid_ns, pid_start, opened_at, socket)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (epoch, txn, *_process(), now_ms, socket),
        )
        if run.status == Status.RUNNING and not continues:
            host_stop(db, Status.INTERRUPTED, OWNER_LOST, recognised.last_seq)
            db.execute("UPDATE run SET generation = generation + 1 WHERE one = 1")
        fence.arm(db)  # while nobody else can write: a commit right after ours is already a foreign one
    return Tenure(epoch, txn, continues)


def give_back(db: apsw.Connection, epoch: int, last_seq: int, now_ms: int) -> None:
    """Note, inside the owner's last transaction, that the tenure ended cleanly; a running execution is interrupted."""
    if db.execute("SELECT status FROM run WHERE one = 1").get == Status.RUNNING:
        host_stop(db, Status.INTERRUPTED, HOST_CLOSED, last_seq)
    db.execute("UPDATE tenure SET closed_at = ? WHERE epoch = ?", (now_ms, epoch))


def happened(db: apsw.Connection, txn: int, epoch: int) -> bool:
    """Return whether transaction *txn* of the tenure *epoch* is in the file, although its COMMIT failed.

    The next tenure began with the transaction after the last one that the file had.
    """
    first_txn = db.execute("SELECT first_txn FROM tenure WHERE epoch = ?", (epoch + 1,)).get
    return first_txn is not None and int(first_txn) > txn


def _process() -> tuple[str, bytes, int, int, int]:
    pid = os.getpid()
    return platform.hostname(), platform.boot_id(), pid, platform.pid_namespace(), platform.process_start(pid)


def _changed() -> Error:
    return Unavailable("the run file changed while it was being opened; it was left as it is", code="changed_while_reading")
