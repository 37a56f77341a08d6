"""The block of `Run.transaction`: it begins and ends with its `with`, and belongs to the thread that entered it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import TracebackType

from freehold.actors.deadline import CHAIN, Chain, Link
from freehold.actors.span import Holding
from freehold.schema.messages import Commit
from freehold.schema.secrets import SecretFilter
from freehold.storage.folder import Kept
from freehold.transaction import Transaction


class Spanning:
    """A transaction that spans calls. Everybody else waits from the beginning of the block to its end.

    A signal may cut any step of the block short, its own beginning and end included; then it is given up.
    """

    _holding: Holding | None = None

    def __init__(self, take: Callable[[], Holding], secrets: SecretFilter, shelf: Kept, home: str) -> None:
        self._take = take  # it keeps the lease alive, also one that has no other name
        self._secrets = secrets
        self._shelf = shelf
        self._home = home
        self._outside: Chain = ()
        self._link: Link | None = None

    def __enter__(self) -> Transaction:
        holding = self._take()
        outside = CHAIN.get()
        try:
            self._holding = holding
            holding.begin(self)
            # The run stands in the chain, so that its other calls are refused: they would wait for this very block.
            self._outside, self._link = outside, Link(holding.ref, self)
            CHAIN.set((*outside, self._link))
            self._transaction = Transaction(holding.do, holding.now_ms, self._secrets, self._shelf, self._home)
        except BaseException:
            # Whoever does not wait for its beginning any more does not hold up everybody else with it.
            holding.lose()
            self._leave()
            raise
        return self._transaction

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        holding = self._holding
        if holding is None:
            return
        try:
            holding.check_thread()
            self._leave()
            if error is None:
                self._transaction.publish_rest()
                holding.do(Commit())
            else:
                holding.give_up()
        except BaseException:
            if holding.is_here():
                holding.give_up()
                self._leave()
            raise

    def __del__(self) -> None:
        if self._holding is not None:  # the owner learns of it without this: a signal may end a finalizer at its first step
            warnings.warn("a transaction was never ended", ResourceWarning, stacklevel=2)

    def give_up(self) -> None:
        """Roll back without coming to the end of the block, which will not come."""
        if (holding := self._holding) is not None:
            holding.give_up()

    def _leave(self) -> None:
        """Let its thread call the run again."""
        self._holding = None
        if self._link is not None:
            self._link.over = True
            CHAIN.set(self._outside)
