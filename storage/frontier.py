"""What must be true of the newest rows of a run file, whatever its size: the run row, the last event, the current root.

Structure says which columns there are; this says that what stands in them makes sense together. All is read in one
transaction with the row that is returned. No refusal names a value. The whole content is `verify`'s work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import apsw
import msgspec

from freehold.schema.errors import Damaged, Refused
from freehold.schema.hashes import NO_HASH, ObjectKind, event_hash, object_hash
from freehold.schema.ids import FILE_SUFFIX, check_run_id, is_label, is_socket_name
from freehold.schema.kinds import EventKind, Phase
from freehold.schema.lifecycle import Status
from freehold.schema.limits import (
    COUNT_MAX,
    IDEMPOTENCY_KEY_CHARS_MAX,
    NAME_CHARS_MAX,
    OBJECT_BYTES_MAX,
    PROJECT_CHARS_MAX,
    PROPS_BYTES_MAX,
    REQUEST_ID_CHARS_MAX,
    STOP_CODE_CHARS_MAX,
)
from freehold.schema.rows import RunRow
from freehold.schema.steps import DONE, INTENTS, NOT_DONE, OPEN, STATES, key_at
from freehold.schema.values import is_canonical_object
from freehold.schema.version import ROOT_FORMAT
from freehold.storage import platform
from freehold.storage.header import broken
from freehold.storage.objects import unpack
from freehold.storage.path import RunPath
from freehold.storage.platform import Inode

TIME_MS_MAX = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()) * 1000 + 999
"""The last moment that a calendar can write."""
_CURRENT = "current"

Rule = Callable[[Any], bool]


def _integer(least: int, most: int = 2**63 - 1) -> Rule:
    return lambda value: type(value) is int and least <= value <= most


def _count(least: int) -> Rule:
    return _integer(least, COUNT_MAX)


def _counter(least: int) -> Rule:
    """Return the rule for what goes on counting: half of the bound, so that a file which opens can always be written to."""
    return _integer(least, COUNT_MAX // 2)


def _text(least: int, most: int) -> Rule:
    return lambda value: type(value) is str and least <= len(value) <= most and "\x00" not in value


def _label(least: int, most: int) -> Rule:
    return lambda value: is_label(value, least, most)


def _bytes(length: int) -> Rule:
    return lambda value: type(value) is bytes and len(value) == length


def _or_null(rule: Rule) -> Rule:
    return lambda value: value is None or rule(value)


def _run_id(value: Any) -> bool:
    try:
        return check_run_id(value) == str(value)
    except Refused:
        return False


def _json(value: Any) -> bool:
    try:
        msgspec.json.decode(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError):
        return False
    return True


def _props(value: Any) -> bool:
    # As values, not only as JSON: a tag in their place is no object, one within them may be malformed, and who reads them writes them anew.
    return type(value) is str and len(value.encode()) <= PROPS_BYTES_MAX and is_canonical_object(value)


_TIME = _integer(0, TIME_MS_MAX)
_NAME = _label(1, NAME_CHARS_MAX)
_STOP_CODE = _or_null(_label(1, STOP_CODE_CHARS_MAX))
_STATUS: Rule = frozenset(Status).__contains__

RUN_RULES: dict[str, Rule] = {
    "id": _run_id,
    "project": _label(0, PROJECT_CHARS_MAX),
    "workflow": _or_null(_text(1, NAME_CHARS_MAX)),
    "definition": _or_null(lambda value: type(value) is bytes),
    "props": _props,
    "status": _STATUS,
    "stop_kind": _or_null(frozenset(("host", "journal")).__contains__),
    "stop_code": _STOP_CODE,
    "stop_event": _or_null(_integer(1)),
    "epoch": _counter(0),
    "generation": _counter(0),
    "txn": _counter(1),
    "created_at": _TIME,
    "updated_at": _TIME,
}
assert tuple(RUN_RULES) == RunRow._fields

_EVENT_RULES: dict[str, Rule] = {
    "seq": _count(1),
    "id": _bytes(16),
    "kind": frozenset(EventKind).__contains__,
    "name": _or_null(_NAME),
    "execution": _or_null(_integer(1)),
    "position": _or_null(_text(1, 2**31)),
    "phase": _or_null(_integer(0, 2)),
    "attempt": _or_null(_integer(1)),
    "record": _json,
    "value": _or_null(_integer(1)),
    "root": _integer(1),
    "recorded_at": _TIME,
    "hash": _bytes(32),
}
_ROOT_RULES: dict[str, Rule] = {"hash": _bytes(32), "object": _integer(1)}
_OBJECT_RULES: dict[str, Rule] = {
    "hash": _bytes(32),
    "kind": _integer(0, 4),
    "size": _integer(0, OBJECT_BYTES_MAX),
    "codec": _integer(0, 1),
    "data": lambda value: type(value) is bytes,
}
_REF_RULES: dict[str, Rule] = {"root": _integer(1), "moved_seq": _integer(1)}
_TENURE_RULES: dict[str, Rule] = {
    "epoch": _count(1),
    "first_txn": _count(2),
    "host": _text(1, 2**31),
    "opened_at": _TIME,
    "closed_at": _or_null(_TIME),
    "socket": _or_null(is_socket_name),
}
_EXECUTION_RULES: dict[str, Rule] = {
    "id": _count(1),
    "generation": _count(0),
    "epoch": _integer(1),
    "began_seq": _integer(2),
    "status": _STATUS,
}

_INTENT_RULES: dict[str, Rule] = {
    "opened_seq": _count(2),
    "position": lambda value: key_at(value) is not None,
    "attempt": _count(1),
    "policy": INTENTS.__contains__,
    "idempotency_key": _label(1, IDEMPOTENCY_KEY_CHARS_MAX),
    "settled_seq": _or_null(_count(2)),
    "state": frozenset(STATES).__contains__,
}

BOUNDS: dict[str, dict[str, Rule]] = {
    "event": {"seq": _count(1), "name": _or_null(_NAME), "position": _or_null(_text(1, 2**31)), "recorded_at": _TIME},
    "ref": {"name": _text(1, 2**31)},
    "tenure": _TENURE_RULES,
    "execution": {"id": _count(1), "generation": _count(0), "stop_code": _STOP_CODE},
    "intent": _INTENT_RULES,
    "request": {"id": _label(1, REQUEST_ID_CHARS_MAX), "txn": _count(2), "at": _TIME},
}
"""What must be true of every row beyond the CHECKs of its table; first its key."""


def read_run(db: apsw.Connection, path: RunPath) -> RunRow:
    """Return the one run row. Raises Damaged (malformed_record; run: there is none, or more than one)."""
    rows = _rows(db, "run", RUN_RULES, "WHERE one = 1", (), path)
    if len(rows) != 1 or db.execute("SELECT count(*) FROM run").get != 1:
        raise broken("run", "holds no run row, or more than one", path)
    run = RunRow(*rows[0])
    shape = (run.stop_kind, run.stop_code is not None, run.stop_event is not None)
    stopped = run.status not in (Status.CREATED, Status.RUNNING)
    if shape not in ((("host", True, False), ("journal", False, True)) if stopped else ((None, False, False),)):
        raise malformed("run", "stop_kind", path)
    return run


def check_identity(run: RunRow, path: RunPath, inode: Inode) -> None:
    """Make sure that the run inside is the one that the file is named after.

    On a disk that does not tell upper from lower case the same file answers to both names.
    Raises Damaged (another_run); it names neither id.
    """
    if run.id == path.id or _is_this(os.path.join(path.folder, run.id + FILE_SUFFIX), inode):
        return
    raise Damaged(f"{path.file} holds another run than its name says; it was left unchanged", code="another_run", rule="another_run")


def _is_this(file: str, inode: Inode) -> bool:
    try:
        return platform.inode_of(os.lstat(file)) == inode
    except OSError:
        return False


def check_frontier(db: apsw.Connection, run: RunRow, path: RunPath) -> int:
    """Make sure that the newest rows agree with each other; return the last event's number.

    Raises Damaged, whose detail `rule` says which agreement is broken.
    """
    seq, root = _check_last_event(db, path)
    _check_root(db, root, path)
    _check_current(db, root, seq, path)
    _check_tenure(db, run, path)
    _check_executions(db, run, seq, path)
    if run.stop_event is not None:
        _one(db, "event", {"seq": _integer(1, seq)}, "WHERE seq = ?", (run.stop_event,), "stop_event", path)
    return seq


def _check_last_event(db: apsw.Connection, path: RunPath) -> tuple[int, int]:
    rows = _rows(db, "event", _EVENT_RULES, "ORDER BY seq DESC LIMIT 2", (), path)
    if not rows:
        raise broken("journal", "holds no event", path)
    seq, event_id, kind, name, execution, position, phase, attempt, record, value, root, time_ms, right = rows[0]
    if seq != (rows[1][0] + 1 if rows[1:] else 1):
        raise broken("journal", "lacks an event before the last one", path)
    if len({position is None, phase is None, attempt is None}) > 1:
        raise malformed("event", "position", path)
    root_hash = _one(db, "root", {"hash": _bytes(32)}, "WHERE id = ?", (root,), "root", path)[0]
    value_hash = None if value is None else _object(db, value, ObjectKind.VALUE, path)[0]
    previous = rows[1][-1] if rows[1:] else NO_HASH
    found = event_hash(previous, seq, event_id, kind, name, execution, position, phase, attempt, record, value_hash, root_hash, time_ms)
    if found != right:
        raise broken("event_hash", "holds a last event that is not the one that was written", path)
    if execution is not None:
        _one(db, "execution", {"id": _integer(1)}, "WHERE id = ?", (execution,), "execution", path)
    if position is not None:
        _check_intent(db, seq, position, phase, attempt, path)
    return seq, root


def _check_intent(db: apsw.Connection, seq: int, position: str, phase: int, attempt: int, path: RunPath) -> None:
    """Make sure that the intent of the step that the last event tells of says the same of it."""
    rows = _rows(db, "intent", _INTENT_RULES, "WHERE position = ? ORDER BY attempt DESC LIMIT 1", (position,), path)
    opened, _, last, _, _, settled, state = rows[0] if rows else (None, None, None, None, None, None, None)
    if phase == Phase.INTENT:
        right = (last, opened, settled, state) == (attempt, seq, None, OPEN)
    elif last == attempt:
        right = (settled, state) == (seq, DONE if phase == Phase.OUTCOME else NOT_DONE)
    else:
        right = state != OPEN
    if not right:
        raise broken("intent", "has an intent that is not what its last event says", path)


def _check_root(db: apsw.Connection, root: int, path: RunPath) -> None:
    root_hash, row_id = _one(db, "root", _ROOT_RULES, "WHERE id = ?", (root,), "root", path)
    found, data = _object(db, row_id, ObjectKind.ROOT, path)
    if found != root_hash:
        raise broken("root", "holds a root whose object is another one's", path)
    try:
        root_format, tree, *rest = msgspec.msgpack.decode(data, type=tuple[int, bytes, int, int, int, int])
    except msgspec.MsgspecError:
        raise malformed("object", "data", path) from None
    if root_format != ROOT_FORMAT or min(rest) < 0:
        raise malformed("object", "data", path)
    kind = _one(db, "object", {"kind": _integer(0, 4)}, "WHERE hash = ?", (tree,), "root", path)[0]
    if kind != ObjectKind.TREE:
        raise broken("root", "holds a root whose tree is not one", path)


def _check_current(db: apsw.Connection, root: int, seq: int, path: RunPath) -> None:
    current, moved_seq = _one(db, "ref", _REF_RULES, "WHERE name = ?", (_CURRENT,), "ref", path)
    if current != root or moved_seq > seq:
        raise broken("ref", "has a current root that is not the last event's", path)


def _check_tenure(db: apsw.Connection, run: RunRow, path: RunPath) -> None:
    rows = _rows(db, "tenure", _TENURE_RULES, "ORDER BY epoch DESC LIMIT 1", (), path)
    epoch, first_txn = rows[0][:2] if rows else (0, 0)
    if epoch != run.epoch or first_txn > run.txn:
        raise broken("tenure", "has a last tenure that is not the run's", path)


def _check_executions(db: apsw.Connection, run: RunRow, seq: int, path: RunPath) -> None:
    rows = _rows(db, "execution", _EXECUTION_RULES, "WHERE status = ? LIMIT 2", (str(Status.RUNNING),), path)
    if len(rows) != (run.status == Status.RUNNING):
        raise broken("execution", "does not have one running execution if and only if the run is running", path)
    for _, generation, epoch, began_seq, _ in rows:
        _one(db, "tenure", {"epoch": _integer(1, run.epoch)}, "WHERE epoch = ?", (epoch,), "tenure", path)
        if began_seq > seq or generation > run.generation:
            raise broken("execution", "has a running execution from after its last event", path)


def _object(db: apsw.Connection, row_id: int, kind: ObjectKind, path: RunPath) -> tuple[bytes, bytes]:
    """Return an object's hash and plain bytes, once it is sure that they belong together."""
    right, found_kind, size, codec, data = _one(db, "object", _OBJECT_RULES, "WHERE id = ?", (row_id,), "object", path)
    plain = unpack(codec, data, size)
    if found_kind != kind or object_hash(kind, plain) != right:
        raise broken("object", "holds an object whose content is not what its hash says", path)
    return right, plain


def _one(
    db: apsw.Connection, table: str, rules: Mapping[str, Rule], where: str, bound: tuple[Any, ...], rule: str, path: RunPath
) -> tuple[Any, ...]:
    rows = _rows(db, table, rules, where, bound, path)
    if len(rows) != 1:
        raise broken(rule, f"lacks a row of {table} that another row names", path)
    return rows[0]


def _rows(
    db: apsw.Connection, table: str, rules: Mapping[str, Rule], where: str, bound: tuple[Any, ...], path: RunPath
) -> list[tuple[Any, ...]]:
    """Return the columns that *rules* names of some rows. Raises Damaged (malformed_record) at the first wrong value."""
    # Table and column names are ours, literals of this file.
    try:
        rows = db.execute(f"SELECT {', '.join(rules)} FROM {table} {where}", bound).fetchall()  # noqa: S608
    except UnicodeDecodeError:
        raise malformed(table, _undecodable(db, table, rules, where, bound), path) from None
    for row in rows:
        for (column, rule), value in zip(rules.items(), row, strict=True):
            if not rule(value):
                raise malformed(table, column, path)
    return rows


def _undecodable(db: apsw.Connection, table: str, rules: Mapping[str, Rule], where: str, bound: tuple[Any, ...]) -> str:
    """Return which column's text is not UTF-8; the driver does not say, but quotes the text."""
    for column in rules:
        try:
            db.execute(f"SELECT {column} FROM {table} {where}", bound).fetchall()  # noqa: S608
        except UnicodeDecodeError:
            return column
    return "*"


def malformed(table: str, column: str, path: RunPath) -> Damaged:
    """Return that a column of *table* holds what cannot be there. The value itself is never told."""
    return Damaged(
        f"{path.file} holds a malformed value in {table}.{column}; it was left unchanged",
        code="malformed_record",
        rule="malformed_record",
        table=table,
        column=column,
    )
