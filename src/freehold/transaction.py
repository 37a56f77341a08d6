"""What a caller may do in one transaction: append, read, begin and settle executions, nest savepoints. All or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from freehold.draft import Draft, Mark, record_of
from freehold.event import Event
from freehold.files import Files, StrPath
from freehold.history import walk
from freehold.position import At
from freehold.reply import seq_here
from freehold.schema.changes import Change
from freehold.schema.errors import Refused
from freehold.schema.ids import check_name, check_stop_code
from freehold.schema.messages import Append, BeginExecution, Message, OpenSavepoint, Publish, ReleaseSavepoint, Settle, UndoSavepoint
from freehold.schema.roots import Object
from freehold.schema.secrets import SecretFilter
from freehold.schema.values import Value
from freehold.storage.folder import Kept
from freehold.storage.journal import REST


class Transaction:
    """The transaction at hand. Dead when its turn or block has ended, and in every other thread."""

    def __init__(self, do: Callable[[Message], Any], now_ms: int, secrets: SecretFilter, shelf: Kept, home: str) -> None:
        self._do = do
        self._secrets = secrets
        self._shelf = shelf
        self._home = home
        self._draft: Draft | None = None
        self._files: Files | None = None
        self.now = datetime.fromtimestamp(now_ms / 1000, UTC)
        """The one time of this transaction, UTC."""

    def append(self, name: str, data: Value = None) -> Event:
        """Add a note to the journal and return its event, which is durable once the transaction is.

        Raises Refused (bad_name, value_refused, secret_refused); StorageFailed.
        """
        name = check_name(name)
        self._secrets.check_text(name, "an event name")
        sealed = self._secrets.seal(data)
        root, _ = self._sealed()
        written = self._do(Append(name, sealed.record, root=None if root is None else root.data))
        self._moved(root)
        return Event(written, sealed.data)

    @property
    def files(self) -> Files:
        """The files, to read and to change. The next event of this transaction names the root that the changes have led to.

        What no event has named at the end is published as `files`, and so is what imports have skipped: a note's data is its own.
        """
        if self._files is None:
            self._draft = Draft(self._do, self._shelf, self._home)
            self._files = Files(self._draft.desk, self._secrets)
        return self._files

    def publish_rest(self) -> None:
        """Publish what was changed since the last event. The last that a transaction does."""
        self._publish_pending()
        if self._draft is not None:
            self._draft.end()

    def _publish_pending(self) -> None:
        root, changed = self._sealed()
        skipped = [] if self._draft is None else self._draft.desk.skipped
        if root is not None or skipped:
            self._do(Publish(REST, record_of(changed, skipped, self._secrets), None if root is None else root.data))
            self._moved(root)
            skipped.clear()

    def _sealed(self) -> tuple[Object | None, Sequence[Change]]:
        if self._draft is None:
            return None, ()
        root, changed = self._draft.sealed()
        self._draft.pieces.flush()
        return root, changed

    def _moved(self, root: Object | None) -> None:
        if self._draft is not None and root is not None:
            self._draft.published(root)

    def history(
        self, *, name: str | None = None, path: StrPath | None = None, after: At | None = None, reverse: bool = False
    ) -> Iterator[Event]:
        """Yield the events as this transaction sees them, its own included: to decide by them what to write.

        As `Run.history` otherwise. Raises Refused (bad_name, bad_position, transaction_over), PathRefused.
        """
        return walk(lambda work: work(self._do), name=name, path=path, after=after, reverse=reverse)

    def savepoint(self) -> AbstractContextManager[None]:
        """Keep the block whole or not at all inside the transaction; an exception undoes it and goes on."""
        return _Savepoint(self._do, lambda: self._draft)

    def begin_execution(self) -> int:
        """Begin an execution of the run and return its number. The run is then `running`.

        Raises RunEnded when the run is completed or cancelled, Refused (execution_running) when one is running.
        """
        self._publish_pending()
        return int(self._do(BeginExecution()))

    def settle(self, status: str, *, code: str | None = None, event: Event | int | None = None) -> Event | None:
        """End the running execution as suspended, interrupted, completed, failed or cancelled.

        With *code* the reason is the host's, and no event is written. Otherwise `settled` is recorded and returned; the
        reason is *event* or, without one, that very record. Raises Refused: bad_option, no_execution, unknown_event.
        """
        if code is not None:
            code = check_stop_code(code)
            self._secrets.check_text(code, "a stop code")
        self._publish_pending()
        written = self._do(Settle(_text(status), code, self._seq_of(event)))
        return None if written is None else Event(written)

    def _seq_of(self, event: object) -> int | None:
        if isinstance(event, Event):
            if (seq := seq_here(event, self._do)) is None:
                raise Refused("the stop reason is an event that is not in this run; nothing was changed", code="unknown_event")
            return seq
        if event is None:
            return None
        if isinstance(event, int) and not isinstance(event, bool) and 0 < (seq := int.__index__(event)) < 2**63:
            return seq  # a subclass would go on answering for itself in the owner's thread
        raise Refused("a stop reason is an event of this run or its seq; nothing was changed", code="bad_option")


def _text(word: object) -> str:
    return str.__str__(word) if isinstance(word, str) else ""


class _Savepoint(AbstractContextManager[None]):
    """Not a generator: contextlib would write the traceback into the exception, and a user's may be frozen."""

    def __init__(self, do: Callable[[Message], Any], draft: Callable[[], Draft | None]) -> None:
        self._do = do
        self._draft = draft
        self._begun: list[tuple[str, Mark | None]] = []

    def __enter__(self) -> None:
        draft = self._draft()
        mark = None if draft is None else draft.mark()
        self._begun.append((self._do(OpenSavepoint()), mark))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        if not self._begun:
            raise Refused("this savepoint was not begun, or has ended; nothing was changed", code="transaction_over")
        name, mark = self._begun.pop()
        self._do(ReleaseSavepoint(name) if error is None else UndoSavepoint(name))
        if error is None:
            return
        if (draft := self._draft()) is not None:
            draft.undo(mark or draft.beginning)  # files that were first asked for inside of it are as they were then
