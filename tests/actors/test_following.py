"""Waiting for a run to go on: at its owner, or at its file, which is looked into after each change, and not without one."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from turns import Busy

import freehold
from freehold import DeadlineExceeded, Host, Run
from freehold.actors import following
from freehold.actors.following import Watch, wait_beyond
from freehold.schema.messages import WaitBeyond
from freehold.storage.path import RunPath, resolve


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    with freehold.open(tmp_path) as host:
        host.create("a").close()
    return resolve(tmp_path, "a")


def test_after_each_change_a_file_is_looked_into_twice(path: RunPath) -> None:
    watch = Watch(path)
    for change in (None, 1_000_000_000, 2_000_000_000):
        if change is not None:
            os.utime(path.file, ns=(change, change))
        watch.wait(WaitBeyond(1))
        watch.wait(WaitBeyond(1))
        with pytest.raises(DeadlineExceeded), freehold.fail_after(0.3):
            watch.wait(WaitBeyond(1))


def test_a_change_of_the_wal_counts_and_its_end_too(path: RunPath) -> None:
    watch = Watch(path)
    wal = Path(path.sibling("-wal"))
    for change in (lambda: None, lambda: wal.write_bytes(b"1"), lambda: wal.write_bytes(b"22"), wal.unlink):
        change()
        watch.wait(WaitBeyond(1))
        watch.wait(WaitBeyond(1))
    with pytest.raises(DeadlineExceeded), freehold.fail_after(0.3):
        watch.wait(WaitBeyond(1))


def test_a_file_that_is_taken_over_by_this_process_is_waited_for_at_its_owner(path: RunPath, tmp_path: Path) -> None:
    watch = Watch(path)
    watch.wait(WaitBeyond(1))
    watch.wait(WaitBeyond(1))
    waited = threading.Thread(target=watch.wait, args=(WaitBeyond(1),))
    waited.start()
    with freehold.open(tmp_path) as host, host.open("a") as run:
        waited.join(30)
        assert not waited.is_alive()
        run.append("two")
        watch.wait(WaitBeyond(1))
        with pytest.raises(DeadlineExceeded), freehold.fail_after(0.2):
            while True:  # shortly before the deadline the owner says that nothing has come
                watch.wait(WaitBeyond(2))


def test_the_owners_own_silence_is_no_deadline_and_the_callers_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "WAIT_BEYOND_S", 0.05)
    with freehold.open(tmp_path) as host, host.create("a") as run:
        with Busy(run):
            wait_beyond(run._ref, run._lease, WaitBeyond(1))
            with pytest.raises(DeadlineExceeded), freehold.fail_after(0.01):
                wait_beyond(run._ref, run._lease, WaitBeyond(1))
        wait_beyond(run._ref, run._lease, WaitBeyond(1))
        run.append("on")


def test_an_owner_that_goes_is_no_error(tmp_path: Path) -> None:
    host: Host = freehold.open(tmp_path)
    run: Run = host.create("a")
    watch = Watch(resolve(tmp_path, "a"))
    waited = threading.Thread(target=watch.wait, args=(WaitBeyond(1),))
    waited.start()
    host.close()
    waited.join(30)

    assert not waited.is_alive()
    assert run.path.exists()
