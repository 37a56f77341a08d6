"""The queue in which everybody waits for a turn.

Guarantees: bounded in messages and bytes, and full means refused rather than blocked; first come, first served
inside a lane; once closed it refuses under the same lock that its consumer takes from, so no message is ever lost
between the two. It belongs to the actor's name, not to one incarnation: what waits here outlives a restart.
"""

from __future__ import annotations

import _thread
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from queue import Empty, SimpleQueue
from typing import Any
from weakref import ref

from freehold.actors.deadline import monotonic, to_wait
from freehold.actors.envelope import Envelope, Lane
from freehold.schema.errors import Error, MailboxFull
from freehold.schema.limits import MAILBOX_BYTES_MAX, MAILBOX_MESSAGES_MAX
from freehold.storage import forks


class Hold(ref[Any]):
    """Stands for what somebody holds. When its holder is collected, it is left for the consumer, which gives back what it was *of*."""

    __slots__ = ("of",)

    of: object


class Mailbox:
    """One consumer, any number of senders."""

    def __init__(self, messages_max: int = MAILBOX_MESSAGES_MAX, bytes_max: int = MAILBOX_BYTES_MAX) -> None:
        self.messages_max = messages_max
        self.bytes_max = bytes_max
        self.high_water = 0
        self.refused = 0
        self._lanes: tuple[deque[Envelope], ...] = tuple(deque() for _ in Lane)
        self._bytes = 0
        # A collection or a signal handler may call in again from the very thread that holds it.
        self._lock = _thread.RLock()
        # One word more than needed costs the consumer one look; one word less would leave it asleep for ever.
        self._wake: SimpleQueue[Hold | None] = SimpleQueue()
        self._asleep = False
        self._narrowed = False
        self._refusal: Callable[[], Error] | None = None
        self.closed = False
        self._forked = False
        self._returned: deque[object] = deque()
        forks.watch(self)

    def __len__(self) -> int:
        return sum(map(len, self._lanes))

    @property
    def waiting(self) -> int:
        """How many messages of others wait; a supervisor's own, and reports to it, are no work that anybody asked for."""
        return len(self) - len(self._lanes[Lane.SYSTEM])

    def put(self, envelope: Envelope) -> None:
        """Take *envelope* in.

        Raises MailboxFull, or what the mailbox was sealed or closed with; then it was not taken. System messages, and those
        of a transaction that has begun, are taken until it is closed, however full it is.
        """
        if self._forked:
            raise forks.forked_process()
        lane = envelope.lane
        with self._lock:
            if self._refusal is not None and (self.closed or lane is Lane.USER):
                self.refused += 1
                raise self._refusal()
            queue = self._lanes[lane]
            if lane is Lane.USER and (len(queue) >= self.messages_max or self._bytes + envelope.size > self.bytes_max):
                self.refused += 1
                raise _full(self)
            self.high_water = max(self.high_water, len(queue) + 1)
            if not (self._narrowed and lane is Lane.USER):
                self._rouse()  # it looks under this lock
            # Last, with no call in between: a signal leaves no message of which the consumer has no word, and none half counted.
            if lane is Lane.USER:
                self._bytes += envelope.size
            queue.append(envelope)

    def post(self, thing: object) -> None:
        """Leave *thing* for the consumer to find, from a finalizer: takes no lock, waits for nobody, never raises."""
        self._returned.append(thing)
        self._rouse()

    def hold(self, holder: object, of: object) -> Hold:
        """Return what leaves itself for the consumer when *holder* is collected, for as long as somebody keeps it.

        Unlike a finalizer, which a signal can end at its first step, this is one call of C.
        """
        hold = Hold(holder, self._wake.put)
        hold.of = of
        return hold

    def posted(self) -> Iterable[object]:
        """Yield what finalizers have left, and what holders that were collected have held. For the consumer."""
        while not self._wake.empty():
            self._hear(self._wake.get())
        while self._returned:
            yield self._returned.popleft()

    def wait(self, until: float | None) -> bool:
        """Wait until there is something to take or to find, or nothing will come any more because the mailbox was closed.

        Returns False when the clock reaches *until* (monotonic) first.
        """
        while True:
            with self._lock:
                # The flag first: who leaves something without the lock either sees it, or is seen.
                self._asleep = True
                if self.closed or self._returned or self._next_lane() is not None:
                    self._asleep = False
                    return True
            try:
                self._hear(self._wake.get(timeout=None if until is None else to_wait(until - monotonic())))
            except Empty:
                self._asleep = False
                return False
            self._asleep = False
            while not self._wake.empty():  # whoever has sent a word too many has left its message first, or has the lock
                self._hear(self._wake.get())

    def take(self, messages: int, size: int) -> list[Envelope]:
        """Take what is there, without waiting: at most *messages* of about *size* bytes, from one lane.

        A message that stands alone is taken alone, and ends what is taken before it.
        """
        with self._lock:
            queue = self._next_lane()
            if queue is None:
                return []
            return self._take(queue, 1 if queue is self._lanes[Lane.SYSTEM] else messages, size)

    def put_back(self, envelopes: Sequence[Envelope]) -> list[Envelope]:
        """Put what was taken and not begun back to the head of its lane: the next incarnation will take it.

        A closed mailbox takes nothing back; what it did not take is returned, to be answered by the caller.
        """
        with self._lock:
            if self.closed:
                return list(envelopes)
            for envelope in reversed(envelopes):
                self._lanes[envelope.lane].appendleft(envelope)
                if envelope.lane is Lane.USER:
                    self._bytes += envelope.size
        return []

    def take_late(self, messages: int, size: int) -> list[Envelope]:
        """Take more for a batch that is about to end; nothing when something that cannot join it is next."""
        with self._lock:
            user = self._lanes[Lane.USER]
            if self._next_lane() is not user or user[0].alone:
                return []
            return self._take(user, messages, size)  # under the same lock: what may not join could come in between

    def narrow(self, *, to_span: bool) -> None:
        """Let all but a spanning transaction's messages wait, or let them come again."""
        with self._lock:
            self._narrowed = to_span

    def seal(self, refusal: Callable[[], Error]) -> None:
        """Refuse what comes from now on with *refusal*; what waits stays to be handled."""
        with self._lock:
            self._refusal = self._refusal or refusal

    def close(self, refusal: Callable[[], Error]) -> list[Envelope]:
        """Refuse what comes from now on, and return what was still waiting, to be answered by the caller.

        The consumer is woken, to see that its mailbox is closed: also one that was abandoned comes to its end by this.
        """
        with self._lock:
            self._refusal = refusal
            self.closed = True
            self._rouse()
            rest = [envelope for queue in self._lanes for envelope in list(queue)]
            for queue in self._lanes:
                queue.clear()
            self._bytes = 0
            return rest

    def forked(self) -> None:
        """In a forked child: refuse at once. The lock may be held by a thread that is not here."""
        self._forked = True

    def _take(self, queue: deque[Envelope], messages: int, size: int) -> list[Envelope]:
        taken: list[Envelope] = []
        while queue and len(taken) < messages and size > 0:
            if queue[0].alone and taken:
                break
            envelope = queue.popleft()
            taken.append(envelope)
            size -= envelope.size
            if envelope.lane is Lane.USER:
                self._bytes -= envelope.size
            if envelope.alone:
                break
        return taken

    def _hear(self, word: Hold | None) -> None:
        if word is not None:
            self._returned.append(word.of)

    def _rouse(self) -> None:
        # The flag is the consumer's alone: a sender that let it fall, late, would do so for a consumer asleep again.
        if self._asleep:
            self._wake.put(None)

    def _next_lane(self) -> deque[Envelope] | None:
        system, span, user = self._lanes
        if system:
            return system
        if span:
            return span
        return user if user and not self._narrowed else None


def _full(mailbox: Mailbox) -> MailboxFull:
    return MailboxFull(
        f"{mailbox.messages_max} messages or {mailbox.bytes_max} bytes wait for this actor already; this one was not taken",
        messages_max=mailbox.messages_max,
        bytes_max=mailbox.bytes_max,
    )
