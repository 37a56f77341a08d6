"""The table `known`: what run files said when they were looked at last. Whether a row still counts, `storage/stamp.py` says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from freehold.schema.rows import Known, RunRow, Stamp
from freehold.storage.path import RunPath

_STAMP = ", ".join(Stamp._fields)
_ROW = ", ".join(RunRow._fields[1:])
_COLUMNS = f"run, {_STAMP}, sealed, seen_at, events, {_ROW}"
_READ = f"SELECT {_COLUMNS} FROM known"  # noqa: S608 - names of ours
_PLACES = ", ".join("?" * (4 + len(Stamp._fields) + len(RunRow._fields[1:])))
_PUT = f"INSERT OR REPLACE INTO known ({_COLUMNS}) VALUES ({_PLACES})"  # noqa: S608 - as above
_AFTER_STAMP = 1 + len(Stamp._fields)


def known_as(path: RunPath, root: str) -> str:
    """Return what the host file of *root* calls the run *path*: its id, or the whole path of a file that lies elsewhere."""
    return path.id if path.folder == root else path.file


def read_known(db: apsw.Connection) -> dict[str, Known]:
    """Return every row, by what it calls its run."""
    return {row[0]: _known(row) for row in db.execute(_READ)}


def put_known(db: apsw.Connection, known: Iterable[Known]) -> None:
    """Enter these rows in place of what was known of the same runs."""
    db.executemany(_PUT, [(each.run, *each.stamp, int(each.sealed), each.seen_at, each.events, *each.row[1:]) for each in known])


def forget(db: apsw.Connection, runs: Sequence[str]) -> None:
    """Forget these runs, and when they wanted to be looked at: their files are gone."""
    for table in ("known", "wakeup"):
        db.executemany(f"DELETE FROM {table} WHERE run = ?", [(run,) for run in runs])  # noqa: S608 - names of ours


def _known(row: tuple[Any, ...]) -> Known:
    sealed, seen_at, events = row[_AFTER_STAMP : _AFTER_STAMP + 3]
    run_id = row[0].rpartition("/")[2].removesuffix(".sqlite") if "/" in row[0] else row[0]
    return Known(row[0], Stamp._make(row[1:_AFTER_STAMP]), bool(sealed), seen_at, RunRow(run_id, *row[_AFTER_STAMP + 3 :]), events)
