"""Asking the owner of a run in another process, and telling the truth about what it may have done.

Before a whole request is written nothing of it is ever done. After that, and without an answer, nobody knows of a write; a
read has done nothing. A host that does not own the run, or not any more, is no answer: the asker looks again who does.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from freehold.actors.connection import not_owner
from freehold.actors.deadline import deadline_in, exceeded, monotonic, pause
from freehold.actors.frames import Closed, receive, send
from freehold.actors.lines import Lines
from freehold.actors.look import find_socket
from freehold.schema.errors import DeadlineExceeded, Error, Executed, Refused, RunNotFound, Unavailable
from freehold.schema.limits import ASK_TIMEOUT_S, REPLY_FRAME_BYTES_MAX
from freehold.schema.messages import Message, ShowTree
from freehold.schema.wire import Request, check_hello, decode_reply, encode_hello, encode_request
from freehold.storage import forks, platform, sockets
from freehold.storage.path import RunPath
from freehold.storage.platform import Inode

PASSED_ON = frozenset({"not_owner", "stopping"})
"""Codes of errors after which the asker should look again who owns the run. Nothing was done."""

_GRACE_S = 0.5
"""How long after its deadline an answer is still awaited: the owner knows better than we what has become of the request."""
_LAST_WORDS_S = 0.1
_ROOM_S = 0.02
"""How often an owner that serves too many others is asked again whether there is room: nobody says when there is."""
_TRIES_MAX = 3


class Line:
    """One connection to one host, used by one thread at a time."""

    def __init__(self, end: socket.socket, run_id: str = "") -> None:
        """*run_id*: of which run its owner is asked over it next, to say so where no answer comes."""
        self._end = end
        self.run_id = run_id
        forks.watch(self)

    def greet(self, until: float) -> None:
        """Say hello and hear it. Raises what the host says instead, Closed, TimeoutError."""
        with suppress(Closed):  # before it hung up it may have said why
            send(self._end, encode_hello(), until)
        check_hello(receive(self._end, REPLY_FRAME_BYTES_MAX, until))

    def ask(self, frame: bytes, message: Message, deadline: float) -> Any:
        """Send a request and return its answer, or raise it; see `Remote.ask`. After any other end the line is closed."""
        try:
            self._send(frame, message, deadline)
            value, error = self._answer(message, deadline)
        except BaseException:
            self.close()  # an answer that comes late must not be taken for the next one's
            raise
        if error is not None:
            raise error
        return value

    def _send(self, frame: bytes, message: Message, deadline: float) -> None:
        try:
            send(self._end, frame, deadline)
        except TimeoutError:
            raise exceeded("no", self.run_id) from None
        except Closed:
            # It has closed the line before it had read all this, and may have said why.
            raise self._last_words(message) from None

    def _last_words(self, message: Message) -> Error:
        try:
            _, said = decode_reply(receive(self._end, REPLY_FRAME_BYTES_MAX, monotonic() + _LAST_WORDS_S), type(message))
        except (Closed, TimeoutError, Refused):
            said = None
        return said if said is not None and said.executed == "no" else _gone()

    def _answer(self, message: Message, deadline: float) -> tuple[Any, Error | None]:
        executed: Executed = "unknown" if message.writes else "no"
        try:
            return decode_reply(receive(self._end, REPLY_FRAME_BYTES_MAX, deadline + _GRACE_S), type(message))
        except TimeoutError:
            raise exceeded(executed, self.run_id) from None
        except (Closed, Refused):
            raise _no_answer(executed) from None

    @property
    def is_quiet(self) -> bool:
        """Whether the line stands, and nothing was said on it that nobody has asked for: that it ends."""
        if self._end.fileno() < 0:
            return False
        look = select.poll()
        look.register(self._end, select.POLLIN)
        return not look.poll(0)

    def close(self) -> None:
        """Hang up."""
        self._end.close()

    def forked(self) -> None:
        """In a forked child: let go, so that the owner sees its asker's end."""
        self._end.close()


class Remote:
    """Asks whoever owns the run *path* in another process. Threads may share it; each asks over a connection of its own.

    *root* is the folder of the asker's host; the owner's socket lies there or in the run file's own folder.
    """

    def __init__(
        self,
        path: RunPath,
        root: str | None = None,
        *,
        timeout: float = ASK_TIMEOUT_S,
        any_filesystem: bool = False,
        lines: Lines | None = None,
    ) -> None:
        """Take connections from *lines*, which others may use as well, or keep some of its own."""
        self._path = path
        self._folders = [path.folder] if root is None else list(dict.fromkeys((root, path.folder)))
        self.timeout = timeout
        self._any_filesystem = any_filesystem
        self._lines = lines or Lines()
        self._is_alone = lines is None
        self._name: str | None = None

    def ask(self, message: Message, _size: int = 0, *, timeout: float | None = None) -> Any:
        """Return the owner's answer to *message*, given after its COMMIT, or within *timeout* seconds instead of the usual time.

        Raises what the owner raises; Unavailable with a code in PASSED_ON, after which to look again who owns the run;
        Unavailable (no_answer) when the owner has gone before it answered, and DeadlineExceeded: their `executed` says what is
        known; Unavailable (too_many_connections); Refused (frame_too_large, other_protocol); RunNotFound, and what `reading`
        raises of a file that is no healthy run.
        """
        deadline = deadline_in(self.timeout if timeout is None else timeout)
        assert deadline is not None
        if deadline <= monotonic():
            raise exceeded("no", self._path.id)
        inode = self._inode()
        tries = 0
        while True:
            tries += 1
            name, line = self._reach(deadline)
            try:
                return self._ask(name, line, message, inode, deadline)
            except Unavailable as error:
                # The owner may have ended a line that was unused for long in this very moment, or another one owns the run by now.
                self._name = None
                if error.code not in PASSED_ON or error.executed != "no" or tries == _TRIES_MAX:
                    raise

    def close(self) -> None:
        """Keep no connection that is this one's alone. What is on its way comes to its end, and later calls connect anew."""
        self._name = None
        if self._is_alone:
            self._lines.close()

    def _ask(self, name: str, line: Line, message: Message, inode: Inode, deadline: float) -> Any:
        left = max(0.0, deadline - monotonic())
        of_host = isinstance(message, ShowTree)
        try:
            frame = encode_request(Request(message, None if of_host else self._path.id, None if of_host else inode, left))
        except BaseException:
            self._lines.put_back(name, line)
            raise
        try:
            return line.ask(frame, message, deadline)
        finally:
            self._lines.put_back(name, line)

    def _inode(self) -> Inode:
        found = platform.find_inode(self._path.file)
        if found is None:
            raise RunNotFound(f"there is no run file {self._path.file}; nothing was created")
        return found

    def _reach(self, deadline: float) -> tuple[str, Line]:
        """Return the name of the owner's socket, and a line to it. One that serves too many others is waited for."""
        name = self._name
        if name is None:
            name = find_socket(self._path, any_filesystem=self._any_filesystem)
            if name is None:
                raise not_owner(self._path.id)
            self._name = name
        line = self._lines.take(name)
        while line is None:
            try:
                line = connect(self._folders, name, deadline, self._path.id)
            except Unavailable as error:
                if error.code != "too_many_connections" or monotonic() + _ROOM_S >= deadline:
                    self._name = None
                    raise
                pause(_ROOM_S)
                line = self._lines.take(name)
        line.run_id = self._path.id
        return name, line


def connect(folders: Iterable[str], name: str, deadline: float, run_id: str = "") -> Line:
    """Return a line to the host that listens as *name* in one of *folders*.

    Raises Unavailable (not_owner, too_many_connections), Refused (other_protocol), DeadlineExceeded (executed: no).
    """
    for folder in folders:
        end = _connected(folder, name, deadline, run_id)
        if end is None:
            continue
        line = Line(end, run_id)
        try:
            line.greet(deadline)
        except BaseException as error:
            line.close()
            if isinstance(error, Closed):
                break  # it listened a moment ago
            if isinstance(error, TimeoutError) and not isinstance(error, DeadlineExceeded):
                raise exceeded("no", run_id) from None
            raise
        return line
    raise not_owner(run_id)


def ask_host(folder: str, name: str, message: Message, timeout: float = ASK_TIMEOUT_S) -> Any:
    """Return the answer to a message about the whole host that listens as *name* in *folder*. Raises as `Remote.ask` does."""
    deadline = deadline_in(timeout)
    assert deadline is not None
    line = connect((folder,), name, deadline)
    try:
        return line.ask(encode_request(Request(message, timeout=max(0.0, deadline - monotonic()))), message, deadline)
    finally:
        line.close()


def _connected(folder: str, name: str, deadline: float, run_id: str) -> socket.socket | None:
    while True:
        try:
            return sockets.connect(folder, name)
        except BlockingIOError:  # more wait already than it may have waiting; there is no event for the end of that
            if monotonic() >= deadline:
                raise exceeded("no", run_id) from None
            pause()
        except OSError as error:
            if (none_left := platform.no_descriptors(error)) is not None:
                raise none_left from None
            return None


def _gone() -> Unavailable:
    return Unavailable(
        "the owner has hung up before it had the whole request; look again who owns the run. Nothing was changed", code="not_owner"
    )


def _no_answer(executed: Executed) -> Unavailable:
    what = (
        "nothing was changed"
        if executed == "no"
        else "whether it was carried out is not known: ask again with its request id, or look into the history"
    )
    return Unavailable(f"the owner of the run has gone before it answered; {what}", code="no_answer", executed=executed)
