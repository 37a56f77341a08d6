"""The whole check of a run file: structure, every hash, and everything derivable derived again and compared.

Reads everything, writes nothing, and stops at the first rule that is broken; the message names the rule and the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple, fields
from itertools import pairwise, zip_longest
from typing import Any

import apsw
import msgspec

from freehold.schema.ddl import checks, partial_indices
from freehold.schema.derive import Derived, Execution
from freehold.schema.errors import Damaged, Error
from freehold.schema.hashes import NO_HASH, ObjectKind, event_hash, object_hash
from freehold.schema.kinds import EventKind
from freehold.schema.lifecycle import Status
from freehold.schema.limits import CHECKED_NODES_MAX
from freehold.schema.nodes import File
from freehold.schema.ours import Underivable
from freehold.schema.roots import make_root, tree_of
from freehold.schema.rows import EventRow, RunRow
from freehold.schema.told import Intent
from freehold.schema.values import is_canonical
from freehold.storage.content import Content, Piece, pieces
from freehold.storage.events import last_seq, read_page, read_run
from freehold.storage.faults import SqliteError, unreadable
from freehold.storage.frontier import BOUNDS, malformed
from freehold.storage.header import broken
from freehold.storage.journal import CURRENT, as_record, is_long, spilled_record
from freehold.storage.objects import StoredObjects, unpack
from freehold.storage.path import RunPath
from freehold.storage.pin import Pin
from freehold.storage.recognise import overlay
from freehold.storage.soundness import Soundness
from freehold.storage.transaction import snapshot

Progress = Callable[[int, int], None]
"""Called with what is done and what there is to do, in events and objects."""


def verify(db: apsw.Connection, path: RunPath, progress: Progress | None = None) -> None:
    """Check all of the file that *db* reads, inside its one snapshot. Raises Damaged, whose detail `rule` says what is broken."""
    try:
        _Check(db, path, progress).run()
    except SqliteError as error:
        raise unreadable(error, path) from None
    except UnicodeDecodeError:  # its text quotes what it could not read
        raise broken("text", "holds text that is not UTF-8", path) from None


def check_whole(pin: Pin) -> None:
    """Verify a pinned file that is about to be owned. Raises as `recognise` and `verify` do; then the pin was closed."""
    try:
        with overlay(pin) as db, snapshot(db):
            verify(db, pin.path)
    except BaseException:
        pin.close()
        raise


class _Check:
    def __init__(self, db: apsw.Connection, path: RunPath, progress: Progress | None) -> None:
        self._db = db
        self._path = path
        self._progress = progress
        self._done = 0
        self._pieces: set[Piece] = set()
        self._last = last_seq(db)
        self._all = self._last + db.execute("SELECT count(*) FROM object").get

    def run(self) -> None:
        self._pages()
        self._bounds()
        self._objects()
        self._roots()
        derived = self._chain()
        run = read_run(self._db)
        self._run(run, derived)
        self._executions(derived)
        self._intents(derived)
        self._current(derived)
        self._tenures(run)
        self._requests(run)

    def _pages(self) -> None:
        found = str(self._db.execute("PRAGMA integrity_check(1)").get)
        if found != "ok" and not found.startswith("CHECK"):
            raise self._broken("pages", "holds pages that do not fit together")
        for index, table, rows in partial_indices():
            # Newer SQLites do not count these: an entry too many would refuse a row that is legal.
            counts = [self._count(f"{table} {how} WHERE {rows}") for how in (f"INDEXED BY {index}", "NOT INDEXED")]
            if counts[0] != counts[1]:
                raise self._broken("pages", f"has an index ({index}) that is not its table's")
        for table, legal in checks().items():
            # SQLite itself leaves the CHECKs out on a connection that may only read.
            if self._count(f"{table} WHERE NOT ({legal})"):
                raise self._broken("check", f"has a row in {table} that the table's own rules forbid")
        if self._db.execute("PRAGMA foreign_key_check").fetchall():
            raise self._broken("foreign_keys", "holds rows that name rows which are not there")

    def _count(self, rows: str) -> int:
        return int(self._db.execute(f"SELECT count(*) FROM {rows}").get)  # noqa: S608 - built from constants

    def _bounds(self) -> None:
        for table, rules in BOUNDS.items():
            key = next(iter(rules))
            for row in self._by_id(f"SELECT {', '.join(rules)} FROM {table} WHERE {key} > ?"):  # noqa: S608 - built from constants
                for (column, rule), value in zip(rules.items(), row, strict=True):
                    if not rule(value):
                        raise malformed(table, column, self._path)

    def _objects(self) -> None:
        for row_id, digest, kind, size, codec, data in self._by_id("SELECT id, hash, kind, size, codec, data FROM object WHERE id > ?"):
            try:
                plain = unpack(codec, data, size)
            except Damaged:
                plain = None
            if plain is None or object_hash(ObjectKind(kind), plain) != digest:
                raise self._broken("object_hash", f"holds an object (row {row_id}) that is not what its hash says")
            self._step()

    def _roots(self) -> None:
        rows = self._by_id(
            "SELECT r.id, r.hash, o.hash, o.kind, o.data, o.codec, o.size FROM root r JOIN object o ON o.id = r.object WHERE r.id > ?"
        )
        trees = Soundness(StoredObjects(self._db), self._file)
        for row_id, digest, found, kind, data, codec, size in rows:
            plain = unpack(codec, data, size)
            if found != digest or kind != ObjectKind.ROOT or self._root_over(trees, plain) != plain:
                raise self._broken("root", f"holds a root (row {row_id}) that is not what it says")

    def _root_over(self, trees: Soundness, plain: bytes) -> bytes | None:
        """Return the root that names the same tree as *plain*, from what that tree holds; None where it names none."""
        try:
            tree = tree_of(plain)
        except Damaged:
            return None
        try:
            return make_root(tree, *trees.check(tree)).data
        except Damaged as error:
            if error.details.get("rule") == "content":
                raise
            raise self._broken("tree", "holds a directory that is not what it must be") from None

    def _file(self, file: File) -> None:
        """Check the pieces of a file's content. Their own hashes were looked at already."""
        if len(self._pieces) > CHECKED_NODES_MAX:
            self._pieces.clear()
        try:
            for piece in pieces(StoredObjects(self._db), Content(file.size, file.content), self._pieces):
                found = self._db.execute("SELECT kind, size FROM object WHERE hash = ?", (piece.hash,)).get
                if piece.kind is ObjectKind.CHUNK and found != (ObjectKind.CHUNK, piece.size):
                    raise self._broken("content", "holds a file whose content is not whole")
        except Damaged:
            raise self._broken("content", "holds a file whose content is not whole") from None

    def _chain(self) -> Derived:
        derived = Derived()
        previous, seq = NO_HASH, 0
        after: int | None = 0
        while after is not None:
            page, after = read_page(self._db, after)
            for event in page:
                seq += 1
                if event.seq != seq or event.hash != _hash_of(event, previous):
                    raise self._broken("chain", f"has a journal that is broken at event {seq}")
                self._event(event)
                try:
                    derived.add(event)
                except Underivable:
                    raise self._broken("journal", f"has an event ({seq}) that does not follow from those before it") from None
                previous = event.hash
                self._step()
        if seq != self._last or not derived.created:
            raise self._broken("chain", f"has a journal that is broken at event {seq + 1}")
        return derived

    def _event(self, event: EventRow) -> None:
        if event.id[6] >> 4 != 7 or event.id[8] >> 6 != 2:
            raise self._broken("event_id", f"has an event ({event.seq}) whose id is no UUIDv7")
        if event.spilled is not None:
            digest = object_hash(ObjectKind.VALUE, event.spilled)
            if digest != event.value_hash or event.record != spilled_record(len(event.spilled)) or not is_long(event.text):
                raise self._broken("value", f"has an event ({event.seq}) whose record is not the one it names")
        elif is_long(event.record):
            raise self._broken("value", f"has an event ({event.seq}) whose record is too long to stand in its row")
        if event.kind == EventKind.NOTE and not is_canonical(event.text):
            raise self._broken("record", f"has an event ({event.seq}) whose record is not written as this format writes it")

    def _run(self, run: RunRow, derived: Derived) -> None:
        # As text: to Python 1 is equal to true and to 1.0.
        props = msgspec.Raw(run.props.encode())
        said = as_record({"run": run.id, "project": run.project, "workflow": run.workflow, "props": props})
        if said != as_record(derived.created) or run.created_at != derived.created_at:
            raise self._broken("run", "says other things of itself than its first event does")
        last = self._db.execute("SELECT status, stop_kind, stop_code, stop_event FROM execution ORDER BY id DESC LIMIT 1").get
        expected = last or (Status.CREATED, None, None, None)
        if (run.status, run.stop_kind, run.stop_code, run.stop_event) != expected:
            raise self._broken("status", "has a status that does not follow from its journal")

    def _executions(self, derived: Derived) -> None:
        columns = "id, generation, epoch, definition, began_seq, ended_seq, status, stop_kind, stop_event"
        rows = self._db.execute(f"SELECT {columns} FROM execution ORDER BY id").fetchall()  # noqa: S608 - built from a constant
        if len(rows) != len(derived.executions):
            raise self._broken("execution", "has executions that its journal does not tell of")
        bounds = [told.began_seq for told in derived.executions[1:]] + [self._last + 1] * bool(rows)
        for row, told, bound in zip(rows, derived.executions, bounds, strict=True):
            if not _agrees(row, told, bound, is_last=told is derived.executions[-1]):
                raise self._broken("execution", f"has an execution ({row[0]}) that does not follow from its journal")

    def _intents(self, derived: Derived) -> None:
        columns = ", ".join(field.name for field in fields(Intent))
        rows = self._by_id(f"SELECT opened_seq, {columns} FROM intent WHERE opened_seq > ?")  # noqa: S608 - built from constants
        for row, told in zip_longest(rows, derived.steps.intents):
            if row is None or told is None or row[1:] != astuple(told):
                raise self._broken("intent", "has an intent that does not follow from its journal")

    def _current(self, derived: Derived) -> None:
        found = self._db.execute("SELECT r.hash, f.moved_seq FROM ref f JOIN root r ON r.id = f.root WHERE f.name = ?", (CURRENT,)).get
        if found != (derived.root, derived.root_since_seq):
            raise self._broken("current", "has a current root that does not follow from its journal")

    def _tenures(self, run: RunRow) -> None:
        rows: list[Any] = self._db.execute("SELECT epoch, first_txn FROM tenure ORDER BY epoch").fetchall()
        in_order = all(one[1] < other[1] for one, other in pairwise(rows))
        counted = len(rows) == run.epoch and all(epoch == number for number, (epoch, _) in enumerate(rows, 1))
        if not counted or not in_order or (rows and rows[-1][1] > run.txn):
            raise self._broken("tenure", "has owners that do not follow from each other")
        if (self._db.execute("SELECT max(generation) FROM execution").get or 0) > run.generation:
            raise self._broken("generation", "has an execution of a generation that has not come yet")

    def _requests(self, run: RunRow) -> None:
        if self._db.execute("SELECT count(*) FROM request WHERE txn > ?", (run.txn,)).get:
            raise self._broken("request", "has a request of a transaction that has not come yet")

    def _by_id(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of *sql* in pieces, so that no cursor stays open and memory stays bounded."""
        after = 0
        while True:
            rows: list[Any] = self._db.execute(f"{sql} ORDER BY 1 LIMIT 100", (after,)).fetchall()
            if not rows:
                return
            yield from rows
            after = rows[-1][0]

    def _step(self) -> None:
        self._done += 1
        if self._progress is not None and (self._done % 1000 == 0 or self._done == self._all):
            self._progress(self._done, self._all)

    def _broken(self, rule: str, what: str) -> Error:
        return broken(rule, what, self._path)


def _hash_of(event: EventRow, previous: bytes) -> bytes:
    return event_hash(
        previous,
        event.seq,
        event.id,
        event.kind,
        event.name,
        event.execution,
        event.position,
        event.phase,
        event.attempt,
        event.record,
        event.value_hash,
        event.root_hash,
        event.time_ms,
    )


def _agrees(row: tuple[Any, ...], told: Execution, bound: int, *, is_last: bool) -> bool:
    _number, generation, epoch, definition, began_seq, ended_seq, status, stop_kind, stop_event = row
    if (generation, epoch, definition, began_seq) != (told.generation, told.epoch, told.definition, told.began_seq):
        return False
    if told.status is not None:
        return bool((status, stop_kind, ended_seq, stop_event) == (told.status, "journal", told.ended_seq, told.stop_event))
    if status == Status.RUNNING:
        return is_last and ended_seq is None
    return bool(stop_kind == "host" and began_seq <= ended_seq < bound)
