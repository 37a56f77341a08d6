"""The newest rows must make sense together; each that does not is named by rule, or by table and column."""

from __future__ import annotations

from pathlib import Path

import apsw
import msgspec
import pytest
from folder import snapshot
from owned import begin, begin_step, end_step, own
from runfile import forge, new_run

from freehold.schema.errors import Damaged
from freehold.schema.failure import Failure
from freehold.schema.hashes import ObjectKind, event_hash, object_hash
from freehold.schema.roots import EMPTY_ROOT, EMPTY_TREE
from freehold.storage.clock import Clock
from freehold.storage.path import RunPath
from freehold.storage.pin import pin
from freehold.storage.recognise import recognise
from freehold.storage.store import Store

OFF = "PRAGMA foreign_keys = 0"
AGAIN = "INSERT INTO run SELECT 2, 'b', '', NULL, NULL, '{}', 'created', NULL, NULL, NULL, 0, 0, 1, 0, 0"
TENURE = "INSERT INTO tenure VALUES (1, 2, 'SECRET', zeroblob(16), 1, 1, 1, 0, NULL, NULL)"
EXECUTION = "INSERT INTO execution VALUES (1, 0, {epoch}, zeroblob(32), 'running', {began}, NULL, NULL, NULL, NULL)"


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    """Return a run that was owned once and holds two notes, the second one long."""
    path = new_run(tmp_path)
    store = Store(pin(path, exclusive=True), Clock())
    store.begin(5)
    store.journal.append("note", "SECRET", '"SECRET"', 5)
    store.journal.append("note", "SECRET", '"' + "SECRET" * 2000 + '"', 6)
    store.commit()
    store.close(clean=True)
    return path


def refusal(path: RunPath) -> Damaged:
    """Return why a file is refused; the folder stays as it was and no stored value is told."""
    before = snapshot(Path(path.folder))
    held = pin(path, exclusive=True)
    with pytest.raises(Damaged) as raised:
        recognise(held)
    held.close()
    assert snapshot(Path(path.folder)) == before
    assert "SECRET" not in f"{raised.value}{raised.value.details}{raised.value.__cause__}"
    return raised.value


def test_a_run_with_a_past_is_recognised(path: RunPath) -> None:
    held = pin(path, exclusive=True)
    found = recognise(held)
    held.close()

    assert (found.last_seq, found.run.epoch) == (3, 1)


@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        ("DELETE FROM run", "run"),
        (AGAIN, "run"),
        ("DELETE FROM event WHERE seq = 2", "journal"),
        ("UPDATE event SET name = 'SECRET2' WHERE seq = 3", "event_hash"),
        ("UPDATE event SET recorded_at = recorded_at + 1 WHERE seq = 3", "event_hash"),
        ("UPDATE event SET record = '7' WHERE seq = 3", "event_hash"),
        ("UPDATE event SET value = NULL WHERE seq = 3", "event_hash"),
        ("UPDATE event SET id = zeroblob(16) WHERE seq = 3", "event_hash"),
        ("UPDATE event SET hash = zeroblob(32) WHERE seq = 3", "event_hash"),
        ("UPDATE event SET hash = zeroblob(32) WHERE seq = 2", "event_hash"),
        ("UPDATE event SET execution = 9 WHERE seq = 3", "foreign_keys"),
        ("UPDATE root SET hash = zeroblob(32)", "event_hash"),
        ("UPDATE object SET hash = zeroblob(32) WHERE kind = 3", "object"),
        ("UPDATE object SET kind = 4 WHERE kind = 3", "object"),
        ("UPDATE object SET data = zeroblob(size) WHERE kind = 3", "object"),
        ("UPDATE object SET kind = 0 WHERE kind = 1", "root"),
        ("DELETE FROM object WHERE kind = 1", "root"),
        ("DELETE FROM ref", "ref"),
        ("UPDATE ref SET name = 'pin'", "ref"),
        ("UPDATE run SET epoch = 2", "tenure"),
        ("UPDATE run SET epoch = 0", "tenure"),
        ("DELETE FROM tenure", "tenure"),
        ("UPDATE tenure SET first_txn = 1000", "tenure"),
        ("UPDATE run SET status = 'running'", "execution"),
        (EXECUTION.format(epoch=1, began=2), "execution"),
    ],
)
def test_rows_that_disagree_are_named_by_the_rule(path: RunPath, statement: str, rule: str) -> None:
    forge(path, OFF, statement)

    assert refusal(path).details["rule"] == rule


@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        ("DELETE FROM event", "journal"),
        ("UPDATE ref SET moved_seq = 4", "ref"),
        ("UPDATE ref SET root = 2", "ref"),
        ("UPDATE run SET status = 'failed', stop_kind = 'journal', stop_event = 9", "stop_event"),
        ("UPDATE event SET root = 9 WHERE seq = 3", "root"),
        ("UPDATE event SET value = 99 WHERE seq = 3", "object"),
        ("UPDATE root SET object = 99", "object"),
        ("UPDATE run SET status = 'running'; " + EXECUTION.format(epoch=9, began=2), "tenure"),
        ("UPDATE run SET status = 'running'; " + EXECUTION.format(epoch=1, began=4), "execution"),
        ("UPDATE run SET status = 'running'; " + EXECUTION.format(epoch=1, began=2).replace("(1, 0,", "(1, 7,"), "execution"),
    ],
)
def test_in_a_large_file_the_newest_rows_are_followed_by_hand(
    path: RunPath, monkeypatch: pytest.MonkeyPatch, statement: str, rule: str
) -> None:
    forge(path, OFF, statement)
    monkeypatch.setattr("freehold.storage.recognise.FOREIGN_KEYS_WHOLE_BYTES", 0)

    assert refusal(path).details["rule"] == rule


def rewrite_last(path: RunPath, *, execution: int | None = None, root: bytes | None = None, named: bytes | None = None) -> None:
    """Change the last event, or the root that it names, and all hashes with it, so that only what they say is wrong."""
    db = apsw.Connection(path.file)
    if root is not None:
        digest = object_hash(ObjectKind.ROOT, root)
        db.execute("UPDATE object SET hash = ?, size = ?, codec = 0, data = ? WHERE kind = 3", (digest, len(root), root))
        db.execute("UPDATE root SET hash = ?", (digest if named is None else named,))
    previous = db.execute("SELECT hash FROM event WHERE seq = 2").get
    fields = db.execute(
        "SELECT e.seq, e.id, e.kind, e.name, ?, NULL, NULL, NULL, e.record, v.hash, r.hash, e.recorded_at"
        " FROM event e JOIN root r ON r.id = e.root JOIN object v ON v.id = e.value WHERE e.seq = 3",
        (execution,),
    ).get
    db.execute("UPDATE event SET execution = ?, hash = ? WHERE seq = 3", (execution, event_hash(previous, *fields)))
    db.close()


@pytest.mark.parametrize(
    "root",
    [msgspec.msgpack.encode([2, EMPTY_TREE.hash, 0, 0, 0, 0]), msgspec.msgpack.encode([1, EMPTY_TREE.hash, 0, -1, 0, 0]), b"\xc1"],
    ids=["another format", "less than nothing", "no MessagePack"],
)
def test_a_root_that_this_format_does_not_write_is_malformed(path: RunPath, root: bytes) -> None:
    rewrite_last(path, root=root)

    error = refusal(path)
    assert (error.code, error.details["table"], error.details["column"]) == ("malformed_record", "object", "data")


def test_a_root_that_calls_its_object_by_another_name_is_found(path: RunPath) -> None:
    rewrite_last(path, root=EMPTY_ROOT.data, named=bytes(32))

    assert refusal(path).details["rule"] == "root"


def test_in_a_large_file_an_execution_that_the_last_event_names_is_missed(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    rewrite_last(path, execution=9)
    monkeypatch.setattr("freehold.storage.recognise.FOREIGN_KEYS_WHOLE_BYTES", 0)

    assert refusal(path).details["rule"] == "execution"


@pytest.mark.parametrize(
    ("statement", "table", "column"),
    [
        ("UPDATE run SET id = ''", "run", "id"),
        ("UPDATE run SET id = '../SECRET'", "run", "id"),
        ("UPDATE run SET project = CAST(x'53454352455480' AS TEXT)", "run", "project"),
        ("UPDATE run SET project = 'a' || char(0)", "run", "project"),
        ("UPDATE run SET workflow = ''", "run", "workflow"),
        ("UPDATE run SET props = '{SECRET'", "run", "props"),
        ("UPDATE run SET props = '[\"SECRET\"]'", "run", "props"),
        ("UPDATE run SET status = 'SECRET'", "run", "status"),
        ("UPDATE run SET stop_kind = 'SECRET'", "run", "stop_kind"),
        ("UPDATE run SET stop_kind = 'host', stop_code = 'SECRET'", "run", "stop_kind"),
        ("UPDATE run SET status = 'failed'", "run", "stop_kind"),
        ("UPDATE run SET status = 'failed', stop_kind = 'host'", "run", "stop_kind"),
        ("UPDATE run SET status = 'failed', stop_kind = 'journal', stop_code = 'SECRET', stop_event = 1", "run", "stop_kind"),
        ("UPDATE run SET epoch = -1", "run", "epoch"),
        ("UPDATE run SET txn = 0", "run", "txn"),
        ("UPDATE run SET txn = 4611686018427387904", "run", "txn"),
        ("UPDATE run SET created_at = -1", "run", "created_at"),
        ("UPDATE run SET updated_at = 253402300800000", "run", "updated_at"),
        ("UPDATE event SET id = x'00' WHERE seq = 3", "event", "id"),
        ("UPDATE event SET kind = 'SECRET' WHERE seq = 3", "event", "kind"),
        ("UPDATE event SET record = 'SECRET' WHERE seq = 3", "event", "record"),
        ("UPDATE event SET record = CAST(x'22ff22' AS TEXT) WHERE seq = 3", "event", "record"),
        ("UPDATE event SET name = '' WHERE seq = 3", "event", "name"),
        ("UPDATE event SET phase = 1 WHERE seq = 3", "event", "position"),
        ("UPDATE event SET hash = x'00' WHERE seq = 2", "event", "hash"),
        ("UPDATE root SET object = NULL", "root", "object"),
        ("UPDATE object SET codec = 1 WHERE kind = 3", "object", None),
        ("UPDATE object SET size = size + 1 WHERE kind = 4", "object", None),
        ("UPDATE object SET size = 1000000000000 WHERE kind = 4", "object", "size"),
        ("UPDATE tenure SET opened_at = -1", "tenure", "opened_at"),
        ("UPDATE tenure SET first_txn = 4611686018427387905", "tenure", "first_txn"),
        ("UPDATE tenure SET host = 'a' || char(0)", "tenure", "host"),
        ("UPDATE tenure SET socket = '../SECRET'", "tenure", "socket"),
        ("UPDATE tenure SET socket = '.host-0123456789abcdef.sock' || char(0) || '/SECRET'", "tenure", "socket"),
    ],
)
def test_a_malformed_value_is_named_by_table_and_column(path: RunPath, statement: str, table: str, column: str | None) -> None:
    forge(path, OFF, statement)

    error = refusal(path)
    assert (error.code, error.details["table"], error.details.get("column")) == ("malformed_record", table, column)


INTENT = "UPDATE intent SET {} WHERE position = 'key/SECRET'"


@pytest.fixture
def steps(path: RunPath) -> RunPath:
    """Return a run whose last event is one of a step that has an intent."""
    store = own(path)
    begin(store)
    begin_step(store, "SECRET", "park")
    store.commit()
    store.close(clean=True)
    return path


def end(path: RunPath, attempt: int, *, final: bool = False) -> None:
    store = own(path)
    begin(store)
    end_step(store, "SECRET", attempt, failure=Failure("E", "SECRET").text, final=final)
    store.commit()
    store.close(clean=True)


@pytest.mark.parametrize("ended", [(), (1, False), (1, True), (2, False), (2, True)], ids=str)
def test_a_run_whose_last_event_is_one_of_a_step_is_recognised(steps: RunPath, ended: tuple[int, bool] | tuple[()]) -> None:
    if ended:
        end(steps, ended[0], final=ended[1])
    held = pin(steps, exclusive=True)
    found = recognise(held)
    held.close()

    assert found.last_seq == 4 + bool(ended)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM intent",
        INTENT.format("attempt = 2"),
        INTENT.format("position = 'key/other'"),
        INTENT.format("opened_seq = 3"),
        INTENT.format("state = 'unknown'"),
        INTENT.format("state = 'done', settled_seq = 4"),
    ],
)
def test_an_intent_that_the_last_event_does_not_tell_of_is_named(steps: RunPath, statement: str) -> None:
    forge(steps, OFF, statement)

    assert refusal(steps).details["rule"] == "intent"


@pytest.mark.parametrize(
    ("attempt", "final", "change"),
    [
        (1, False, "state = 'done'"),
        (1, True, "state = 'not_done'"),
        (1, True, "state = 'open', settled_seq = NULL"),
        (1, True, "settled_seq = 3"),
        (2, True, "state = 'open'"),
    ],
)
def test_an_intent_that_is_not_settled_as_the_last_event_says_is_named(steps: RunPath, attempt: int, final: bool, change: str) -> None:
    end(steps, attempt, final=final)
    forge(steps, OFF, INTENT.format(change))

    assert refusal(steps).details["rule"] == "intent"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("policy", "'repeat'"),
        ("policy", "'SECRET'"),
        ("idempotency_key", "''"),
        ("idempotency_key", "'SECRET' || char(10)"),
        ("idempotency_key", "printf('%.300c', 'x')"),
        ("opened_seq", "1"),
        ("opened_seq", str(2**62 + 1)),
        ("attempt", "0"),
        ("settled_seq", "0"),
        ("state", "'SECRET'"),
    ],
)
def test_an_intent_that_cannot_be_is_named_by_its_column(steps: RunPath, monkeypatch: pytest.MonkeyPatch, column: str, value: str) -> None:
    monkeypatch.setattr("freehold.storage.recognise.FOREIGN_KEYS_WHOLE_BYTES", 0)
    forge(steps, OFF, INTENT.format(f"{column} = {value}"))
    error = refusal(steps)

    assert (error.code, error.details["table"], error.details["column"]) == ("malformed_record", "intent", column)
