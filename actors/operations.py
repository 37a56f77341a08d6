"""What each typed message does to the store, as a table. All run in the owner's thread; those that write, inside its transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from freehold.actors.applying import carry_out
from freehold.schema import messages
from freehold.schema.errors import Refused
from freehold.schema.hashes import request_digest
from freehold.schema.messages import Message
from freehold.schema.repeated import reply_text
from freehold.schema.rows import Written
from freehold.schema.values import encode
from freehold.storage.arrival import check_arrival
from freehold.storage.faults import SqliteError
from freehold.storage.journal import is_long
from freehold.storage.reads import READS
from freehold.storage.store import Store

Operation = Callable[[Store, Any, int], Any]


def _append(store: Store, message: messages.Append, now_ms: int) -> Any:
    if message.root is not None:
        with store.savepoints.scope():
            return store.journal.append_with_root("note", message.name, message.record, now_ms, message.root)
    if message.request_id is None:
        return store.journal.append("note", message.name, message.record, now_ms)
    assert message.digest is not None
    return store.append_once(message.request_id, message.digest, message.name, message.record, now_ms)


def _publish(store: Store, message: messages.Publish, now_ms: int) -> Any:
    with store.savepoints.scope():
        store.keep_objects(message.objects, ahead=False)
        return store.journal.append_with_root("publish", message.name, message.record, now_ms, message.root)


def _publish_on(store: Store, message: messages.PublishOn, now_ms: int) -> Any:
    digest = None if message.request_id is None else request_digest(message.kind, message.name, *message.asked)
    if (repeated := store.repeated(message.request_id, digest)) is not None:
        return repeated
    if message.base is None and message.root is not None:
        raise Refused("a new root is published on the one that it was made from; nothing was changed", code="bad_option")
    if message.base not in (None, now := store.journal.head.root_hash):
        raise Refused("somebody else has published since; nothing was changed", code="root_moved", root=now.hex())
    met = () if message.root is None else check_arrival(store.db, now, message.root, message.record, store.secrets)
    with store.savepoints.scope():
        written = store.journal.append_with_root("publish", message.name, message.record, now_ms, message.root)
        store.unstage(met)
        store.remember(message.request_id, digest, now_ms, reply_text(encode((written.seq, None)), [(0,)]))
    return written


def _apply(store: Store, message: messages.Apply, now_ms: int) -> Any:
    if (repeated := store.repeated(message.request_id, message.digest)) is not None:
        return repeated
    with store.savepoints.scope():
        results = carry_out(store, message.operations, now_ms)
        plain = [result.seq if isinstance(result, Written) else result for result in results]
        places = [(index,) for index, result in enumerate(results) if isinstance(result, Written)]
        store.remember(message.request_id, message.digest, now_ms, reply_text(encode(plain), places))
    return results


def _keep(store: Store, message: messages.KeepObjects, _now_ms: int) -> None:
    with store.savepoints.scope():
        store.keep_objects(message.objects, ahead=message.ahead)


def _settle(store: Store, message: messages.Settle, now_ms: int) -> Any:
    return store.executions.settle(message.status, message.code, message.event, now_ms)


def _reading(read: Callable[[Any, Any], Any]) -> Operation:
    return lambda store, message, _now: read(store.db, message)


WRITES: dict[type[Message], Operation] = {
    messages.Append: _append,
    messages.Publish: _publish,
    messages.PublishOn: _publish_on,
    messages.Apply: _apply,
    messages.KeepObjects: _keep,
    messages.Unstage: lambda store, message, _now_ms: store.unstage(message.hashes),
    messages.BeginExecution: lambda store, _message, now_ms: store.executions.begin(now_ms),
    messages.Settle: _settle,
    messages.BeginStep: lambda store, message, now_ms: store.steps.begin(message, now_ms),
    messages.EndStep: lambda store, message, now_ms: store.steps.end(message, now_ms),
}
"""What changes the file."""

NESTED: dict[type[Message], Operation] = {
    messages.OpenSavepoint: lambda store, _message, _now: store.savepoints.open(),
    messages.ReleaseSavepoint: lambda store, message, _now: store.savepoints.release(message.savepoint),
    messages.UndoSavepoint: lambda store, message, _now: store.savepoints.undo(message.savepoint),
}
"""What only a transaction of several steps can do."""

IN_TRANSACTION: dict[type[Message], Operation] = {
    **WRITES,
    **NESTED,
    **{kind: _reading(read) for kind, read in READS.items()},
}
"""Every step that a transaction can take."""


def only_looks(message: Message) -> bool:
    """Return whether a message changes nothing and needs no lease: whoever looks keeps no run from being given back."""
    return type(message) in READS or type(message) is messages.WaitBeyond


def is_single(message: Message) -> bool:
    """Return whether a message is one statement, which needs no savepoint: SQLite undoes a failed statement itself."""
    return type(message) is messages.Append and message.request_id is None and message.root is None and not is_long(message.record)


def is_durable(message: object) -> bool:
    """Return whether the answer to *message* waits for the disk, as all do that do not say otherwise."""
    return bool(getattr(message, "durable", True))


def apply(store: Store, message: Message, now_ms: int) -> Any:
    """Carry out one step of a transaction.

    Raises Refused; StorageFailed when the step was undone and the transaction lives on; Ended or Poisoned when not.
    """
    store.transaction.guard()
    try:
        return IN_TRANSACTION[type(message)](store, message, now_ms)
    except SqliteError as error:
        raise store.transaction.after(error) from None
