"""The journal of an owned file: where the next event goes, and what it is chained to.

The head in memory is a frozen value; every kind of rollback puts the old one back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
import msgspec

from freehold.schema.errors import Damaged
from freehold.schema.hashes import NO_HASH, ObjectKind, event_hash
from freehold.schema.kinds import EventKind
from freehold.schema.lifecycle import Status
from freehold.schema.limits import RECORD_INLINE_BYTES_MAX
from freehold.schema.roots import EMPTY_ROOT, EMPTY_TREE, Object, make_object
from freehold.schema.rows import Written
from freehold.storage.clock import Clock
from freehold.storage.objects import put_object

if TYPE_CHECKING:
    from freehold.storage.transaction import Transaction

CURRENT = "current"
REST = "files"
"""How the event is called that publishes what no other event of a transaction has named."""
_INSERT = "INSERT INTO event (seq, id, kind, name, execution, record, value, root, recorded_at, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_STEP = (
    "INSERT INTO event (seq, id, kind, name, execution, position, phase, attempt, record, value, root, recorded_at, hash)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_HEAD = (
    "SELECT e.seq, e.hash, r.root, o.hash FROM event e JOIN ref r ON r.name = ? JOIN root o ON o.id = r.root ORDER BY e.seq DESC LIMIT 1"
)


class Head(NamedTuple):
    """Last event and current root: what the next event is chained to, and what it names."""

    seq: int
    hash: bytes
    root: int
    root_hash: bytes


class Place(NamedTuple):
    """Where a step stands, and what its event says of it."""

    position: str
    phase: int
    attempt: int


class Journal:
    """Appends to one file, inside its owner's open transaction."""

    def __init__(self, db: apsw.Connection, transaction: Transaction, clock: Clock) -> None:
        self._db = db
        self._transaction = transaction
        self._clock = clock
        self.head = self.read_head()

    def read_head(self) -> Head:
        """Return the head as the file has it."""
        row = self._db.execute(_HEAD, (CURRENT,)).get
        if row is None:
            raise Damaged("the journal is empty; the file was left unchanged", rule="journal")
        return Head(*row)

    def append(
        self,
        kind: str,
        name: str | None,
        record: str,
        now_ms: int,
        execution: int | None = None,
        root: tuple[int, bytes] | None = None,
        place: Place | None = None,
    ) -> Written:
        """Add one event after the head, naming *root* (row id and hash) or the one that is current inside this very transaction.

        One of a step has its *place*. Raises Ended or Poisoned when that transaction is over: the event would be committed alone.
        """
        self._transaction.guard()
        previous = self.head
        seq = previous.seq + 1
        root_id, root_hash = root or (previous.root, previous.root_hash)
        event_id = self._clock.event_id(now_ms)
        value = value_hash = None
        stored = record
        if is_long(record):
            stored, value, value_hash = self._spill(record)
        position, phase, attempt = place or (None, None, None)
        hashed = event_hash(
            previous.hash, seq, event_id, kind, name, execution, position, phase, attempt, stored, value_hash, root_hash, now_ms
        )
        if place is None:
            self._db.execute(_INSERT, (seq, event_id, kind, name, execution, stored, value, root_id, now_ms, hashed))
        else:
            self._db.execute(_INSERT_STEP, (seq, event_id, kind, name, execution, *place, stored, value, root_id, now_ms, hashed))
        self.head = Head(seq, hashed, root_id, root_hash)
        durable = self._transaction.is_durable
        return Written(seq, event_id, kind, name, execution, record, root_hash, now_ms, hashed, durable)

    def append_with_root(self, kind: str, name: str, record: str, now_ms: int, root: bytes | None) -> Written:
        """Add an event with which the root object of content *root*, its tree kept already, becomes the current one.

        None, and the root that is current, leave it as it is. Several statements: the caller keeps them whole.
        """
        if root is None:
            return self.append(kind, name, record, now_ms)
        piece = make_object(ObjectKind.ROOT, root)
        if piece.hash == self.head.root_hash:
            return self.append(kind, name, record, now_ms)
        written = self.append(kind, name, record, now_ms, root=(self._put_root(piece), piece.hash))
        self._db.execute("UPDATE ref SET root = ?, moved_seq = ? WHERE name = ?", (self.head.root, written.seq, CURRENT))
        return written

    def _put_root(self, piece: Object) -> int:
        object_id = put_object(self._db, piece)
        self._db.execute("INSERT INTO root (hash, object) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING", (piece.hash, object_id))
        return int(self._db.execute("SELECT id FROM root WHERE hash = ?", (piece.hash,)).get)

    def _spill(self, record: str) -> tuple[str, int, bytes]:
        piece = make_object(ObjectKind.VALUE, record.encode())
        return spilled_record(len(piece.data)), put_object(self._db, piece), piece.hash


def is_long(record: str) -> bool:
    """Return whether a record is kept as an object of its own rather than in the event's row."""
    if len(record) > RECORD_INLINE_BYTES_MAX:
        return True
    return not record.isascii() and len(record.encode()) > RECORD_INLINE_BYTES_MAX


def spilled_record(size: int) -> str:
    """Return what stands in the row of an event whose record, of *size* bytes, is an object."""
    return f'{{"$object":{size}}}'


def as_record(members: Mapping[str, Any]) -> str:
    """Return one of our own records as text: plain members only, in the order given."""
    return msgspec.json.encode(members).decode()


def publish_record(changes: int) -> str:
    """Return the record of a publish that has changed so much."""
    return as_record({"changes": changes})


def write_first_event(db: apsw.Connection, *, run_id: str, project: str, props: str, clock: Clock) -> None:
    """Write what a new run holds: the empty workspace, its root, event 1, the ref `current` and the run row."""
    now_ms = clock.now_ms()
    put_object(db, EMPTY_TREE)
    root_object = put_object(db, EMPTY_ROOT)
    db.execute("INSERT INTO root (id, hash, object) VALUES (1, ?, ?)", (EMPTY_ROOT.hash, root_object))
    record = as_record({"run": run_id, "project": project, "workflow": None, "props": msgspec.Raw(props.encode())})
    event_id = clock.event_id(now_ms)
    value = value_hash = None
    if is_long(record):
        piece = make_object(ObjectKind.VALUE, record.encode())
        record, value, value_hash = spilled_record(len(piece.data)), put_object(db, piece), piece.hash
    hashed = event_hash(NO_HASH, 1, event_id, EventKind.CREATED, None, None, None, None, None, record, value_hash, EMPTY_ROOT.hash, now_ms)
    db.execute(_INSERT, (1, event_id, str(EventKind.CREATED), None, None, record, value, 1, now_ms, hashed))
    db.execute("INSERT INTO ref (name, root, moved_seq) VALUES (?, 1, 1)", (CURRENT,))
    db.execute(
        "INSERT INTO run (one, id, project, props, status, epoch, generation, txn, created_at, updated_at)"
        " VALUES (1, ?, ?, ?, ?, 0, 0, 1, ?, ?)",
        (run_id, project, props, str(Status.CREATED), now_ms, now_ms),
    )
