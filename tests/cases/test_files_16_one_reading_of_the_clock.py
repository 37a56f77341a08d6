"""A transaction has one time, which all of its events carry; no time is part of a root, so the same files are the same root at any time."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import freehold
from freehold import Event


def test_all_events_of_one_transaction_have_its_time(tmp_path: Path) -> None:
    with freehold.open(tmp_path, timeout=20) as host, host.create("r") as run:

        def work(tx: freehold.Transaction) -> tuple[datetime, Event, Event]:
            first = tx.append("first")
            time.sleep(0.01)
            tx.files.write_text("f", "1")
            second = tx.append("second")
            time.sleep(0.01)
            tx.files.write_text("f", "2")
            return tx.now, first, second

        now, *events = run.transact(work)
        last = next(run.history(reverse=True))
        assert (last.kind, last.name) == ("publish", "files")
        assert {event.time for event in (*events, last) if isinstance(event, Event)} == {now}


def test_the_same_files_written_at_another_time_are_the_same_root(tmp_path: Path) -> None:
    with freehold.open(tmp_path, timeout=20) as host, host.create("r") as run:
        roots = []
        for _ in range(2):
            effect = run.publish("write", lambda files: files.write_text("f", "same"))
            roots.append((effect.root, effect.time))
            time.sleep(0.005)

        assert roots[0][0] == roots[1][0]
        assert roots[0][1] < roots[1][1]
