"""A handle on a run: talks to it whoever owns it, this process, another one, or nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, overload

from freehold.actors.deadline import Seconds
from freehold.actors.following import Watch
from freehold.actors.route import Passage, Route
from freehold.effect import Effect
from freehold.event import Event
from freehold.files import Files
from freehold.history import Wait
from freehold.info import Status
from freehold.position import At
from freehold.schema.errors import Conflict, Refused
from freehold.schema.limits import PUBLISH_TRIES_MAX
from freehold.schema.secrets import SecretFilter
from freehold.staged import Staged, Staging
from freehold.steering import Steering


class Handle(Steering):
    """A run to talk to. It owns nothing between two calls, and what it reads is read as a view does.

    A call is carried out by the run's owner, wherever that is: in this host, or in another process of this user, which answers
    after its COMMIT. Where nobody owns the run, this host does for as long as the call takes. Threads may share a handle.

    Raises what a lease raises; OwnedElsewhere when the run has an owner that cannot be asked (it has no socket); Unavailable
    (no_answer) when it has gone before it answered: `executed` says what is known, and the same request id tells the rest.
    """

    def __init__(self, route: Route, secrets: SecretFilter, *, any_filesystem: bool) -> None:
        super().__init__(route.path, secrets, any_filesystem=any_filesystem)
        self._route = route

    @property
    def status(self) -> Status:
        """Where the run stands. Raises as `info` does."""
        status = self.info.status
        assert status is not None
        return status

    @overload
    def publish(self, name: str, work: Callable[[Files], object], *, request_id: str | None = None) -> Effect[None]: ...
    @overload
    def publish(self, name: str, *, request_id: str | None = None) -> AbstractContextManager[Staged]: ...
    def publish(self, name: str, work: Callable[[Files], object] | None = None, *, request_id: str | None = None) -> Any:
        """Change files, and record it: the changes, the new root and the event that names it are kept in one transaction, or none of them.

        It is a block (`with handle.publish(name) as files`) in your own thread beside everybody else, published at its end;
        Conflict, if somebody has meanwhile changed a path that it read or wrote. With *work*, that is called with the files in
        such a block, in your thread, and once more, up to twenty times, where there is a Conflict; what it returns is not kept.

        A file error (FileNotFoundError, …, PathRefused) that is let out undoes the changes, leaves the root as it is and is recorded
        as a failed publish; any other exception undoes all and is not. A *request_id* stands for *name* alone. The same one again
        returns the same effect and changes nothing; the block, or *work*, runs once more, and what it does is not kept, nor
        is a file error that it ends with.
        """
        return self._block(name, request_id) if work is None else self._publish(name, work, request_id)

    @contextmanager
    def _block(self, name: str, request_id: str | None, kind: str = "publish", *asked: str) -> Iterator[Staged]:
        name, request_id = self._named(name, request_id)
        with Passage(self._route) as passage:
            passage.reach()
            send = passage.ask if passage.is_here else None
            home, request = self._path.folder, (request_id, kind, asked)
            with Staging(passage.ask, send, self._effect_again, name, self._secrets, home, *request) as files:
                yield files

    def _publish(self, name: str, work: Callable[[Files], Any], request_id: str | None, kind: str = "publish", *asked: str) -> Effect[Any]:
        if not callable(work):
            raise Refused("what publishes is a function that takes the files; nothing was changed", code="bad_option")
        for _ in range(PUBLISH_TRIES_MAX - 1):
            try:
                return self._published(name, work, request_id, kind, *asked)
            except Conflict:
                continue  # others were faster: with what they have made of the files it is done anew
        return self._published(name, work, request_id, kind, *asked)

    def _published(self, name: str, work: Callable[[Files], Any], request_id: str | None, kind: str, *asked: str) -> Effect[Any]:
        with self._block(name, request_id, kind, *asked) as files:
            work(files)
        return files.effect

    def follow(self, after: At | None = None, *, timeout: Seconds | None = None) -> Iterator[Event]:
        """Yield the events beyond *after* in order, and then each new one as it comes, until the run has come to its end.

        Its owner says when there is one, in this process or another. Only where nobody can be asked, because nobody owns the run or
        its owner has no socket, its file is looked at ten times a second; which of the two it is may change meanwhile.

        It ends when the run is completed or cancelled and all its events were yielded, when it is deleted, and of a run that is not
        there at once; with *timeout*, also when so many seconds are up since this call, whatever the body of the loop does (half a
        second later where the owner hangs). It holds nothing: it can be left at any moment, and no run stays open for it. Raises
        Refused (bad_position, bad_option), Damaged; DeadlineExceeded under `fail_after`.
        """
        return super().follow(after, timeout=timeout)

    def close(self) -> None:
        """Hang up. Closing twice is fine, and so is a call after it."""
        self._route.remote.close()

    def _watch(self) -> Wait:
        return Watch(self._path, remote=self._route.remote).wait

    def _ask(self, message: Any, size: int = 0) -> Any:
        return self._route.ask(message, size)
