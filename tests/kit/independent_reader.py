"""A reader of run files written from docs/FORMAT.md alone: it verifies a file on a copy, with the SQLite of the standard library.

Given to it are the schema as that page prints it, and what makes plain bytes of one zstd frame or raises ValueError.
"""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from independent_files import read_root
from independent_hashes import event_hash, object_hash
from independent_steps import Steps
from independent_values import is_canonical, is_properties, read, write

Zstd = Callable[[bytes], bytes]
KINDS = ("chunk", "tree", "file", "root", "value")
MEMBERS = {"created": "run project workflow props", "began": "execution generation epoch definition", "settled": "execution status reason"}
SETTINGS = {"application_id": 0x46524844, "user_version": 1, "page_size": 4096, "auto_vacuum": 2, "encoding": "UTF-8"}
STRUCTURE = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"
COUNT, TIME = 2**62, 253402300799999
BOUNDS = {  # what every row keeps to beside the CHECKs
    "run": f"NOT label(project, 0, 256) OR NOT label(coalesce(workflow, 'w'), 1, 256) OR NOT label(coalesce(stop_code, 'c'), 1, 64)"
    f" OR max(epoch, generation, txn) > {COUNT // 2} OR max(created_at, updated_at) > {TIME}",
    "event": f"seq > {COUNT} OR NOT label(coalesce(name, 'n'), 1, 256) OR NOT plain(coalesce(position, 'p')) OR recorded_at > {TIME}",
    "ref": "NOT plain(name)",
    "tenure": f"max(epoch, first_txn) > {COUNT} OR NOT plain(host) OR max(opened_at, coalesce(closed_at, 0)) > {TIME}"
    " OR (socket IS NOT NULL AND NOT plain(socket))",
    "execution": f"max(id, generation) > {COUNT} OR NOT label(coalesce(stop_code, 'c'), 1, 64)",
    "intent": f"substr(position, 1, 4) <> 'key/' OR NOT label(substr(position, 5), 1, 128) OR NOT label(idempotency_key, 1, 255)"
    f" OR max(attempt, opened_seq, coalesce(settled_seq, 0)) > {COUNT}",
    "request": f"NOT label(id, 1, 128) OR txn > {COUNT} OR at > {TIME}",
}
NONE = {  # what no row may be
    "foreign_keys": "SELECT * FROM pragma_foreign_key_check",
    "run": "SELECT 1 WHERE (SELECT count(*) FROM run) <> 1",
    "root": "SELECT 1 FROM root r JOIN object o ON o.id = r.object WHERE o.kind <> 3 OR o.hash <> r.hash",
    "value": "SELECT 1 FROM event e JOIN object o ON o.id = e.value"
    " WHERE o.kind <> 4 OR o.size <= 4096 OR e.record <> '{\"$object\":' || o.size || '}'",
    "record": "SELECT 1 FROM event WHERE length(CAST(record AS BLOB)) > 4096",
    "status": "SELECT 1 FROM run r LEFT JOIN execution e ON e.id = (SELECT max(id) FROM execution) WHERE r.status IS NOT"
    " coalesce(e.status, 'created') OR (r.stop_kind, r.stop_code, r.stop_event) IS NOT (e.stop_kind, e.stop_code, e.stop_event)",
    "current": "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM ref f WHERE name = 'current' AND root = (SELECT root FROM event ORDER BY seq DESC"
    " LIMIT 1) AND moved_seq = 1 + coalesce((SELECT max(seq) FROM event WHERE root <> f.root), 0))",
    "tenure": "SELECT 1 FROM run WHERE (SELECT count(*) FROM tenure) <> epoch OR epoch <> (SELECT coalesce(max(epoch), 0) FROM tenure)"
    " OR txn < (SELECT max(first_txn) FROM tenure)"
    " UNION ALL SELECT 1 FROM tenure o JOIN tenure n ON n.epoch = o.epoch + 1 WHERE n.first_txn <= o.first_txn",
    "generation": "SELECT 1 FROM run WHERE generation < (SELECT max(generation) FROM execution)",
    "request": "SELECT 1 FROM run, request WHERE request.txn > run.txn",
}


class Broken(Exception):
    """The file breaks this rule."""


def verify(file: Path, schema: str, zstd: Zstd) -> None:
    """Raise Broken unless the file keeps to every rule of the page, BlockingIOError if somebody owns it."""
    with TemporaryDirectory() as folder:
        with file.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
            for path in filter(Path.exists, (file, Path(f"{file}-wal"))):
                shutil.copyfile(path, Path(folder, path.name))
        copy = Path(folder, file.name)
        _must(copy.read_bytes()[:16] == b"SQLite format 3\0", "not_a_run")
        _must(copy.stat().st_size % 4096 == 0 or Path(f"{copy}-wal").exists(), "truncated")
        _must(copy.read_bytes()[18:21] == b"\2\2\0", "format")
        with closing(sqlite3.connect(copy)) as db:
            db.row_factory = sqlite3.Row
            try:
                _verify(db, schema, zstd, file.name.removesuffix(".sqlite"))
            except (sqlite3.Error, ValueError, KeyError, TypeError, IndexError, ArithmeticError, RecursionError) as error:
                raise Broken(type(error).__name__) from error


def _verify(db: sqlite3.Connection, schema: str, zstd: Zstd, name: str) -> None:
    for setting, value in SETTINGS.items():
        _must(db.execute(f"PRAGMA {setting}").fetchone()[0] == value, setting)
    with closing(sqlite3.connect(":memory:")) as model:
        model.executescript(schema)
        _must([tuple(row) for row in db.execute(STRUCTURE)] == model.execute(STRUCTURE).fetchall(), "structure")
    _must(db.execute("PRAGMA integrity_check").fetchone()[0] == "ok", "integrity")
    plain = {row["id"]: _object(row, zstd) for row in db.execute("SELECT * FROM object")}
    for index, table, rows in re.findall(r"INDEX (\w+) ON (\w+) .* WHERE (.*);", schema):
        counts = (f"SELECT count(*) FROM {table} {how} WHERE {rows}" for how in (f"INDEXED BY {index}", "NOT INDEXED"))
        _must(len({db.execute(count).fetchone()[0] for count in counts}) == 1, "integrity")
    db.create_function("label", 3, lambda text, least, most: least <= len(text) <= most and not re.search(r"[\x00-\x1f\x7f]", text))
    db.create_function("plain", 1, lambda text: len(text) > 0 and "\0" not in text)
    for table, wrong in BOUNDS.items():
        _must(not db.execute(f"SELECT 1 FROM {table} WHERE {wrong}").fetchall(), "malformed_record")
    for rule, sql in NONE.items():
        _must(not db.execute(sql).fetchall(), rule)
    by_hash = {(KINDS[row["kind"]], row["hash"]): plain[row["id"]] for row in db.execute("SELECT id, kind, hash FROM object")}
    for row in db.execute("SELECT object FROM root WHERE object IS NOT NULL"):
        try:
            read_root(plain[row[0]], lambda kind, hash_: by_hash[kind, hash_])
        except KeyError:
            raise Broken("tree") from None
    (run,) = db.execute("SELECT * FROM run").fetchall()
    _must(run["id"] == name, "another_run")
    _must(is_properties(run["props"]), "malformed_record")
    executions, steps = _journal(db, run, plain)
    _must([dict(row) for row in db.execute("SELECT * FROM intent ORDER BY opened_seq")] == steps.intents, "intent")
    rows = db.execute("SELECT * FROM execution ORDER BY id").fetchall()
    _must([row["id"] for row in rows] == list(range(1, len(executions) + 1)), "execution")
    before = db.execute("SELECT max(seq) + 1 FROM event").fetchone()[0]
    for row, told in zip(reversed(rows), reversed(executions), strict=True):
        if row["stop_kind"] == "host":  # no event tells of it
            _must(told["status"] == "running" and row["began_seq"] <= row["ended_seq"] < before, "execution")
            told.update({column: row[column] for column in ("status", "ended_seq", "stop_kind", "stop_event")})
        _must(all(row[column] == value for column, value in told.items()), "execution")
        _must(row["status"] != "running" or row["id"] == len(rows), "execution")
        before = row["began_seq"]


def _object(row: sqlite3.Row, zstd: Zstd) -> bytes:
    content = bytes(zstd(row["data"]) if row["codec"] else row["data"])
    _must(len(content) == row["size"] and object_hash(KINDS[row["kind"]], content) == row["hash"], "object_hash")
    return content


def _journal(db: sqlite3.Connection, run: sqlite3.Row, plain: dict[int, bytes]) -> tuple[list[dict[str, Any]], Steps]:
    executions: list[dict[str, Any]] = []
    steps = Steps()
    previous, root = bytes(32), b""
    sql = "SELECT e.*, v.hash, r.hash FROM event e JOIN root r ON r.id = e.root LEFT JOIN object v ON v.id = e.value ORDER BY e.seq"
    for number, event in enumerate(db.execute(sql), 1):
        seq, event_id, kind, *rest, stored, value, _root, at, chained, value_hash, root_hash = event
        fields = [seq, event_id, kind, *rest, stored, value_hash, root_hash, at]
        _must(seq == number and event_hash(previous, fields) == chained, "chain")
        _must(event_id[6] >> 4 == 7 and event_id[8] >> 6 == 2, "event_id")
        previous, text = chained, stored if value is None else plain[value].decode()
        if kind == "note":
            _must(is_canonical(text), "record")
            root = root_hash
            continue
        moves, root = root_hash != root, root_hash
        if kind == "step":
            _must(not moves, "journal")
            try:
                steps.take(seq, rest, text)
            except (ValueError, KeyError, TypeError):
                raise Broken("journal") from None
            continue
        record = json.loads(text)
        if kind == "publish":
            _must(write(read(text)) == text and _published(record, moves), "journal")
            continue
        _must(not moves or kind == "created", "journal")
        _must(list(record) == MEMBERS[kind].split() and write(read(text)) == text, "journal")
        if kind == "created":
            said = ",".join(f'"{column}":{json.dumps(run[column], ensure_ascii=False)}' for column in ("project", "workflow"))
            _must(text == f'{{"run":"{run["id"]}",{said},"props":{run["props"]}}}' and at == run["created_at"], "run")
            continue
        # To Python 1 is equal to true and to 1.0.
        _must(all(type(record[name]) is int for name in record if name not in ("definition", "status")), "journal")
        last = executions[-1] if executions else {"status": "created"}
        if kind == "began":
            executions.append({**record, "definition": bytes.fromhex(record["definition"]), "status": "running"})
            _must(executions[-1]["definition"].hex() == record["definition"], "journal")
            executions[-1] |= {"began_seq": seq, "ended_seq": None, "stop_kind": None, "stop_event": None}
            _must(last["status"] not in ("completed", "cancelled"), "journal")
        else:
            _must(last["status"] == "running" and 0 < record["reason"] <= seq, "journal")
            last |= {"status": record["status"], "ended_seq": seq, "stop_kind": "journal", "stop_event": record["reason"]}
        _must(event["execution"] == record["execution"] == len(executions), "journal")
        executions[-1].pop("execution", None)
    return executions, steps


def _published(record: dict[str, Any], moves: bool) -> bool:
    if list(record) == ["failed", "errno", "path"]:
        return isinstance(record["failed"], str) and all(isinstance(record[name], str | None) for name in ("errno", "path")) and not moves
    if list(record) not in (["changes"], ["changes", "skipped", "more"]):
        return False
    skipped, counts = record.get("skipped", []), (record["changes"], record.get("more", 0))
    listed = isinstance(skipped, list) and all(isinstance(pair, list) and list(map(type, pair))[1:] == [str] for pair in skipped)
    listed = listed and all(isinstance(pair[0], str | None) for pair in skipped)
    return listed and all(type(count) is int and 0 <= count <= COUNT for count in counts) and (counts[0] > 0) == moves


def _must(held: bool, rule: str) -> None:
    if not held:
        raise Broken(rule)
