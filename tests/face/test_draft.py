"""A draft goes from the current root to the next, and back to a mark; its record says how it went and no secret."""

# mypy: disable-error-code="func-returns-value"
# A lambda that does several things is a tuple of what they return.
from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from published import contents

import freehold
from freehold import PathRefused, Run, Transaction
from freehold.draft import record_of_failure
from freehold.files import Files
from freehold.schema.secrets import SecretFilter
from freehold.storage.sight import failed


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with freehold.open(tmp_path, timeout=20) as host, host.create("a") as run:
        run.publish("start", lambda files: files.write_text("f", "0"))
        yield run


def undone(tx: Transaction, name: str = "undone") -> None:
    with pytest.raises(ZeroDivisionError), tx.savepoint():
        tx.files.write_text(name, "1")
        tx.files.write_bytes("f", bytes(2_000_000))
        tx.append(name)
        raise ZeroDivisionError


@pytest.mark.parametrize("spanning", [True, False])
def test_an_undone_savepoint_leaves_the_files_as_they_were_at_its_beginning(run: Run, spanning: bool) -> None:
    def work(tx: Transaction) -> None:
        tx.files.write_text("kept", "1")
        undone(tx)
        assert contents(tx.files) == {"f": b"0", "kept": b"1"}
        with tx.savepoint():
            tx.files.write_text("inner", "2")
            undone(tx)
            tx.append("between")
        tx.files.write_text("last", "3")

    if spanning:
        with run.transaction(timeout=30) as tx:
            work(tx)
    else:
        run.transact(work)

    assert contents(run.files) == {"f": b"0", "inner": b"2", "kept": b"1", "last": b"3"}
    between, rest = list(run.history(after=2))
    assert (between.name, rest.name, rest.kind) == ("between", "files", "publish")
    assert contents(run.snapshot(between)) == {"f": b"0", "inner": b"2", "kept": b"1"}
    run.verify()


@pytest.mark.parametrize("depth", [1, 2])
def test_files_that_were_first_asked_for_in_an_undone_savepoint_go_on_as_they_were(run: Run, depth: int) -> None:
    kept: list[Files] = []
    late: list[Any] = []

    def work(tx: Transaction) -> None:
        with pytest.raises(ZeroDivisionError), ExitStack() as savepoints:
            for _ in range(depth):
                savepoints.enter_context(tx.savepoint())
            kept.append(tx.files)
            tx.files.write_text("undone", "1")
            late.append(tx.files.open("f", "w"))
            tx.append("undone")
            raise ZeroDivisionError
        assert tx.files is kept[0]
        assert contents(tx.files) == {"f": b"0"}
        late[0].write("late")
        with pytest.raises(OSError, match="f"):
            late[0].close()
        kept[0].write_text("last", "2")

    run.transact(work)
    assert contents(run.files) == {"f": b"0", "last": b"2"}
    run.verify()


def test_each_event_of_a_transaction_names_the_root_of_the_changes_before_it(run: Run) -> None:
    def work(tx: Transaction) -> list[Any]:
        found = [tx.append("none")]
        for number in range(3):
            tx.files.write_text("f", str(number))
            found.append(tx.append(f"note {number}"))
        tx.files.write_text("f", "last")
        tx.begin_execution()
        return found

    events = run.transact(work)
    assert [run.snapshot(event).read_text("f") for event in events] == ["0", "0", "1", "2"]
    assert [(event.kind, event.name) for event in run.history(after=events[-1])] == [("publish", "files"), ("began", None)]
    run.verify()


def test_a_transaction_without_changes_publishes_nothing(run: Run) -> None:
    run.transact(lambda tx: (tx.files.read_text("f"), tx.files.write_text("f", "0"), tx.append("note")))

    assert [event.kind for event in run.history(after=2)] == ["note"]


def import_all(tx: Transaction, folder: Path) -> None:
    tx.files.import_tree(folder)


def note_after(tx: Transaction, folder: Path) -> None:
    import_all(tx, folder)
    tx.append("note")


def undo_between(tx: Transaction, folder: Path) -> None:
    import_all(tx, folder)
    with pytest.raises(ZeroDivisionError), tx.savepoint():
        tx.files.import_tree(folder, "again")
        tx.begin_execution()
        raise ZeroDivisionError


def begin_after(tx: Transaction, folder: Path) -> None:
    import_all(tx, folder)
    tx.begin_execution()
    tx.files.write_text("more", "1")


LIST = ("publish", {"changes": 0, "skipped": [["fifo", "fifo"]], "more": 0})
TOOK = ("publish", {"changes": 1, "skipped": [["fifo", "fifo"]], "more": 0})


@pytest.mark.parametrize(
    ("work", "there", "events"),
    [
        (import_all, False, [TOOK]),
        (import_all, True, [LIST]),
        (note_after, False, [("note", None), LIST]),
        (note_after, True, [("note", None), LIST]),
        (undo_between, False, [TOOK]),
        (begin_after, False, [TOOK, ("began", None), ("publish", {"changes": 1})]),
    ],
)
def test_what_an_import_in_a_transaction_has_skipped_is_in_the_journal_once(
    run: Run, tmp_path: Path, work: Callable[[Transaction, Path], None], there: bool, events: list[Any]
) -> None:
    (real := tmp_path / "real").mkdir()
    (real / "taken").touch()
    if there:
        run.import_tree(real)
    os.mkfifo(real / "fifo")
    before = run.info.events

    run.transact(lambda tx: work(tx, real))

    assert [(event.kind, None if event.kind == "began" else event.data) for event in run.history(after=before)] == events
    run.verify()


@pytest.mark.parametrize(
    ("error", "record"),
    [
        (failed(errno.ENOENT, ("d", "f")), {"failed": "FileNotFoundError", "errno": "ENOENT", "path": "d/f"}),
        (failed(errno.ENOTEMPTY, ("d",)), {"failed": "OSError", "errno": "ENOTEMPTY", "path": "d"}),
        (PathRefused("x"), {"failed": "PathRefused", "errno": None, "path": None}),
        (OSError("no number"), {"failed": "OSError", "errno": None, "path": None}),
        (failed(errno.ENOENT, ("d", "hunter22", "f")), {"failed": "FileNotFoundError", "errno": "ENOENT", "path": None}),
        (failed(errno.ENOENT, ("AKIAIOSFODNN7EXAMPLE",)), {"failed": "FileNotFoundError", "errno": "ENOENT", "path": None}),
        (FileNotFoundError(errno.ENOENT, "x", "of the machine"), {"failed": "FileNotFoundError", "errno": "ENOENT", "path": None}),
    ],
)
def test_the_record_of_a_failure_says_error_number_and_path_and_no_secret(error: BaseException, record: dict[str, Any]) -> None:
    assert json.loads(record_of_failure(error, SecretFilter({"key": "hunter22"}))) == record
