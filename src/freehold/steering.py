"""What can be done to a run by messages that are plain data, whoever carries them to its owner: a lease, or a handle."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from freehold.draft import skipped_of
from freehold.effect import Effect
from freehold.event import Event
from freehold.files import Files, StrPath, put_back
from freehold.operations import results_of
from freehold.patterns import list_of_patterns
from freehold.position import At, root_of
from freehold.reply import malformed, restore
from freehold.schema.hashes import request_digest
from freehold.schema.ids import check_name, check_request_id
from freehold.schema.messages import Append, Apply, ReadEvent
from freehold.schema.operations import Operation, checked, digest_of, size_of
from freehold.schema.paths import parse, text
from freehold.schema.repeated import Repeated
from freehold.schema.secrets import SecretFilter
from freehold.schema.values import Value, canonical
from freehold.staged import Staged
from freehold.storage.path import RunPath
from freehold.view import RunView


class Steering(RunView):
    """A run that can be changed: the part that a lease and a handle have in common."""

    _durable = True

    def __init__(self, path: RunPath, secrets: SecretFilter, *, any_filesystem: bool) -> None:
        super().__init__(path, any_filesystem=any_filesystem)
        self._secrets = secrets

    def append(self, name: str, data: Value = None, *, request_id: str | None = None) -> Event:
        """Add a note to the journal and return its event: durable, with *data* as every later reader will get it.

        The same *request_id* again returns the same event and adds nothing. Raises Refused (bad_name, value_refused,
        value_too_large, secret_refused, request_conflict, bad_request_id), MailboxFull, StorageFailed, DeadlineExceeded, on a lease
        LeaseClosed and LeaseLost; `executed` says whether the event was added.
        """
        name = check_name(name)
        self._secrets.check_text(name, "an event name")
        sealed = self._secrets.seal(data)
        digest = None
        if request_id is not None:
            request_id = self._checked(request_id)
            digest = request_digest("append", name, canonical(sealed.data))
        written = self._ask(Append(name, sealed.record, request_id, digest, durable=self._durable), len(sealed.record))
        return Event(written, sealed.data) if written.record == sealed.record else Event(written)

    def apply(self, operations: Sequence[Operation], *, request_id: str | None = None) -> list[Event | int | None]:
        """Carry out a transaction that is data, in one turn, all of it or nothing, and return each operation's result in order.

        `freehold.operations` makes them: an append's result is its event, that of an execution its number, that of a file operation
        None. As in `transact`, the next event names the root that file changes have led to, and one called `files` what is left.
        The same *request_id* again returns the same results and changes nothing. Raises what `transact` raises, and what each
        operation does, Python's own file errors among it; which one it was stands in the detail `operation` of the error, or of
        its cause.
        """
        steps = checked(operations, self._secrets)
        if request_id is not None:
            request_id = self._checked(request_id)
        message = Apply(steps, request_id, None if request_id is None else digest_of(steps), self._durable)
        return results_of(lambda: self._ask(message, size_of(steps)), lambda seq: self._ask(ReadEvent(seq)))

    def import_tree(
        self, folder: StrPath, into: StrPath = ".", *, ignore: Iterable[str] = (), name: str = "import", request_id: str | None = None
    ) -> Effect[None]:
        """Publish a real folder, beneath *into*: read in your own thread, streamed, published in one turn at its end.

        See `Files.import_tree`; the effect lists what could not be taken in `skipped`. Files that have not changed since they
        were read last are not read again. The same *request_id* again returns the effect as the journal has it: of what was
        skipped the first 1,000, without details, and "" for a path that tells a secret; it stands for *name*, *into* and
        *ignore*. Raises what `publish` raises as a block.
        """
        patterns = list_of_patterns(ignore)
        asked = [text(parse(into)), *(pattern.encode(errors="backslashreplace").decode() for pattern in patterns)]
        with self._block(name, request_id, "import", *asked) as files:
            files.import_tree(folder, into, ignore=patterns)
        effect: Effect[None] = files.effect
        return effect

    def restore(self, at: At, path: StrPath = ".", *, name: str = "restore", request_id: str | None = None) -> Effect[None]:
        """Publish a file, a directory with all beneath it, or everything, as it was at a moment; what is there now is replaced.

        Nothing at any other path changes. A path that is a link is the link itself; where links on the way to it do not lead
        to the same place then and now, PathRefused. A *request_id* stands for *name*, *path* and the root. Raises Refused
        (bad_position), FileNotFoundError when it was not there then, and what `publish` raises.
        """
        parts = parse(path)
        root: bytes = self._about(lambda ask: root_of(at, None, ask))
        return self._publish(name, lambda files: put_back(files, parts, root), request_id, "restore", root.hex(), text(parts))

    @abstractmethod
    def _ask(self, message: Any, size: int = 0) -> Any:
        """Return the owner's answer to *message*."""

    @abstractmethod
    def _block(self, name: str, request_id: str | None, kind: str = "publish", *asked: str) -> AbstractContextManager[Staged]:
        """Return the block of a publish from the caller's own thread; a request id stands for kind, name, and what else was *asked*."""

    @abstractmethod
    def _publish(self, name: str, work: Callable[[Files], Any], request_id: str | None, kind: str = "publish", *asked: str) -> Effect[Any]:
        """Publish what *work* does to the files; a request id stands for the same as in `_block`."""

    def _named(self, name: str, request_id: str | None) -> tuple[str, str | None]:
        """Return the name and the request id of a publish, checked."""
        name = check_name(name)
        self._secrets.check_text(name, "an event name")
        return name, None if request_id is None else self._checked(request_id)

    def _effect_again(self, answer: Repeated) -> Effect[Any]:
        remembered = restore(answer.reply, lambda seq: Event(self._ask(ReadEvent(seq))))
        if not (isinstance(remembered, tuple | list) and len(remembered) == 2 and isinstance(remembered[0], Event)):
            raise malformed()
        event, value = remembered
        changes = self.diff(event.seq - 1, event.seq)
        return Effect(self._ask(ReadEvent(event.seq)), value, changes, skipped_of(event.data), durable=answer.durable)

    def _checked(self, request_id: str) -> str:
        request_id = check_request_id(request_id)
        self._secrets.check_text(request_id, "a request id")
        return request_id
