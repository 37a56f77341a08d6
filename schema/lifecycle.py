"""Where a run can stand, and what moves it.

| status | began | settled as |
|---|---|---|
| created, suspended, interrupted, failed | running | |
| running | | suspended, interrupted, completed, failed, cancelled |
| completed, cancelled | | |
"""

from __future__ import annotations

from enum import StrEnum

from freehold.schema.errors import Refused, RunEnded


class Status(StrEnum):
    """Stands in `run.status`; all but `created` also in `execution.status`."""

    CREATED = "created"
    RUNNING = "running"
    SUSPENDED = "suspended"
    INTERRUPTED = "interrupted"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Move(StrEnum):
    """What can be done to a run's standing."""

    BEGIN = "begin"
    SUSPEND = "suspended"
    INTERRUPT = "interrupted"
    COMPLETE = "completed"
    FAIL = "failed"
    CANCEL = "cancelled"


# An empty row is a final state: written out, so that a missing one is a typo.
STEPS: dict[Status, dict[Move, Status]] = {
    Status.CREATED: {Move.BEGIN: Status.RUNNING},
    Status.RUNNING: {
        Move.SUSPEND: Status.SUSPENDED,
        Move.INTERRUPT: Status.INTERRUPTED,
        Move.COMPLETE: Status.COMPLETED,
        Move.FAIL: Status.FAILED,
        Move.CANCEL: Status.CANCELLED,
    },
    Status.SUSPENDED: {Move.BEGIN: Status.RUNNING},
    Status.INTERRUPTED: {Move.BEGIN: Status.RUNNING},
    Status.FAILED: {Move.BEGIN: Status.RUNNING},
    Status.COMPLETED: {},
    Status.CANCELLED: {},
}
assert STEPS.keys() == set(Status)

SETTLING = frozenset(STEPS[Status.RUNNING].values())
"""What an execution can be settled as."""


def step(status: Status, move: Move) -> Status:
    """Return the status that *move* leads to.

    Raises RunEnded at the end of a life, Refused (execution_running, no_execution) for a move that is not there now.
    """
    if (to := STEPS[status].get(move)) is not None:
        return to
    if not STEPS[status]:
        raise RunEnded(f"the run is {status}; it takes no further execution. Nothing was changed", status=str(status))
    if status is Status.RUNNING:
        raise Refused("an execution is running; settle it first. Nothing was changed", code="execution_running")
    raise Refused(f"the run is {status} and no execution is running; nothing was changed", code="no_execution", status=str(status))


def settling(status: object) -> Move:
    """Return the move that settles an execution as *status*, given by name.

    Raises Refused (bad_option) for a word that is not one of them.
    """
    words = sorted(SETTLING)
    if not isinstance(status, str) or status not in words:
        raise Refused(f"an execution is settled as one of {', '.join(words)}; nothing was changed", code="bad_option")
    return Move(str.__str__(status))
