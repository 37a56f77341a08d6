"""A reader of run files that knows nothing but docs/FORMAT.md: it verifies a file, or says which rule of that page it breaks.

It works on a copy, with the SQLite of the standard library. Two things are given to it: the schema as the page prints it,
and how one zstd frame becomes plain bytes.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

KINDS = ("chunk", "tree", "file", "root", "value")
MEMBERS = {
    "created": {"run", "project", "workflow", "props"},
    "began": {"execution", "generation", "epoch", "definition"},
    "settled": {"execution", "status", "reason"},
}
PRAGMAS = {"application_id": 0x46524844, "user_version": 1, "page_size": 4096, "auto_vacuum": 2, "encoding": "UTF-8"}
STOP = ("stop_kind", "stop_code", "stop_event")


class Broken(Exception):
    """The file breaks this rule."""


def verify(file: Path, schema: str, plain: Callable[[bytes], bytes]) -> None:
    """Raise Broken unless the file keeps to every rule of the page."""
    with tempfile.TemporaryDirectory() as folder:
        for path in (file, Path(f"{file}-wal")):
            if path.exists():
                shutil.copyfile(path, Path(folder, path.name))
        copy = Path(folder, file.name)
        header = copy.read_bytes()[:100]
        _must(header[:16] == b"SQLite format 3\0" and header[18:21] == b"\2\2\0", "header")
        with closing(sqlite3.connect(copy)) as db:
            db.row_factory = sqlite3.Row
            try:
                _verify(db, schema, plain, file.name.removesuffix(".sqlite"))
            except (sqlite3.Error, ValueError, KeyError, TypeError, IndexError, struct.error) as error:
                raise Broken(f"{type(error).__name__}: {error}") from error


def _verify(db: sqlite3.Connection, schema: str, plain: Callable[[bytes], bytes], name: str) -> None:
    for pragma, value in PRAGMAS.items():
        _must(db.execute(f"PRAGMA {pragma}").fetchone()[0] == value, pragma)
    with closing(sqlite3.connect(":memory:")) as model:
        model.executescript(schema)
        _must(_structure(db) == _structure(model), "structure")
    _must([tuple(row) for row in db.execute("PRAGMA integrity_check")] == [("ok",)], "integrity")
    _must(not db.execute("PRAGMA foreign_key_check").fetchall(), "foreign keys")
    (run,) = db.execute("SELECT * FROM run").fetchall()
    _must(run["id"] == name, "another run")
    objects = _objects(db, plain)
    roots = _roots(db, objects)
    events = _events(db, objects, roots)
    created = json.loads(events[0]["record"])
    _must(created["run"] == name and created["project"] == run["project"] and created["workflow"] is None, "the first event")
    _must(created["props"] == json.loads(run["props"]), "the first event's props")
    _executions(db, events, run)
    (current,) = db.execute("SELECT root, moved_seq FROM ref WHERE name = 'current'").fetchall()
    since = max((e["seq"] for e in events if e["root"] != current["root"]), default=0) + 1
    _must(current["root"] == events[-1]["root"] and current["moved_seq"] == since, "current")
    tenures = db.execute("SELECT * FROM tenure ORDER BY epoch").fetchall()
    _must([t["epoch"] for t in tenures] == list(range(1, run["epoch"] + 1)), "tenure epochs")
    taken = [t["first_txn"] for t in tenures]
    _must(taken == sorted(set(taken)) and all(1 < txn <= run["txn"] for txn in taken), "tenure transactions")
    _must(not db.execute("SELECT 1 FROM request WHERE txn > ? OR seq > ?", (run["txn"], len(events))).fetchall(), "requests")


def _objects(db: sqlite3.Connection, plain: Callable[[bytes], bytes]) -> dict[int, tuple[sqlite3.Row, bytes]]:
    objects = {}
    for row in db.execute("SELECT * FROM object"):
        content = plain(row["data"]) if row["codec"] else row["data"]
        _must(len(content) == row["size"], "object size")
        _must(object_hash(KINDS[row["kind"]], content) == row["hash"], "object hash")
        objects[row["id"]] = (row, content)
    return objects


def _roots(db: sqlite3.Connection, objects: dict[int, tuple[sqlite3.Row, bytes]]) -> dict[int, bytes]:
    roots = {}
    trees = {row["hash"] for row, _ in objects.values() if row["kind"] == 1}
    for root in db.execute("SELECT * FROM root"):
        if root["object"] is not None:
            row, content = objects[root["object"]]
            _must(row["kind"] == 3 and row["hash"] == root["hash"], "root object")
            version, tree, entries, size, depth, profile = unpack(content)
            _must(version == 1 and profile == 0 and tree in trees, "root content")
            _must(tree != object_hash("tree", b"\x92\0\x90") or (entries, size, depth) == (0, 0, 0), "empty root")
        roots[root["id"]] = root["hash"]
    return roots


def _events(db: sqlite3.Connection, objects: dict[int, tuple[sqlite3.Row, bytes]], roots: dict[int, bytes]) -> list[sqlite3.Row]:
    events, previous = db.execute("SELECT * FROM event ORDER BY seq").fetchall(), bytes(32)
    for seq, event in enumerate(events, 1):
        _must(event["seq"] == seq and (event["kind"] == "created") == (seq == 1), "event seq")
        _must(event["id"][6] >> 4 == 7 and event["id"][8] >> 6 == 2, "event id")
        record, value = event["record"], None
        if event["value"] is not None:
            row, content = objects[event["value"]]
            _must(row["kind"] == 4 and row["size"] > 4096 and record == f'{{"$object":{row["size"]}}}', "spilled record")
            record, value = content.decode(), row["hash"]
        _must(len(event["record"].encode()) <= 4096, "record size")
        members = json.loads(record)
        _must(event["kind"] == "note" or members.keys() == MEMBERS[event["kind"]], "members of a record")
        before = [event[column] for column in ("seq", "id", "kind", "name", "execution", "position", "phase", "attempt", "record")]
        _must(event_hash(previous, [*before, value, roots[event["root"]], event["recorded_at"]]) == event["hash"], "chain")
        previous = event["hash"]
    return events


def _executions(db: sqlite3.Connection, events: list[sqlite3.Row], run: sqlite3.Row) -> None:
    executions = db.execute("SELECT * FROM execution ORDER BY id").fetchall()
    derived: dict[int, dict[str, Any]] = {}
    for event in events:
        if event["kind"] not in ("began", "settled"):
            continue
        record = json.loads(event["record"])
        _must(event["execution"] == record["execution"], "execution of an event")
        if event["kind"] == "began":
            _must(record["execution"] == len(derived) + 1 and record["epoch"] <= run["epoch"], "began")
            derived[record["execution"]] = {
                "generation": record["generation"], "epoch": record["epoch"], "definition": bytes.fromhex(record["definition"]),
                "status": "running", "began_seq": event["seq"], "ended_seq": None, **dict.fromkeys(STOP),
            }  # fmt: skip
        else:
            end = {"status": record["status"], "ended_seq": event["seq"], "stop_kind": "journal", "stop_event": record["reason"]}
            _must(record["reason"] <= event["seq"] and derived[record["execution"]]["status"] == "running", "settled")
            derived[record["execution"]].update(end)
    _must([row["id"] for row in executions] == list(derived), "executions")
    for row in executions:
        ours = derived[row["id"]]
        if row["stop_kind"] == "host":  # no event tells of it
            _must(ours["status"] == "running", "a stop of the host")
            ours.update({column: row[column] for column in ("status", "ended_seq", *STOP)})
        _must({column: row[column] for column in ours} == ours, "execution")
    last = executions[-1] if executions else {"status": "created", "generation": 0, **dict.fromkeys(STOP)}
    _must(all(run[column] == last[column] for column in ("status", *STOP)), "status")


def _structure(db: sqlite3.Connection) -> list[tuple[Any, ...]]:
    rows = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")
    return [(kind, name, table, sql and " ".join(sql.split())) for kind, name, table, sql in rows]


def object_hash(kind: str, content: bytes) -> bytes:
    """Return the identity of an object."""
    return hashlib.sha256(f"freehold/{kind}".encode() + b"\0" + content).digest()


def event_hash(previous: bytes, fields: list[Any]) -> bytes:
    """Return the place in the chain of the event with these twelve fields."""
    digest = hashlib.sha256(b"freehold/event\0\1" + previous)
    for field in fields:
        if field is None:
            digest.update(b"\xff" * 8)
            continue
        data = struct.pack(">q", field) if isinstance(field, int) else field.encode() if isinstance(field, str) else field
        digest.update(struct.pack(">Q", len(data)) + data)
    return digest.digest()


def unpack(content: bytes) -> list[Any]:
    """Return what a MessagePack array of integers, byte strings and such arrays says."""
    value, end = _unpacked(content, 0)
    _must(end == len(content) and isinstance(value, list), "MessagePack")
    return value


def _unpacked(content: bytes, at: int) -> tuple[Any, int]:
    code, at = content[at], at + 1
    if code < 0x80:
        return code, at
    if code >> 4 == 9:
        items = []
        for _ in range(code & 15):
            item, at = _unpacked(content, at)
            items.append(item)
        return items, at
    if code == 0xC4:
        size = content[at]
        return content[at + 1 : at + 1 + size], at + 1 + size
    width = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}[code]
    return int.from_bytes(content[at : at + width], "big"), at + width


def _must(held: bool, rule: str) -> None:
    if not held:
        raise Broken(rule)
