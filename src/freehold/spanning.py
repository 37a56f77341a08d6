"""The block of `Run.transaction`: it begins and ends with its `with`, and belongs to the thread that entered it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import TracebackType

from freehold.actors.deadline import CHAIN, Link
from freehold.actors.span import Holding
from freehold.schema.messages import Commit
from freehold.schema.secrets import SecretFilter
from freehold.storage.folder import Kept
from freehold.transaction import Transaction


class Spanning:
    """A transaction that spans calls. Everybody else waits from the beginning of the block to its end."""

    def __init__(self, begin: Callable[[], Holding], secrets: SecretFilter, shelf: Kept, home: str) -> None:
        self._begin = begin  # it keeps the lease alive, also one that has no other name
        self._secrets = secrets
        self._shelf = shelf
        self._home = home
        self._holding: Holding | None = None

    def __enter__(self) -> Transaction:
        holding = self._begin()
        self._holding = holding
        self._outside = CHAIN.get()
        # The run stands in the chain, so that its other calls are refused: they would wait for this very block.
        self._link = Link(holding.ref)
        CHAIN.set((*self._outside, self._link))
        self._transaction = Transaction(holding.do, holding.now_ms, self._secrets, self._shelf, self._home)
        return self._transaction

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        holding = self._holding
        if holding is None:
            return
        holding.check_thread()
        self._holding = None
        self._link.over = True
        CHAIN.set(self._outside)
        if error is not None:
            holding.give_up()
            return
        try:
            self._transaction.publish_rest()
            holding.do(Commit())
        except BaseException:
            holding.give_up()
            raise

    def __del__(self) -> None:
        holding = self._holding
        if holding is None:
            return
        self._link.over = True
        holding.lose()
        warnings.warn("a transaction was never ended", ResourceWarning, stacklevel=2)
