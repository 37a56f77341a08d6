"""Whatever another program does to the file of a living owner: it is noticed before anything else is acknowledged, and told.

What is acknowledged afterwards is in the file at the path; the host lives on, and so do its other runs.
"""

from __future__ import annotations

import logging
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic

import pytest
from other import owns
from turns import senders, until
from ways import say

import freehold
from freehold import Error, Host, Run

WRITER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
for line in sys.argv[2:]:
    db.execute(line).fetchall()
"""


def sh(script: str) -> Callable[[Path], None]:
    """Return what runs a line of shell in the run's folder."""

    def do(file: Path) -> None:
        subprocess.run(["sh", "-ec", script], cwd=file.parent, check=True, timeout=30, stdin=subprocess.DEVNULL)

    return do


def sql(*lines: str) -> Callable[[Path], None]:
    """Return what another program does to the file with an SQLite of its own, and closes it."""

    def do(file: Path) -> None:
        subprocess.run([sys.executable, "-c", WRITER, str(file), *lines], check=True, timeout=30)

    return do


HAPPENINGS: dict[str, tuple[Callable[[Path], None], str]] = {
    "replaced by an older copy": (sh("cp older a.new; mv a.new a.sqlite"), "file_replaced"),
    "replaced by another run": (sh("cp b.sqlite a.new; mv a.new a.sqlite"), "file_replaced"),
    "replaced by a link": (sh("mv a.sqlite moved; ln -s moved a.sqlite"), "file_replaced"),
    "removed": (sh("rm a.sqlite"), "file_replaced"),
    "removed with all beside it": (sh("rm a.sqlite*"), "file_replaced"),
    "renamed": (sh("mv a.sqlite moved"), "file_replaced"),
    "renamed with all beside it": (sh("for f in a.sqlite*; do mv $f x$f; done"), "file_replaced"),
    "copied over with an older copy": (sh("cp older a.sqlite"), "file_rewritten"),
    "copied over with another run": (sh("cp b.sqlite a.sqlite"), "file_rewritten"),
    "copied over with noise": (sh("head -c 50000 /dev/urandom > a.sqlite"), "file_rewritten"),
    "emptied": (sh(": > a.sqlite"), "file_rewritten"),
    "cut in half": (sh("truncate -s 40960 a.sqlite"), "file_rewritten"),
    "extended": (sh("head -c 4096 /dev/zero >> a.sqlite"), "file_rewritten"),
    "without its -wal": (sh("rm a.sqlite-wal"), "wal_replaced"),
    "with another -wal": (sh("cp a.sqlite-wal w; mv w a.sqlite-wal"), "wal_replaced"),
    "with an empty -wal": (sh(": > a.sqlite-wal"), "wal_cut"),
    "with half a -wal": (sh("truncate -s 9000 a.sqlite-wal"), "wal_cut"),
    "written into": (sql("UPDATE run SET updated_at = updated_at + 1"), "foreign_writer"),
    "taken over": (sql("UPDATE run SET epoch = epoch + 1"), "epoch"),
    "written into with an event less": (
        sql("PRAGMA foreign_keys = 0", "DELETE FROM event WHERE seq = (SELECT max(seq) FROM event)"),
        "foreign_writer",
    ),
    "given another table": (sql("CREATE TABLE extra (a)"), "foreign_writer"),
    "vacuumed": (sql("VACUUM"), "foreign_writer"),
}
"""What happens to the file `a.sqlite`, and by which rule its owner is fenced."""

MATTERS_NOT: dict[str, Callable[[Path], None]] = {
    "read": sql("SELECT count(*) FROM event"),
    "copied": sh("mkdir copy; cp a.sqlite* copy"),
    "given another mode": sh("chmod 400 a.sqlite"),
    "linked to": sh("ln -s a.sqlite l.sqlite"),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder of two runs with a past, and an older copy of one of them."""
    root = tmp_path / "runs"
    with freehold.open(root) as host:
        for run_id in ("a", "b"):
            with host.create(run_id) as run:
                run.append("past", Random(run_id).randbytes(20_000).hex())  # it fills pages of its own
    shutil.copy(root / "a.sqlite", root / "older")
    return root


@pytest.fixture
def host(root: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Host]:
    caplog.set_level(logging.CRITICAL, "freehold")
    with freehold.open(root, timeout=10) as host:
        yield host


def at_the_path(file: Path) -> set[str]:
    """Return the hashes of the events that another program reads there, and from nowhere else."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "a.sqlite"
        for suffix in ("", "-wal"):
            if Path(f"{file}{suffix}").is_file():
                shutil.copy(f"{file}{suffix}", f"{copy}{suffix}")
        if not copy.exists():
            return set()
        with closing(sqlite3.connect(copy)) as db:
            try:
                return {row[0].hex() for row in db.execute("SELECT hash FROM event")}
            except sqlite3.DatabaseError:
                return set()


def tried(run: Run, name: str) -> tuple[str, str | None]:
    """Append; return what was told, and the event's hash if it was acknowledged."""
    try:
        return "ok", run.append(name).hash
    except Error as error:
        return f"{say(error)}/{error.details.get('fence')}/{error.executed}", None


@pytest.mark.parametrize("name", HAPPENINGS)
def test_it_is_noticed_told_and_nothing_is_acknowledged_that_is_not_there(host: Host, root: Path, name: str) -> None:
    happens, rule = HAPPENINGS[name]
    run, other = host.open("a"), host.open("b")
    run.append("present", "x" * 9000)
    other.append("present")

    happens(root / "a.sqlite")

    assert tried(run, "first") == (f"storage_failed/{rule}/no", None)
    later = [tried(run, f"later {number}") for number in range(4)]
    # The host opens the file again: as its own if what it had acknowledged is there, else whoever held it has lost it.
    assert {told for told, _ in later} <= {"ok", "lease_lost/None/no", "quarantined/None/no"}

    assert other.append("still").seq == 4
    host.create("c").close()
    said = [info.error and info.error.code for info in host.runs() if info.id in ("b", "c")]
    assert said == [None, None]
    host.close()
    assert {hash_ for _, hash_ in later if hash_ is not None} <= at_the_path(root / "a.sqlite")
    assert Path(root / "b.sqlite").exists()
    assert not Path(root / "b.sqlite-wal").exists()


@pytest.mark.parametrize("name", MATTERS_NOT)
def test_what_matters_not_ends_nothing(host: Host, root: Path, name: str) -> None:
    with host.open("a") as run:
        run.append("present")
        MATTERS_NOT[name](root / "a.sqlite")
        acknowledged = [tried(run, f"later {number}") for number in range(3)]

    assert [told for told, _ in acknowledged] == ["ok"] * 3
    assert host.view("a").info.epoch == 2
    host.close()
    assert {hash_ for _, hash_ in acknowledged} <= at_the_path(root / "a.sqlite")
    freehold.view(root / "a.sqlite").verify()


@pytest.mark.parametrize(
    ("script", "at"),
    [("mv runs gone", "gone"), ("mv runs gone; mkdir runs", "gone"), ("mv runs gone; cp -r gone runs", "gone"), ("rm -r runs", None)],
    ids=["moved", "replaced by an empty one", "replaced by a copy", "removed"],
)
def test_a_folder_that_is_moved_or_replaced_fences_every_run_in_it(host: Host, root: Path, script: str, at: str | None) -> None:
    runs = [host.open("a"), host.open("b")]
    acknowledged = [run.append("present").hash for run in runs]

    subprocess.run(["sh", "-ec", script], cwd=root.parent, check=True, timeout=30)

    for run in runs:
        told, hash_ = tried(run, "first")
        assert (told, hash_) == ("storage_failed/file_replaced/no", None)
    later = [(run, tried(run, "later")[1]) for run in runs]
    host.close()
    for run, hash_ in later:
        assert hash_ is None or hash_ in at_the_path(root / f"{run.id}.sqlite")
    if at is not None:
        # What was acknowledged went with the folder.
        for run, hash_ in zip(runs, acknowledged, strict=True):
            assert hash_ in at_the_path(root.parent / at / f"{run.id}.sqlite")
            freehold.view(root.parent / at / f"{run.id}.sqlite").verify()


def test_a_restored_copy_is_left_as_it_was_restored(host: Host, root: Path) -> None:
    """Our pages are not mixed into what somebody has put in the file's place."""
    run = host.open("a")
    run.append("present", "x" * 9000)
    other = (root / "b.sqlite").read_bytes()
    subprocess.run(["cp", "b.sqlite", "a.sqlite"], cwd=root, check=True, timeout=30)

    assert tried(run, "first")[1] is None
    until(lambda: tried(run, "later")[0].startswith(("lease_lost", "quarantined")))
    host.close()
    assert (root / "a.sqlite").read_bytes() == (root / "b.sqlite").read_bytes() == other


def test_a_new_run_of_the_same_name_belongs_to_its_new_owner(host: Host, root: Path) -> None:
    """The old owner neither writes into it nor takes its -wal away when it closes."""
    run = host.open("a")
    run.append("present")
    subprocess.run(["sh", "-c", "rm a.sqlite*"], cwd=root, check=True, timeout=30)
    with owns(root, "a", "mine"):
        assert tried(run, "first") == ("storage_failed/file_replaced/no", None)
        until(lambda: tried(run, "later")[0].startswith(("lease_lost", "quarantined", "owned_elsewhere")))
        host.close()
        assert (root / "a.sqlite-wal").stat().st_size > 0
        assert [event.name for event in freehold.view(root / "a.sqlite").history()] == [None, "mine"]
    view = freehold.view(root / "a.sqlite")
    view.verify()
    assert (view.info.events, view.info.epoch) == (2, 1)


@pytest.mark.parametrize(
    "name", ["replaced by an older copy", "removed", "copied over with noise", "emptied", "with an empty -wal", "written into"]
)
def test_among_many_senders_nothing_is_acknowledged_afterwards_that_is_not_there(host: Host, root: Path, name: str) -> None:
    run, happened = host.open("a"), threading.Event()
    acknowledged: list[tuple[float, str]] = []
    refused = threading.Event()
    # A -wal that is cut in the moment in which a commit is written into it grows again under that commit, and shows nothing.
    between_turns = threading.Lock() if name == "with an empty -wal" else nullcontext()

    def send(sender: int) -> None:
        after = 0
        while after < 5:
            with between_turns:
                began, after = monotonic(), after + happened.is_set()
                _, hash_ = tried(run, f"{sender}")
            if hash_ is not None:
                acknowledged.append((began, hash_))
            else:
                refused.set()

    with senders(4) as submit:
        sent = [submit(send, sender) for sender in range(4)]
        until(lambda: len(acknowledged) > 20)
        with between_turns:
            HAPPENINGS[name][0](root / "a.sqlite")
            at = monotonic()
            happened.set()
        for one in sent:
            one.result(30)
    host.close()

    assert refused.is_set()
    assert {hash_ for began, hash_ in acknowledged if began > at} <= at_the_path(root / "a.sqlite")
