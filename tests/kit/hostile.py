"""Files that are no healthy run, each with what everybody is told who looks at it or asks for it."""

from __future__ import annotations

import os
import re
import shutil
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import apsw
from mutant import seal
from owned import begin, begin_step, commit_notes, own
from runfile import forge, forge_and_die, new_run
from ways import MARK

from freehold.schema.ddl import statements
from freehold.storage.path import RunPath

Make = Callable[[RunPath], object]


class Hostile(NamedTuple):
    """How a healthy run becomes something else, and what is said of it. Without *delete* that removes it."""

    make: Make
    told: str
    delete: str = "ok"


def bytes_of(content: bytes) -> Make:
    return lambda path: Path(path.file).write_bytes(content)


def cut(size: int) -> Make:
    return lambda path: os.truncate(path.file, size)


def cut_last(size: int) -> Make:
    return lambda path: os.truncate(path.file, Path(path.file).stat().st_size - size)


def sql(*lines: str) -> Make:
    return lambda path: forge(path, *lines)


def schema(*lines: str) -> Make:
    return lambda path: forge(path, *lines, writable_schema=True)


def dead(*lines: str) -> Make:
    """What is said here stands in the -wal of an owner that was killed."""
    return lambda path: forge_and_die(path, *lines)


def then(*makes: Make) -> Make:
    def make(path: RunPath) -> None:
        for one in makes:
            one(path)

    return make


def header(at: int, content: bytes) -> Make:
    def make(path: RunPath) -> None:
        with Path(path.file).open("r+b") as file:
            file.seek(at)
            file.write(content)

    return make


def sibling(suffix: str, content: bytes) -> Make:
    return lambda path: Path(path.sibling(suffix)).write_bytes(content)


def instead(make: Callable[[Path], object], suffix: str = "") -> Make:
    """Something else stands where the file, or what lies beside it, would be."""

    def make_it(path: RunPath) -> None:
        file = Path(path.file + suffix)
        file.unlink(missing_ok=True)
        make(file)

    return make_it


def listen(file: Path) -> None:
    here = Path.cwd()
    os.chdir(file.parent)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as here_too:
            here_too.bind(file.name)
    finally:
        os.chdir(here)


def second_name(file: Path) -> None:
    (file.parent / "other").hardlink_to(file)


def other_database(path: RunPath, *lines: str) -> None:
    """Put a database that others have made in the run's place."""
    Path(path.file).unlink()
    db = apsw.Connection(path.file)
    for line in lines:
        db.execute(line).fetchall()
    db.close()


def foreign(path: RunPath) -> None:
    other_database(path, f"CREATE TABLE t AS SELECT '{MARK}' AS a")


def in_utf16(path: RunPath) -> None:
    ids = "PRAGMA application_id = 0x46524844; PRAGMA user_version = 1; PRAGMA journal_mode = wal"
    other_database(path, "PRAGMA encoding = 'UTF-16le'", "PRAGMA auto_vacuum = 2", statements(), ids)


def begun(path: RunPath) -> None:
    other_database(path, "PRAGMA application_id = 0x46524844; CREATE TABLE object (id INTEGER PRIMARY KEY); PRAGMA journal_mode = wal")


def other_wal(path: RunPath) -> None:
    """Every page of another run stands in the -wal beside ours."""
    other = new_run(Path(path.folder) / "elsewhere", "b")
    forge_and_die(other, "VACUUM")
    shutil.move(other.sibling("-wal"), path.sibling("-wal"))
    shutil.rmtree(other.folder)


def older_wal(path: RunPath) -> None:
    """A -wal of this very run that was brought home long ago stands beside it again."""
    forge_and_die(path, "UPDATE run SET txn = 2")
    shutil.copy(path.sibling("-wal"), path.file + ".kept")
    store = own(path)
    commit_notes(store, "1", "2")
    store.close(clean=True)
    Path(path.file + ".kept").rename(path.sibling("-wal"))


def other_run(path: RunPath) -> None:
    other = new_run(Path(path.folder) / "elsewhere", "b")
    shutil.move(other.file, path.file)
    shutil.rmtree(other.folder)


def wal_of_version_0(path: RunPath) -> None:
    wal = bytearray(Path(path.sibling("-wal")).read_bytes())
    wal[4:8] = bytes(4)
    seal(wal)
    Path(path.sibling("-wal")).write_bytes(wal)


def rootpages_swapped(path: RunPath) -> None:
    pages = "SELECT rootpage FROM sqlite_schema WHERE name = '{}'"
    forge(
        path,
        f"CREATE TEMP TABLE kept AS SELECT ({pages.format('tenure')}) AS one, ({pages.format('request')}) AS two",
        "UPDATE sqlite_schema SET rootpage = (SELECT one FROM kept) WHERE name = 'request'",
        writable_schema=True,
    )


def owned(path: RunPath) -> None:
    own(path).close(clean=True)


def intended(path: RunPath) -> None:
    """The last event is an intent, of which nobody knows what became."""
    store = own(path)
    begin(store)
    begin_step(store, MARK, "park")
    store.commit()
    store.close(clean=True)


def without_sockets(path: RunPath) -> None:
    """The shape in which owners could not be asked from other processes."""
    (check,) = re.findall(r",\n *CHECK \(\(socket .*\)", statements())
    text = check.replace("'", "''")
    forge(
        path,
        f"UPDATE sqlite_schema SET sql = replace(replace(sql, 'socket     TEXT,', ''), '{text}', '') WHERE name = 'tenure'",
        writable_schema=True,
    )


JOURNAL = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + struct.pack(">6I", 1, 7, 1, 512, 4096, 0) + bytes(5000)
OFF = "PRAGMA foreign_keys = 0"
NOT_OURS = "not_a_run"
STRUCTURE = "damaged:structure"
SQLITE = "damaged:sqlite"

HOSTILE: dict[str, Hostile] = {
    # What is no database at all, or nobody's of ours.
    "text": Hostile(bytes_of(MARK.encode() * 900), NOT_OURS, NOT_OURS),
    "one byte": Hostile(bytes_of(b"x"), NOT_OURS, NOT_OURS),
    "the first byte of a database": Hostile(bytes_of(b"S"), "damaged:truncated", "damaged:truncated"),
    "zeros": Hostile(bytes_of(bytes(40_960)), NOT_OURS, NOT_OURS),
    "another program's database": Hostile(foreign, NOT_OURS, NOT_OURS),
    "another program's id": Hostile(sql("PRAGMA application_id = 77"), NOT_OURS, NOT_OURS),
    "another program's id, in the -wal": Hostile(dead("PRAGMA application_id = 77"), NOT_OURS),
    "text beside a -wal": Hostile(then(dead("UPDATE run SET txn = 2"), bytes_of(MARK.encode() * 900)), NOT_OURS, NOT_OURS),
    # Nothing, or not all of it.
    "nothing": Hostile(cut(0), "damaged:zero_length", "damaged:zero_length"),
    "nothing beside a -wal": Hostile(then(dead("VACUUM"), cut(0)), "damaged:zero_length", "damaged:zero_length"),
    "nothing beside a journal": Hostile(then(cut(0), sibling("-journal", JOURNAL)), "damaged:leftover_journal", "damaged:leftover_journal"),
    "half a header": Hostile(cut(50), "damaged:truncated", "damaged:truncated"),
    "a header alone": Hostile(cut(100), "damaged:truncated"),
    "half a page": Hostile(cut(2048), "damaged:truncated"),
    "one page": Hostile(cut(4096), "damaged:truncated"),
    "all but a page": Hostile(cut_last(4096), "damaged:truncated"),
    "all but a byte": Hostile(cut_last(1), "damaged:truncated"),
    "one page beside a -wal": Hostile(then(dead("UPDATE run SET txn = 2"), cut(4096)), SQLITE),
    "half a page beside a -wal": Hostile(then(dead("UPDATE run SET txn = 2"), cut(2048)), "damaged:truncated"),
    "half a page too much": Hostile(lambda path: os.truncate(path.file, Path(path.file).stat().st_size + 2048), "damaged:truncated"),
    "noise after the first page": Hostile(header(4096, bytes(range(256)) * 300), SQLITE),
    # Another form of file.
    "pages of 1024 bytes": Hostile(
        sql("PRAGMA journal_mode = delete", "PRAGMA page_size = 1024", "VACUUM", "PRAGMA journal_mode = wal"), "damaged:page_size"
    ),
    "reserved bytes": Hostile(header(20, b"\x08"), "damaged:page_size"),
    "rollback mode": Hostile(sql("PRAGMA journal_mode = delete"), "damaged:format"),
    "rollback mode beside a -wal": Hostile(then(dead("UPDATE run SET txn = 2"), header(18, b"\1\1")), "damaged:format"),
    "a schema format of tomorrow": Hostile(header(44, struct.pack(">I", 5)), SQLITE),
    "UTF-16": Hostile(in_utf16, "damaged:encoding"),
    "no auto_vacuum": Hostile(sql("PRAGMA auto_vacuum = 0", "VACUUM"), STRUCTURE),
    # Another version.
    "a newer version": Hostile(sql("PRAGMA user_version = 2"), "newer_version"),
    "a newer version, in the -wal": Hostile(dead("PRAGMA user_version = 2"), "newer_version"),
    "a negative version": Hostile(sql("PRAGMA user_version = -1"), "newer_version"),
    "an unfinished creation": Hostile(sql("PRAGMA user_version = 0"), "partial:user_version"),
    "a creation that has just begun": Hostile(begun, "partial:user_version"),
    "a run without intents": Hostile(sql("DROP TABLE intent"), "incomplete_version"),
    "owners without a socket's column": Hostile(without_sockets, "incomplete_version"),
    "a table less": Hostile(sql("DROP TABLE request"), "incomplete_version"),
    "an index less": Hostile(sql("DROP INDEX event_value"), "incomplete_version"),
    "a column less": Hostile(sql("ALTER TABLE run DROP COLUMN definition"), "incomplete_version"),
    "a column more": Hostile(sql("ALTER TABLE run ADD COLUMN extra INTEGER"), "incomplete_version"),
    # Another structure.
    "a table more": Hostile(sql("CREATE TABLE extra (a)"), STRUCTURE),
    "an index more": Hostile(sql("CREATE INDEX extra ON event (name)"), STRUCTURE),
    "a view": Hostile(sql("CREATE VIEW extra AS SELECT 1"), STRUCTURE),
    "a trigger": Hostile(sql("CREATE TRIGGER extra AFTER UPDATE ON run BEGIN DELETE FROM event; END"), STRUCTURE),
    "a trigger, in the -wal": Hostile(dead("CREATE TRIGGER extra AFTER UPDATE ON run BEGIN DELETE FROM event; END"), STRUCTURE),
    "a virtual table": Hostile(sql("CREATE VIRTUAL TABLE extra USING fts5(a)"), STRUCTURE),
    "statistics": Hostile(sql("ANALYZE"), STRUCTURE),
    "a CHECK less": Hostile(
        schema("UPDATE sqlite_schema SET sql = replace(sql, 'epoch >= 0', 'epoch >= -1') WHERE name = 'run'"), STRUCTURE
    ),
    "a table that is not STRICT": Hostile(
        schema("UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name = 'tenure'"), STRUCTURE
    ),
    "an index that is not UNIQUE": Hostile(
        schema("UPDATE sqlite_schema SET sql = replace(sql, 'UNIQUE INDEX', 'INDEX') WHERE name = 'event_outcome'"), STRUCTURE
    ),
    "two tables on one page": Hostile(rootpages_swapped, STRUCTURE),
    "a schema that cannot be read": Hostile(schema("UPDATE sqlite_schema SET sql = 'CREATE' WHERE name = 'run'"), SQLITE),
    "a schema that is not UTF-8": Hostile(
        schema("UPDATE sqlite_schema SET sql = CAST(sql || x'2d2dff' AS TEXT) WHERE name = 'run'"), STRUCTURE
    ),
    # Rows that cannot be.
    "a key to nowhere": Hostile(sql(OFF, "INSERT INTO request VALUES ('x', zeroblob(32), 2, 99, NULL, 0)"), "damaged:foreign_keys"),
    "no run row": Hostile(sql("DELETE FROM run"), "damaged:run"),
    "two run rows": Hostile(
        sql("INSERT INTO run SELECT 2, id, '', NULL, NULL, '{}', 'created', NULL, NULL, NULL, 0, 0, 1, 0, 0 FROM run"), "damaged:run"
    ),
    "a run row of another number": Hostile(sql("UPDATE run SET one = 2"), "damaged:run"),
    "a status that there is not": Hostile(sql(f"UPDATE run SET status = '{MARK}'"), "malformed_record"),
    "a status without its reason": Hostile(sql("UPDATE run SET status = 'failed'"), "malformed_record"),
    "running without an execution": Hostile(sql("UPDATE run SET status = 'running'"), "damaged:execution"),
    "properties that are no JSON": Hostile(sql(f"UPDATE run SET props = '{{{MARK}'"), "malformed_record"),
    "text that is not UTF-8": Hostile(sql(f"UPDATE run SET project = CAST('{MARK}' || x'ff' AS TEXT)"), "malformed_record"),
    "a time before all time": Hostile(sql("UPDATE run SET created_at = -1"), "malformed_record"),
    "a time after all time": Hostile(sql("UPDATE run SET updated_at = 9223372036854775807"), "malformed_record"),
    "a last event of a step without its intent": Hostile(then(intended, sql(OFF, "DELETE FROM intent")), "damaged:intent"),
    "an intent that is settled by nothing": Hostile(
        then(intended, sql(OFF, "UPDATE intent SET state = 'done', settled_seq = 2")), "damaged:intent"
    ),
    "an intent of no policy": Hostile(then(intended, sql(f"UPDATE intent SET policy = '{MARK}'")), "malformed_record"),
    "no events": Hostile(sql(OFF, "DELETE FROM event"), "damaged:foreign_keys"),
    "a forged last event": Hostile(sql(f"UPDATE event SET record = '\"{MARK}\"'"), "damaged:event_hash"),
    "a forged last event, in the -wal": Hostile(dead(f"UPDATE event SET record = '\"{MARK}\"'"), "damaged:event_hash"),
    "an event from nowhere": Hostile(sql("UPDATE event SET seq = 7", "UPDATE ref SET moved_seq = 7"), "damaged:journal"),
    "a forged root": Hostile(sql("UPDATE object SET data = zeroblob(size) WHERE kind = 3"), "damaged:object"),
    "an object larger than memory": Hostile(sql("UPDATE object SET size = 1 << 60, codec = 1 WHERE kind = 3"), "malformed_record"),
    "an intent without its event": Hostile(
        sql(OFF, f"INSERT INTO intent VALUES ('key/{MARK}', 1, 'park', 'k', 9, NULL, 'open')"), "damaged:foreign_keys"
    ),
    "a socket that leads elsewhere": Hostile(then(owned, sql(f"UPDATE tenure SET socket = '../{MARK}'")), "malformed_record"),
    "an owner who never was": Hostile(sql("UPDATE run SET epoch = 5"), "damaged:tenure"),
    # Another run.
    "another run's file": Hostile(other_run, "another_run"),
    "another run's -wal": Hostile(other_wal, "another_run"),
    "an older -wal of its own": Hostile(older_wal, "damaged:tenure"),
    # What is beside it.
    "a -wal of another version": Hostile(then(dead("UPDATE run SET txn = 2"), wal_of_version_0), "damaged:wal_version"),
    "properties that are a value of another kind": Hostile(sql('UPDATE run SET props = \'{"$bytes":"aGk="}\''), "malformed_record"),
    "a journal": Hostile(sibling("-journal", JOURNAL), "damaged:leftover_journal"),
    "a journal of noise": Hostile(sibling("-journal", MARK.encode() * 200), "damaged:leftover_journal"),
    "a -wal and a journal": Hostile(then(dead("UPDATE run SET txn = 2"), sibling("-journal", JOURNAL)), "damaged:leftover_journal"),
    "a -wal that is a link": Hostile(instead(lambda file: file.symlink_to("a.sqlite"), "-wal"), "not_a_file"),
    "a -wal that is a FIFO": Hostile(instead(os.mkfifo, "-wal"), "not_a_file"),
    "a journal that is a FIFO": Hostile(instead(os.mkfifo, "-journal"), "not_a_file"),
    "a -shm that is a FIFO": Hostile(instead(os.mkfifo, "-shm"), "not_a_file"),
    "a -wal with two names": Hostile(then(dead("VACUUM"), lambda path: second_name(Path(path.sibling("-wal")))), "hard_link"),
    # What is no plain file, or not one.
    "a second name": Hostile(lambda path: second_name(Path(path.file)), "hard_link", "hard_link"),
    "a link in a circle": Hostile(instead(lambda file: file.symlink_to(file.name)), "not_a_file", "not_a_file"),
    "a link to a file that is no run": Hostile(instead(lambda file: file.symlink_to("/etc/passwd")), "bad_run_id", "bad_run_id"),
    "a FIFO": Hostile(instead(os.mkfifo), "not_a_file", "not_a_file"),
    "a folder": Hostile(instead(Path.mkdir), "not_a_file", "not_a_file"),
    "a socket": Hostile(instead(listen), "not_a_file", "not_a_file"),
}
"""By what stands where the run `a` would be."""

HARMLESS: dict[str, Make] = {
    "an empty -wal": sibling("-wal", b""),
    "an empty journal": sibling("-journal", b""),
    "a -wal of noise": sibling("-wal", MARK.encode() * 3000),
    "a -wal whose header is cut": then(dead("UPDATE run SET txn = 2"), lambda path: os.truncate(path.sibling("-wal"), 31)),
    "a -shm of noise": sibling("-shm", MARK.encode() * 6000),
    "a page count of none": header(28, bytes(4)),
    "another modification time": lambda path: os.utime(path.file, (0, 0)),
    "a mode that lets everybody read": lambda path: Path(path.file).chmod(0o666),
}
"""What SQLite and we may overlook: the run is whole."""


class Deep(NamedTuple):
    """Damage behind the newest rows of a run of four events: what the journal's reader is told, and what `verify` says."""

    make: Make
    history: str
    verify: str


MIDDLE = "WHERE seq = 2"
DEEP: dict[str, Deep] = {
    "an intent of which the journal does not tell": Deep(
        sql(f"INSERT INTO intent VALUES ('key/{MARK}', 1, 'park', 'k', 2, NULL, 'open')"), "ok", "damaged:intent"
    ),
    "a forged event": Deep(sql(f"UPDATE event SET record = '\"{MARK}\"' {MIDDLE}"), "ok", "damaged:chain"),
    "a forged hash": Deep(sql(f"UPDATE event SET hash = zeroblob(32) {MIDDLE}"), "ok", "damaged:chain"),
    "an event less": Deep(sql(f"DELETE FROM event {MIDDLE}"), "ok", "damaged:chain"),
    "an event at no time": Deep(sql(f"UPDATE event SET recorded_at = 1 << 62 {MIDDLE}"), "malformed_record", "malformed_record"),
    "a value that is none": Deep(sql(f'UPDATE event SET record = \'{{"$bytes":"!"}}\' {MIDDLE}'), "malformed_record", "damaged:chain"),
    "a text that is none": Deep(
        sql(f"UPDATE event SET record = CAST('\"{MARK}' || x'ff22' AS TEXT) {MIDDLE}"), "malformed_record", "damaged:text"
    ),
    "a forged object": Deep(
        sql("UPDATE object SET data = zeroblob(size), codec = 0 WHERE kind = 4"), "malformed_record", "damaged:object_hash"
    ),
    "an object of another size": Deep(
        sql("UPDATE object SET size = size + 1, codec = 1 WHERE kind = 4"), "malformed_record", "damaged:object_hash"
    ),
}
