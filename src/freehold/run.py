"""A lease on a run: the right to take turns on it, for as long as it is open."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from inspect import isawaitable, iscoroutine
from typing import Any, NoReturn, TypeVar

from freehold.actors.deadline import Seconds, seconds
from freehold.actors.leases import Lease, closed
from freehold.actors.ref import ActorRef
from freehold.actors.span import Holding
from freehold.actors.work import Repeated, Work
from freehold.event import Event
from freehold.reply import keep, restore
from freehold.schema.errors import Error, Refused
from freehold.schema.hashes import request_digest
from freehold.schema.ids import check_name, check_request_id
from freehold.schema.limits import TRANSACTION_TIMEOUT_S
from freehold.schema.messages import Append, CloseLease, Message, ReadEvent
from freehold.schema.secrets import SecretFilter
from freehold.schema.values import Value, canonical
from freehold.spanning import Spanning
from freehold.storage.path import RunPath
from freehold.transaction import Transaction
from freehold.view import RunView

T = TypeVar("T")


class Run(RunView):
    """A lease on a run that this process owns. Threads may share it; calls are served in order of arrival.

    Closing it invalidates this lease alone. It outlives a reopening of the run by its own host. Forgotten leases are
    given back with a ResourceWarning when they are collected.
    """

    def __init__(self, path: RunPath, ref: ActorRef[Any], lease: Lease, secrets: SecretFilter, *, any_filesystem: bool) -> None:
        super().__init__(path, any_filesystem=any_filesystem)
        self._ref = ref
        self._lease = lease
        self._secrets = secrets

    def append(self, name: str, data: Value = None, *, request_id: str | None = None) -> Event:
        """Add a note to the journal and return its event: durable, with *data* as every later reader will get it.

        The same *request_id* again returns the same event and adds nothing. Raises Refused (bad_name, value_refused,
        value_too_large, secret_refused, request_conflict, bad_request_id), LeaseClosed, LeaseLost, MailboxFull,
        StorageFailed, DeadlineExceeded; `executed` says whether the event was added.
        """
        name = check_name(name)
        self._secrets.check_text(name, "an event name")
        sealed = self._secrets.seal(data)
        digest = None
        if request_id is not None:
            request_id = check_request_id(request_id)
            self._secrets.check_text(request_id, "a request id")
            digest = request_digest("append", name, canonical(sealed.data))
        written = self._ask(Append(name, sealed.record, request_id, digest), len(sealed.record))
        return Event(written, sealed.data) if written.record == sealed.record else Event(written)

    def transact(self, work: Callable[[Transaction], T], *, request_id: str | None = None) -> T:
        """Run *work(tx)* in the owner's thread, in a copy of your context, and keep all that it did or nothing.

        Its exception comes back as itself, after everything was undone. With *request_id* its value is stored with what
        it did, and the same id again returns that value and runs nothing. Raises what `append` does, and Refused
        (awaitable_refused, inside_transaction).
        """
        if not callable(work):
            raise Refused("what runs in a transaction is a function that takes it; nothing was changed", code="bad_option")
        if request_id is not None:
            request_id = check_request_id(request_id)
            self._secrets.check_text(request_id, "a request id")

        def body(do: Callable[[Message], Any], now_ms: int) -> tuple[Any, str | None]:
            value = work(Transaction(do, now_ms, self._secrets))
            if isawaitable(value):
                if iscoroutine(value):
                    value.close()
                raise Refused("a transaction cannot wait: its work returned an awaitable; nothing was kept", code="awaitable_refused")
            return (value, None) if request_id is None else keep(value, self._secrets, do)

        digest = None if request_id is None else request_digest("transact")
        answer = self._ask(Work(body, copy_context(), request_id, digest))
        if isinstance(answer, Repeated):
            answer = restore(answer.reply, lambda seq: Event(self._ask(ReadEvent(seq))))
        result: T = answer
        return result

    def transaction(self, *, timeout: Seconds = TRANSACTION_TIMEOUT_S) -> Spanning:
        """Work in one transaction from your own thread; everybody else waits until the block ends.

        An exception, or *timeout* seconds, end it by rollback; then the block's end raises DeadlineExceeded. Other calls
        on the run from inside the block are refused (InsideTransaction).
        """
        allowed = seconds(timeout)

        def begin() -> Holding:
            self._check_lease()
            return Holding(self._ref, self._lease, allowed)

        return Spanning(begin, self._secrets)

    def close(self) -> None:
        """Close this lease. Closing twice is fine; calls that still wait get LeaseClosed."""
        if self._lease.closed:
            return
        self._lease.closed = True
        # An owner that has ended has closed its book itself.
        with suppress(Error):
            self._ref.post_system(CloseLease(), self._lease)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a lease is neither copied nor pickled: open the run again")

    def __del__(self) -> None:
        lease = getattr(self, "_lease", None)
        if lease is None or lease.closed or lease.lost is not None:
            return
        lease.closed = True
        self._ref.mailbox.post(lease)  # it waits for no lock: a collection may come while this very thread holds it
        warnings.warn(f"a lease on {self.id} was never closed", ResourceWarning, source=self, stacklevel=2)

    def _look(self, message: Message) -> Any:
        return self._ask(message)

    def _ask(self, message: Any, size: int = 0) -> Any:
        self._check_lease()
        return self._ref.call(message, self._lease, size)

    def _check_lease(self) -> None:
        if self._lease.closed:
            raise closed(self.id)
        if self._lease.lost is not None:
            raise self._lease.lost.copy()
