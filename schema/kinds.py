"""The closed set of what an event can be. Names are the user's, kinds are ours."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class EventKind(StrEnum):
    """Stands in `event.kind`; the CHECK of v1.sql lists the same words."""

    CREATED = "created"
    """Event 1: the run came to be. Its record holds the run's id, project, workflow and properties."""
    NOTE = "note"
    """A user's own record, under a user's own name."""
    PUBLISH = "publish"
    """Changes of files under a user's own name, and the root that they led to. Its record counts them, or says why there are none."""
    BEGAN = "began"
    """An execution began. Its record holds the execution's number, generation, epoch and definition."""
    SETTLED = "settled"
    """An execution ended for a reason that stands in the journal."""
    STEP = "step"
    """A step at a position: what was meant to be done, an attempt that failed, or the outcome; the phase says which of these."""


class Phase(IntEnum):
    """What an event says of the step at its position; stands in `event.phase`."""

    INTENT = 0
    FAILED = 1
    OUTCOME = 2
