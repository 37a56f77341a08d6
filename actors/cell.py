"""One incarnation of an actor: pykka's actor and its thread, on pykka's documented seams.

Four seams are used and no other: `_create_actor_inbox`, `_create_future`, `_start_actor_loop` and the public hooks and
attributes. pykka's loop gets its messages from `Feed`, one batch at a time, and never answers anything itself.
Whatever happens inside, exactly one `Exited` is reported, after the actor's resources are closed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pykka
from pykka.messages import _ActorStop

from freehold.actors.actor import Actor
from freehold.actors.deadline import CHAIN, DEADLINE, Link, monotonic
from freehold.actors.envelope import Envelope
from freehold.actors.mailbox import Mailbox
from freehold.actors.refusal import stopping
from freehold.actors.reply import Reply
from freehold.schema.foreign import traceback_of, type_name

log = logging.getLogger("freehold.actors")


class Stop:
    """System message: stop. With *drain*, first finish what waits in the mailbox; what comes from now on is refused."""

    __slots__ = ("drain",)

    def __init__(self, *, drain: bool) -> None:
        self.drain = drain


class Started:
    """Report: the incarnation is ready."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell


class Exited:
    """Report: the incarnation has ended and everything that it held is closed. *failed_start*: it never was ready."""

    def __init__(self, cell: Cell, reason: BaseException | None, *, failed_start: bool) -> None:
        self.cell = cell
        self.reason = reason
        self.failed_start = failed_start


class Feed:
    """What pykka takes for an inbox: hands over batches from the mailbox, which stays when the incarnation ends."""

    def __init__(self) -> None:
        self.draining = False
        self._stop = False
        self._idled = False
        self._actor: Actor[Any]
        self._mailbox: Mailbox

    def bind(self, actor: Actor[Any], mailbox: Mailbox) -> None:
        """Say whose messages these are."""
        self._actor = actor
        self._mailbox = mailbox

    def put(self, envelope: Any) -> None:
        """Take pykka's own stop, the only message that comes this way."""
        assert isinstance(envelope.message, _ActorStop)
        self._stop = True

    def get(self) -> Envelope:
        """Wait for the next batch; an empty one says that the actor's idle time has come."""
        actor, mailbox = self._actor, self._mailbox
        if self._stop or actor.ending or mailbox.closed or (self.draining and actor.may_end()):
            return Envelope(_ActorStop())
        due = actor.wake_at()
        # What is due comes between two batches, however many messages keep coming.
        self._idled = not self._idled and due is not None and due <= monotonic()
        batch: list[Envelope] = []
        if not self._idled and mailbox.wait(due):
            batch = mailbox.take(actor.batch_messages, actor.batch_bytes)
        return Envelope(batch)

    def empty(self) -> bool:
        """Say that nothing is left: what waits in the mailbox is the supervisor's to decide on."""
        return True


class Cell(pykka.ThreadingActor):
    """Runs one incarnation of *actor*, and tells *report* how it goes."""

    use_daemon_thread = True  # a stuck thread must not keep the interpreter; atexit closes every host before it ends

    def __init__(self, actor: Actor[Any], report: Callable[[Any], None]) -> None:
        super().__init__()
        self.actor = actor
        self.thread: threading.Thread | None = None
        self.reason: BaseException | None = None
        self._report = report
        self.ready = False
        self._holds = False
        self.actor_inbox.bind(actor, actor.ref.mailbox)  # type: ignore[attr-defined]

    @staticmethod
    def _create_actor_inbox() -> Any:
        return Feed()

    @staticmethod
    def _create_future() -> Any:
        return Reply()

    def launch(self) -> None:
        """Start the thread. It is never entered in pykka's global registry, whose stop_all is not ours to obey."""
        self._start_actor_loop()

    def join(self, timeout: float) -> bool:
        """Wait for the thread itself to be gone, and return whether it is; what it held was closed before its end was reported."""
        if self.thread is None:
            return True
        self.thread.join(timeout)
        return not self.thread.is_alive()

    def _start_actor_loop(self) -> None:
        self.thread = threading.Thread(target=self._live, name=f"freehold-{self.actor.ref.name}", daemon=self.use_daemon_thread)
        self.thread.start()

    def _live(self) -> None:
        try:
            self._actor_loop()
        except BaseException as error:  # noqa: BLE001 - the thread ends here, and its end is told whatever it was
            self._ended_by(error)
            self.on_stop()
        self._report(Exited(self, self.reason, failed_start=not self.ready))

    def on_start(self) -> None:
        """Make the actor ready; a failure ends the incarnation and is reported as itself."""
        self._by_itself()
        try:
            self.actor.started()
        except BaseException as error:  # noqa: BLE001 - a zombie would be left otherwise
            self.reason = error
            self.stop()
            return
        self.ready = self._holds = True
        self._report(Started(self))

    def on_receive(self, message: Sequence[Envelope]) -> None:
        """Let the actor take its turns; whatever it raises ends this incarnation and no other actor of the process."""
        try:
            if not message:
                self._by_itself()
                self.actor.idle()
            elif type(stop := message[0].message) is Stop:
                self.actor.ref.mailbox.seal(stopping)
                self.actor.ending = not stop.drain
                self.actor_inbox.draining = True  # type: ignore[attr-defined]
            else:
                self.actor.take_turns(message)
        except BaseException as error:  # noqa: BLE001 - pykka would stop every actor of the process
            self.reason = error
            self.stop()

    def on_stop(self) -> None:
        """Close what the actor holds, once."""
        if not self._holds:
            return
        self._holds = False
        self._by_itself()
        try:
            self.actor.stopped(self.reason)
        except BaseException as error:  # noqa: BLE001 - reported as the reason of the end
            self._ended_by(error)

    def _ended_by(self, error: BaseException) -> None:
        if self.reason is None:  # asked so, because an exception of theirs may be false, or refuse to say
            self.reason = error

    def _by_itself(self) -> None:
        """Nobody asked for what comes now: it stands under no deadline, and a call to itself is one all the same."""
        CHAIN.set((Link(self.actor.ref),))
        DEADLINE.set(None)


def crash_report(name: str, reason: BaseException) -> None:
    """Log one line for a crash: where it happened and of what type. Its text could quote a value and is left out."""
    where = "outside of Python"
    trace = traceback_of(reason)
    while trace is not None:
        code = trace.tb_frame.f_code
        where = f"{code.co_filename}:{trace.tb_lineno} in {code.co_name}"
        trace = trace.tb_next
    log.error("%s crashed: %s at %s", name, type_name(reason), where)
