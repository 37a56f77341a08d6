"""A transaction that is data, carried out in the owner's turn: what a callable does with its `tx`, without one.

File changes that no event has named by the next event are named by it, and by one of their own, `files`, at the end.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import Any

from freehold.schema import operations
from freehold.schema.errors import Error, Refused
from freehold.schema.hashes import ObjectKind
from freehold.schema.operations import FILE_KINDS, Operation, named
from freehold.schema.paths import parse
from freehold.schema.roots import Object, tree_of
from freehold.schema.rows import Written
from freehold.storage.content import EMPTY, write_stream
from freehold.storage.difference import changes
from freehold.storage.events import seq_of_id
from freehold.storage.executions import unknown_event
from freehold.storage.folder import Kept
from freehold.storage.journal import REST, publish_record
from freehold.storage.objects import StoredObjects, packed
from freehold.storage.store import Store
from freehold.storage.workspace import Workspace

Result = Written | int | None


def carry_out(store: Store, steps: Sequence[Operation], now_ms: int) -> list[Result]:
    """Carry out *steps* in order, inside the open transaction, and return their results. The caller keeps it whole.

    Raises what a step raises, its index in the detail `operation`; a file error as Refused (file_error), with its `errno` and `path`.
    """
    applying = _Applying(store, now_ms)
    for index, step in enumerate(steps):
        try:
            applying.take(step)
        except OSError as error:
            raise named(_file_error(error), index) from None
        except Error as error:
            named(error, index)
            raise
    applying.publish_rest()
    return applying.results


class _Owned(StoredObjects):
    """The owner's own pieces: what is kept here is no longer listed as ahead of its publish."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.db)
        self._store = store

    def put(self, piece: Object) -> None:
        self._store.keep_objects((packed(piece),), ahead=False)


class _Applying:
    """One transaction under way: the files as they are by now, once a step has asked for them, and the results so far."""

    def __init__(self, store: Store, now_ms: int) -> None:
        self._store = store
        self._now_ms = now_ms
        self._workspace: Workspace | None = None
        self._tree = b""
        self.results: list[Result] = []

    def take(self, step: Operation) -> None:
        """Carry out one step."""
        if type(step) in FILE_KINDS:
            FILES[type(step)](self._files(), step)
            self.results.append(None)
        elif isinstance(step, operations.Append):
            root, _ = self._sealed()
            append = self._store.journal.append_with_root
            self.results.append(append("note", step.name, step.record, self._now_ms, None if root is None else root.data))
        else:
            self.publish_rest()
            executions = self._store.executions
            if isinstance(step, operations.Settle):
                self.results.append(executions.settle(step.status, step.code, self._reason(step), self._now_ms))
            else:
                self.results.append(executions.begin(self._now_ms))

    def publish_rest(self) -> None:
        """Publish what was changed since the last event."""
        root, changed = self._sealed()
        if root is not None:
            self._store.journal.append_with_root("publish", REST, publish_record(changed), self._now_ms, root.data)

    def _files(self) -> Workspace:
        if self._workspace is None:
            kept = Kept(_Owned(self._store))
            self._tree = tree_of(kept.get(self._store.journal.head.root_hash, ObjectKind.ROOT))
            self._workspace = Workspace(kept, self._tree)
        return self._workspace

    def _sealed(self) -> tuple[Object | None, int]:
        """Return the root that the changes since the last event have led to, and how many they are; None where there are none."""
        if self._workspace is None:
            return None, 0
        root = self._workspace.seal()
        if root.hash == self._store.journal.head.root_hash:
            return None, 0
        before, self._tree = self._tree, tree_of(root.data)
        return root, len(changes(self._workspace.kept, before, self._tree))

    def _reason(self, step: operations.Settle) -> int | None:
        if step.result is not None:
            written = self.results[step.result] if 0 <= step.result < len(self.results) else None
            if not isinstance(written, Written):
                raise unknown_event()
            return written.seq
        if isinstance(step.event, bytes):
            seq = seq_of_id(self._store.db, step.event)
            if seq is None:
                raise unknown_event()
            return seq
        return step.event


def _touch(workspace: Workspace, step: Any) -> None:
    parts = parse(step.path)
    if not step.exist_ok:
        workspace.create(parts)
    elif workspace.lead(parts)[1] is None:
        workspace.set_content(parts, EMPTY)


FILES: dict[type, Callable[[Workspace, Any], None]] = {
    operations.WriteBytes: lambda files, step: files.set_content(parse(step.path), write_stream(files.kept, (step.data,))),
    operations.Touch: _touch,
    operations.Mkdir: lambda files, step: files.mkdir(parse(step.path), step.mode, parents=step.parents, exist_ok=step.exist_ok),
    operations.Symlink: lambda files, step: files.symlink(parse(step.path), step.target),
    operations.Remove: lambda files, step: files.remove(parse(step.path)),
    operations.Rmdir: lambda files, step: files.rmdir(parse(step.path)),
    operations.Rmtree: lambda files, step: files.rmtree(parse(step.path)),
    operations.Rename: lambda files, step: files.rename(parse(step.path), parse(step.to)),
    operations.Copy: lambda files, step: files.copy(parse(step.path), parse(step.to)),
    operations.Chmod: lambda files, step: files.chmod(parse(step.path), step.mode),
}
"""What each operation on files does to the workspace."""


def _file_error(error: OSError) -> Refused:
    number = error.errno or errno.EIO
    path = error.filename if isinstance(error.filename, str) else None
    what = errno.errorcode.get(number, str(number))
    return Refused(f"{what}: {path}; nothing was changed", code="file_error", errno=number, path=path)
