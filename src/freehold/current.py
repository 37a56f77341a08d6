"""The step that the calling code runs in: who it is, and that nobody waits for himself."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from freehold.actors.claims import Claim
from freehold.schema.errors import Refused


@dataclass(frozen=True, slots=True)
class StepInfo:
    """A step under way: its name (its key), the number of this attempt, and the key by which the world is to know it.

    `idempotency_key` is the same in every attempt of the step: 64 hexadecimal digits. Hand it to whoever can tell by it that a
    request was made before.
    """

    name: str
    attempt: int
    idempotency_key: str


class Running:
    """One step for as long as its function runs. A context that was copied meanwhile outlives it."""

    __slots__ = ("claim", "info", "over")

    def __init__(self, info: StepInfo, claim: Claim) -> None:
        self.info = info
        self.claim = claim
        self.over = False


_RUNNING: ContextVar[tuple[Running, ...]] = ContextVar("freehold_steps", default=())


def current_step() -> StepInfo:
    """Return the step whose function is running. Raises Refused (no_step) outside of one."""
    for running in reversed(_RUNNING.get()):
        if not running.over:
            return running.info
    raise Refused("no step is running here; this is asked inside of its function, or of its probe. Nothing was changed", code="no_step")


class Inside:
    """A block that is the inside of a step. Not a generator: contextlib would write into the user's exception."""

    def __init__(self, info: StepInfo, claim: Claim) -> None:
        self._running = Running(info, claim)

    def __enter__(self) -> None:
        self._token = _RUNNING.set((*_RUNNING.get(), self._running))

    def __exit__(self, *_: object) -> None:
        self._running.over = True
        _RUNNING.reset(self._token)


def claim_inside() -> Claim:
    """Return a claim that is asked for inside of the steps that run here: the owner lets none of them wait for itself."""
    return Claim(tuple(running.claim for running in _RUNNING.get() if not running.over))
