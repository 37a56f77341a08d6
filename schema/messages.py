"""What a run actor can be asked, as frozen plain values. Which lease asks travels in the envelope, by identity.

The repr of a message shows its kind and nothing that it carries.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from freehold.schema.operations import Operation
from freehold.schema.rows import PackedObject


class Message(msgspec.Struct, frozen=True, gc=False, tag=True, forbid_unknown_fields=True):
    """Base of every typed message. One with a member that this version does not know is not taken for one without."""

    writes: ClassVar[bool] = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return nothing: what rich prints of a message must not show more than its repr."""
        return []


class Append(Message, frozen=True, gc=False, tag=True):
    """Add a note. The record was encoded and filtered by the sender; *digest* belongs to *request_id*."""

    writes: ClassVar[bool] = True
    name: str
    record: str
    request_id: str | None = None
    digest: bytes | None = None
    root: bytes | None = None
    """The content of the root object that becomes current with this event; None leaves the root as it is."""
    durable: bool = True
    """Whether the answer waits for the disk; so wherever a message has it, and all others do."""


class Publish(Message, frozen=True, gc=False, tag=True):
    """Record a publish, and make the root object of this content the current one; what of its tree is not kept yet is in *objects*."""

    writes: ClassVar[bool] = True
    name: str
    record: str
    root: bytes | None = None
    objects: tuple[PackedObject, ...] = ()


PUBLISH_KINDS = frozenset({"publish", "import", "restore"})
"""What a request id of a publish stands for, with the name and what else was asked."""


class PublishOn(Message, frozen=True, gc=False, tag=True):
    """Publish as `Publish` does, if the current root is still *base*; else nothing is changed: Refused (root_moved).

    For whoever has made the changes elsewhere, and brings them to the new root then. The objects are there already, ahead of this;
    all that is new in the root is looked at before it becomes the current one. Without *base* it is a record that changes no root.
    *request_id* stands for the kind, the name, and what else was *asked*.
    """

    writes: ClassVar[bool] = True
    name: str
    record: str
    base: bytes | None
    root: bytes | None
    request_id: str | None = None
    kind: str = "publish"
    asked: tuple[str, ...] = ()
    durable: bool = True


class Apply(Message, frozen=True, gc=False, tag=True):
    """Carry out a transaction that is data: all of it or nothing, in one turn. The reply is each operation's result in order."""

    writes: ClassVar[bool] = True
    operations: tuple[Operation, ...]
    request_id: str | None = None
    digest: bytes | None = None
    durable: bool = True


class KeepObjects(Message, frozen=True, gc=False, tag=True):
    """Keep these objects; with *ahead* they are listed as staged until they are published."""

    writes: ClassVar[bool] = True
    objects: tuple[PackedObject, ...]
    ahead: bool = False
    durable: bool = True


class Unstage(Message, frozen=True, gc=False, tag=True):
    """Take these objects off the list of staged ones: they are published now."""

    writes: ClassVar[bool] = True
    hashes: tuple[bytes, ...]


class BeginExecution(Message, frozen=True, gc=False, tag=True):
    """Begin an execution; the reply is its number."""

    writes: ClassVar[bool] = True


class Settle(Message, frozen=True, gc=False, tag=True):
    """End the running execution for the host's code or for a reason in the journal."""

    writes: ClassVar[bool] = True
    status: str
    code: str | None = None
    event: int | None = None


class BeginStep(Message, frozen=True, gc=False, tag=True):
    """Ask whether a step may begin: the reply is its recorded outcome, that it may begin, or to ask again. Only with a claim.

    *input* is the fingerprint of its arguments, if they have one. *policy* says what is to be done with an attempt that began and whose
    end nobody knows; without one, that of the intent which it left.
    """

    writes: ClassVar[bool] = True
    position: str
    name: str
    input: str | None
    policy: str | None = None
    idempotency_key: str | None = None
    durable: bool = True


class EndStep(Message, frozen=True, gc=False, tag=True):
    """Record what an attempt came to: with *final* the outcome of the step, else that it failed. Only with the claim that it began with.

    Either the text of its result or that of its failure is given.
    """

    writes: ClassVar[bool] = True
    position: str
    name: str
    attempt: int
    input: str | None
    result: str | None = None
    failure: str | None = None
    final: bool = False
    durable: bool = True


class WaitBeyond(Message, frozen=True, gc=False, tag=True):
    """Wait for an event beyond *seq*; the reply is the last seq then, or None when the time is up, or the owner goes: ask again.

    Answered at once where the run's status is another than *status*, or its first event another than the one of this id: what its
    asker has seen is over.
    """

    seq: int
    status: str | None = None
    first: bytes | None = None


class ReadRun(Message, frozen=True, gc=False, tag=True):
    """Return the run row and the seq of the last event."""


class ReadPage(Message, frozen=True, gc=False, tag=True):
    """Return the next page of the journal beyond *after*."""

    after: int
    name: str | None = None
    reverse: bool = False


class ReadEvent(Message, frozen=True, gc=False, tag=True):
    """Return one event that is known to be there."""

    seq: int


class FindId(Message, frozen=True, gc=False, tag=True):
    """Return the seq of the event with this id, or None."""

    id: bytes


class FindTime(Message, frozen=True, gc=False, tag=True):
    """Return the seq of the last event recorded by this time, or 0."""

    time_ms: int


class ReadRoot(Message, frozen=True, gc=False, tag=True):
    """Return the hash of the root that was current at the last event up to *seq*, or that is current now; None before event 1."""

    seq: int | None = None


class FindRoot(Message, frozen=True, gc=False, tag=True):
    """Return the hashes of at most two roots that lie between two hashes, the second included."""

    first: bytes
    last: bytes


class ReadObjects(Message, frozen=True, gc=False, tag=True):
    """Return the objects of these hashes as they are stored, None in place of one that is not there."""

    hashes: tuple[bytes, ...]


class ReadChanges(Message, frozen=True, gc=False, tag=True):
    """Return the changes that lead from one root, by its hash, to another; None where it takes too long to find them in one turn."""

    old: bytes
    new: bytes


class ShowTree(Message, frozen=True, gc=False, tag=True):
    """Return a picture of the whole host that owns the run; only from another process."""


class OpenSavepoint(Message, frozen=True, gc=False, tag=True):
    """Open a savepoint inside a transaction; the reply is its name."""


class ReleaseSavepoint(Message, frozen=True, gc=False, tag=True):
    """Keep what was done since the savepoint of this name."""

    savepoint: str


class UndoSavepoint(Message, frozen=True, gc=False, tag=True):
    """Undo what was done since the savepoint of this name."""

    savepoint: str


class OpenTransaction(Message, frozen=True, gc=False, tag=True):
    """Begin a transaction that spans messages, for at most *timeout* seconds."""

    timeout: float
    durable: bool = True


class Commit(Message, frozen=True, gc=False, tag=True):
    """End the spanning transaction and keep it."""


class Rollback(Message, frozen=True, gc=False, tag=True):
    """End the spanning transaction and undo it."""


class OpenLease(Message, frozen=True, gc=False, tag=True):
    """Return a new lease on the run."""


class CloseLease(Message, frozen=True, gc=False, tag=True):
    """Forget the lease that the envelope carries."""


class Retire(Message, frozen=True, gc=False, tag=True):
    """Stop cleanly if no lease is open; refused otherwise."""
