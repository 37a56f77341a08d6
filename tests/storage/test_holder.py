"""Whoever owns a run is named as the kernel and the file's own last tenure know it, and nobody else ever is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from folder import snapshot
from owned import NOW_MS, own
from runfile import Owner, forge, new_run

from freehold.schema.errors import Holder, OwnedElsewhere
from freehold.storage import platform
from freehold.storage.holder import holder_of, name_holder
from freehold.storage.path import RunPath, resolve
from freehold.storage.pin import pin
from freehold.storage.platform import LockHolder

SIGNED = """
import sys
from freehold.storage.clock import Clock
from freehold.storage.path import resolve_file
from freehold.storage.pin import pin
from freehold.storage.store import Store
store = Store(pin(resolve_file(sys.argv[1]), exclusive=True), Clock())
print("owned", flush=True)
sys.stdin.readline()
store.close(clean=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


@contextmanager
def signed(path: RunPath) -> Iterator[subprocess.Popen[bytes]]:
    """Let another process own the run in earnest until the block ends."""
    with subprocess.Popen([sys.executable, "-c", SIGNED, path.file], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"owned\n"
        try:
            yield process
        finally:
            process.communicate(b"\n", timeout=30)


def test_a_real_other_process_is_named_by_pid_machine_and_moment(path: RunPath) -> None:
    own(path).close(clean=True)
    before = datetime.now(UTC)
    with signed(path) as process:
        holder = holder_of(path)
        with pytest.raises(OwnedElsewhere) as raised:
            pin(path, exclusive=True)
        told = name_holder(raised.value, path)

    assert holder is not None
    assert (holder.pid, holder.hostname) == (process.pid, platform.hostname())
    assert timedelta(seconds=-1) < holder.since - before < timedelta(seconds=30)
    assert told.holder == holder
    assert str(process.pid) in str(told)
    assert platform.hostname() in str(told)
    assert told.code == "owned_elsewhere"


def test_an_owner_that_was_killed_is_named_no_more_once_its_lock_is_gone(path: RunPath) -> None:
    with signed(path) as process:
        process.kill()
        process.wait(30)
    store = own(path)
    store.close(clean=True)

    assert holder_of(path) is None


def test_a_new_owner_that_has_not_signed_yet_is_named_by_the_kernel(path: RunPath) -> None:
    own(path).close(clean=False)  # an earlier tenure, of this process, which never ended
    with Owner(path, "SELECT * FROM run") as process:
        holder = holder_of(path)

    assert holder is not None
    assert (holder.pid, holder.hostname) == (process.pid, platform.hostname())
    assert holder.since > datetime.fromtimestamp(NOW_MS / 1000, UTC)


def test_a_holder_that_the_kernel_does_not_name_is_named_by_its_tenure(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    with signed(path) as process:
        monkeypatch.setattr(platform, "lock_holders", lambda _: [LockHolder(0, exclusive=True)])  # it has another pid namespace
        holder = holder_of(path)

    assert holder is not None
    assert holder.pid == process.pid


def test_a_reader_is_not_named_as_the_holder(path: RunPath) -> None:
    own(path).close(clean=True)
    fd = os.open(path.file, os.O_RDONLY)  # stands for a reader in another process
    assert platform.lock_shared(fd)

    assert holder_of(path) is None
    os.close(fd)


def test_nobody_is_named_where_nobody_owns(path: RunPath) -> None:
    assert holder_of(path) is None
    own(path).close(clean=True)
    before = snapshot(Path(path.folder))

    assert holder_of(path) is None
    assert snapshot(Path(path.folder)) == before


def test_nobody_is_named_of_a_file_that_cannot_be_read(path: RunPath, tmp_path: Path) -> None:
    assert holder_of(resolve(tmp_path, "missing")) is None
    forge(path, "DROP TABLE tenure")

    assert holder_of(path) is None


def test_what_cannot_be_named_is_told_as_it_was(path: RunPath) -> None:
    error = OwnedElsewhere("a sentence", pids=[7])

    assert name_holder(error, path) is error


def test_our_own_ownership_is_not_looked_up_in_the_file(path: RunPath) -> None:
    store = own(path)
    assert holder_of(path) is None
    store.close(clean=True)


def test_a_holder_is_a_plain_value() -> None:
    since = datetime(2026, 1, 2, tzinfo=UTC)

    assert Holder(1, "box", since) == Holder(1, "box", since)
