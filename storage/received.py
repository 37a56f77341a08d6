"""What came from another process, checked once more by the owner: its sender may be of another version, or nobody of ours.

What a lease of the owner's own process has checked before it sends is here one pure function a message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from freehold.schema import index, messages, nodes, operations
from freehold.schema.derive import check_publish
from freehold.schema.errors import Damaged, Refused
from freehold.schema.hashes import ObjectKind, object_hash, request_digest
from freehold.schema.ids import check_name, check_request_id
from freehold.schema.lifecycle import Status
from freehold.schema.limits import CHUNK_BYTES, NODE_BYTES_MAX, REQUEST_HASHES_MAX, REQUEST_OBJECTS_MAX, SKIPPED_LISTED_MAX
from freehold.schema.messages import PUBLISH_KINDS, Message
from freehold.schema.ours import Underivable, members
from freehold.schema.roots import tree_of
from freehold.schema.rows import PackedObject
from freehold.schema.secrets import SecretFilter
from freehold.schema.skipped import Reason
from freehold.schema.values import canonical, decode, is_canonical
from freehold.schema.wire import malformed
from freehold.storage.objects import RAW, ZSTD, plain

_NUMBER_MAX = 2**63 - 1
_SMALL_BYTES_MAX = 8 * 1024
"""More than any root object or node of a file's index takes."""


def checked(message: Message, secrets: SecretFilter) -> Message:
    """Return *message* as the owner may carry it out.

    Raises Refused (malformed_frame, bad_name, bad_request_id, secret_refused, and what an operation is refused for), ValueRefused.
    """
    check = CHECKS.get(type(message))
    if check is None:
        raise malformed("this message is not one for other processes")
    return check(message, secrets)


def _append(message: messages.Append, secrets: SecretFilter) -> Message:
    """The name is one, the record is the one text of a value, and no declared secret of *this* host is in them."""
    if message.root is not None:
        raise malformed("a root is made current by publishing alone")
    name = _name(message.name, secrets)
    if not is_canonical(message.record):
        raise malformed("a record is not written as a value is")
    sealed = secrets.seal(decode(message.record))
    request_id = _request_id(message.request_id, secrets)
    # Made here: one that was sent could stand for something else.
    digest = None if request_id is None else request_digest("append", name, canonical(sealed.data))
    return messages.Append(name, sealed.record, request_id, digest, durable=message.durable)


def _apply(message: messages.Apply, secrets: SecretFilter) -> Message:
    """Every operation is one that a lease would have sent, with the secrets of *this* host."""
    try:
        steps = operations.checked(message.operations, secrets)
    except Damaged:
        raise malformed("a record of an operation is not written as a value is") from None
    request_id = _request_id(message.request_id, secrets)
    return messages.Apply(steps, request_id, None if request_id is None else operations.digest_of(steps), message.durable)


def _publish_on(message: messages.PublishOn, secrets: SecretFilter) -> Message:
    """The record is one of a publish, the root is written as one is. What the root names, the owner looks at in its turn."""
    name = _name(message.name, secrets)
    _hashes([each for each in (message.base,) if each is not None], 32)
    if message.kind not in PUBLISH_KINDS:
        raise malformed("a publish is of no kind")
    root = message.root
    try:
        if root is not None:
            tree_of(root)
        moves = root is not None and object_hash(ObjectKind.ROOT, root) != message.base
        check_publish(record := members(message.record), moves=moves)
        listed = [[_shown(path, secrets), str(Reason(reason))] for path, reason in record.get("skipped", ())]
    except (Damaged, Underivable, ValueError):
        raise malformed("a record or a root is not one of a publish") from None
    _bounded(listed, SKIPPED_LISTED_MAX)
    if "path" in record:
        record["path"] = _shown(record["path"], secrets)
    if listed:
        record["skipped"] = listed
    request_id = _request_id(message.request_id, secrets)
    return replace(message, name=name, record=secrets.seal(record).record, request_id=request_id)


def _shown(path: str | None, secrets: SecretFilter) -> str | None:
    """Return a path as it may be stored: None where it tells a secret of *this* host, as its own publishes have it."""
    try:
        secrets.check_text(path or "", "a path")
    except Refused:
        return None
    return path


def _name(name: str, secrets: SecretFilter) -> str:
    secrets.check_text(name := check_name(name), "an event name")
    return name


def _request_id(request_id: str | None, secrets: SecretFilter) -> str | None:
    if request_id is not None:
        secrets.check_text(request_id := check_request_id(request_id), "a request id")
    return request_id


def _keep(message: messages.KeepObjects, secrets: SecretFilter) -> Message:
    """Every piece is what its hash says, of the one form of its kind, and tells no secret in a name or in what a link says.

    It is kept before anybody knows whether it is published: then it is too late to look.
    """
    if not message.ahead:
        raise malformed("objects come ahead of their publish")
    _bounded(message.objects, REQUEST_OBJECTS_MAX)
    for row in message.objects:
        _check_piece(row, secrets)
    return message


def _check_piece(row: PackedObject, secrets: SecretFilter) -> None:
    form = _FORMS.get(row.kind)
    # Its size first: a small frame must not make us unpack more than such a piece may hold.
    if form is None or row.codec not in (RAW, ZSTD) or not 0 <= row.size <= form[0] or len(row.data) > form[0]:
        raise malformed("an object is of no kind, or larger than one of its kind may be")
    try:
        found = form[1](plain(row, row.hash, ObjectKind(row.kind)))
    except Damaged:
        raise malformed("an object is not what its hash says, or not in its one form") from None
    for item in found.items if isinstance(found, nodes.Leaf | nodes.Branch) else ():
        secrets.check_text(item.name, "a path")
        if isinstance(item, nodes.Link):
            secrets.check_text(item.target, "what a link says")


_FORMS: dict[int, tuple[int, Callable[[bytes], Any]]] = {
    ObjectKind.CHUNK: (CHUNK_BYTES, lambda _data: None),
    ObjectKind.TREE: (NODE_BYTES_MAX, nodes.decode),
    ObjectKind.FILE: (_SMALL_BYTES_MAX, index.decode_index),
    ObjectKind.ROOT: (_SMALL_BYTES_MAX, tree_of),
}
"""How large a piece may be, and what its content is read by. A value comes as a record, never as a piece."""


def _page(message: messages.ReadPage, _secrets: SecretFilter) -> Message:
    _number(message.after)
    if message.name is not None:
        check_name(message.name)
    return message


def _event(message: messages.ReadEvent, _secrets: SecretFilter) -> Message:
    _number(message.seq)
    return message


def _id(message: messages.FindId, _secrets: SecretFilter) -> Message:
    _hashes((message.id,), 16)
    return message


def _time(message: messages.FindTime, _secrets: SecretFilter) -> Message:
    _number(abs(message.time_ms))
    return message


def _root(message: messages.ReadRoot, _secrets: SecretFilter) -> Message:
    _number(message.seq or 0)
    return message


def _roots(message: messages.FindRoot, _secrets: SecretFilter) -> Message:
    _hashes((message.first, message.last), 32)
    return message


def _objects(message: messages.ReadObjects, _secrets: SecretFilter) -> Message:
    _bounded(message.hashes, REQUEST_HASHES_MAX)
    _hashes(message.hashes, 32)
    return message


def _changes(message: messages.ReadChanges, _secrets: SecretFilter) -> Message:
    _hashes((message.old, message.new), 32)
    return message


def _beyond(message: messages.WaitBeyond, _secrets: SecretFilter) -> Message:
    _number(message.seq)
    _hashes([each for each in (message.first,) if each is not None], 16)
    if message.status not in (None, *Status):
        raise malformed("a status is none that a run can have")
    return message


def _as_it_is(message: Message, _secrets: SecretFilter) -> Message:
    return message


CHECKS: dict[type[Message], Callable[[Any, SecretFilter], Message]] = {
    messages.Append: _append,
    messages.Apply: _apply,
    messages.KeepObjects: _keep,
    messages.PublishOn: _publish_on,
    messages.ReadRun: _as_it_is,
    messages.ReadPage: _page,
    messages.ReadEvent: _event,
    messages.FindId: _id,
    messages.FindTime: _time,
    messages.ReadRoot: _root,
    messages.FindRoot: _roots,
    messages.ReadObjects: _objects,
    messages.ReadChanges: _changes,
    messages.WaitBeyond: _beyond,
    messages.ShowTree: _as_it_is,
}
"""One for each message that may come from another process."""


def _number(number: int) -> None:
    if not 0 <= number <= _NUMBER_MAX:
        raise malformed("a number is beyond every count")


def _hashes(hashes: Sequence[bytes], length: int) -> None:
    if any(len(each) != length for each in hashes):
        raise malformed(f"what is asked for is not named by {length} bytes")


def _bounded(members: Sequence[object], most: int) -> None:
    if len(members) > most:
        raise Refused(f"more than {most} are asked for at once; nothing was changed", code="frame_too_large", members_max=most)
