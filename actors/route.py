"""The way to whoever owns a run: this host, which owns it for as long as it is needed if nobody does, or another process.

Who owns it may change at any time. What was not carried out for that reason goes to the next owner; what may have been
carried out is told as it is, and never sent again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from freehold.actors.aside import aside
from freehold.actors.deadline import deadline_in, exceeded, monotonic, pause
from freehold.actors.leases import Lease
from freehold.actors.ref import ActorRef
from freehold.actors.remote import PASSED_ON, Remote
from freehold.schema.errors import Error, OwnedElsewhere, Unavailable
from freehold.schema.limits import PASSED_ON_S
from freehold.schema.messages import CloseLease, Message, ReadRun, Retire
from freehold.storage.path import RunPath

Taken = tuple[ActorRef[Any], Lease]


class Route:
    """Where a run's owner was found last. Threads may share it."""

    def __init__(self, path: RunPath, take: Callable[[RunPath], Taken], remote: Remote, check_open: Callable[[], None]) -> None:
        """*take* owns the run here and returns a lease on it, or raises OwnedElsewhere, or why it cannot be owned.

        *check_open* raises why nobody is asked any more, wherever the owner is.
        """
        self.path = path
        self.remote = remote
        self._take = take
        self.check_open = check_open
        self._elsewhere = False

    def ask(self, message: Message, size: int = 0) -> Any:
        """Return the owner's answer to *message*. Raises as `Passage.ask` does."""
        with Passage(self) as passage:
            return passage.ask(message, size)

    def try_here(self) -> Taken | OwnedElsewhere:
        """Return a lease, or who owns the run elsewhere. Raises why it cannot be owned."""
        try:
            return aside(lambda _gone: self._take(self.path), lambda taken: _give_back(*taken))
        except OwnedElsewhere as elsewhere:
            return elsewhere

    def found(self, *, elsewhere: bool) -> None:
        """Note where the owner was."""
        self._elsewhere = elsewhere

    @property
    def is_elsewhere(self) -> bool:
        """Whether the owner was in another process when it was asked last."""
        return self._elsewhere


class Passage:
    """The way to the owner for one call, or for a block of them: a lease that this host takes is kept until its end.

    Then the run is given back at once, if nobody else has a lease on it: whoever wants to own it need not wait.
    """

    def __init__(self, route: Route) -> None:
        self._route = route
        self._taken: Taken | None = None

    @property
    def is_here(self) -> bool:
        """Whether this host owns the run, and keeps it until the passage ends."""
        return self._taken is not None

    def reach(self) -> None:
        """Find out who owns the run. Raises as `ask` does."""
        if not self.is_here:
            self.ask(ReadRun())

    def ask(self, message: Any, size: int = 0) -> Any:
        """Return the owner's answer to *message*.

        Raises what the owner raises, and what keeps the run from being owned; OwnedElsewhere when its owner cannot be asked;
        Unavailable (no_answer) when that has gone before it answered, and DeadlineExceeded: their `executed` says what is known.
        """
        if self._taken is not None:
            ref, lease = self._taken
            return ref.call(message, lease, size)
        self._route.check_open()
        deadline = deadline_in(self._route.remote.timeout)
        assert deadline is not None
        silent: tuple[OwnedElsewhere, float] | None = None
        while monotonic() < deadline:
            if not self._route.is_elsewhere:
                taken = self._route.try_here()
                if not isinstance(taken, OwnedElsewhere):
                    self._taken = taken
                    return self.ask(message, size)
                if silent is None or silent[0].holder != taken.holder:
                    silent = taken, monotonic()
                elif monotonic() > silent[1] + PASSED_ON_S:
                    raise taken  # it is the owner all the time, and cannot be asked
            try:
                answer = self._route.remote.ask(message, size)
            except Unavailable as error:
                self._route.found(elsewhere=False)
                if error.code not in PASSED_ON or error.executed != "no":
                    raise
            else:
                self._route.found(elsewhere=True)
                return answer
            if silent is not None:
                pause()
        raise exceeded("no", self._route.path.id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        taken, self._taken = self._taken, None
        if taken is not None:
            _give_back(*taken)
            with suppress(Error):  # it has ended by itself
                taken[0].system(Retire())  # refused where somebody else has a lease


def _give_back(ref: ActorRef[Any], lease: Lease) -> None:
    lease.closed = True
    with suppress(Error):  # an owner that has ended has closed its book itself
        ref.post_system(CloseLease(), lease)
