"""Copies of a rich run file, each with something changed at random: by its bytes, by its pages, by SQL, by its -wal."""

from __future__ import annotations

import sqlite3
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from ways import MARK, files_of, read

import freehold
from freehold import Run, Transaction

PAGE = 4096
HEADER, FRAME = 32, 24 + PAGE
PROPS = {"mark": MARK, "numbers": [1, 2.5]}
REFUSED = (sqlite3.Error, UnicodeDecodeError)
"""What the other SQLite says when it does not want to; its texts may not be UTF-8 either."""


@dataclass
class Files:
    """What stands in a folder: a run file, and a -wal if there is one. *notes* tell what was done to them."""

    main: bytearray
    wal: bytearray | None
    notes: list[str] = field(default_factory=list)
    may_be_shorter: bool = False
    """Whether what is left may be an earlier state of the run, whole in itself."""

    def write(self, folder: Path) -> Path:
        """Put them into *folder* as the run `a`; return the file."""
        file = folder / "a.sqlite"
        file.write_bytes(self.main)
        if self.wal is not None:
            (folder / "a.sqlite-wal").write_bytes(self.wal)
        return file

    def copy(self) -> Files:
        """Return equal ones."""
        return Files(bytearray(self.main), None if self.wal is None else bytearray(self.wal))


@dataclass(frozen=True)
class Rich:
    """A run with something in every table, as its owner left it that closed, or that died; and what it says."""

    closed: Files
    dead: Files
    journal: list[tuple[Any, ...]]
    held: dict[str, tuple[int, bytes | str | None]]
    info: freehold.RunInfo


@cache
def rich(run_id: str = "a") -> Rich:
    """Return the run, as bytes: several tenures, every kind of stop, requests, and records that are objects of their own."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        with freehold.open(root) as host, host.create(run_id, props=PROPS, project=MARK) as run:
            live(run, "suspended", code=MARK)
        with freehold.open(root) as host, host.open(run_id) as run:
            live(run, "interrupted")
            run.transact(lambda tx: tx.begin_execution())  # the closing host will interrupt it
        with freehold.open(root) as host, host.open(run_id) as run:
            live(run, "failed", code=MARK, event=False)
        host = freehold.open(root)
        run = host.open(run_id)
        live(run, "failed")
        dead = taken(root, run_id)
        run.close()
        host.close()
        view = freehold.view(root / f"{run_id}.sqlite")
        view.verify()
        return Rich(taken(root, run_id), dead, read(view), files_of(view.files), view.info)


def live(run: Run, status: str, *, code: str | None = None, event: bool = True) -> None:
    """Let the run live through one execution that ends as *status*."""
    number = run.info.epoch
    run.append(f"{MARK} {number}", {"text": MARK * 10, "number": number})
    run.append(f"{MARK} asked", [MARK, number], request_id=f"{MARK}-{number}")
    run.transact(lambda tx: tx.begin_execution())
    run.append("long", {"text": MARK * 3000})
    run.append("noise", Random(number).randbytes(12_000).hex() + MARK)

    def end(tx: Transaction) -> str:
        tx.settle(status, code=code, event=tx.append("end", MARK) if code is None and event else None)
        return MARK

    run.transact(end, request_id=f"{MARK} work {number}")
    run.publish("files", lambda files: furnish(files, number))
    take_steps(run, number)
    for _ in range(10):
        run.append("small", number)


def take_steps(run: Run, number: int) -> None:
    """Leave a step that failed before it was done, one whose intent has its outcome, and one of which nobody knows."""

    def fail() -> None:
        raise ValueError(MARK)

    for attempt in (fail, lambda: {"text": MARK}):
        with suppress(ValueError):  # the first attempt is meant to fail
            run.once(f"{MARK} {number}", attempt)
    run.options(unknown="park").once(f"{MARK} done {number}", lambda text: [text], MARK)
    with suppress(KeyboardInterrupt):  # as if the process had ended here
        run.options(unknown="park").once(f"left {number}", stop)


def stop() -> None:
    """End as whoever is interrupted does."""
    raise KeyboardInterrupt


def furnish(files: freehold.Files, number: int) -> None:
    """Leave something of every kind: inline and in chunks, under an index, a folder of several nodes, a link."""
    noise = Random(number)
    files.mkdir("many", 0o700, exist_ok=True)
    for each in range(number * 20, number * 20 + 40):
        files.write_text(f"many/{each}", f"{MARK} {each}")
    files.write_bytes("chunk", MARK.encode() * 50 + noise.randbytes(900))
    files.write_bytes("index", noise.randbytes(70_000))
    if number == 1:
        files.symlink("link", f"many/{MARK}")


def taken(root: Path, run_id: str) -> Files:
    """Return the files as another process finds them; reading them here would drop the owner's locks."""
    subprocess.run(["cp", "-a", str(root), f"{root}.taken"], check=True, timeout=30)
    copied = Path(f"{root}.taken")
    wal = copied / f"{run_id}.sqlite-wal"
    files = Files(bytearray((copied / f"{run_id}.sqlite").read_bytes()), bytearray(wal.read_bytes()) if wal.exists() else None)
    subprocess.run(["rm", "-r", str(copied)], check=True, timeout=30)
    return files


def mutant(dice: Random) -> Files:
    """Return the files of the rich run with one thing changed, or two."""
    run = rich()
    files = (run.dead if dice.random() < 0.5 else run.closed).copy()
    for _ in range(dice.choice((1, 1, 1, 2))):
        change = dice.choice(ON_WAL if files.wal and dice.random() < 0.4 else ON_MAIN)
        files.notes.append(f"{change.__name__}: {change(files, dice)}")
    return files


# On the run file


def flip(files: Files, dice: Random) -> str:
    """Change some bytes."""
    return flipped(files.main, dice)


def zero_page(files: Files, dice: Random) -> str:
    """Let a page be zeros."""
    page = dice.randrange(pages(files))
    files.main[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
    return str(page)


def swap_pages(files: Files, dice: Random) -> str:
    """Let two pages change places."""
    one, two = dice.randrange(pages(files)), dice.randrange(pages(files))
    content = files.main[one * PAGE : (one + 1) * PAGE]
    files.main[one * PAGE : (one + 1) * PAGE] = files.main[two * PAGE : (two + 1) * PAGE]
    files.main[two * PAGE : (two + 1) * PAGE] = content
    return f"{one} {two}"


def copy_page(files: Files, dice: Random) -> str:
    """Let one page stand twice."""
    one, two = dice.randrange(pages(files)), dice.randrange(pages(files))
    files.main[one * PAGE : (one + 1) * PAGE] = files.main[two * PAGE : (two + 1) * PAGE]
    return f"{one} {two}"


def truncate(files: Files, dice: Random) -> str:
    """Cut the end off."""
    size = dice.randrange(len(files.main)) if dice.random() < 0.5 else dice.randrange(pages(files)) * PAGE
    del files.main[size:]
    return str(size)


def extend(files: Files, dice: Random) -> str:
    """Let something follow."""
    more = dice.choice((bytes(PAGE), dice.randbytes(PAGE), dice.randbytes(dice.randrange(1, 9000)), bytes(files.main[-PAGE:])))
    files.main += more
    return str(len(more))


def header(files: Files, dice: Random) -> str:
    """Change a field of the first hundred bytes, or of the head of a page."""
    at = dice.choice((dice.randrange(16, 100), dice.randrange(100, 120), dice.randrange(pages(files)) * PAGE + dice.randrange(12)))
    value = dice.choice((bytes(4), b"\xff" * 4, dice.randbytes(2), dice.randbytes(1), struct.pack(">I", dice.randrange(50))))
    files.main[at : at + len(value)] = value
    return f"{at} {value.hex()}"


def sql(files: Files, dice: Random) -> str:
    """Change rows as somebody would who has another SQLite."""
    done: list[str] = []
    with edited(files, leave_wal=dice.random() < 0.4) as db:
        done += (edit_row(db, dice) for _ in range(dice.randrange(1, 4)))
    return "; ".join(done)


def sql_delete(files: Files, dice: Random) -> str:
    """Remove rows. An end without contradictions may be left."""
    files.may_be_shorter = True
    done = ""
    with edited(files, leave_wal=dice.random() < 0.4) as db:
        table = dice.choice(tables(db) or ["sqlite_schema"])
        which = dice.choice(("random() % 2", "(SELECT max(rowid) FROM {0})", "rowid = (SELECT min(rowid) FROM {0})", "1"))
        where = which.format(table) if "rowid" not in which or has_rowid(db, table) else "1"
        done = f"{table} {where}"
        db.execute(f"DELETE FROM {table} WHERE rowid = {where}" if where.startswith("(") else f"DELETE FROM {table} WHERE {where}")
    return done


def sql_schema(files: Files, dice: Random) -> str:
    """Change the schema's own rows."""
    done = ""
    with edited(files, leave_wal=dice.random() < 0.3) as db:
        db.execute("PRAGMA writable_schema = 1")
        name = dice.choice([row[0] for row in db.execute("SELECT name FROM sqlite_schema")] or [""])
        change = dice.choice(
            (
                "UPDATE sqlite_schema SET rootpage = abs(random()) % 60 WHERE name = ?",
                "UPDATE sqlite_schema SET sql = replace(sql, 'CHECK', 'check') WHERE name = ?",
                "UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '') WHERE name = ?",
                "UPDATE sqlite_schema SET sql = sql || char(0) WHERE name = ?",
                "UPDATE sqlite_schema SET type = 'view' WHERE name = ?",
                "UPDATE sqlite_schema SET tbl_name = 'event' WHERE name = ?",
                "DELETE FROM sqlite_schema WHERE name = ?",
                "INSERT INTO sqlite_schema SELECT * FROM sqlite_schema WHERE name = ?",
            )
        )
        done = f"{change} {name}"
        db.execute(change, (name,))
    return done


def sql_pragma(files: Files, dice: Random) -> str:
    """Change what the file says of itself."""
    pragma = dice.choice(("user_version", "application_id", "schema_version"))
    with edited(files, leave_wal=dice.random() < 0.3) as db:
        db.execute(f"PRAGMA {pragma} = {dice.choice((0, 1, 2, -1, dice.randrange(2**31)))}")
    return pragma


# On the -wal


def wal_flip(files: Files, dice: Random) -> str:
    """Change some bytes; SQLite believes nothing from there on."""
    files.may_be_shorter = True
    return flipped(files.wal or bytearray(1), dice)


def wal_cut(files: Files, dice: Random) -> str:
    """Cut the end off, in a frame or between two."""
    files.may_be_shorter = True
    size = dice.randrange(len(files.wal or b"0")) if dice.random() < 0.5 else HEADER + dice.randrange(frames(files) + 1) * FRAME
    del (files.wal or bytearray())[size:]
    return str(size)


def wal_gone(files: Files, dice: Random) -> str:
    """Take the -wal away."""
    files.may_be_shorter = True
    files.wal = None
    return ""


def wal_of_another(files: Files, dice: Random) -> str:
    """Put another run's -wal there, or one of this run that does not belong to this file."""
    files.may_be_shorter = True
    files.wal = bytearray((rich("b") if dice.random() < 0.7 else rich()).dead.wal or b"")
    return ""


def wal_forged(files: Files, dice: Random) -> str:
    """Change pages in the -wal, and its checksums with them: SQLite believes it all."""
    files.may_be_shorter = True
    wal, count = files.wal or bytearray(), frames(files)
    if not count:
        return "nothing there"
    done = []
    for _ in range(dice.randrange(1, 4)):
        at = HEADER + dice.randrange(count) * FRAME
        kind = dice.choice(("bytes", "page number", "page", "commit"))
        done.append(f"{kind} at {at}")
        if kind == "bytes":
            where = at + 24 + dice.randrange(PAGE)
            wal[where : where + 1] = dice.randbytes(1)
        elif kind == "page number":
            wal[at : at + 4] = struct.pack(">I", dice.randrange(1, 60))
        elif kind == "page":
            other = HEADER + dice.randrange(count) * FRAME
            wal[at + 24 : at + FRAME] = wal[other + 24 : other + FRAME]
        else:
            wal[at + 4 : at + 8] = struct.pack(">I", dice.choice((0, 1, pages(files), 10**6)))
    seal(wal)
    return "; ".join(done)


def wal_header(files: Files, dice: Random) -> str:
    """Change a field of the -wal's own header, and its checksum with it."""
    files.may_be_shorter = True
    wal = files.wal or bytearray()
    if len(wal) < HEADER:
        return "nothing there"
    at = dice.randrange(0, 24, 4)
    wal[at : at + 4] = dice.choice((bytes(4), b"\xff" * 4, dice.randbytes(4), struct.pack(">I", 1024)))
    seal(wal)
    return str(at)


ON_MAIN: tuple[Callable[[Files, Random], str], ...] = (
    *(flip, flip, zero_page, swap_pages, copy_page, truncate, extend, header, header),
    *(sql, sql, sql, sql_delete, sql_schema, sql_pragma, wal_of_another),
)
ON_WAL: tuple[Callable[[Files, Random], str], ...] = (wal_flip, wal_cut, wal_gone, wal_of_another, wal_forged, wal_forged, wal_header)


def pages(files: Files) -> int:
    """Return how many whole pages the run file has; at least one."""
    return max(1, len(files.main) // PAGE)


def frames(files: Files) -> int:
    """Return how many whole frames the -wal has."""
    return max(0, (len(files.wal or b"") - HEADER) // FRAME)


def flipped(content: bytearray, dice: Random) -> str:
    """Change one to eight bytes of *content*."""
    if not content:
        return "nothing there"
    places = [dice.randrange(len(content)) for _ in range(dice.randrange(1, 9))]
    for at in places:
        content[at] ^= dice.randrange(1, 256)
    return str(places)


def seal(wal: bytearray) -> None:
    """Write the checksums of a -wal anew, and its salts into every frame."""
    order = ">" if wal[3] & 1 else "<"
    one, two = summed(wal[:24], 0, 0, order)
    wal[24:32] = struct.pack(">2I", one, two)
    for at in range(HEADER, len(wal) - FRAME + 1, FRAME):
        wal[at + 8 : at + 16] = wal[16:24]
        one, two = summed(wal[at : at + 8] + wal[at + 24 : at + FRAME], one, two, order)
        wal[at + 16 : at + 24] = struct.pack(">2I", one, two)


def summed(content: bytes | bytearray, one: int, two: int, order: str) -> tuple[int, int]:
    """Return SQLite's checksum of *content*, continued."""
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two


class edited:  # noqa: N801 - reads as what it does to the files
    """A connection of the standard library's SQLite on the files; afterwards they are what it has made of them."""

    def __init__(self, files: Files, *, leave_wal: bool) -> None:
        self._files = files
        self._leave_wal = leave_wal

    def __enter__(self) -> sqlite3.Connection:
        self._folder = TemporaryDirectory()
        self._file = self._files.write(Path(self._folder.name))
        self._db = sqlite3.connect(self._file, isolation_level=None)
        self._db.text_factory = lambda raw: raw.decode(errors="replace")
        try:
            for pragma in ("ignore_check_constraints = 1", "foreign_keys = 0", "wal_autocheckpoint = 0"):
                self._db.execute(f"PRAGMA {pragma}")
            self._db.execute("SELECT * FROM sqlite_schema").fetchall()
        except REFUSED:
            self._db.close()
            self._db = sqlite3.connect(":memory:", isolation_level=None)  # it cannot be edited any more; let it be
            self._leave_wal = True
        return self._db

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> bool:
        with self._folder, closing(self._db):
            if not self._leave_wal:
                self._db.close()
            self._files.main = bytearray(self._file.read_bytes())
            wal = Path(f"{self._file}-wal")
            self._files.wal = bytearray(wal.read_bytes()) if wal.exists() else None
        if isinstance(error, REFUSED):
            self._files.notes.append("which it did not let itself be done to")
            return True
        return False


def tables(db: sqlite3.Connection) -> list[str]:
    """Return the names of the tables."""
    return [str(row[0]) for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]


def has_rowid(db: sqlite3.Connection, table: str) -> bool:
    """Return whether the rows of *table* are numbered."""
    return table not in ("ref", "request")


def edit_row(db: sqlite3.Connection, dice: Random) -> str:
    """Give one column of some rows another value, as far as the types allow."""
    table = dice.choice(tables(db) or ["sqlite_schema"])
    column = dice.choice([str(row[1]) for row in db.execute(f"PRAGMA table_info({table})")])
    found = [row[0] for row in db.execute(f"SELECT {column} FROM {table}")] or [None]
    for value in values(found, dice):
        try:
            db.execute(f"UPDATE OR REPLACE {table} SET {column} = ? WHERE {column} IS ?", (value, dice.choice(found)))
        except (*REFUSED, OverflowError):
            continue
        return f"{table}.{column} = {type(value).__name__}"
    return ""


def values(found: list[Any], dice: Random) -> Iterator[Any]:
    """Yield what could be written instead."""
    pool: list[Any] = [None, 0, 1, -1, 2**62, -(2**63), 2**31, b"", dice.randbytes(16), dice.randbytes(32), bytes(32)]
    pool += [
        "",
        "{}",
        "[]",
        "null",
        '"x"',
        "x" * 300,
        "\x00",
        "created",
        "running",
        "note",
        "host",
        "journal",
        '{"$object":5}',
        '{"$int":"x"}',
    ]
    pool += ["[" * 5000, '{"$bytes":"!"}', "1e999", MARK, *found]
    if found[0] is not None and type(found[0]) is int:
        pool += [found[0] + 1, found[0] - 1]
    yield from dice.sample(pool, len(pool))
