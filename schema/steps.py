"""Durable steps: where one stands in a run, the records that tell of it, and what its runner is answered.

The result and the failure in a record are values by themselves, as a note's record is one: each has its one text.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from freehold.schema.errors import Damaged
from freehold.schema.failure import read_failure
from freehold.schema.ids import is_label
from freehold.schema.kinds import Phase
from freehold.schema.limits import FAILURE_BYTES_MAX, IDEMPOTENCY_KEY_CHARS_MAX, STEP_KEY_CHARS_MAX
from freehold.schema.ours import Underivable, members
from freehold.schema.values import is_canonical

PROBE: Final = "probe"
PARK: Final = "park"
REPEAT: Final = "repeat"
POLICIES = (REPEAT, PROBE, PARK)
"""What is to be done with a step of which nobody knows whether it was done."""
INTENTS = frozenset({PROBE, PARK})
"""Those for which the intent is kept before the step begins; a step that may be repeated needs none."""

OPEN, DONE, NOT_DONE, UNKNOWN = "open", "done", "not_done", "unknown"
STATES = (OPEN, DONE, NOT_DONE, UNKNOWN)
"""What is known of an intent: nothing yet, its outcome, its failed attempt, or that others went on and nothing ever will be."""

_KEY: Final = "key/"
_OUTCOME = re.compile(r'\{"input":(?:null|"([0-9a-f]{64})"),"(result|failure)":(.*)\}', re.DOTALL)


def position_of(key: str) -> str:
    """Return the position of the step with this key. Positions of other kinds are numbers, so none is equal to it."""
    return _KEY + key


def key_at(position: object) -> str | None:
    """Return the key whose position this is, read from a file, or None if it is no key's."""
    key = position[len(_KEY) :] if isinstance(position, str) and position.startswith(_KEY) else None
    return key if is_label(key, 1, STEP_KEY_CHARS_MAX) else None


class Told(msgspec.Struct, frozen=True):
    """What an event tells of a step: the fingerprint of its input, and an intent's policy and key, or a result or failure by its text."""

    input: str | None
    policy: str | None = None
    key: str | None = None
    result: str | None = None
    failure: str | None = None


def intent_record(input_: str | None, policy: str, key: str) -> str:
    """Return the record of an intent."""
    return msgspec.json.encode({"input": input_, "policy": policy, "key": key}).decode()


def ended_record(input_: str | None, *, result: str | None = None, failure: str | None = None) -> str:
    """Return the record of an outcome or of a failed attempt: with the text of the result, or that of the failure."""
    said = "null" if input_ is None else f'"{input_}"'
    return f'{{"input":{said},"failure":{failure}}}' if result is None else f'{{"input":{said},"result":{result}}}'


def read_step(phase: int | None, text: str) -> Told:
    """Return what a record tells, without a look into the value it holds. Raises Underivable unless it is one of a step of this phase."""
    if phase == Phase.INTENT:
        return _intent(text)
    found = _OUTCOME.fullmatch(text)
    if found is None or (found[2] == "result" and phase != Phase.OUTCOME):
        raise Underivable
    return Told(found[1], **{found[2]: found[3]})


def check_step(told: Told) -> None:
    """Raise Underivable unless the result or failure is written as this format writes it."""
    if told.result is not None and not is_canonical(told.result):
        raise Underivable
    if told.failure is not None:
        try:
            right = read_failure(told.failure).text == told.failure and len(told.failure.encode()) <= FAILURE_BYTES_MAX
        except Damaged:
            right = False
        if not right:
            raise Underivable


def _intent(text: str) -> Told:
    match record := members(text):
        case {"input": str() | None, "policy": str(), "key": key} if list(record) == ["input", "policy", "key"]:
            right = is_label(key, 1, IDEMPOTENCY_KEY_CHARS_MAX) and record["policy"] in INTENTS
            if right and (record["input"] is None or re.fullmatch(r"[0-9a-f]{64}", record["input"])):
                return Told(**record)
    raise Underivable


class Recorded(msgspec.Struct, frozen=True):
    """The step was done before: this is its outcome, by the text of its result or of its failure."""

    result: str | None = None
    failure: str | None = None

    def __repr__(self) -> str:
        return "<Recorded>"


class Go(msgspec.Struct, frozen=True):
    """The step may begin. With *unsure*, nobody knows whether this attempt was made and done: it is to be found out first."""

    attempt: int
    idempotency_key: str
    unsure: bool = False


class Again(msgspec.Struct, frozen=True):
    """Somebody else was at the step: ask again."""
