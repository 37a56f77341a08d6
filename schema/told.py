"""What the journal tells of steps: a fold over their events, from which every intent can be told anew."""

from __future__ import annotations

from dataclasses import dataclass, field

from freehold.schema.kinds import Phase
from freehold.schema.ours import Underivable
from freehold.schema.rows import EventRow
from freehold.schema.steps import DONE, NOT_DONE, OPEN, UNKNOWN, check_step, key_at, read_step


@dataclass(slots=True)
class Intent:
    """A row of `intent`, as the journal tells it."""

    position: str
    attempt: int
    policy: str
    idempotency_key: str
    opened_seq: int
    settled_seq: int | None = None
    state: str = OPEN


@dataclass(slots=True)
class _Step:
    attempt: int = 0
    """The last one of which an event tells."""
    open: Intent | None = None
    done: bool = False


@dataclass(slots=True)
class Steps:
    """Add the events of steps in order; what they say then stands in `intents`, in the order in which they were opened."""

    intents: list[Intent] = field(default_factory=list)
    _at: dict[str, _Step] = field(default_factory=dict)

    def add(self, event: EventRow) -> None:
        """Fold in the next event of the kind `step`. Raises Underivable."""
        position, attempt = event.position, event.attempt
        # So far every step has a key, by which its event is called, and belongs to no execution.
        if position is None or attempt is None or event.execution is not None or key_at(position) != event.name:
            raise Underivable
        told = read_step(event.phase, event.text)
        check_step(told)
        step = self._at.setdefault(position, _Step())
        again = step.open is not None and attempt == step.attempt == step.open.attempt
        if step.done or (attempt != step.attempt + 1 and not (again and event.phase != Phase.INTENT)):
            raise Underivable
        step.attempt = attempt
        if event.phase == Phase.INTENT:
            if step.open is not None or told.policy is None or told.key is None:
                raise Underivable
            step.open = Intent(position, attempt, told.policy, told.key, event.seq)
            self.intents.append(step.open)
            return
        step.done = event.phase == Phase.OUTCOME
        if step.open is not None:
            self._settle(step.open, event, known=again)
            step.open = None

    def _settle(self, intent: Intent, event: EventRow, *, known: bool) -> None:
        if not known:
            intent.state = UNKNOWN  # a later attempt came to its end, and nobody can tell of this one any more
            return
        intent.state = DONE if event.phase == Phase.OUTCOME else NOT_DONE
        intent.settled_seq = event.seq
