"""The slow disk is slow, and a disk all the same."""

from __future__ import annotations

import time
from pathlib import Path

import apsw

from freehold.storage.vfs.slow import SLOW, SYNC_S


def test_a_commit_lasts_as_long_as_a_sync_at_least(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "a.db"), vfs=SLOW)
    db.pragma("journal_mode", "wal")
    db.pragma("synchronous", "full")
    db.execute("CREATE TABLE t (x)")

    spent = []
    for _ in range(20):
        begun = time.perf_counter()
        db.execute("INSERT INTO t VALUES (1)")
        spent.append(time.perf_counter() - begun)
    db.close()

    assert min(spent) >= SYNC_S  # the fastest of them: the disk underneath may be slow at times by itself


def test_what_is_written_is_in_the_file(tmp_path: Path) -> None:
    slow = apsw.Connection(str(tmp_path / "a.db"), vfs=SLOW)
    slow.pragma("journal_mode", "wal")
    slow.execute("CREATE TABLE t (x)")
    slow.execute("INSERT INTO t VALUES (7)")

    plain = apsw.Connection(str(tmp_path / "a.db"))
    found = plain.execute("SELECT x FROM t").get
    plain.close()
    slow.close()

    assert found == 7


def test_two_connections_on_it_see_each_other_s_locks(tmp_path: Path) -> None:
    one, other = (apsw.Connection(str(tmp_path / "a.db"), vfs=SLOW) for _ in range(2))
    one.execute("CREATE TABLE t (x)")
    one.execute("BEGIN IMMEDIATE")

    try:
        other.execute("BEGIN IMMEDIATE")
    except apsw.BusyError:
        refused = True
    else:
        refused = False
    one.close()
    other.close()

    assert refused
