"""What is known of runs comes back as it was put, one row a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hosting import known

from freehold.schema.errors import Error
from freehold.schema.rows import WakeupRow
from freehold.storage.hostfile import HostFile
from freehold.storage.known import forget, known_as, put_known, read_known
from freehold.storage.path import RunPath
from freehold.storage.wakeups import next_due, put_wakeup, take_due


@pytest.fixture
def file(tmp_path: Path) -> Iterator[HostFile]:
    file = HostFile(str(tmp_path))
    yield file
    file.close()


def test_every_field_comes_back(file: HostFile) -> None:
    full = known("b", events=9, sealed=False, seen_at=2**53, stamp=known().stamp._replace(ino=-5, mtime_ns=-1, wal_size=8, wal_mtime_ns=9))
    full = full._replace(row=full.row._replace(workflow="w", definition=b"d", status="completed", stop_kind="journal", stop_event=4))
    file.write(lambda db: put_known(db, [known(), full]))
    assert file.read(read_known) == {"a": known(), "b": full}


def test_the_last_word_on_a_run_counts_and_what_is_gone_is_forgotten_with_its_wakeups(file: HostFile) -> None:
    newer = known(events=2)
    file.write(lambda db: put_known(db, [known(), known("b")]))
    file.write(lambda db: put_known(db, [newer]))
    file.write(lambda db: put_wakeup(db, WakeupRow("b", "timer", 1)))
    file.write(lambda db: forget(db, ["b", "never there"]))
    assert file.read(read_known) == {"a": newer}
    assert file.read(next_due) is None


def test_a_run_that_lies_elsewhere_is_known_by_its_whole_path(file: HostFile) -> None:
    assert known_as(RunPath("/runs", "a"), "/runs") == "a"
    elsewhere = known_as(RunPath("/other", "a"), "/runs")
    assert elsewhere == "/other/a.sqlite"
    row = known(elsewhere, row=known("a").row)
    file.write(lambda db: put_known(db, [row]))
    assert file.read(read_known) == {elsewhere: row}


def test_what_no_run_says_is_not_kept(file: HostFile) -> None:
    with pytest.raises(Error):
        file.write(lambda db: put_known(db, [known(), known("b", events=0)]))
    assert file.read(read_known) == {}


def test_each_wakeup_is_taken_once_the_longest_due_first(file: HostFile) -> None:
    for wakeup in (WakeupRow("a", "timer", 5), WakeupRow("b", "timer", 3), WakeupRow("a", "retry", 9), WakeupRow("b", "timer", 4)):
        file.write(lambda db, wakeup=wakeup: put_wakeup(db, wakeup))  # type: ignore[misc]
    assert file.read(next_due) == 4
    assert file.write(lambda db: take_due(db, 3)) == []
    assert file.write(lambda db: take_due(db, 5)) == [WakeupRow("b", "timer", 4), WakeupRow("a", "timer", 5)]
    assert file.write(lambda db: take_due(db, 5)) == []
    assert file.read(next_due) == 9
