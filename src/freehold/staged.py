"""The block of `Run.publish(name)`: files changed in your own thread, beside everybody else, and published in one turn at its end.

In the owner's process that turn brings the changes to whatever root is current then. Elsewhere no callable can be sent: the changes
are brought to the root by reads, and published if it is still the current one, else once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from types import TracebackType
from typing import Any, NamedTuple

import msgspec

from freehold.actors.work import Work
from freehold.draft import Ask, Draft, record_of, record_of_failure
from freehold.effect import Effect
from freehold.files import Files
from freehold.pieces import Pieces
from freehold.reply import keep
from freehold.schema.changes import Change
from freehold.schema.errors import Conflict, PathRefused, Refused, Unavailable
from freehold.schema.hashes import ObjectKind, request_digest
from freehold.schema.limits import PUBLISH_TRIES_MAX
from freehold.schema.messages import KeepObjects, Message, Publish, PublishOn, ReadRoot, Unstage
from freehold.schema.paths import Parts, text
from freehold.schema.repeated import Repeated
from freehold.schema.roots import Object, tree_of
from freehold.schema.rows import PackedObject, Written
from freehold.schema.secrets import SecretFilter
from freehold.schema.skipped import Skipped
from freehold.storage.difference import changes
from freehold.storage.folder import Folder, Kept
from freehold.storage.merge import conflicts, replay
from freehold.storage.objects import NoObjects
from freehold.storage.sight import Touch
from freehold.storage.workspace import Workspace

_SHOWN_PATHS = 10
_NO_ROOT = bytes(32)
"""What no root is named: a publish on it is answered if it was carried out before, and refused otherwise."""


class Ready(NamedTuple):
    """What is published at the end of a block: what was looked at and changed on which root, and where that has led."""

    base: bytes
    tree: bytes
    touched: dict[Parts, Touch]
    changed: Folder
    root: Object | None
    changes: Sequence[Change]
    rest: tuple[PackedObject, ...]
    ahead: tuple[bytes, ...]
    skipped: Sequence[Skipped]


class Staged(Files):
    """Files to change in the block of `Run.publish(name)`."""

    _effect: Effect[None] | None = None

    @property
    def effect(self) -> Effect[None]:
        """What the block has published. Raises Refused (transaction_over) before its end, and when it has published nothing."""
        if self._effect is None:
            raise Refused("this block has not published anything; its effect is there after its end", code="transaction_over")
        return self._effect


class Staging:
    """A publish from the caller's own thread. Nobody waits for it, and it meets what others have published meanwhile at its end."""

    def __init__(
        self,
        ask: Ask,
        send: Callable[[Work, int], Any] | None,
        restored: Callable[[Repeated], Any],
        name: str,
        secrets: SecretFilter,
        home: str,
        request_id: str | None,
        kind: str = "publish",
        asked: tuple[str, ...] = (),
        *,
        durable: bool = True,
    ) -> None:
        """Publish by *ask* alone where there is no *send*, which takes what runs in the owner's turn.

        The request id stands for the kind and the name, and for what else was *asked*.
        """
        self._ask = ask
        self._send = send
        self._restored = restored
        self._name = name
        self._secrets = secrets
        self._home = home
        self._request_id = request_id
        self._kind = kind
        self._asked = asked
        self._durable = durable

    def __enter__(self) -> Staged:
        self._draft = Draft(self._ask, Kept(NoObjects()), self._home, ahead=True)
        self._draft.desk.looking(Workspace.watch)
        self._files = Staged(self._draft.desk, self._secrets)
        return self._files

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> bool:
        try:
            if error is not None:
                return self._is_repeated(error)
            try:
                ready = self._ready()
            except (OSError, PathRefused) as refusal:
                if not self._is_repeated(refusal):
                    raise
            else:
                self._files._effect = self._publish(ready)  # noqa: SLF001 - a part of this file
        finally:
            self._draft.end()
        return False

    def _is_repeated(self, error: BaseException) -> bool:
        """Return whether an error counts for nothing, because the request was carried out before: what it did may be what is in the way.

        Else a file error of this block is recorded; any other leaves nothing in the journal.
        """
        if not self._draft.desk.knows(error):
            return False
        failure = PublishOn(self._name, record_of_failure(error, self._secrets), None, None, durable=self._durable)
        if self._request_id is None or (answer := self._answer_before(failure)) is None:
            self._ask(failure)
            return False
        self._files._effect = self._restored(answer)  # noqa: SLF001 - as above
        return True

    def _answer_before(self, failure: PublishOn) -> Repeated | None:
        """Return what the request was answered with before, or None. Raises as publishing does where it stood for something else."""
        asked = msgspec.structs.replace(failure, base=_NO_ROOT, request_id=self._request_id, kind=self._kind, asked=self._asked)
        try:
            answer: Repeated = self._ask(asked)
        except Refused as never:
            if never.code != "root_moved":
                raise
            return None
        return answer

    def _ready(self) -> Ready:
        draft = self._draft
        changed, touched = draft.desk.looking(Workspace.still)
        root, different = draft.sealed()
        rest, ahead = draft.pieces.rest(), tuple(draft.pieces.sent)
        return Ready(draft.root, draft.tree, touched, changed, root, different, rest, ahead, draft.desk.skipped)

    def _publish(self, ready: Ready) -> Effect[None]:
        answer = self._by_messages(ready) if self._send is None else self._in_turn(self._send, ready)
        effect: Effect[None] = self._restored(answer) if isinstance(answer, Repeated) else answer
        return effect

    def _in_turn(self, send: Callable[[Work, int], Any], ready: Ready) -> Any:
        name, secrets, remembered = self._name, self._secrets, self._request_id is not None

        def body(do: Callable[[Message], Any], _now_ms: int) -> tuple[Any, str | None]:
            effect: Effect[None] = Effect(*_in_turn(do, name, ready, secrets), ready.skipped)
            return (effect, keep((effect, None), secrets, do)[1]) if remembered else (effect, None)

        digest = request_digest(self._kind, name, *self._asked) if remembered else None
        work = Work(body, copy_context(), self._request_id, digest, durable=self._durable)
        return send(work, sum(len(row.data) for row in ready.rest))

    def _by_messages(self, ready: Ready) -> Any:
        """Publish what is ready on the root that is current, each try on the one that the last has met. Raises Conflict, Unavailable."""
        base, root, different = ready.base, ready.root, ready.changes
        if ready.rest:
            self._ask(KeepObjects(ready.rest, ahead=True))
        request = self._request_id, self._kind, self._asked, self._durable
        for _ in range(PUBLISH_TRIES_MAX):
            record = record_of(different, ready.skipped, self._secrets)
            try:
                answer = self._ask(PublishOn(self._name, record, base, None if root is None else root.data, *request))
            except Refused as moved:
                if moved.code != "root_moved":
                    raise
            else:
                return answer if isinstance(answer, Repeated) else Effect(Written(*answer), None, different, ready.skipped)
            base = self._ask(ReadRoot())
            if base == ready.base:
                root, different = ready.root, ready.changes
            else:
                root, different = _brought_to(self._ask, base, ready, ahead=True)
        raise Unavailable(
            f"others have published {PUBLISH_TRIES_MAX} times while this was; nothing was published, enter the block again",
            code="root_keeps_moving",
        )


def _in_turn(do: Ask, name: str, ready: Ready, secrets: SecretFilter) -> tuple[Written, None, Sequence[Change]]:
    """Publish what is ready, in the owner's turn: as it is where the root is the one that it began with, else brought to the new one."""
    root, different, rest = ready.root, ready.changes, ready.rest
    now: bytes = do(ReadRoot())
    if now != ready.base:
        do(KeepObjects(rest))
        root, different = _brought_to(do, now, ready)
        rest = ()
    written = do(Publish(name, record_of(different, ready.skipped, secrets), None if root is None else root.data, rest))
    if ready.ahead:
        do(Unstage(ready.ahead))
    return written, None, different


def _brought_to(do: Ask, now: bytes, ready: Ready, *, ahead: bool = False) -> tuple[Object | None, Sequence[Change]]:
    """Return the root that the changes lead to from *now*, and what is different there; what is new goes *ahead* of the publish."""
    pieces = Pieces(do, ahead=ahead)
    kept = Kept(pieces)
    tree = tree_of(pieces.get(now, ObjectKind.ROOT))
    if clashing := sorted(conflicts(kept, ready.tree, tree, ready.touched)):
        shown = [text(way) for way in clashing[:_SHOWN_PATHS]]
        more = f" and {len(clashing) - _SHOWN_PATHS} more" if len(clashing) > _SHOWN_PATHS else ""
        raise Conflict(
            f"{', '.join(shown)}{more}: changed by others since this block began; nothing was published, enter the block again",
            paths=[text(way) for way in clashing],
        )
    workspace = Workspace(kept, tree)
    replay(workspace, ready.changed)
    root = workspace.seal()
    pieces.flush()
    return (None, ()) if root.hash == now else (root, changes(kept, tree, tree_of(root.data)))
