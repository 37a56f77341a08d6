"""A host's door for other processes of the same user: a Unix socket in its folder, and a thread for each who comes in.

It is made when the first run is owned. Where none can be made the host works all the same, and only this process can ask it.
Its threads wait for what other processes do, so they are none of an actor's: they end with the listener that has started them.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import threading
from contextlib import suppress
from typing import Any, NamedTuple

from freehold.actors.actor import Actor
from freehold.actors.cell import crash_report
from freehold.actors.connection import Connection, Owner
from freehold.actors.deadline import monotonic, pause
from freehold.schema.errors import Error, Unavailable
from freehold.schema.limits import CONNECTIONS_MAX, LISTENER_STOP_S
from freehold.schema.secrets import SecretFilter
from freehold.schema.wire import encode_error
from freehold.storage import forks
from freehold.storage.sockets import Listening, listen, sweep

_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ECONNABORTED})

log = logging.getLogger("freehold.actors")


class Listen(NamedTuple):
    """Listen, if that can be done; the answer is the socket's name, or None."""


class Broke(NamedTuple):
    """Report: nobody is let in any more."""

    error: BaseException


class Door:
    """What of a listener outlives its restarts: where it listens and under which name, and whether it was asked to."""

    def __init__(self, folder: str, name: str, owner: Owner, secrets: SecretFilter) -> None:
        self.folder = folder
        self.name = name
        self.owner = owner
        self.secrets = secrets
        self.is_wanted = False
        self.has_warned = False


class Listener(Actor[Any]):
    """One incarnation of what listens at *door*."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._listening: Listening | None = None
        self._acceptor: threading.Thread | None = None
        self._ending = False
        self._guests: dict[Connection, threading.Thread] = {}
        self._seats: list[None] = [None] * (CONNECTIONS_MAX // 2)

    def started(self) -> None:
        """Listen again where an earlier incarnation did."""
        if self._door.is_wanted:
            self._listen()

    def receive(self, message: Any) -> object:
        """Handle Listen, and the report that nobody is let in any more."""
        if isinstance(message, Broke):
            raise message.error
        if isinstance(message, Listen):
            self._door.is_wanted = True
            return self._listen()
        return super().receive(message)

    def stopped(self, _reason: BaseException | None) -> None:
        """Let nobody in any more, let the answers that are on their way go out, and end the connections in bounded time."""
        self._ending = True
        if self._listening is not None:
            self._listening.refuse()
        if self._acceptor is not None:
            self._acceptor.join(LISTENER_STOP_S)
        for guest in list(self._guests):
            guest.end()
        self._join(LISTENER_STOP_S)
        self.interrupt()
        self._join(LISTENER_STOP_S)

    def interrupt(self) -> None:
        """Cut the connections that are left. Called from another thread when stopping takes too long."""
        for guest in list(self._guests):
            guest.cut()

    def doing(self) -> str | None:
        """Return how many are connected."""
        guests = len(self._guests)
        return None if self._listening is None else f"{self._door.name}, {guests} connection{'' if guests == 1 else 's'}"

    def forked(self) -> None:
        """In a forked child: whoever connects must be refused when the parent has ended."""
        if self._listening is not None:
            self._listening.socket.close()

    def _listen(self) -> str | None:
        door = self._door
        if self._listening is None:
            try:
                sweep(door.folder)
                self._listening = listen(door.folder, door.name)
                forks.watch(self)
                self._acceptor = threading.Thread(target=self._accept, args=(self._listening.socket,), name="freehold-door", daemon=True)
                self._acceptor.start()
            except (OSError, RuntimeError) as error:
                self._give_up(error)
                return None
        return door.name

    def _give_up(self, error: Exception) -> None:
        if self._listening is not None:
            self._listening.refuse()
            self._listening.socket.close()
            self._listening = self._acceptor = None
        if not self._door.has_warned:
            self._door.has_warned = True
            why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
            log.warning("no socket could be made in %s (%s): other processes cannot ask this host", self._door.folder, why)

    # In the acceptor's thread

    def _accept(self, door: socket.socket) -> None:
        try:
            with door:
                while not self._ending:
                    try:
                        guest, _ = door.accept()
                    except OSError as error:
                        if self._ending or error.errno not in _NO_ROOM:
                            raise
                        pause()  # there will be room when others have gone
                        continue
                    try:
                        self._let_in(guest)
                    except BaseException:
                        guest.close()  # the error keeps it alive, and it would wait
                        raise
        except BaseException as error:  # noqa: BLE001 - the thread ends here; the listener is told, and begins anew
            if not self._ending:
                with suppress(Error):  # it ends by itself just now
                    self.ref.tell(Broke(error))

    def _let_in(self, guest: socket.socket) -> None:
        connection = Connection(guest, self._door.owner, self._door.secrets, self._seats)
        if len(self._guests) < CONNECTIONS_MAX:
            thread = threading.Thread(target=self._serve, args=(connection,), name="freehold-guest", daemon=True)
            self._guests[connection] = thread
            with suppress(RuntimeError):  # no thread can be had
                thread.start()
                return
            del self._guests[connection]
        with guest, suppress(OSError):  # gone already
            guest.setblocking(False)
            guest.send(encode_error(_too_many()), socket.MSG_NOSIGNAL)

    # In a connection's thread

    def _serve(self, connection: Connection) -> None:
        try:
            connection.serve()
        except BaseException as error:  # noqa: BLE001 - a fault of ours in one of them must not end the others
            crash_report("connection", error)
        finally:
            self._guests.pop(connection, None)

    def _join(self, allowed: float) -> None:
        until = monotonic() + allowed
        for thread in list(self._guests.values()):
            if thread.ident is not None:
                thread.join(max(0.0, until - monotonic()))


def _too_many() -> Unavailable:
    return Unavailable(
        f"{CONNECTIONS_MAX} connections from other processes are served already; nothing was changed",
        code="too_many_connections",
        connections_max=CONNECTIONS_MAX,
    )
