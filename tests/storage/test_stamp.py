"""What a run file looks like from outside tells every later write, or is not relied on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hosting import known
from runfile import forge, forge_and_die, new_run

from freehold.schema.limits import COARSE_GRAIN_NS, TIMESTAMP_GRAIN_NS
from freehold.schema.rows import Stamp
from freehold.storage.clock import Clock
from freehold.storage.path import RunPath
from freehold.storage.pin import pin
from freehold.storage.stamp import are_settled, is_settled, is_sure, seal, stamp_of
from freehold.storage.store import Store


def own_and_close(path: RunPath) -> None:
    Store(pin(path, exclusive=True), Clock()).close(clean=True)


def sealed(path: RunPath) -> Stamp:
    held = pin(path, exclusive=True)
    try:
        stamp = seal(held, Clock())
    finally:
        held.close()
    assert stamp is not None
    return stamp


def longer_wal(path: RunPath) -> None:
    with Path(path.sibling("-wal")).open("ab") as wal:
        wal.write(b"x")


def same_times(path: RunPath) -> None:
    """Overwrite the file in place, and give it back its time."""
    found = Path(path.file).stat()
    content = Path(path.file).read_bytes()
    with Path(path.file).open("r+b") as opened:
        opened.write(content)
    os.utime(path.file, ns=(found.st_atime_ns, found.st_mtime_ns))


CHANGES: list[Callable[[RunPath], object]] = [
    own_and_close,
    lambda path: forge(path, "UPDATE run SET txn = txn + 1"),
    lambda path: forge_and_die(path, "UPDATE run SET txn = txn + 1"),
    longer_wal,
    same_times,
    lambda path: Path(path.file).chmod(0o644),
    lambda path: os.utime(path.file),
]


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_shows_also_at_once_after_the_seal(tmp_path: Path, change: Callable[[RunPath], object]) -> None:
    path = new_run(tmp_path)
    stamp = sealed(path)
    assert stamp_of(path) == stamp
    change(path)
    assert stamp_of(path) != stamp


def test_the_seal_is_a_time_that_the_kernel_does_not_give_and_the_file_is_whole(tmp_path: Path) -> None:
    path = new_run(tmp_path)
    content, before = Path(path.file).read_bytes(), time.time_ns()
    stamps = [sealed(path) for _ in range(50)]
    assert before < min(stamp.mtime_ns for stamp in stamps)
    assert len({stamp.mtime_ns for stamp in stamps}) == 50  # of one tick, all different
    assert Path(path.file).read_bytes() == content


def test_what_cannot_be_sealed_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Coarse(Clock):
        def now_ns(self) -> int:
            return 10**30  # no file system keeps that

    path = new_run(tmp_path)
    held = pin(path, exclusive=True)
    longer_wal(path)
    assert seal(held, Clock()) is None
    Path(path.sibling("-wal")).unlink()
    before = stamp_of(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "utime", refuse)
        assert seal(held, Clock()) is None
    assert stamp_of(path) == before
    Path(path.file).rename(tmp_path / "b.sqlite")
    other = new_run(tmp_path)
    there = stamp_of(other)
    assert seal(held, Clock()) is None
    assert stamp_of(other) == there
    held.close()


def refuse(*_arguments: object, **_options: object) -> None:
    raise PermissionError


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: Path(path).symlink_to("x"), lambda path: os.link(Path(path).with_name("x"), path)]
)
def test_what_a_look_would_refuse_has_no_stamp(tmp_path: Path, suffix: str, make: Callable[[str], object]) -> None:
    path = new_run(tmp_path)
    (tmp_path / "x").write_bytes(b"x")
    make(path.sibling(suffix))
    assert stamp_of(path) is None


def test_no_plain_file_has_a_stamp(tmp_path: Path) -> None:
    path = new_run(tmp_path)
    os.link(path.file, tmp_path / "b.sqlite")
    assert stamp_of(path) is None
    assert stamp_of(RunPath(str(tmp_path), "c")) is None
    (tmp_path / "d.sqlite").mkdir()
    assert stamp_of(RunPath(str(tmp_path), "d")) is None
    (tmp_path / "e.sqlite").touch()
    assert stamp_of(RunPath(str(tmp_path), "e")) is None


def test_an_empty_wal_is_none(tmp_path: Path) -> None:
    path = new_run(tmp_path)
    stamp = stamp_of(path)
    Path(path.sibling("-wal")).touch()
    assert stamp_of(path) == stamp


NOW_MS = 1_700_000_000_123
FINE = NOW_MS * 1_000_000 + 456


@pytest.mark.parametrize("which", ["mtime_ns", "ctime_ns", "wal_mtime_ns"])
def test_what_was_written_to_just_before_it_was_seen_is_looked_at_again(which: str) -> None:
    old = Stamp(1, 2, 3, 1_001, 1_002, 5, 1_003)
    for back_ns, settled in ((0, False), (TIMESTAMP_GRAIN_NS - 1_000, False), (TIMESTAMP_GRAIN_NS + 1_000_000, True)):
        stamp = old._replace(**{which: FINE - back_ns})
        assert is_settled(stamp, NOW_MS) is settled
        assert is_sure(known(stamp=stamp, sealed=False, seen_at=NOW_MS)) is settled
        assert is_sure(known(stamp=stamp, sealed=True, seen_at=NOW_MS))


def test_coarse_times_need_a_wider_margin() -> None:
    second = NOW_MS // 1000 * 10**9
    assert not are_settled((second - 10**9,), NOW_MS)
    assert are_settled((second - COARSE_GRAIN_NS,), NOW_MS)


def test_numbers_without_a_sign_are_kept_as_sqlite_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = new_run(tmp_path)
    really = os.lstat

    def high(file: str) -> os.stat_result:
        found = really(file)
        return os.stat_result((found.st_mode, 2**64 - 5, *found[2:]))

    monkeypatch.setattr(os, "lstat", high)
    stamp = stamp_of(path)
    assert stamp is not None
    assert stamp.ino == -5
