"""Durable steps of an owned file: whether one may begin, and what came of it, inside its owner's open transaction.

Who is at a step just now is not kept here: it is known to its owner alone, and its end ends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw

from freehold.schema.errors import Refused
from freehold.schema.hashes import step_key
from freehold.schema.kinds import EventKind, Phase
from freehold.schema.messages import BeginStep, EndStep
from freehold.schema.ours import Underivable
from freehold.schema.rows import Written
from freehold.schema.steps import DONE, INTENTS, NOT_DONE, PROBE, Go, Recorded, Told, ended_record, intent_record, read_step
from freehold.storage.events import read_event
from freehold.storage.journal import Place
from freehold.storage.objects import malformed

if TYPE_CHECKING:
    from freehold.storage.journal import Journal
    from freehold.storage.savepoint import Savepoints

_OUTCOME = "SELECT seq FROM event WHERE position = ? AND phase = 2"
_LAST = "SELECT seq, attempt FROM event WHERE position = ? AND phase < 2 ORDER BY attempt DESC, phase DESC LIMIT 1"
_OPEN = "SELECT attempt, policy, idempotency_key, opened_seq FROM intent WHERE position = ? AND state = 'open'"
_KEY = "SELECT idempotency_key FROM intent WHERE position = ? ORDER BY attempt DESC LIMIT 1"
_INTEND = "INSERT INTO intent (position, attempt, policy, idempotency_key, opened_seq, state) VALUES (?, ?, ?, ?, ?, 'open')"
# What an earlier attempt has left open nobody will ever know, once a later one has come to its end.
_SETTLE = (
    "UPDATE intent SET state = CASE attempt WHEN ?2 THEN ?3 ELSE 'unknown' END, settled_seq = CASE attempt WHEN ?2 THEN ?4 END"
    " WHERE position = ?1 AND state = 'open'"
)
_RUN = "SELECT r.id, e.id FROM run r JOIN event e ON e.seq = 1 WHERE r.one = 1"


class Steps:
    """The steps of one file."""

    def __init__(self, db: apsw.Connection, journal: Journal, savepoints: Savepoints) -> None:
        self._db = db
        self._journal = journal
        self._savepoints = savepoints

    def begin(self, message: BeginStep, now_ms: int) -> Recorded | Go:
        """Return the outcome of a step, or that it may begin, its intent kept if it asks for that.

        Raises Refused: input_changed when it was recorded with other input, step_unknown when an attempt whose end nobody knows
        may not be repeated. Then nothing was changed.
        """
        seq = self._db.execute(_OUTCOME, (message.position,)).get
        if seq is not None:
            told = self._told(seq, message)
            return Recorded(told.result, told.failure)
        last = self._db.execute(_LAST, (message.position,)).get
        if last is not None:
            self._told(last[0], message)
        left = self._db.execute(_OPEN, (message.position,)).get
        if left is not None:
            attempt, policy, key, opened = left
            if message.policy == PROBE:
                return Go(attempt, key, unsure=True)
            if (asked := message.policy or policy) in INTENTS:
                raise _unknown(message.name, attempt, opened, asked)
        attempt = 1 if last is None else int(last[1]) + 1
        key = message.idempotency_key or self._db.execute(_KEY, (message.position,)).get or self._own_key(message.position)
        if message.policy in INTENTS:
            with self._savepoints.scope():
                record = intent_record(message.input, str(message.policy), key)
                place = Place(message.position, Phase.INTENT, attempt)
                opened = self._journal.append(EventKind.STEP, message.name, record, now_ms, place=place).seq
                self._db.execute(_INTEND, (message.position, attempt, message.policy, key, opened))
        return Go(attempt, key)

    def end(self, message: EndStep, now_ms: int) -> Written:
        """Record what came of an attempt: the outcome of its step, or that it failed. Whoever calls this knows who is at the step."""
        record = ended_record(message.input, result=message.result, failure=message.failure)
        phase = Phase.OUTCOME if message.final else Phase.FAILED
        with self._savepoints.scope():
            place = Place(message.position, phase, message.attempt)
            written = self._journal.append(EventKind.STEP, message.name, record, now_ms, place=place)
            self._db.execute(_SETTLE, (message.position, message.attempt, DONE if message.final else NOT_DONE, written.seq))
        return written

    def _told(self, seq: int, message: BeginStep) -> Told:
        event = read_event(self._db, seq)
        try:
            told = read_step(event.phase, event.text)
        except (Underivable, UnicodeDecodeError):
            raise malformed() from None
        if None not in (told.input, message.input) and told.input != message.input:
            raise _changed(message.name, told.input, message.input)
        return told

    def _own_key(self, position: str) -> str:
        run_id, first = self._db.execute(_RUN).get
        return step_key(run_id, first, position).hex()


def _changed(name: str, recorded: Any, asked: Any) -> Refused:
    return Refused(
        f"the step {name!r} was recorded with other input than it is asked for now; one key is one piece of work, so use another key. "
        "Nothing was changed",
        code="input_changed",
        key=name,
        recorded=recorded,
        asked=asked,
    )


def _unknown(name: str, attempt: int, opened: int, policy: str) -> Refused:
    how = "give a probe that finds it out" if policy == PROBE else "look yourself, then ask again with unknown='repeat' or with a probe"
    return Refused(
        f"whether attempt {attempt} of the step {name!r} was done is not known: it began (event {opened}) and nobody recorded its end; "
        f"{how}. Nothing was changed",
        code="step_unknown",
        key=name,
        attempt=attempt,
        event=opened,
        policy=policy,
    )


def claim_lost(name: str) -> Refused:
    """Return what the runner of a step is told whose claim on it has ended."""
    return Refused(
        f"the claim on the step {name!r} has ended, and somebody else may be at it; what this attempt came to was not recorded",
        code="claim_lost",
        key=name,
    )
