"""A run with a rich past is whole; one rule broken anywhere in it, with everything else put right again, is found and named."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import apsw
import msgspec
import pytest
from folder import snapshot
from owned import begin, commit_notes, live_richly, note, own
from runfile import forge, new_run

from freehold.schema.errors import Damaged
from freehold.schema.hashes import NO_HASH, ObjectKind, event_hash, object_hash
from freehold.schema.limits import OBJECT_BYTES_MAX
from freehold.schema.nodes import Link, make_node
from freehold.schema.roots import EMPTY_TREE, make_root
from freehold.schema.steps import STATES
from freehold.storage import verify as module
from freehold.storage.objects import pack
from freehold.storage.path import RunPath, resolve
from freehold.storage.pin import pin
from freehold.storage.reader import reading
from freehold.storage.verify import check_whole, verify


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> RunPath:
    return live_richly(tmp_path_factory.mktemp("healthy"))


@pytest.fixture
def path(healthy: RunPath, tmp_path: Path) -> RunPath:
    """Return a copy of the run with a rich past, to be damaged."""
    shutil.copy(healthy.file, tmp_path)
    return resolve(tmp_path, healthy.id)


@pytest.fixture
def db(path: RunPath) -> Iterator[apsw.Connection]:
    """Return a connection that knows no rule of ours: no foreign keys, no CHECKs."""
    db = apsw.Connection(path.file)
    db.pragma("ignore_check_constraints", 1)
    yield db
    db.close()


def rule_of(path: RunPath) -> str:
    """Return the rule that verify names; nothing in the folder changes and no stored value is told."""
    before = snapshot(Path(path.folder))
    with pytest.raises(Damaged) as raised, looking(path) as db:
        verify(db, path)
    after = snapshot(Path(path.folder))
    assert {name: entry.bytes for name, entry in after.items()} == {name: entry.bytes for name, entry in before.items()}
    assert "SECRET" not in f"{raised.value}{raised.value.details}{raised.value.__cause__}"
    assert "was left unchanged" in str(raised.value)
    return str(raised.value.details.get("rule") or raised.value.code)


class looking(apsw.Connection):  # noqa: N801 - a block, like `reading`, but of any file
    """A connection that changes nothing, for files that opening would refuse: verify has to find everything by itself."""

    def __init__(self, path: RunPath) -> None:
        uri = f"file:{path.file}?immutable=1"
        super().__init__(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)

    def __enter__(self) -> apsw.Connection:
        return self

    def __exit__(self, *_: object) -> Literal[False]:
        self.close()
        return False


def test_a_connection_that_may_write_finds_the_same_rows_that_their_rules_forbid(path: RunPath, db: apsw.Connection) -> None:
    change(db, "UPDATE run SET status = 'SECRET'")
    db.pragma("ignore_check_constraints", 0)
    with pytest.raises(Damaged) as raised:
        verify(db, path)

    assert raised.value.details["rule"] == "check"


def change(db: apsw.Connection, *statements: str) -> None:
    for sql in statements:
        db.execute(sql).fetchall()


def rehash(db: apsw.Connection) -> None:
    """Chain all events anew, so that only what was changed in them is wrong."""
    previous = NO_HASH
    rows: list[Any] = db.execute(
        "SELECT e.seq, e.id, e.kind, e.name, e.execution, e.position, e.phase, e.attempt, e.record, v.hash, r.hash, e.recorded_at"
        " FROM event e JOIN root r ON r.id = e.root LEFT JOIN object v ON v.id = e.value ORDER BY e.seq"
    ).fetchall()
    for row in rows:
        previous = event_hash(previous, *row)
        db.execute("UPDATE event SET hash = ? WHERE seq = ?", (previous, row[0]))


def replace_object(db: apsw.Connection, where: str, data: bytes, *, kind: ObjectKind | None = None) -> None:
    """Give an object other bytes, and its row everything that belongs to them; a root of it goes with it."""
    row_id, old = db.execute(f"SELECT id, kind FROM object WHERE {where}").get
    kind = ObjectKind(old) if kind is None else kind
    codec, packed = pack(data)
    digest = object_hash(kind, data)
    values = (digest, int(kind), len(data), codec, packed, row_id)
    db.execute("UPDATE object SET hash = ?, kind = ?, size = ?, codec = ?, data = ? WHERE id = ?", values)
    db.execute("UPDATE root SET hash = ? WHERE object = ?", (digest, row_id))


LAST = "(SELECT max(seq) FROM event)"
FIRST_NOTE = "(SELECT min(seq) FROM event WHERE kind = 'note')"
BEGAN = "(SELECT min(seq) FROM event WHERE kind = 'began')"
SETTLED = "(SELECT min(seq) FROM event WHERE kind = 'settled')"


# Whole


def test_a_run_with_a_rich_past_is_whole(healthy: RunPath) -> None:
    with reading(healthy) as db:
        verify(db, healthy)
        counts = {
            table: db.execute(f"SELECT count(*) FROM {table}").get
            for table in ("object", "root", "event", "ref", "run", "tenure", "execution", "intent", "request")
        }
        states = db.execute("SELECT group_concat(DISTINCT state ORDER BY 1) FROM intent").get
        kinds = db.execute("SELECT group_concat(DISTINCT status || stop_kind ORDER BY 1) FROM execution").get

    assert min(counts.values()) > 0
    assert counts["tenure"] == 6
    assert counts["object"] == 5
    assert set(str(states).split(",")) == set(STATES)
    assert set(str(kinds).split(",")) == {"suspendedjournal", "interruptedjournal", "failedjournal", "interruptedhost", "failedhost"}


def test_a_new_run_is_whole(tmp_path: Path) -> None:
    path = new_run(tmp_path)
    with reading(path) as db:
        verify(db, path)

    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.sqlite"]


def test_a_run_is_whole_while_it_is_owned_and_only_what_is_committed_counts(tmp_path: Path) -> None:
    store = own(new_run(tmp_path))
    commit_notes(store, "1")
    begin(store)
    store.executions.begin(5)
    other = apsw.Connection(store.path.file, flags=apsw.SQLITE_OPEN_READONLY)
    verify(other, store.path)
    other.close()
    verify(store.db, store.path)
    note(store)
    store.commit()
    verify(store.db, store.path)

    assert store.db.execute("SELECT status FROM run").get == "running"
    store.close(clean=True)


def test_a_root_whose_content_was_forgotten_is_whole(path: RunPath, db: apsw.Connection) -> None:
    db.execute("INSERT INTO root (hash, dropped_seq) VALUES (zeroblob(32), 2)")
    told: list[int] = []
    with reading_closed(db, path) as again:
        verify(again, path, lambda done, _all: told.append(done))

    assert told


def test_progress_is_told_up_to_the_end(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    with reading(path) as db:
        all_of_it = db.execute("SELECT (SELECT count(*) FROM event) + (SELECT count(*) FROM object)").get
        verify(db, path, lambda done, whole: told.append((done, whole)))

    assert told == [(all_of_it, all_of_it)]


def test_many_objects_are_looked_at_in_pieces(path: RunPath, db: apsw.Connection) -> None:
    for number in range(250):
        data = b"piece %d" % number
        values = (object_hash(ObjectKind.CHUNK, data), len(data), data)
        db.execute("INSERT INTO object (hash, kind, size, codec, data) VALUES (?, 0, ?, 0, ?)", values)
    with looking(path) as again:
        verify(again, path)
    change(db, "UPDATE object SET data = CAST('x' || substr(data, 2) AS BLOB) WHERE id = (SELECT max(id) FROM object)")

    assert db.execute("SELECT count(*) FROM object").get == 255
    assert rule_of(closed(db, path)) == "object_hash"


def closed(db: apsw.Connection, path: RunPath) -> RunPath:
    """Close the forger's connection, so that one file holds all, and return where it is."""
    db.close()
    return path


def reading_closed(db: apsw.Connection, path: RunPath) -> looking:
    db.close()
    return looking(path)


# One rule broken at a time. With *again* the chain is put right after the change, so that only that rule is broken.

EMPTIED = (
    *(f"DELETE FROM {table}" for table in ("request", "intent", "ref", "event", "execution")),
    "UPDATE run SET status = 'created', stop_kind = NULL, stop_code = NULL, stop_event = NULL",
)
Damage = tuple[str, str, bool]
DAMAGES: list[Damage] = [
    # The chain: one field of one event, or the place of one.
    ("chain", f"UPDATE event SET name = 'SECRET' WHERE seq = {FIRST_NOTE}", False),
    ("chain", f"UPDATE event SET record = '\"SECRET\"' WHERE seq = {FIRST_NOTE}", False),
    ("chain", f"UPDATE event SET recorded_at = recorded_at + 1 WHERE seq = {FIRST_NOTE}", False),
    ("chain", f"UPDATE event SET id = x'01939f7e7c527b9a8f0e2f6d5f1c2a3b' WHERE seq = {FIRST_NOTE}", False),
    ("chain", f"UPDATE event SET hash = zeroblob(32) WHERE seq = {FIRST_NOTE}", False),
    ("chain", f"UPDATE event SET hash = zeroblob(32) WHERE seq = {LAST}", False),
    ("chain", "UPDATE event SET hash = zeroblob(32) WHERE seq = 1", False),
    ("chain", f"UPDATE event SET execution = 1 WHERE seq = {FIRST_NOTE}", False),
    ("chain", "UPDATE event SET attempt = 7 WHERE name = 'left'", False),
    ("check", f"UPDATE event SET execution = 1, position = 'p', phase = 2, attempt = 1 WHERE seq = {FIRST_NOTE}", True),
    ("chain", f"UPDATE event SET value = NULL, record = '7' WHERE seq = {FIRST_NOTE} + 1", False),
    ("chain", "DELETE FROM event WHERE kind = 'note' AND seq = 4", False),
    ("chain", f"UPDATE event SET seq = seq + 1 WHERE seq = {LAST}", True),
    ("chain", "; ".join(EMPTIED), False),
    # What an event says of itself.
    ("event_id", f"UPDATE event SET id = zeroblob(16) WHERE seq = {FIRST_NOTE}", True),
    ("event_id", f"UPDATE event SET id = x'01939f7e7c524b9a8f0e2f6d5f1c2a3b' WHERE seq = {LAST}", True),
    ("event_id", f"UPDATE event SET id = x'01939f7e7c527b9a0f0e2f6d5f1c2a3b' WHERE seq = {LAST}", True),
    ("record", f"UPDATE event SET record = '{{ \"a\": 1 }}' WHERE seq = {FIRST_NOTE}", True),
    ("record", f"UPDATE event SET record = '{{\"$nosuch\":1}}' WHERE seq = {FIRST_NOTE}", True),
    ("record", f"UPDATE event SET record = '1.0e2' WHERE seq = {LAST}", True),
    ("record", f"UPDATE event SET record = '{{}}' || char(0) || 'SECRET' WHERE seq = {FIRST_NOTE}", True),
    ("value", f"UPDATE event SET record = '{{\"$object\":7}}' WHERE seq = {FIRST_NOTE} + 1", True),
    ("value", f"UPDATE event SET record = '1' WHERE seq = {FIRST_NOTE} + 1", True),
    ("value", f"UPDATE event SET value = (SELECT id FROM object WHERE kind = 3) WHERE seq = {FIRST_NOTE} + 1", True),
    ("value", f"UPDATE event SET value = (SELECT id FROM object WHERE kind = 3) WHERE seq = {FIRST_NOTE}", True),
    ("value", f"UPDATE event SET record = '\"' || printf('%.5000c', 'x') || '\"' WHERE seq = {FIRST_NOTE}", True),
    ("malformed_record", f"UPDATE event SET value = NULL WHERE seq = {FIRST_NOTE} + 1", True),
    # What does not follow from what came before.
    ("journal", f"UPDATE event SET record = '[]' WHERE seq = {BEGAN}", True),
    ("journal", f"UPDATE event SET record = replace(record, '\"execution\":1', '\"execution\":2') WHERE seq = {BEGAN}", True),
    ("journal", f'UPDATE event SET record = \'{{"execution":1,"status":["failed"],"reason":2}}\' WHERE seq = {SETTLED}', True),
    ("journal", f'UPDATE event SET record = \'{{"execution":1,"status":"SECRET","reason":2}}\' WHERE seq = {SETTLED}', True),
    ("journal", f'UPDATE event SET record = \'{{"execution":1,"status":"failed","reason":99}}\' WHERE seq = {SETTLED}', True),
    ("journal", f'UPDATE event SET record = \'{{"execution":1,"status":"completed","reason":2}}\' WHERE seq = {SETTLED}', True),
    ("journal", f"UPDATE event SET execution = 2 WHERE seq = {SETTLED}", True),
    ("journal", "UPDATE event SET record = '{}' WHERE seq = 1", True),
    ("journal", "UPDATE event SET record = replace(record, '\"workflow\"', '\"SECRET\"') WHERE seq = 1", True),
    # The run against its first event and its last execution.
    ("run", "UPDATE run SET id = 'SECRET'", False),
    ("run", "UPDATE run SET project = 'SECRET'", False),
    ("run", "UPDATE run SET workflow = 'SECRET'", False),
    ("run", 'UPDATE run SET props = \'{"colour":"SECRET"}\'', False),
    ("run", "UPDATE run SET props = '{}'", False),
    ("run", "UPDATE run SET created_at = created_at + 1", False),
    ("run", "UPDATE event SET record = replace(record, 'blue', 'SECRET') WHERE seq = 1", True),
    ("run", "UPDATE event SET recorded_at = 5 WHERE seq = 1", True),
    ("run", "DELETE FROM run", False),
    ("status", "UPDATE run SET status = 'created', stop_kind = NULL, stop_code = NULL, stop_event = NULL", False),
    ("status", "UPDATE run SET status = 'completed'", False),
    ("status", "UPDATE run SET stop_kind = 'journal', stop_code = NULL, stop_event = 1", False),
    ("status", "UPDATE run SET stop_code = 'SECRET'", False),
    # Executions against their events.
    ("execution", "UPDATE execution SET generation = generation + 1 WHERE id = 1", False),
    ("execution", "UPDATE execution SET epoch = 2 WHERE id = 1", False),
    ("execution", "UPDATE execution SET definition = x'01' WHERE id = 1", False),
    ("execution", "UPDATE execution SET began_seq = began_seq - 1 WHERE id = 1", False),
    ("execution", "UPDATE execution SET ended_seq = ended_seq + 1 WHERE id = 1", False),
    ("execution", "UPDATE execution SET status = 'failed' WHERE id = 1", False),
    ("execution", "UPDATE execution SET stop_event = 1 WHERE id = 1", False),
    ("execution", "UPDATE execution SET stop_kind = 'host', stop_code = 'x', stop_event = NULL WHERE id = 1", False),
    (
        "execution",
        "UPDATE execution SET stop_kind = 'journal', stop_code = NULL, stop_event = 1 WHERE stop_kind = 'host' AND id = 4",
        False,
    ),
    ("execution", "UPDATE execution SET ended_seq = ended_seq + 1 WHERE id = 4", False),
    (
        "execution",
        "UPDATE execution SET status = 'running', ended_seq = NULL, stop_kind = NULL, stop_code = NULL WHERE id = 4",
        False,
    ),
    # Steps: what their events say in themselves, and of each other; and intents against them.
    *[
        ("journal", f"UPDATE event SET {change} WHERE name = '{name}' AND phase = {phase}{more}", True)
        for change, name, phase, more in (
            ("name = 'SECRET'", "plain", 2, ""),
            ("execution = 1, position = '1'", "plain", 2, ""),
            ("attempt = 2", "plain", 2, ""),
            ("record = replace(record, 'input', 'SECRET')", "plain", 2, ""),
            ("record = replace(record, '{\"id\":7}', '{ \"id\":7}')", "plain", 2, ""),
            ("record = replace(record, '{\"id\":7}', '{\"$nosuch\":7}')", "plain", 2, ""),
            ("record = upper(substr(record, 1, 30)) || substr(record, 31)", "plain", 2, ""),
            ("record = replace(record, 'ValueError', 'SECRET\",\"x\":\"')", "failing", 1, " AND attempt = 1"),
            ('record = \'{"input":null,"result":1}\'', "failing", 1, " AND attempt = 1"),
            ("record = replace(record, '\"cause\":null', '\"cause\":1')", "failing", 1, " AND attempt = 1"),
            ("attempt = 3", "failing", 1, " AND attempt = 2"),
            ("record = replace(record, 'park', 'repeat')", "charge", 0, " AND attempt = 1"),
            ("record = replace(record, '\"key\":\"', '\"key\":\"' || char(92) || 'n')", "charge", 0, " AND attempt = 1"),
            ("record = replace(record, '\"policy\"', '\"SECRET\"')", "charge", 0, " AND attempt = 1"),
            ("position = 'key/lost', name = 'lost', attempt = 2", "left", 0, ""),
        )
    ],
    ("intent", "UPDATE intent SET policy = 'probe' WHERE position = 'key/left'", False),
    ("intent", "UPDATE intent SET idempotency_key = 'SECRET' WHERE position = 'key/left'", False),
    ("intent", "UPDATE intent SET state = 'unknown' WHERE position = 'key/left'", False),
    ("intent", "UPDATE intent SET state = 'open' WHERE position = 'key/lost'", False),
    ("intent", "UPDATE intent SET state = 'done' WHERE state = 'not_done'", False),
    ("intent", "UPDATE intent SET settled_seq = settled_seq + 1 WHERE state = 'done'", False),
    ("intent", "UPDATE intent SET settled_seq = NULL, state = 'unknown' WHERE state = 'done'", False),
    ("intent", "UPDATE intent SET opened_seq = opened_seq - 1 WHERE position = 'key/left'", False),
    ("intent", "UPDATE intent SET position = 'key/SECRET' WHERE position = 'key/left'", False),
    ("intent", "UPDATE intent SET attempt = 9 WHERE position = 'key/left'", False),
    ("intent", "DELETE FROM intent WHERE position = 'key/left'", False),
    ("intent", "INSERT INTO intent SELECT 'key/more', 1, policy, idempotency_key, 3, NULL, 'open' FROM intent WHERE state = 'open'", False),
    ("foreign_keys", "UPDATE intent SET opened_seq = 9999 WHERE position = 'key/left'", False),
    ("malformed_record", "UPDATE intent SET position = 'SECRET' WHERE position = 'key/left'", False),
    ("malformed_record", "UPDATE intent SET idempotency_key = 'SECRET' || char(10) WHERE position = 'key/left'", False),
    # The rest.
    ("current", "UPDATE ref SET moved_seq = 2 WHERE name = 'current'", False),
    ("current", "DELETE FROM ref WHERE name = 'current'", False),
    ("current", "UPDATE ref SET name = 'other' WHERE name = 'current'", False),
    ("tenure", "UPDATE tenure SET first_txn = 1000000 WHERE epoch = 6", False),
    ("tenure", "UPDATE tenure SET first_txn = 1000000 WHERE epoch = 3", False),
    ("tenure", "UPDATE run SET epoch = epoch + 1", False),
    ("tenure", "UPDATE run SET epoch = epoch - 1", False),
    ("tenure", "UPDATE run SET epoch = 2305843009213693952", False),
    ("tenure", "UPDATE run SET epoch = 2305843009213693952; UPDATE tenure SET epoch = 2305843009213693952 WHERE epoch = 6", False),
    ("tenure", "UPDATE run SET txn = 5", False),
    ("generation", "UPDATE run SET generation = 0", False),
    ("request", "UPDATE request SET txn = (SELECT txn + 1 FROM run) WHERE id = 'once'", False),
    ("foreign_keys", "UPDATE request SET seq = 99 WHERE id = 'once'", False),
    ("foreign_keys", "DELETE FROM tenure WHERE epoch = 1", False),
    ("foreign_keys", "UPDATE event SET root = 99 WHERE seq = 3", False),
    ("foreign_keys", "DELETE FROM object WHERE kind = 4", False),
    ("check", "UPDATE run SET status = 'SECRET'", False),
    ("check", "UPDATE run SET props = 'SECRET'", False),
    ("check", "UPDATE run SET created_at = -1", False),
    ("check", "UPDATE event SET name = '' WHERE kind = 'note'", True),
    ("check", "UPDATE event SET id = x'00' WHERE kind = 'note' AND seq = 2", True),
    ("check", "UPDATE event SET hash = x'00' WHERE seq = 2", False),
    ("check", "UPDATE event SET kind = 'SECRET' WHERE kind = 'note'", True),
    ("check", "UPDATE object SET kind = 9 WHERE kind = 4", False),
    ("check", "UPDATE object SET size = -1 WHERE codec = 1", False),
    ("check", "UPDATE root SET hash = x'00'", False),
    ("check", "UPDATE tenure SET opened_at = -1", False),
    ("check", "UPDATE tenure SET socket = '../a'", False),
    ("check", "UPDATE execution SET ended_seq = 0 WHERE id = 1", False),
    ("check", "UPDATE request SET digest = x'00'", False),
    ("check", "UPDATE ref SET name = '' WHERE name = 'pinned'", False),
    ("object_hash", "UPDATE object SET data = CAST(x'93' || substr(data, 2) AS BLOB) WHERE kind = 1", False),
    ("object_hash", "UPDATE object SET hash = zeroblob(32) WHERE kind = 1", False),
    ("object_hash", "UPDATE object SET kind = 0 WHERE kind = 4", False),
    ("object_hash", "UPDATE object SET size = size + 1 WHERE codec = 1", False),
    ("object_hash", "UPDATE object SET data = substr(data, 1, length(data) - 1) WHERE codec = 1", False),
    ("object_hash", f"UPDATE object SET size = {OBJECT_BYTES_MAX + 1} WHERE codec = 1", False),
    ("text", "UPDATE run SET project = CAST(x'534543524554ff' AS TEXT)", False),
    ("text", f"UPDATE event SET name = CAST(x'534543524554ff' AS TEXT) WHERE seq = {FIRST_NOTE}", False),
]


@pytest.mark.parametrize(("rule", "statement", "again"), DAMAGES)
def test_a_broken_rule_is_named(path: RunPath, db: apsw.Connection, rule: str, statement: str, again: bool) -> None:
    change(db, *statement.split("; "))
    assert db.total_changes() > 0
    if again:
        rehash(db)
    db.close()

    assert rule_of(path) == rule


ROOT = [1, EMPTY_TREE.hash, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "content",
    [
        [2, *ROOT[1:]],
        [1, EMPTY_TREE.hash, -1, 0, 0, 0],
        [1, bytes(32), 0, 0, 0, 0],
        [1, "SECRET", 0, 0, 0, 0],
        [1, [EMPTY_TREE.hash], 0, 0, 0, 0],
        [1, None, 0, 0, 0, 0],
        [1, 2**63, 0, 0, 0, 0],
        ROOT[:5],
        [*ROOT, 0],
        {"1": 2},
        "SECRET",
        7,
        None,
        [1, EMPTY_TREE.hash, 0.5, 0, 0, 0],
        [1, EMPTY_TREE.hash, True, 0, 0, 0],
    ],
)
def test_a_root_that_names_no_whole_tree_is_found(path: RunPath, db: apsw.Connection, content: object) -> None:
    replace_object(db, "kind = 3", msgspec.msgpack.encode(content))
    rehash(db)
    db.close()

    assert rule_of(path) == ("tree" if content == [1, bytes(32), 0, 0, 0, 0] else "root")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x96\x01",
        b"\x91" * 100_000,
        b"\xdc\x00\x06" + msgspec.msgpack.encode(ROOT)[1:],
        msgspec.msgpack.encode(ROOT) + b"\x00",
        b"\x96\x01\xa2\xff\xff\x00\x00\x00\x00",
    ],
)
def test_a_root_of_other_bytes_than_this_format_writes_is_found(path: RunPath, db: apsw.Connection, data: bytes) -> None:
    replace_object(db, "kind = 3", data)
    rehash(db)
    db.close()

    assert rule_of(path) == "root"


def test_a_root_whose_object_is_of_another_kind_or_another_roots_is_found(path: RunPath, db: apsw.Connection) -> None:
    change(db, "UPDATE root SET object = (SELECT id FROM object WHERE kind = 1)")
    db.close()

    assert rule_of(path) == "root"


def test_a_root_that_names_the_object_of_another_is_found(path: RunPath, db: apsw.Connection) -> None:
    tree = make_node(0, [Link("link", "elsewhere")])
    for piece in (tree, make_root(tree.hash, 1, 0, 1)):
        row = (piece.hash, piece.kind, len(piece.data), piece.data)
        db.execute("INSERT INTO object (hash, kind, size, codec, data) VALUES (?, ?, ?, 0, ?)", row)
    change(db, "UPDATE root SET object = last_insert_rowid()")
    db.close()

    assert rule_of(path) == "root"


def test_a_root_that_is_kept_as_another_kind_of_object_is_found(path: RunPath, db: apsw.Connection) -> None:
    replace_object(db, "kind = 3", msgspec.msgpack.encode(ROOT), kind=ObjectKind.VALUE)
    rehash(db)
    db.close()

    assert rule_of(path) == "root"


def test_a_long_record_that_is_kept_as_another_kind_of_object_is_found(path: RunPath, db: apsw.Connection) -> None:
    data = b'"' + b"x" * 5000 + b'"'
    replace_object(db, f"id = (SELECT value FROM event WHERE seq = {FIRST_NOTE} + 1)", data, kind=ObjectKind.CHUNK)
    db.execute(f"UPDATE event SET record = ? WHERE seq = {FIRST_NOTE} + 1", (f'{{"$object":{len(data)}}}',))
    rehash(db)
    db.close()

    assert rule_of(path) == "value"


def test_a_tree_of_another_kind_is_found(path: RunPath, db: apsw.Connection) -> None:
    replace_object(db, "kind = 1", EMPTY_TREE.data, kind=ObjectKind.CHUNK)
    db.close()

    assert rule_of(path) == "tree"


def test_a_current_root_that_is_not_the_last_events_is_found(path: RunPath, db: apsw.Connection) -> None:
    tree = make_node(0, [Link("a", "b")])
    root = make_root(tree.hash, 1, 0, 1)
    for piece in (tree, root):
        row = (piece.hash, int(piece.kind), len(piece.data), piece.data)
        db.execute("INSERT INTO object (hash, kind, size, codec, data) VALUES (?, ?, ?, 0, ?)", row)
    db.execute("INSERT INTO root (hash, object) VALUES (?, last_insert_rowid())", (root.hash,))
    with looking(path) as again:
        verify(again, path)
    db.execute("UPDATE ref SET root = last_insert_rowid() WHERE name = 'current'")
    db.close()

    assert rule_of(path) == "current"


@pytest.mark.parametrize("text", ['"' + "x" * 4094 + '"', '"short"', '"' + "é" * 2047 + '"'])
def test_a_spilled_record_that_had_room_in_its_row_is_found(path: RunPath, db: apsw.Connection, text: str) -> None:
    replace_object(db, f"id = (SELECT value FROM event WHERE seq = {FIRST_NOTE} + 1)", text.encode())
    db.execute(f"UPDATE event SET record = ? WHERE seq = {FIRST_NOTE} + 1", (f'{{"$object":{len(text.encode())}}}',))
    rehash(db)
    db.close()

    assert rule_of(path) == "value"


@pytest.mark.parametrize(("data", "rule"), [(b'"' + b"x" * 5000 + b"\xff" + b'"', "text"), (b'{ "a": ' + b"1" * 5000 + b"}", "record")])
def test_a_spilled_record_that_this_format_does_not_write_is_found(path: RunPath, db: apsw.Connection, data: bytes, rule: str) -> None:
    replace_object(db, f"id = (SELECT value FROM event WHERE seq = {FIRST_NOTE} + 1)", data)
    db.execute(f"UPDATE event SET record = ? WHERE seq = {FIRST_NOTE} + 1", (f'{{"$object":{len(data)}}}',))
    rehash(db)
    db.close()

    assert rule_of(path) == rule


def test_executions_that_the_journal_does_not_tell_of_are_found(path: RunPath, db: apsw.Connection) -> None:
    columns = "generation, epoch, definition, status, began_seq + 1, ended_seq + 1, stop_kind, stop_code, stop_event"
    change(db, f"INSERT INTO execution SELECT id + 100, {columns} FROM execution ORDER BY id DESC LIMIT 1")
    db.close()

    assert rule_of(path) == "execution"


def test_properties_that_python_takes_for_equal_are_not(tmp_path: Path) -> None:
    path = new_run(tmp_path, props='{"n":1}')
    for same_to_python in ("true", "1.0"):
        forge(path, f"UPDATE run SET props = '{{\"n\":{same_to_python}}}'")
        assert rule_of(path) == "run"


def test_a_damaged_file_that_was_to_be_owned_is_given_back(path: RunPath, db: apsw.Connection) -> None:
    change(db, f"UPDATE event SET hash = zeroblob(32) WHERE seq = {FIRST_NOTE}")
    db.close()
    held = pin(path, exclusive=True)
    with pytest.raises(Damaged):
        check_whole(held)

    pin(path, exclusive=True).close()


def test_every_page_with_torn_bytes_is_found(path: RunPath) -> None:
    whole = Path(path.file).read_bytes()
    rules = set()
    for page in range(1, len(whole) // 4096):
        torn = bytearray(whole)
        torn[page * 4096 + 2000 : page * 4096 + 2600] = bytes(600)
        torn[page * 4096 : page * 4096 + 12] = b"\xff" * 12
        if torn == whole:
            continue
        Path(path.file).write_bytes(torn)
        rules.add(rule_of(path))

    assert rules <= {"pages", "sqlite", "object_hash", "chain", "malformed_record", "text", "foreign_keys"}
    assert rules & {"pages", "sqlite"}


def test_an_index_that_has_a_row_too_many_is_found(path: RunPath) -> None:
    index = "CREATE UNIQUE INDEX execution_running ON execution (status) WHERE status = ''{}''"
    forge(path, "UPDATE execution SET status = 'running' WHERE id = 1")
    for status, statement in (("none", "UPDATE execution SET status = 'suspended' WHERE id = 1"), ("running", "SELECT 1")):
        # While it holds no row, none is taken out of it.
        forge(path, f"UPDATE sqlite_schema SET sql = '{index.format(status)}' WHERE name = 'execution_running'", writable_schema=True)
        forge(path, statement)

    assert rule_of(path) == "pages"


def test_an_index_that_lost_a_row_is_found(path: RunPath) -> None:
    forge(
        path,
        "UPDATE sqlite_schema SET sql = 'CREATE INDEX event_value ON event (value) WHERE value > 99' WHERE name = 'event_value'",
        writable_schema=True,
    )
    forge(path, "REINDEX event_value")
    forge(
        path,
        "UPDATE sqlite_schema SET sql = 'CREATE INDEX event_value ON event (value) WHERE value IS NOT NULL' WHERE name = 'event_value'",
        writable_schema=True,
    )

    assert rule_of(path) == "pages"


def test_what_verify_looks_at_never_costs_more_than_the_file(path: RunPath, db: apsw.Connection) -> None:
    # Numbers in a forged file are compared, never counted up to.
    change(db, "UPDATE run SET generation = 9223372036854775807, txn = 9223372036854775807")
    told: list[int] = []
    with reading_closed(db, path) as again:
        verify(again, path, lambda done, _all: told.append(done))

    assert told


# The checks themselves


@pytest.mark.parametrize("check", ["_pages", "_objects", "_roots", "_run", "_executions", "_current", "_tenures", "_requests", "_event"])
def test_each_check_finds_what_no_other_does(healthy: RunPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: str) -> None:
    rules = {
        "_pages": ("foreign_keys", "UPDATE request SET seq = 99 WHERE id = 'once'", False),
        "_objects": ("object_hash", "INSERT INTO object (hash, kind, size, codec, data) VALUES (zeroblob(32), 0, 1, 0, x'00')", False),
        "_roots": ("root", "UPDATE root SET object = (SELECT id FROM object WHERE kind = 1)", False),
        "_run": ("run", "UPDATE run SET project = 'other'", False),
        "_executions": ("execution", "UPDATE execution SET epoch = 2 WHERE id = 1", False),
        "_current": ("current", "UPDATE ref SET moved_seq = 2 WHERE name = 'current'", False),
        "_tenures": ("tenure", "UPDATE tenure SET first_txn = 1000000 WHERE epoch = 6", False),
        "_requests": ("request", "UPDATE request SET txn = (SELECT txn + 1 FROM run) WHERE id = 'once'", False),
        "_event": ("event_id", f"UPDATE event SET id = zeroblob(16) WHERE seq = {FIRST_NOTE}", True),
    }
    rule, statement, again = rules[check]
    shutil.copy(healthy.file, tmp_path)
    path = resolve(tmp_path, healthy.id)
    db = apsw.Connection(path.file)
    db.pragma("ignore_check_constraints", 1)
    change(db, statement)
    if again:
        rehash(db)
    db.close()
    assert rule_of(path) == rule

    monkeypatch.setattr(module._Check, check, lambda *_: None)
    with looking(path) as blind:
        verify(blind, path)
