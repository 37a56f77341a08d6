"""A reader written from docs/FORMAT.md alone accepts what the library writes, and refuses what the library's own check refuses.

Every hash that a damage would give away is computed anew, so that only the rule under test is broken.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
import zstandard
from crafted import beneath, crafted
from folder import snapshot
from independent_files import read_root
from independent_hashes import event_hash, object_hash
from independent_reader import KINDS, Broken, verify
from mutant import rich
from runfile import forge_and_die
from ways import files_of

import freehold
from freehold.storage.path import resolve_file

PAGE = (Path(__file__).parents[2] / "docs" / "FORMAT.md").read_text(encoding="utf-8")
SCHEMA = re.findall(r"^```sql\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)[0]
CHAINED = "SELECT e.*, v.hash, r.hash FROM event e JOIN root r ON r.id = e.root LEFT JOIN object v ON v.id = e.value ORDER BY e.seq"
CURRENT_ROOT = "id = (SELECT object FROM root WHERE id = (SELECT root FROM ref))"
FIRST_NOTE = "SELECT min(seq) FROM event WHERE kind = 'note'"
FIRST_LONG = "SELECT min(value) FROM event WHERE kind = 'note'"
FIRST_BEGAN = "SELECT min(seq) FROM event WHERE kind = 'began'"
FIRST_SETTLED = "SELECT min(seq) FROM event WHERE kind = 'settled'"


def unpacked(frame: bytes) -> bytes:
    try:
        return zstandard.ZstdDecompressor().decompress(frame, allow_extra_data=False)
    except zstandard.ZstdError:
        raise ValueError from None


def theirs(file: Path) -> str:
    """Return which rule the file breaks to the independent reader, or that it is whole."""
    try:
        verify(file, SCHEMA, unpacked)
    except Broken as broken:
        return str(broken)
    return "whole"


def ours(file: Path) -> str:
    """Return the same as the library says it."""
    try:
        freehold.view(file).verify()
    except freehold.Error as error:
        return str(error.details["rule"]) if error.code == "damaged" else error.code
    return "whole"


VALUES: tuple[Any, ...] = (
    *(None, 2**80, -0.0, 1e16, 1.5e-7, 0.00001, 5e-324, "\x00\x7f\u2028😀", {"$z": 1}, (1, UUID(int=5)), frozenset({b"x"})),
    {"$bytes": b"\x00\xff", "at": datetime(2026, 1, 2, tzinfo=UTC), "took": timedelta(-1, 5), "price": Decimal("1.50")},
)


class Damage(NamedTuple):
    """What is done to a healthy run, the rule (or code) that the library says is broken, and the reader's where it is another."""

    sql: str
    ours: str
    theirs: str = ""
    rehash: bool = False


def damage(file: Path, sql: str, *, rehash: bool) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.create_function("object_hash", 2, object_hash)
        db.executescript("PRAGMA ignore_check_constraints = 1; PRAGMA foreign_keys = 0")
        db.executescript(sql)
        if rehash:
            rechain(db)


def rechain(db: sqlite3.Connection) -> None:
    """Let every event follow from the one before it again."""
    previous = bytes(32)
    for *fields, _value, _root, at, _old, value_hash, root_hash in db.execute(CHAINED).fetchall():
        previous = event_hash(previous, [*fields, value_hash, root_hash, at])
        db.execute("UPDATE event SET hash = ? WHERE seq = ?", (previous, fields[0]))


def note(record: str) -> str:
    return f"UPDATE event SET record = '{record}' WHERE seq = ({FIRST_NOTE})"


def structure(old: str, new: str) -> str:
    return f"PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = replace(sql, '{old}', '{new}')"


def record(seq: str, old: str, new: str) -> str:
    return f"UPDATE event SET record = replace(record, '{old}', '{new}') WHERE seq = ({seq})"


def props(text: str) -> str:
    """Give the run other properties, in its row and in its first event."""
    first = f"substr(record, 1, instr(record, '\"props\":') + 7) || '{text}}}'"
    return f"UPDATE event SET record = {first} WHERE seq = 1; UPDATE run SET props = '{text}'"


def project(text: str) -> str:
    """Give the run another project, a JSON string, in its row and in its first event."""
    old = "'\"project\":\"' || (SELECT project FROM run) || '\"'"
    return (
        f"UPDATE event SET record = replace(record, {old}, '\"project\":{text}') WHERE seq = 1;"
        f" UPDATE run SET project = json_extract('[{text}]', '$[0]')"
    )


def digest(text: str, digits: str) -> str:
    """Give the first execution a digest that is written as *text* and is *digits*."""
    new = f'"definition":"{text}"'
    return (
        f"UPDATE event SET record = replace(record, '\"definition\":\"\"', '{new}') WHERE seq = ({FIRST_BEGAN});"
        f" UPDATE execution SET definition = x'{digits}' WHERE began_seq = ({FIRST_BEGAN})"
    )


TOO_MUCH = 2**62 + 1
NOT_OURS = {  # what stands in records of ours in other words than theirs
    "an execution that is true": record(FIRST_BEGAN, '"execution":1', '"execution":true'),
    "an execution with a fraction": record(FIRST_BEGAN, '"execution":1', '"execution":1.0'),
    "an epoch that is true": record(FIRST_BEGAN, '"epoch":1', '"epoch":true'),
    "an epoch with a fraction": record(FIRST_BEGAN, '"epoch":1', '"epoch":1.0'),
    "a generation that is false": record(FIRST_BEGAN, '"generation":0', '"generation":false'),
    "a generation of minus zero": record(FIRST_BEGAN, '"generation":0', '"generation":-0.0'),
    "a digest in capitals": digest("AB", "ab"),
    "a digest with a space": digest("ab cd", "abcd"),
    "a digest of spaces": digest(" ", ""),
    "a reason that is true": f"UPDATE event SET record = substr(record, 1, instr(record, '\"reason\":') + 8) || 'true}}' WHERE seq ="
    f" ({FIRST_SETTLED}); UPDATE execution SET stop_event = 1 WHERE ended_seq = ({FIRST_SETTLED})",
    "a settled execution with a fraction": f"UPDATE event SET record = replace(record, '\"execution\":' || execution,"
    f" '\"execution\":' || execution || '.0') WHERE seq = ({FIRST_SETTLED})",
}
NO_PROPERTIES = {
    "101 levels": '{"a":' + "[" * 100 + "]" * 100 + "}",
    "out of order": '{"b":1,"a":2}',
    "out of order within": '{"a":{"c":1,"b":2}}',
    "out of order in a tuple": '{"a":{"$tuple":[{"c":1,"b":2}]}}',
    "an integer without its tag": '{"a":9223372036854775808}',
    "an integer that is none": '{"$int":"0x8000000000000000"}',
    "bytes": '{"$bytes":"AA=="}',
    "a tuple": '{"$tuple":[1]}',
    "a double in another spelling": '{"a":1.00}',
}
PROPERTIES = {
    "100 levels": '{"a":' + "[" * 99 + "]" * 99 + "}",
    "100 levels, tagged": '{"a":' + '{"$tuple":[' * 99 + "]}" * 99 + "}",
    "a name with a dollar": '{"$$bytes":"AA=="}',
    "a zero byte, escaped": '{"\\u0000":"\\u0000"}',
    "an offset of a microsecond": '{"a":{"$datetime":"2026-01-01T00:00:00.000000+00:00:00.000001"}}',
    "nothing": "{}",
}
BOUNDS = {
    "a project of 300 characters": project(f'"{"p" * 300}"'),
    "a project with a control character": project('"p\\n"'),
    "a time of change after the last year": f"UPDATE run SET updated_at = {2**63 - 1}",
    "a transaction after which no other can be counted": f"UPDATE run SET txn = {2**63 - 2}",
    "a transaction beyond every count": f"UPDATE run SET txn = {TOO_MUCH}",
    "an epoch beyond every count": f"UPDATE run SET epoch = {TOO_MUCH}",
    "a generation beyond every count": f"UPDATE run SET generation = {TOO_MUCH}",
    "an old event of a long name": f"UPDATE event SET name = '{'n' * 257}' WHERE seq = ({FIRST_NOTE})",
    "an old event whose name has a control character": f"UPDATE event SET name = 'n' || char(127) WHERE seq = ({FIRST_NOTE})",
    "an old event after the last year": f"UPDATE event SET recorded_at = 253402300800000 WHERE seq = ({FIRST_NOTE})",
    "a request whose id has a control character": "UPDATE request SET id = 'r' || char(10) WHERE id = (SELECT min(id) FROM request)",
    "a request after the last year": "UPDATE request SET at = 253402300800000",
    "an old owner after the last year": "UPDATE tenure SET opened_at = 253402300800000 WHERE epoch = 1",
    "a socket with more behind a zero byte": "UPDATE tenure SET socket = '.host-0123456789abcdef.sock' || char(0) || '/x'",
    "a pin with a zero byte": "INSERT INTO ref SELECT 'p' || char(0), root, moved_seq FROM ref",
    "a stop of a long reason": f"UPDATE execution SET stop_code = '{'c' * 65}' WHERE stop_kind = 'host'",
}
STEP = "UPDATE event SET {} WHERE kind = 'step' AND seq = (SELECT min(seq) FROM event WHERE kind = 'step' AND {})"
NO_STEPS = {
    "of another name": STEP.format("name = 'x'", "phase = 2"),
    "of another position": STEP.format("position = 'key/x'", "phase = 2"),
    "in an execution": STEP.format("position = '1', execution = 1", "phase = 2"),
    "of a later attempt": STEP.format("attempt = 9", "phase = 1"),
    "with a root of its own": STEP.format("root = 1", "phase = 2"),
    "that failed with a result": STEP.format('record = \'{"input":null,"result":1}\'', "phase = 1"),
    "of an input that is none": STEP.format(
        """record = '{"input":"x","failure":' || substr(record, instr(record, '"failure":') + 10)""", "phase = 1"
    ),
    "in another text": STEP.format("record = replace(record, '\"result\":', '\"result\": ')", "phase = 2"),
    "of another policy": STEP.format("record = replace(record, 'park', 'repeat')", "phase = 0"),
    "with a member more": STEP.format('record = replace(record, \'"policy":\', \'"x":1,"policy":\')', "phase = 0"),
    "whose failure has a member less": STEP.format("record = replace(record, '\"notes\":[],', '')", "phase = 1"),
    "whose failure has a cause that is none": STEP.format("record = replace(record, '\"cause\":null', '\"cause\":1')", "phase = 1"),
    "whose failure is of no type": STEP.format("record = replace(record, '\"ValueError\"', 'null')", "phase = 1"),
}
NO_INTENTS = {
    "of another policy": "policy = 'probe'",
    "of another key": "idempotency_key = 'x'",
    "of another attempt": "attempt = 2",
    "of another position": "position = 'key/x'",
    "that others went on without": "state = 'unknown'",
    "that is settled": "state = 'done', settled_seq = opened_seq + 1",
    "opened elsewhere": "opened_seq = opened_seq + 1",
}


DAMAGES = {
    **{name: Damage(sql, "journal", rehash=True) for name, sql in NOT_OURS.items()},
    **{f"properties: {name}": Damage(props(text), "malformed_record", rehash=True) for name, text in NO_PROPERTIES.items()},
    **{name: Damage(sql, "malformed_record", rehash=True) for name, sql in BOUNDS.items()},
    "a set with two that are no numbers": Damage(note('{"$set":[{"$float":"NaN"},{"$float":"NaN"}]}'), "record", rehash=True),
    "a value of 101 levels": Damage(note("[" * 101 + "]" * 101), "record", rehash=True),
    **{f"a step: {name}": Damage(sql, "journal", rehash=True) for name, sql in NO_STEPS.items()},
    **{
        f"an intent: {name}": Damage(f"UPDATE intent SET {change} WHERE position = 'key/left 1'", "intent")
        for name, change in NO_INTENTS.items()
    },
    "an intent less": Damage("DELETE FROM intent WHERE position = 'key/left 1'", "intent"),
    "an intent of a key with a control character": Damage(
        "UPDATE intent SET idempotency_key = 'k' || char(10) WHERE position = 'key/left 1'", "malformed_record"
    ),
    "another application": Damage("PRAGMA application_id = 7", "not_a_run", "application_id"),
    "another version": Damage("PRAGMA user_version = 2", "newer_version", "user_version"),
    "an index more": Damage("CREATE INDEX extra ON event (name)", "structure"),
    "a CHECK less": Damage(structure("txn > 0", "txn > -9"), "structure"),
    "an index less": Damage("DROP INDEX ref_root", "incomplete_version", "structure"),
    "a key to nowhere": Damage("UPDATE event SET root = 99 WHERE seq = 3", "foreign_keys"),
    "a row that its CHECK forbids": Damage("UPDATE tenure SET pid_ns = -1 WHERE epoch = 1", "check", "integrity"),
    "two run rows": Damage(
        "INSERT INTO run SELECT 2, 'b', '', NULL, NULL, '{}', 'created', NULL, NULL, NULL, 0, 0, 1, 0, 0 FROM run", "run", "integrity"
    ),
    "an object's content": Damage(f"UPDATE object SET codec = 0, data = zeroblob(size) WHERE id = ({FIRST_LONG})", "object_hash"),
    "an object's size": Damage(f"UPDATE object SET size = size + 1, codec = 1 WHERE id = ({FIRST_LONG})", "object_hash"),
    "a frame that cannot be unpacked": Damage(
        f"UPDATE object SET codec = 1, data = zeroblob(20) WHERE id = ({FIRST_LONG})", "object_hash", "ValueError"
    ),
    "a frame with a byte behind it": Damage(
        "UPDATE object SET data = CAST(data || x'00' AS BLOB) WHERE codec = 1", "object_hash", "ValueError"
    ),
    "two frames": Damage("UPDATE object SET data = CAST(data || data AS BLOB) WHERE codec = 1", "object_hash", "ValueError"),
    "an object and its hash": Damage(
        f"UPDATE object SET codec = 0, data = zeroblob(size) WHERE id = ({FIRST_LONG});"
        f" UPDATE object SET hash = object_hash('value', data) WHERE id = ({FIRST_LONG})",
        "chain",
    ),
    "an event's record": Damage(note("7"), "chain"),
    "an event's time": Damage("UPDATE event SET recorded_at = recorded_at + 1 WHERE seq = 3", "chain"),
    "an event less": Damage(
        f"DELETE FROM request WHERE seq = ({FIRST_NOTE}); DELETE FROM event WHERE seq = ({FIRST_NOTE})", "chain", rehash=True
    ),
    "an id that is no UUIDv7": Damage("UPDATE event SET id = zeroblob(16) WHERE seq = 2", "event_id", rehash=True),
    "a record with a space": Damage(note("[1, 2]"), "record", rehash=True),
    "a record with a name twice": Damage(note('{"a":1,"a":1}'), "record", rehash=True),
    "a double in another spelling": Damage(note("1.50"), "record", rehash=True),
    "a tag that there is not": Damage(note('{"$complex":1}'), "record", "KeyError", rehash=True),
    "a set out of order": Damage(note('{"$set":[2,1]}'), "record", rehash=True),
    "a spilled record that is not there": Damage(note('{"$object":5000}'), "malformed_record", "KeyError", rehash=True),
    "a long record in its row": Damage(note(f'"{"x" * 4095}"'), "value", "record", rehash=True),
    "a short record as an object": Damage(
        f"UPDATE object SET codec = 0, size = 4, data = CAST('null' AS BLOB) WHERE id = ({FIRST_LONG});"
        f" UPDATE object SET hash = object_hash('value', data) WHERE id = ({FIRST_LONG});"
        f" UPDATE event SET record = '{{\"$object\":4}}' WHERE value = ({FIRST_LONG})",
        "value",
        rehash=True,
    ),
    "a record that tells another size": Damage(
        f"UPDATE event SET record = '{{\"$object\":9999}}' WHERE value = ({FIRST_LONG})", "value", rehash=True
    ),
    "a root in a longer form": Damage(
        "UPDATE object SET size = size + 1, codec = 0, data = CAST(substr(data, 1, 36) || x'CC' || substr(data, 37) AS BLOB)"
        f" WHERE {CURRENT_ROOT}; UPDATE object SET hash = object_hash('root', data) WHERE {CURRENT_ROOT};"
        " UPDATE root SET hash = (SELECT hash FROM object WHERE id = root.object) WHERE id = (SELECT root FROM ref)",
        "root",
        "ValueError",
        rehash=True,
    ),
    "a tree less": Damage("DELETE FROM object WHERE kind = 1", "root", theirs="tree"),
    "members in another order": Damage(
        f"""UPDATE event SET record = '{{"generation":0,"execution":1,"epoch":1,"definition":""}}' WHERE seq = ({FIRST_BEGAN})""",
        "journal",
        rehash=True,
    ),
    "a record of ours with a space": Damage(
        f"UPDATE event SET record = replace(record, ',', ', ') WHERE seq = ({FIRST_SETTLED})", "journal", rehash=True
    ),
    "an execution that begins twice": Damage(
        "UPDATE event SET record = replace(record, '\"execution\":2', '\"execution\":1'), execution = 1"
        " WHERE kind = 'began' AND execution = 2",
        "journal",
        rehash=True,
    ),
    "a life after the end": Damage(
        f"UPDATE event SET record = replace(record, 'interrupted', 'completed') WHERE seq = ({FIRST_SETTLED});"
        " UPDATE execution SET status = 'completed' WHERE began_seq = (SELECT max(began_seq) FROM execution"
        f" WHERE began_seq < ({FIRST_SETTLED}))",
        "journal",
        rehash=True,
    ),
    "a reason that has not come yet": Damage(
        f"""UPDATE event SET record = replace(record, '"reason":', '"reason":9') WHERE seq = ({FIRST_SETTLED})""", "journal", rehash=True
    ),
    "a settled event that says otherwise": Damage(
        f"UPDATE event SET record = replace(record, 'interrupted', 'suspended') WHERE seq = ({FIRST_SETTLED})", "execution", rehash=True
    ),
    "an execution that says otherwise": Damage(
        "UPDATE execution SET generation = 7 WHERE id = 1; UPDATE run SET generation = 8", "execution"
    ),
    "a host's stop before its begin": Damage(
        "UPDATE execution SET began_seq = 1000 WHERE id = 1; UPDATE execution SET ended_seq = 1001 WHERE id = 1", "execution"
    ),
    "an execution of a generation to come": Damage(
        """UPDATE event SET record = replace(record, '"generation":0', '"generation":5') WHERE kind = 'began' AND execution = 1;"""
        " UPDATE execution SET generation = 5 WHERE id = 1",
        "generation",
        rehash=True,
    ),
    "a run that stands elsewhere": Damage("UPDATE run SET status = 'completed'", "status"),
    "a run of another project": Damage("UPDATE run SET project = 'another'", "run"),
    "properties that Python takes for equal": Damage("UPDATE run SET props = replace(props, '[1,2.5]', '[1.0,2.5]')", "run"),
    "properties in another spelling": Damage("UPDATE run SET props = replace(props, ':', ': ')", "malformed_record"),
    "another time of creation": Damage("UPDATE run SET created_at = created_at + 1", "run"),
    "a current root that came later": Damage("UPDATE ref SET moved_seq = 2", "current"),
    "no current root": Damage("UPDATE ref SET name = 'pin'", "ref", "current"),
    "an owner less": Damage("UPDATE execution SET epoch = 1; DELETE FROM tenure WHERE epoch = 2", "execution", "tenure"),
    "owners out of order": Damage("UPDATE tenure SET first_txn = (SELECT txn FROM run) WHERE epoch = 2", "tenure"),
    "a transaction number that went back": Damage("UPDATE run SET txn = 2", "tenure"),
    "a request of a transaction to come": Damage("UPDATE request SET txn = 1000000", "request"),
}


LEGAL = {
    **{f"properties: {name}": props(text) for name, text in PROPERTIES.items()},
    "a value of 100 levels": note("[" * 100 + "]" * 100),
    "an offset of a microsecond": note('{"$time":"03:04:05.000000-00:00:00.000001"}'),
    "a set with one that is no number": note('{"$set":[1,{"$float":"NaN"}]}'),
    "a digest": digest("abcd", "abcd"),
    "the last moment": "UPDATE run SET updated_at = 253402300799999",
    "the highest count": f"UPDATE run SET txn = {2**61}, generation = {2**61}",
    "a long project": project(f'"{"é" * 256}"'),
}


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    """Return a copy of the rich run that was closed cleanly."""
    return rich().closed.copy().write(tmp_path)


def test_a_file_that_was_closed_is_accepted(run_file: Path) -> None:
    assert (theirs(run_file), ours(run_file)) == ("whole", "whole")


def test_a_file_whose_owner_died_is_accepted_with_its_wal_and_not_touched(tmp_path: Path) -> None:
    file = rich().dead.copy().write(tmp_path)
    assert (tmp_path / "a.sqlite-wal").stat().st_size > 0
    before = snapshot(tmp_path)

    assert (theirs(file), ours(file)) == ("whole", "whole")
    assert snapshot(tmp_path) == before


def test_a_new_run_and_every_kind_of_value_are_accepted(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as host:
        host.create("new", props={"$x": 1, "b": {"$y": float("nan")}, "a": {3, "x"}}, project="Grüße").close()
        with host.create("a.b_c-1") as run:
            for value in VALUES:
                run.append("value", value)
            run.append("4096 bytes stand in the row", "x" * 4094)
            run.append("one more does not", "x" * 4095)

    for name in ("new", "a.b_c-1"):
        file = tmp_path / f"{name}.sqlite"
        assert (theirs(file), ours(file)) == ("whole", "whole")


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        (["d" * 255] * 15 + ["e" * 127, "f" * 128], "whole"),
        (["d" * 255] * 15 + ["e" * 127, "f" * 129], "tree"),
        (["d" * 255] * 15 + ["é" * 64, "f" * 128], "tree"),
        (["d" * 255] * 200, "tree"),
        (["d"] * 256, "whole"),
    ],
    ids=["4096 bytes", "4097 bytes", "4097 bytes in fewer signs", "51,199 bytes", "256 names"],
)
def test_a_path_is_no_longer_than_a_path_may_be_to_both(tmp_path: Path, names: list[str], rule: str) -> None:
    file = crafted(tmp_path, lambda put: beneath(names, put))

    assert (theirs(file), ours(file)) == ("ValueError" if rule == "tree" else rule, rule)


def test_a_run_that_somebody_owns_is_not_read(run_file: Path) -> None:
    with run_file.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)

        with pytest.raises(BlockingIOError):
            theirs(run_file)


def test_another_runs_file_is_refused_by_both(run_file: Path) -> None:
    copied = run_file.with_name("b.sqlite")
    shutil.copy(run_file, copied)

    assert (theirs(copied), ours(copied)) == ("another_run", "another_run")


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damage_is_refused_by_both(run_file: Path, name: str) -> None:
    done = DAMAGES[name]
    before = run_file.read_bytes()
    damage(run_file, done.sql, rehash=done.rehash)
    assert run_file.read_bytes() != before

    assert theirs(run_file) == (done.theirs or done.ours)
    assert ours(run_file) == done.ours


@pytest.mark.parametrize("name", LEGAL)
def test_what_is_legal_is_accepted_by_both(run_file: Path, name: str) -> None:
    before = run_file.read_bytes()
    damage(run_file, LEGAL[name], rehash=True)
    assert run_file.read_bytes() != before

    assert (theirs(run_file), ours(run_file)) == ("whole", "whole")


def test_a_file_longer_than_its_pages_is_refused_by_both(run_file: Path) -> None:
    with run_file.open("ab") as file:
        file.write(b"more")

    assert (theirs(run_file), ours(run_file)) == ("truncated", "truncated")


@pytest.mark.parametrize("other", ["ref_root", "sqlite_autoindex_tenure_1"])
@pytest.mark.parametrize("index", ["event_outcome", "event_attempt"])
def test_an_index_that_holds_another_ones_entries_is_refused_by_both(run_file: Path, index: str, other: str) -> None:
    with closing(sqlite3.connect(run_file)) as db:
        pages = dict(db.execute("SELECT name, rootpage FROM sqlite_schema").fetchall())
    content = bytearray(run_file.read_bytes())
    to, since = (pages[index] - 1) * 4096, (pages[other] - 1) * 4096
    content[to : to + 4096] = content[since : since + 4096]
    run_file.write_bytes(content)

    assert (theirs(run_file), ours(run_file)) == ("integrity", "pages")


def test_computing_every_hash_anew_is_no_damage_by_itself(run_file: Path) -> None:
    before = run_file.read_bytes()

    damage(run_file, "UPDATE run SET updated_at = updated_at + 1", rehash=True)

    assert run_file.read_bytes() != before
    assert (theirs(run_file), ours(run_file)) == ("whole", "whole")


def test_a_damage_that_stands_in_the_wal_alone_is_refused_by_both(run_file: Path) -> None:
    forge_and_die(resolve_file(run_file), note("7"))
    assert run_file.with_name("a.sqlite-wal").stat().st_size > 0

    assert (theirs(run_file), ours(run_file)) == ("chain", "chain")


def test_every_file_of_every_root_is_read_as_the_library_reads_it(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as host, host.create("a") as run:
        with run.publish("first") as files:
            files.mkdir("many/empty", 0o700, parents=True)
            for number in range(300):
                files.write_text(f"many/{number:03}", "x" * number)
            files.write_bytes("large", bytes(range(256)) * 300)
            files.symlink("link", "many/007")
        run.publish("second", lambda files: files.rename("many", "more"))
        roots = [run.snapshot(seq) for seq in (1, 2, 3)]
        with closing(sqlite3.connect(f"file:{run.path}?mode=ro", uri=True)) as db:
            rows = db.execute("SELECT kind, hash, size, codec, data FROM object").fetchall()
        plain = {(KINDS[kind], hash_): unpacked(data) if codec else data for kind, hash_, _, codec, data in rows}
        for root in roots:
            found = read_root(plain["root", bytes.fromhex(root.root)], lambda kind, hash_: plain[kind, hash_])
            held = files_of(root)
            assert {path: mode for path, (_, mode, _) in found.items()} == {path: mode for path, (mode, _) in held.items()}
            for path, (kind, _, content) in found.items():
                assert held[path][1] == (None if kind == "directory" else content.decode() if kind == "link" else content)
    assert (theirs(run.path), ours(run.path)) == ("whole", "whole")
