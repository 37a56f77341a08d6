"""A lease on a run: the right to take turns on it, for as long as it is open."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from contextvars import copy_context
from typing import Any, NoReturn, ParamSpec, TypeVar, overload

from freehold.actors.deadline import Seconds, seconds
from freehold.actors.following import wait_beyond
from freehold.actors.leases import Lease, closed
from freehold.actors.ref import ActorRef
from freehold.actors.span import Holding
from freehold.actors.work import Work, without_our_frames
from freehold.effect import Effect
from freehold.event import Event
from freehold.files import Files
from freehold.history import Wait
from freehold.once import Once, Rule, Unknown, rule
from freehold.publishing import FailedPublish, publish, refuse_awaitable
from freehold.reply import keep, restore
from freehold.schema.errors import Error, Refused
from freehold.schema.hashes import request_digest
from freehold.schema.limits import TRANSACTION_TIMEOUT_S
from freehold.schema.messages import CloseLease, Message, ReadEvent, WaitBeyond
from freehold.schema.repeated import Repeated
from freehold.schema.secrets import SecretFilter
from freehold.spanning import Spanning
from freehold.staged import Staged, Staging
from freehold.steering import Steering
from freehold.storage.folder import Kept
from freehold.storage.objects import NoObjects
from freehold.storage.path import RunPath
from freehold.transaction import Transaction

T = TypeVar("T")
P = ParamSpec("P")


class Run(Steering):
    """A lease on a run that this process owns. Threads may share it; calls are served in order of arrival.

    Closing it invalidates this lease alone. It outlives a reopening of the run by its own host. Forgotten leases are
    given back with a ResourceWarning when they are collected.
    """

    _first: Run | None = None
    """The face that gives the lease back when it is collected; this one, unless `options` has made it."""
    _timeout: float | None = None
    _rule = Rule()

    def __init__(self, path: RunPath, ref: ActorRef[Any], lease: Lease, secrets: SecretFilter, *, any_filesystem: bool) -> None:
        super().__init__(path, secrets, any_filesystem=any_filesystem)
        self._ref = ref
        self._lease = lease
        self._shelf = Kept(NoObjects())  # used in turns only, so by one thread at a time
        lease.hold = ref.mailbox.hold(self, lease)  # what a signal cuts short, __del__ and `close` too, is given back by this

    def options(
        self,
        *,
        timeout: Seconds | None = None,
        durable: bool = True,
        unknown: Unknown | None = None,
        probe: Callable[..., object] | None = None,
    ) -> Run:
        """Return this same lease with other options, which are none of this one's: closing either closes both.

        *timeout* bounds each call instead of the host's own. Without *durable*, what writes is answered after its COMMIT and
        before the disk has it: a crash of the process loses nothing of it, a power loss may lose the newest of it (a whole suffix,
        never a part of a turn). The next durable turn on the run makes all before it durable, and so does its clean close.

        *unknown* is for steps of `once` that touch the world: what is to be done with an attempt that began and of which nobody knows
        whether it was done. "repeat" does it again; "probe" asks *probe*, called as the function is, which returns True, False or
        `freehold.Done(value)`; "park" refuses (step_unknown) until somebody who has looked asks with another rule. With the last two it is
        kept that an attempt begins before it begins. Without *unknown* a step is repeated, but for an attempt that was kept with a rule.
        Raises Refused (bad_option).
        """
        if not isinstance(durable, bool):
            raise Refused("durable is True or False; nothing was changed", code="bad_option")
        allowed = None if timeout is None else seconds(timeout)
        other = Run.__new__(Run)
        vars(other).update(vars(self), _first=self._first or self, _timeout=allowed, _durable=durable, _rule=rule(unknown, probe))
        return other

    def once(self, key: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do a step once in the life of this run, and return what it came to, now and for ever: *key* names it.

        *fn* is called with the arguments in your own thread, beside everybody else, but for whoever else asks for this step: they wait,
        and are told the outcome. What you get is what the journal holds, the first time too: plain values, and a Struct, dataclass, enum or
        TypedDict where *fn* is annotated to return one. An exception of *fn* is recorded as a failed attempt and comes back as itself;
        the next call tries again. A result that cannot be kept is an outcome: the step has failed and is not done again.

        The journal keeps the outcome after *fn* has returned: a crash in between does the step again. See `options(unknown=…)` for
        steps that touch the world, and `current_step()` for the key by which it is to know them.

        Only a lease has this: a handle's process does not own the run, so nobody would know when the runner of a step has died.
        Raises Refused (bad_name, input_changed, step_unknown, claim_lost, awaitable_refused, ask_cycle), ValueRefused, InsideTransaction,
        MailboxFull, StorageFailed, DeadlineExceeded, LeaseClosed, LeaseLost.
        """
        self._check_lease()
        step = Once(
            key,
            fn,
            args,
            kwargs,
            secrets=self._secrets,
            rule=self._rule,
            timeout=self._timeout,
            durable=self._durable,
        )
        claim = step.claim

        def ask(message: Message, size: int = 0, *, timeout: float | None = None) -> Any:
            self._check_lease()
            return self._ref.call(message, self._lease, size, timeout=timeout, claim=claim)

        # What a signal cuts short, also in the block below, is given back when the step is collected.
        claim.hold = self._ref.mailbox.hold(step, claim)
        try:
            result = step.run(ask)
        except BaseException:
            self._ref.mailbox.post(claim)  # it waits for no lock, and where the claim has ended it changes nothing
            raise
        claim.hold = None
        return result

    def transact(self, work: Callable[[Transaction], T], *, request_id: str | None = None) -> T:
        """Run *work(tx)* in the owner's thread, in a copy of your context, and keep all that it did or nothing.

        Its exception comes back as itself, after everything was undone. With *request_id* its value is stored with what
        it did, and the same id again returns that value and runs nothing. Raises what `append` does, and Refused
        (awaitable_refused, inside_transaction).
        """
        if not callable(work):
            raise Refused("what runs in a transaction is a function that takes it; nothing was changed", code="bad_option")
        if request_id is not None:
            request_id = self._checked(request_id)

        def body(do: Callable[[Message], Any], now_ms: int) -> tuple[Any, str | None]:
            tx = Transaction(do, now_ms, self._secrets, self._shelf, self._path.folder)
            value = work(tx)
            refuse_awaitable(value)
            tx.publish_rest()
            return (value, None) if request_id is None else keep(value, self._secrets, do)

        digest = None if request_id is None else request_digest("transact")
        answer = self._ask(Work(body, copy_context(), request_id, digest, durable=self._durable))
        if type(answer) is Repeated:
            durable = answer.durable
            answer = restore(answer.reply, lambda seq: Event(self._ask(ReadEvent(seq)), durable=durable))
        result: T = answer
        return result

    @overload
    def publish(self, name: str, work: Callable[[Files], T], *, request_id: str | None = None) -> Effect[T]: ...
    @overload
    def publish(self, name: str, *, request_id: str | None = None) -> AbstractContextManager[Staged]: ...
    def publish(self, name: str, work: Callable[[Files], T] | None = None, *, request_id: str | None = None) -> Any:
        """Change files, and record it: the changes, the new root and the event that names it are kept in one transaction, or none of them.

        With *work*, it is called with the files in the owner's thread while everybody else waits; the effect that is returned is the
        event, with its value and the changes. Without, it is a block (`with run.publish(name) as files`) in your own thread
        beside everybody else, published at its end; Conflict, if somebody has meanwhile changed a path that it read or wrote.

        A file error (FileNotFoundError, …, PathRefused) that is let out undoes the changes, leaves the root as it is and is recorded
        as a failed publish; any other exception undoes all and is not. A *request_id* stands for *name* alone. The same one again
        returns the same effect and changes nothing; a block runs once more, and what it does is not kept, nor is a file error that
        it ends with. Raises what `transact` raises.
        """
        return self._block(name, request_id) if work is None else self._publish(name, work, request_id)

    def _block(self, name: str, request_id: str | None, kind: str = "publish", *asked: str) -> Staging:
        name, request_id = self._named(name, request_id)
        self._check_lease()
        request = request_id, kind, asked
        home, durable = self._path.folder, self._durable
        return Staging(self._ask, self._ask, self._effect_again, name, self._secrets, home, *request, durable=durable)

    def _publish(self, name: str, work: Callable[[Files], Any], request_id: str | None, kind: str = "publish", *asked: str) -> Effect[Any]:
        name, request_id = self._named(name, request_id)
        digest = None if request_id is None else request_digest(kind, name, *asked)
        if not callable(work):
            raise Refused("what publishes is a function that takes the files; nothing was changed", code="bad_option")

        def body(do: Callable[[Message], Any], _now_ms: int) -> tuple[Any, str | None]:
            return publish(do, name, work, self._secrets, self._shelf, self._path.folder, with_reply=request_id is not None)

        answer = self._ask(Work(body, copy_context(), request_id, digest, durable=self._durable))
        if isinstance(answer, FailedPublish):
            raise without_our_frames(answer.error)
        effect: Effect[Any] = self._effect_again(answer) if isinstance(answer, Repeated) else answer
        return effect

    def transaction(self, *, timeout: Seconds = TRANSACTION_TIMEOUT_S) -> Spanning:
        """Work in one transaction from your own thread; everybody else waits until the block ends.

        An exception, or *timeout* seconds, end it by rollback; then the block's end raises DeadlineExceeded. Other calls
        on the run from inside the block are refused (InsideTransaction).
        """
        allowed = seconds(timeout)

        def take() -> Holding:
            self._check_lease()
            return Holding(self._ref, self._lease, allowed, patience=self._timeout, durable=self._durable)

        # Not our shelf: a holder that is late may still be at work with it while the next turn is taken.
        return Spanning(take, self._secrets, Kept(NoObjects()), self._path.folder)

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
        if lease is None or lease.closed or lease.lost is not None or self._first is not None:
            return
        lease.closed = True
        self._ref.mailbox.post(lease)  # it waits for no lock: a collection may come while this very thread holds it
        warnings.warn(f"a lease on {self.id} was never closed", ResourceWarning, source=self, stacklevel=2)

    def _watch(self) -> Wait:
        def wait(seen: WaitBeyond) -> None:
            self._check_lease()
            wait_beyond(self._ref, self._lease, seen)

        return wait

    def _about(self, work: Callable[[Callable[[Message], Any]], Any]) -> Any:
        return work(self._ask)

    def _look(self, message: Message) -> Any:
        return self._ask(message)

    def _ask(self, message: Any, size: int = 0) -> Any:
        self._check_lease()
        return self._ref.call(message, self._lease, size, timeout=self._timeout)

    def _check_lease(self) -> None:
        if self._lease.closed:
            raise closed(self.id)
        if self._lease.lost is not None:
            raise self._lease.lost.copy()
