"""The proof of power losses can fail: each bug that it is there to find is planted once, and found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import driver
import pytest
from power import scratch, survey
from scenario import record

from freehold.actors.batch import Batch, waits
from freehold.schema.rows import Written
from freehold.storage import connection
from freehold.storage import create as create_module
from freehold.storage import delete as delete_module
from freehold.storage.disk import Disk
from freehold.storage.journal import Journal
from freehold.storage.transaction import Transaction
from freehold.storage.vfs.image import crash_images

ROUNDS = 20
"""How often each kind of image is drawn for each step that may show the bug."""


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch() as path:
        yield path


def found(name: str, seed: int, folder: Path, after: str = "a mark") -> list[str]:
    """Return the first violation, if any is found, in the scenario's images of moments after a step that says *after*."""
    steps = record(name, folder / "scenario")
    images = (image for number in range(ROUNDS) for image in crash_images(steps, seed=seed + number) if f"({after}" in image.story)
    return survey(images, folder, at_most=1)[1]


def test_acknowledging_before_the_commit_is_found(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end = Batch.end

    def answer_first(self: Batch) -> None:
        for envelope in self._turns:
            envelope.answer()
        end(self)

    monkeypatch.setattr(Batch, "end", answer_first)

    assert found("append", seed, folder)


def test_an_event_and_its_transaction_number_in_two_transactions_are_found(
    seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Transaction.begin

    def begin_twice(self: Transaction, now_ms: int, **how: bool) -> None:
        begin(self, now_ms, **how)
        self._db.execute("COMMIT")
        self._db.execute("BEGIN IMMEDIATE")

    monkeypatch.setattr(Transaction, "begin", begin_twice)

    assert found("append", seed, folder, "4096 bytes written")


def test_a_rename_before_the_sync_is_found(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(create_module, "SYNCHRONOUS_EXTRA", 0)

    assert found("create", seed, folder)


def test_synchronous_normal_is_found(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SYNCHRONOUS_FULL", 1)

    assert found("append", seed, folder)


def test_an_answer_that_did_not_wait_and_says_it_did_is_found(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append = Journal.append

    def flagged(self: Journal, *args: Any) -> Written:
        return append(self, *args)._replace(durable=True)

    monkeypatch.setattr(Journal, "append", flagged)

    assert found("not durable", seed, folder)


def test_a_turn_that_asks_for_the_disk_in_a_commit_that_does_not_wait_is_found(
    seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "waits", lambda message: getattr(message, "name", None) != "waits" and waits(message))
    monkeypatch.setattr(Journal, "append", _as_asked(Journal.append))

    assert found("not durable", seed, folder)


def _as_asked(append: Any) -> Any:
    def appended(self: Journal, kind: str, name: str, *args: Any) -> Written:
        written: Written = append(self, kind, name, *args)
        return written._replace(durable=True) if name == "waits" else written

    return appended


def test_a_rename_without_a_sync_of_the_folder_is_found(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rename_only(temporary: str, path: Any, _inode: object, disk: Disk) -> None:
        disk.rename_new(temporary, path.file)

    monkeypatch.setattr(create_module, "_rename", rename_only)

    assert found("create", seed, folder)


def test_a_new_folder_that_is_not_synced_into_its_parent_is_found(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make_only(new: str, disk: Disk) -> None:
        disk.make_folder(str(Path(new).parent))
        disk.make_folder(new)

    monkeypatch.setattr(create_module, "_make_folder", make_only)

    assert found("create", seed, folder)


def test_a_deletion_that_is_not_synced_is_found(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def remove_only(path: Any, disk: Disk) -> None:
        disk.remove(path.file)

    monkeypatch.setattr(delete_module, "_remove", remove_only)

    assert found("delete", seed, folder)


def test_a_wal_that_may_come_back_alone_is_found(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def remove_at_once(path: Any, disk: Disk) -> None:
        disk.remove(path.file)
        disk.sync_folder(path.folder)

    monkeypatch.setattr(delete_module, "_remove", remove_at_once)

    assert found("delete what a dead owner left", seed, folder, "runs/deep/a.sqlite removed")
