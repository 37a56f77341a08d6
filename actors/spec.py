"""What a supervisor starts, as frozen data. OTP's words: child spec, restart type, strategy, intensity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from freehold.actors.actor import Actor
from freehold.schema.errors import Refused

Restart = Literal["permanent", "transient", "temporary"]
"""permanent: always restarted; transient: after a crash only; temporary: never."""

Strategy = Literal["one_for_one"]
"""one_for_one: only the child that ended is restarted."""

Excess = Literal["escalate", "quarantine"]
"""What happens when a child fails too often: the supervisor gives up, or sets that child aside and lives on."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """How one child is started, restarted and stopped. *shutdown* is the seconds that it may take to stop."""

    name: str
    start: Callable[[], Actor[Any]]
    restart: Restart = "permanent"
    shutdown: float = 5.0

    def __post_init__(self) -> None:
        _one_of("restart", self.restart, ("permanent", "transient", "temporary"))
        if not self.name or not callable(self.start) or not self.shutdown >= 0:
            raise Refused("a child spec has a name, a callable that makes the actor, and a shutdown time of 0 or more", code="bad_option")


@dataclass(frozen=True, slots=True)
class SupervisorSpec:
    """A supervisor and its first children, started in order and stopped in reverse.

    More than *max_restarts* restarts of one child within *max_seconds* are one too many.
    """

    name: str
    children: Sequence[ChildSpec] = ()
    strategy: Strategy = "one_for_one"
    max_restarts: int = 3
    max_seconds: float = 5.0
    on_excess: Excess = "escalate"

    def __post_init__(self) -> None:
        _one_of("strategy", self.strategy, ("one_for_one",))
        _one_of("on_excess", self.on_excess, ("escalate", "quarantine"))
        names = [child.name for child in self.children]
        if not self.name or len(set(names)) != len(names) or self.max_restarts < 0 or not self.max_seconds > 0:
            raise Refused(
                "a supervisor spec has a name, children of different names, max_restarts of 0 or more and max_seconds above 0",
                code="bad_option",
            )


@dataclass(frozen=True, slots=True)
class Down:
    """A child has ended and everything it held is closed. Told exactly once an incarnation."""

    child: str
    reason: BaseException | None
    restarting: bool


def _one_of(what: str, word: object, words: tuple[str, ...]) -> None:
    if word not in words:
        raise Refused(f"{what} is one of {', '.join(words)}", code="bad_option")
