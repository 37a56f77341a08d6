"""Publishes of a run's owner without a thread: by a function, and staged in pieces that go ahead."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from typing import Any

from book import Line, State
from driver import Driver, Turn
from published import whole

from freehold.actors.work import Do, Work
from freehold.files import Files
from freehold.publishing import publish
from freehold.schema.messages import KeepObjects, Message, PublishOn
from freehold.schema.secrets import SecretFilter
from freehold.staged import Staging
from freehold.storage.faults import SqliteError
from freehold.storage.folder import Kept
from freehold.storage.objects import NoObjects, StoredObjects
from freehold.storage.reads import READS

Things = Mapping[str, bytes | str]
"""What is in a workspace, as `published.contents` returns it."""


class Abandoned(Exception):
    """Ends a block before it has published."""


def publishing(driver: Driver, name: str, work: Callable[[Files], object], after: Things | None) -> Turn:
    """Return the turn that publishes by a function, which leads to *after*; None is a failed one."""

    def body(do: Do, _now_ms: int) -> tuple[Any, None]:
        return publish(do, name, work, SecretFilter(), Kept(NoObjects()), driver.path.folder, with_reply=False)[0], None

    def change(state: State) -> State:
        return state.next(Line("publish", name), files=state.files if after is None else after)

    return Work(body, copy_context(), None, None), change


def stage(driver: Driver, name: str, work: Callable[[Files], object], after: Things, *, by_messages: bool = False) -> None:
    """Publish a block, which leads to *after*; one that ends as abandoned publishes nothing. *by_messages*, as another process does."""

    def ask(message: Message) -> Any:
        assert driver.store is not None
        if isinstance(message, KeepObjects):
            return driver.turns((message, lambda state: _with(state, message)))[0]
        if isinstance(message, PublishOn):
            moved = message.base != driver.store.journal.head.root_hash
            assert message.root is not None
            reached = whole(StoredObjects(driver.store.db), message.root)
            return driver.turns((message, lambda state: state if moved else published(state, state.staged - reached)))[0]
        try:
            return READS[type(message)](driver.store.db, message)
        except SqliteError as error:
            raise driver.store.transaction.after(error) from None

    def published(state: State, staged: frozenset[bytes] = frozenset()) -> State:
        return state.next(Line("publish", name), files=after, staged=staged)

    def send(work: Work, _size: int) -> Any:
        return driver.turns((work, published))[0]

    def again(_answer: object) -> None:
        raise AssertionError("no request is repeated")

    sends, home = None if by_messages else send, driver.path.folder
    # An abandoned block has come to the end that was meant for it.
    with suppress(Abandoned), Staging(ask, sends, again, name, SecretFilter(), home, None) as files:
        work(files)


def noise(size: int) -> bytes:
    """Return the same bytes each time, which nothing makes shorter."""
    return random.Random(size).randbytes(size)


def _with(state: State, message: KeepObjects) -> State:
    new = frozenset(row.hash for row in message.objects) - state.staged
    return state.next(staged=state.staged | new) if new else state
