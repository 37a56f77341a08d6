"""One connection from another process, served in a thread of its own: one request after the other, each answered after its COMMIT.

It holds one lease a run, so that its asker's turns are taken like everybody's. When the asker goes away, what had not been
taken up is abandoned, and the leases are given back.
"""

from __future__ import annotations

import logging
import os
import socket
from contextlib import suppress
from typing import Any, Protocol

from freehold.actors.deadline import CHAIN, DEADLINE, monotonic
from freehold.actors.envelope import Envelope, Lane
from freehold.actors.frames import Closed, receive, send
from freehold.actors.leases import Lease
from freehold.actors.operations import only_looks
from freehold.actors.ref import ActorRef
from freehold.actors.refusal import stopping
from freehold.actors.reply import Reply
from freehold.schema.errors import Error, LeaseLost, MailboxFull, Refused, Unavailable
from freehold.schema.limits import ASK_TIMEOUT_S, CONNECTION_IDLE_S, FRAME_S, HELLO_S, REQUEST_FRAME_BYTES_MAX
from freehold.schema.messages import CloseLease, Message, OpenLease, ShowTree, WaitBeyond
from freehold.schema.secrets import SecretFilter
from freehold.schema.wire import Request, check_hello, decode_request, encode_error, encode_hello, encode_value
from freehold.storage import forks, platform
from freehold.storage.platform import Inode
from freehold.storage.received import checked

_PIECE_S = 0.05
_HELLO_BYTES_MAX = 4096

log = logging.getLogger("freehold.actors")


class Owner(Protocol):
    """Who owns the runs that are asked for."""

    def find(self, run_id: str, inode: Inode) -> ActorRef[Any] | None:
        """Return the ref of the actor that owns this very file, or None."""

    def picture(self) -> dict[str, Any]:
        """Return the host's tree as plain data."""


class Asked(Reply):
    """The answer to a request whose asker may hang up meanwhile. Then its wait ends with Closed."""

    __slots__ = ("_asker",)

    def __init__(self, asker: socket.socket) -> None:
        super().__init__()
        self._asker = asker

    def claim(self) -> bool:
        """Take the request up, unless its asker has gone: what he asks after that must not come before it."""
        return not self.is_taken and not platform.has_hung_up(self._asker) and super().claim()

    def get(self, timeout: float | None = None) -> Any:
        """Wait as every reply does, and look now and then whether the asker is still there."""
        until = None if timeout is None else monotonic() + timeout
        while True:
            left = _PIECE_S if until is None else min(_PIECE_S, until - monotonic())
            try:
                return super().get(left)
            except TimeoutError as error:
                if self.error is error or (until is not None and monotonic() >= until):
                    raise
                if platform.has_hung_up(self._asker):
                    raise Closed from None


class Connection:
    """Serves whoever has connected, until one of the two ends it."""

    def __init__(self, asker: socket.socket, owner: Owner, secrets: SecretFilter, seats: list[None]) -> None:
        """*seats*: one for each who may wait for events at once, shared by all connections; a list takes and gives in one step."""
        self._seats = seats
        self._asker = asker
        self._owner = owner
        self._secrets = secrets
        self._leases: dict[ActorRef[Any], Lease] = {}
        self._ending = False
        forks.watch(self)

    def serve(self) -> None:
        """Answer requests until the connection ends, and leave nothing behind."""
        try:
            if platform.peer_uid(self._asker) == os.geteuid():
                self._serve()
        except (Closed, TimeoutError):
            log.debug("whoever asked has gone, or was too slow")
        finally:
            self._asker.close()
            for ref, lease in self._leases.items():
                lease.closed = True
                with suppress(Error):  # an owner that has ended has closed its book itself
                    ref.post_system(CloseLease(), lease)

    def end(self) -> None:
        """End it as soon as the answer that is on its way has gone out. Called from another thread."""
        self._ending = True
        self._shut(socket.SHUT_RD)  # who waits for a request is woken

    def cut(self) -> None:
        """End it at once. Called from another thread."""
        self._shut(socket.SHUT_RDWR)

    def forked(self) -> None:
        """In a forked child: let go of what would keep the asker from seeing the owner's end."""
        self._asker.close()

    def _shut(self, how: int) -> None:
        with suppress(OSError):  # it has ended by itself
            self._asker.shutdown(how)

    def _serve(self) -> None:
        try:
            check_hello(receive(self._asker, _HELLO_BYTES_MAX, monotonic() + HELLO_S))
        except Refused as refusal:
            self._send(encode_error(refusal))
            return
        self._send(encode_hello())
        while (body := self._next()) is not None and self._answer(body):
            pass

    def _next(self) -> bytes | None:
        """Return the next request; None when there will be none, and then its asker has been told that nothing more is taken up."""
        try:
            if not self._ending:
                return receive(self._asker, REQUEST_FRAME_BYTES_MAX, monotonic() + CONNECTION_IDLE_S, FRAME_S)
            refusal: Error = stopping()
        except Refused as too_large:
            refusal = too_large  # what follows cannot be told from its body
        except TimeoutError:
            refusal = stopping()  # unused for long, or cut off in the middle of a frame
        except Closed:
            if not self._ending:
                raise
            refusal = stopping()
        self._send(encode_error(refusal))
        return None

    def _answer(self, body: bytes) -> bool:
        """Answer one request; return whether another may follow."""
        try:
            request = decode_request(body)
        except Refused as refusal:
            self._send(encode_error(refusal))
            return False
        if self._ending:
            self._send(encode_error(stopping()))
            return False
        try:
            answer = encode_value(self._carried_out(request, len(body)))
        except Closed:
            raise
        except BaseException as error:  # noqa: BLE001 - told to whoever asked, whatever it is
            answer = encode_error(error)
        self._send(answer)
        return True

    def _carried_out(self, request: Request, size: int) -> Any:
        if isinstance(request.message, ShowTree):
            return self._owner.picture()
        allowed = ASK_TIMEOUT_S if request.timeout is None else request.timeout
        CHAIN.set(())
        DEADLINE.set(monotonic() + allowed)
        message = checked(request.message, self._secrets)
        assert request.run is not None
        assert request.inode is not None
        ref = self._owner.find(request.run, request.inode)
        if ref is None:
            raise not_owner(request.run)
        try:
            if isinstance(message, WaitBeyond):
                return self._waited(ref, message, size, allowed)
            return self._ask(ref, message, size, allowed)
        except LeaseLost as error:
            self._leases.pop(ref, None)
            if error.executed != "no":
                raise
            raise not_owner(request.run) from None

    def _waited(self, ref: ActorRef[Any], message: WaitBeyond, size: int, allowed: float) -> Any:
        """Wait for what comes, if there is a seat: those who wait must not keep those out who have something to do."""
        try:
            self._seats.pop()
        except IndexError:
            raise MailboxFull("too many wait here for events already; look at the file instead. Nothing was changed") from None
        try:
            return self._ask(ref, message, size, allowed)
        finally:
            self._seats.append(None)

    def _ask(self, ref: ActorRef[Any], message: Message, size: int, allowed: float) -> Any:
        if platform.has_hung_up(self._asker):
            raise Closed
        lease = None if only_looks(message) else self._lease(ref)
        asked = Asked(self._asker)
        try:
            return ref.send(Envelope(message, asked, lease, size=size), allowed)
        except Closed:
            ref.mailbox.post(asked)  # it may wait there for what comes
            raise

    def _lease(self, ref: ActorRef[Any]) -> Lease:
        if (lease := self._leases.get(ref)) is not None and lease.lost is None:
            return lease
        lease = Lease(is_guest=True)
        try:
            ref.send(Envelope(OpenLease(), Asked(self._asker), lease, lane=Lane.SYSTEM), ref.timeout)
        except BaseException:
            lease.closed = True  # it may have been entered all the same
            ref.mailbox.post(lease)
            raise
        self._leases[ref] = lease
        return lease

    def _send(self, frame: bytes) -> None:
        send(self._asker, frame, monotonic() + FRAME_S)


def not_owner(run_id: str) -> Unavailable:
    """Return what is said by, or of, a host that does not own the run, or not any more."""
    return Unavailable(
        f"the run {run_id} is not owned there, or not any more; look again who owns it. Nothing was changed", code="not_owner"
    )
