"""A draft goes from the current root to the next, and back to a mark; its record says how it went and no secret."""

# mypy: disable-error-code="func-returns-value"
# A lambda that does several things is a tuple of what they return.
from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from published import contents

import freehold
from freehold import PathRefused, Refused, Run, Transaction
from freehold.draft import record_of_failure
from freehold.schema.secrets import SecretFilter


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


def test_files_that_were_first_asked_for_in_an_undone_savepoint_begin_anew(run: Run) -> None:
    kept: list[Any] = []

    def work(tx: Transaction) -> None:
        with pytest.raises(ZeroDivisionError), tx.savepoint():
            kept.append(tx.files)
            tx.files.write_text("undone", "1")
            raise ZeroDivisionError
        assert contents(tx.files) == {"f": b"0"}
        with pytest.raises(Refused):
            kept[0].write_text("late", "1")
        tx.files.write_text("last", "2")

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


@pytest.mark.parametrize(
    ("error", "record"),
    [
        (FileNotFoundError(errno.ENOENT, "x", "d/f"), {"failed": "FileNotFoundError", "errno": "ENOENT", "path": "d/f"}),
        (OSError(errno.ENOTEMPTY, "x", "d"), {"failed": "OSError", "errno": "ENOTEMPTY", "path": "d"}),
        (PathRefused("x"), {"failed": "PathRefused", "errno": None, "path": None}),
        (OSError("no number"), {"failed": "OSError", "errno": None, "path": None}),
        (FileNotFoundError(errno.ENOENT, "x", "d/hunter22/f"), {"failed": "FileNotFoundError", "errno": "ENOENT", "path": None}),
        (FileNotFoundError(errno.ENOENT, "x", "AKIAIOSFODNN7EXAMPLE"), {"failed": "FileNotFoundError", "errno": "ENOENT", "path": None}),
    ],
)
def test_the_record_of_a_failure_says_error_number_and_path_and_no_secret(error: BaseException, record: dict[str, Any]) -> None:
    assert json.loads(record_of_failure(error, SecretFilter({"key": "hunter22"}))) == record
