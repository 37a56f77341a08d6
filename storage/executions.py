"""Executions: begun and settled in one transaction each, together with the run's own standing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw

from freehold.schema.errors import Refused
from freehold.schema.ids import check_stop_code
from freehold.schema.kinds import EventKind
from freehold.schema.lifecycle import Move, Status, settling, step
from freehold.schema.rows import Written
from freehold.storage import faults
from freehold.storage.faults import SqliteError
from freehold.storage.journal import as_record

if TYPE_CHECKING:
    from freehold.storage.journal import Journal
    from freehold.storage.savepoint import Savepoints

NO_DEFINITION = b""
"""Stands in `execution.definition` where no workflow drives the execution."""

# The two statements that are interpreted for the caller. SQLite's foreign-key error does not say which key broke,
# so each of them assigns exactly one.
_STOP_EXECUTION = "UPDATE execution SET status = ?, ended_seq = ?, stop_kind = 'journal', stop_event = ? WHERE status = 'running'"
_STOP_RUN = "UPDATE run SET status = ?, stop_kind = 'journal', stop_event = ? WHERE one = 1"

_HOST_STOP_EXECUTION = "UPDATE execution SET status = ?, ended_seq = ?, stop_kind = 'host', stop_code = ? WHERE status = 'running'"
_HOST_STOP_RUN = "UPDATE run SET status = ?, stop_kind = 'host', stop_code = ? WHERE one = 1"


class Executions:
    """The executions of an owned file, inside its owner's open transaction."""

    def __init__(self, db: apsw.Connection, journal: Journal, savepoints: Savepoints, epoch: int) -> None:
        self._db = db
        self._journal = journal
        self._savepoints = savepoints
        self._epoch = epoch

    def begin(self, now_ms: int) -> int:
        """Begin an execution, record `began` and return its number.

        Raises RunEnded when the run is completed or cancelled, Refused (execution_running) when one is running.
        """
        status, generation, last = self._db.execute(
            "SELECT status, generation, (SELECT coalesce(max(id), 0) FROM execution) FROM run WHERE one = 1"
        ).get
        running = step(Status(status), Move.BEGIN)
        number = int(last) + 1
        with self._savepoints.scope():
            self._db.execute(
                "INSERT INTO execution (id, generation, epoch, definition, status, began_seq) VALUES (?, ?, ?, ?, ?, ?)",
                (number, generation, self._epoch, NO_DEFINITION, str(running), self._journal.head.seq + 1),
            )
            record = as_record(
                {"execution": number, "generation": generation, "epoch": self._epoch, "definition": NO_DEFINITION.hex()},
            )
            self._journal.append(EventKind.BEGAN, None, record, now_ms, number)
            self._db.execute(
                "UPDATE run SET status = ?, stop_kind = NULL, stop_code = NULL, stop_event = NULL WHERE one = 1", (str(running),)
            )
        return number

    def settle(self, status: object, code: object, event_seq: int | None, now_ms: int) -> Written | None:
        """End the running execution as *status*, for the host's own *code* or for a reason in the journal.

        With a code no event is written. Otherwise `settled` is recorded, and the reason is *event_seq* or, without
        one, that very event. Raises Refused: bad_option, no_execution, or unknown_event when *event_seq* names none.
        """
        to = step(Status(self._db.execute("SELECT status FROM run WHERE one = 1").get), settling(status))
        if code is not None:
            if event_seq is not None:
                raise Refused("an execution stops for a code or for an event, not for both; nothing was changed", code="bad_option")
            code = check_stop_code(code)
            with self._savepoints.scope():
                host_stop(self._db, to, code, self._journal.head.seq)
            return None
        if event_seq == self._journal.head.seq + 1:
            raise unknown_event()  # it would name the very record that is about to be written
        with self._savepoints.scope():
            number = self._db.execute("SELECT id FROM execution WHERE status = 'running'").get
            reason = event_seq if event_seq is not None else self._journal.head.seq + 1
            record = as_record({"execution": number, "status": to, "reason": reason})
            settled = self._journal.append(EventKind.SETTLED, None, record, now_ms, number)
            self._interpreted(_STOP_EXECUTION, (str(to), settled.seq, reason))
            self._interpreted(_STOP_RUN, (str(to), reason))
        return settled

    def _interpreted(self, sql: str, values: tuple[Any, ...]) -> None:
        try:
            self._db.execute(sql, values)
        except SqliteError as error:
            if faults.is_foreign_key(error):
                raise unknown_event() from None
            raise


def unknown_event() -> Refused:
    """Return what is said of a stop reason that is no event of this run."""
    return Refused("the stop reason names an event that is not in this run; nothing was changed", code="unknown_event")


def host_stop(db: apsw.Connection, to: Status, code: str, last_seq: int) -> None:
    """Settle the running execution and its run for a reason that is the host's and stands in no event."""
    db.execute(_HOST_STOP_EXECUTION, (str(to), last_seq, code))
    db.execute(_HOST_STOP_RUN, (str(to), code))
