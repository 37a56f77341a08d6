"""A run's owner without a thread: takes turns as the run actor does, on any disk, and says what each answer makes sure of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import replace
from itertools import count
from typing import Any

from book import CREATED, Book, Fact, Line, State, Word

from freehold.actors.batch import Batch, waits
from freehold.actors.envelope import Envelope
from freehold.actors.ref import ActorRef
from freehold.actors.reply import Reply
from freehold.actors.seat import Doubt, Seat
from freehold.actors.work import Do, Work
from freehold.event import Event
from freehold.schema.errors import Error
from freehold.schema.failure import Failure
from freehold.schema.hashes import request_digest
from freehold.schema.ids import uuid7
from freehold.schema.messages import Append, Apply, BeginExecution, BeginStep, EndStep, Message, Settle
from freehold.schema.operations import Operation
from freehold.schema.rows import Written
from freehold.schema.steps import ended_record, intent_record, position_of
from freehold.storage.clock import Clock
from freehold.storage.create import create
from freehold.storage.delete import delete
from freehold.storage.disk import DISK, Disk
from freehold.storage.faults import Ended, Poisoned
from freehold.storage.path import RunPath
from freehold.storage.pin import Pin, pin
from freehold.storage.store import Store

Turn = tuple[Message | Work, Callable[[State], State]]
"""What is asked, and what it makes of the run."""


class Ticking(Clock):
    """A clock that goes on by a millisecond whenever it is read, and numbers the events: every scenario is the same twice."""

    def __init__(self, life: int = 0) -> None:
        """Begin; each *life* of one run has ids of its own."""
        self._ms = count(1_700_000_000_000 + life * 1_000_000)
        self._ids = count(1)

    def now_ms(self) -> int:
        return next(self._ms)

    def event_id(self, now_ms: int) -> bytes:
        return uuid7(now_ms, next(self._ids).to_bytes(10, "big"))


class Told(Reply):
    """The asker's side of one turn: what it is told becomes a fact, at the moment when it is told."""

    def __init__(self, driver: Driver, before: State, state: State, *, durable: bool) -> None:
        super().__init__()
        self._driver = driver
        self._durable = durable
        self._before = before
        self._state = state

    def set(self, value: Any = None) -> None:
        """Hear that it was done."""
        written = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, Written | Event)]
        told = {one.seq: one.hash if isinstance(one.hash, bytes) else bytes.fromhex(one.hash) for one in written}
        durable = all(one.durable for one in written) if written else self._durable
        self._driver.acknowledged(replace(self._state, hashes={**self._driver.hashes, **told}), durable=durable)
        super().set(value)

    def fail(self, error: BaseException) -> None:
        """Hear that it was not done, or that nobody knows."""
        if isinstance(error, Error) and error.executed == "no" and self._state != self._before:
            self._driver.say("never", self._state)
        super().fail(error)


class Driver:
    """Drives the run at *path* on *disk*; everything it learns goes to *hear* and stands in its book."""

    def __init__(self, path: RunPath, disk: Disk = DISK, hear: Callable[[Fact], None] | None = None, *, life: int = 0) -> None:
        self.path = path
        self.disk = disk
        self.clock = Ticking(life)
        self.book = Book()
        self.store: Store | None = None
        self.epoch: int | None = None
        self.doubt: Doubt | None = None
        self._pin: Pin | None = None
        self._hear = hear
        self._ref: ActorRef[Any] = ActorRef(path.id)

    def say(self, word: Word, state: State | None) -> None:
        """Make a fact known."""
        self.book.say(word, state)
        if self._hear is not None:
            self._hear((word, state))

    def acknowledged(self, state: State, *, durable: bool = True) -> None:
        """Make known that *state* must be in the file from now on, or is there until the power goes."""
        self.say("must" if durable else "told", state)

    @property
    def state(self) -> State:
        """The run as the owner knows it."""
        assert self.book.latest is not None
        return self.book.latest

    @property
    def hashes(self) -> dict[int, bytes]:
        """Every acknowledged event's hash."""
        known: dict[int, bytes] = {}
        for state in self.book.possible:
            known |= state.hashes if state is not None else {}
        return known

    def create(self) -> None:
        """Create the run; whoever has created it has its lock."""
        self.say("may", CREATED)
        try:
            self._pin = create(self.path, project="", props="{}", clock=self.clock, disk=self.disk)
        except Error as error:
            if error.executed == "no":
                self.say("never", CREATED)
            raise
        self.say("must", CREATED)

    def own(self) -> None:
        """Take the run over; afterwards it is known what was in the file, and a doubtful turn is told the truth."""
        before = [state for state in self.book.possible if state is not None]
        for state in before:
            self.say("may", state.taken_over(continues=self.epoch == state.epoch and self.epoch is not None))
        held, self._pin = self._pin or pin(self.path, exclusive=True), None
        self.store = store = Store(held, self.clock, own_epoch=self.epoch, vfs=self.disk.vfs)
        run, seq = store.recognised.run, store.recognised.last_seq
        found = [
            state for state in before if (state.txn, state.epoch, len(state.lines), state.status) == (run.txn, run.epoch, seq, run.status)
        ]
        assert len(found) == 1, "the file holds a transaction that is not one of those that it may hold"
        self._resolve(store, found[0])
        self.epoch = store.epoch
        known = next(state for state in self.book.possible if state == found[0])
        assert known is not None
        self.say("must", known.taken_over(continues=store.tenure.continues))

    def _resolve(self, store: Store, found: State) -> None:
        doubt, self.doubt = self.doubt, None
        if doubt is not None:
            seat = Seat(self.path, self.clock, idle_timeout=60.0)
            seat.doubt = doubt
            seat.resolve(happened=store.happened(doubt.txn, doubt.epoch))
            assert found in self.book.possible, "what a failed COMMIT left open was answered with what the file does not say"

    def turns(self, *turns: Turn) -> list[Any]:
        """Take these turns as one batch and return their answers; raise the first error."""
        assert self.store is not None
        before = after = self.state
        for _, change in turns:
            after = change(after)
        if after != before:
            after = replace(after, txn=before.txn + 1)
        self.say("may", after)
        batch = Batch(self.store, self._ref, durable=any(waits(message) for message, _ in turns))
        envelopes = [Envelope(message, Told(self, before, after, durable=waits(message))) for message, _ in turns]
        try:
            try:
                for envelope in envelopes:
                    batch.add(envelope)
                batch.end()
            except Ended as ended:
                batch.run_alone(ended)
        except Poisoned as poisoned:
            doubtful = batch.give_up(poisoned)
            if poisoned.unknown_txn is not None:
                self.doubt = Doubt(poisoned.unknown_txn, self.store.epoch, doubtful)
            raise
        return [envelope.reply_to.get(0) for envelope in envelopes if envelope.reply_to is not None]

    def append(self, name: str, record: str = "1", request_id: str | None = None) -> Any:
        """Append a note in a batch of its own."""
        return self.turns(note(name, record, request_id))[0]

    def repeat(self, name: str, record: str, request_id: str) -> Any:
        """Append what was appended under this request id before: it is answered, and nothing is added."""
        message, _ = note(name, record, request_id)
        return self.turns((message, lambda state: state))[0]

    def checkpoint(self) -> None:
        """Bring home what the -wal holds."""
        assert self.store is not None
        self.store.wal.checkpoint()

    def close(self) -> None:
        """Give the run back cleanly."""
        store, self.store, self.epoch = self.store, None, None
        if store is not None:
            self.say("may", self.state.given_back())
            store.close(clean=True)
            self.say("must", self.state.given_back())

    def crash(self) -> None:
        """Let go of what is held, as the run actor does after it was poisoned; the next `own` continues."""
        store, self.store = self.store, None
        held, self._pin = self._pin, None
        if held is not None:
            held.close()
        if store is not None:
            store.close(clean=False)

    def delete(self) -> None:
        """Delete the run, which nobody owns now."""
        closing = [state.taken_over() for state in self.book.possible if state is not None]
        for state in (*closing, *[state.given_back() for state in closing], None):
            self.say("may", state)
        delete(self.path, self.clock, self.disk)
        self.say("must", None)


def note(name: str, record: str = "1", request_id: str | None = None, *, durable: bool = True) -> Turn:
    """Return the turn that appends a note, once for its request id if it has one."""
    digest = None if request_id is None else request_digest("append", name, record)

    def change(state: State) -> State:
        return state.next(Line("note", name, record), request=request_id)

    return Append(name, record, request_id, digest, durable=durable), change


def repeated(name: str, record: str, request_id: str) -> Turn:
    """Return the turn that asks again for what was appended without waiting for the disk, and now waits: a transaction of its own."""
    return note(name, record, request_id)[0], lambda state: replace(state, txn=state.txn + 1)


def work(*notes: tuple[str, str]) -> Turn:
    """Return the turn that appends several notes in one callable."""

    def body(do: Do, _now_ms: int) -> tuple[list[Any], None]:
        return [do(Append(name, record)) for name, record in notes], None

    return Work(body, copy_context(), None, None), lambda state: state.next(*(Line("note", *one) for one in notes))


def applied(steps: Sequence[Operation], lines: Sequence[Line], **change: Any) -> Turn:
    """Return the turn that carries out a transaction as data, which adds *lines*."""
    return Apply(tuple(steps)), lambda state: state.next(*lines, **change)


def begin() -> Turn:
    """Return the turn that begins an execution."""
    return BeginExecution(), lambda state: state.next(Line("began"), status="running")


def settle(status: str) -> Turn:
    """Return the turn that ends it."""
    return Settle(status), lambda state: state.next(Line("settled"), status=status)


def intend(key: str, policy: str, attempt: int = 1) -> Turn:
    """Return the turn that asks for a step and keeps the intent of this attempt. The key is given: else it would be another each time."""
    line = Line("step", key, intent_record(None, policy, f"key of {key}"))
    return BeginStep(position_of(key), key, None, policy, f"key of {key}"), lambda state: state.next(line)


def ask_for(key: str, policy: str | None = None) -> Turn:
    """Return the turn that asks for a step and changes nothing: it may begin, or was done."""
    return BeginStep(position_of(key), key, None, policy), lambda state: state


def end(key: str, attempt: int = 1, result: str | None = None, *, durable: bool = True) -> Turn:
    """Return the turn that records the outcome of a step, or without a result that this attempt failed."""
    failure = None if result is not None else Failure("E", key).text
    line = Line("step", key, ended_record(None, result=result, failure=failure))
    message = EndStep(position_of(key), key, attempt, None, result, failure, final=result is not None, durable=durable)
    return message, lambda state: state.next(line)


def long(number: int, size: int = 9_000) -> str:
    """Return a record that is too long for its row, and does not compress well."""
    digits: Sequence[str] = [f"{(number * 7919 + at) ** 7 % 16**8:08x}" for at in range(size // 8)]
    return f'"{"".join(digits)}"'
