"""The stat cache knows what has not changed, forgets what it cannot be sure of, and is never in the way."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest
from folder import snapshot
from other import locks
from trees import Shelf, taken

from freehold.schema.ids import check_run_id
from freehold.schema.limits import COARSE_GRAIN_NS, TIMESTAMP_GRAIN_NS
from freehold.storage.clock import Clock
from freehold.storage.registry import REGISTRY
from freehold.storage.statcache import FILE_NAME, StatCache

KEY = b"k" * 32


class At(Clock):
    """A clock that stands still."""

    def __init__(self, ns: int) -> None:
        self.ns = ns

    def now_ms(self) -> int:
        return self.ns // 1_000_000


@pytest.fixture
def later() -> Clock:
    """Return a clock that is past every time of a test's files."""
    return At(time.time_ns() + 3600 * 10**9)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(bytes(1000))
    return tmp_path / "file"


def kept(runs: Path, clock: Clock, file: Path, key: bytes = KEY) -> bytes | None:
    """Keep a file in the cache; return what is found of it by the next one."""
    with StatCache(str(runs), clock) as cache:
        cache.keep(file.lstat(), key)
    return found(runs, clock, file)


def found(runs: Path, clock: Clock, file: Path) -> bytes | None:
    with StatCache(str(runs), clock) as cache:
        return cache.find(file.lstat())


def test_what_was_kept_is_found_until_the_file_changes(runs: Path, later: Clock, file: Path) -> None:
    assert found(runs, later, file) is None
    assert kept(runs, later, file) == KEY

    changes: list[Callable[[], object]] = [
        lambda: file.write_bytes(bytes(999)),
        lambda: os.utime(file, ns=(5, 5)),
        lambda: file.chmod(0o600),
        lambda: file.write_bytes(bytes(1000)),
        lambda: file.rename(file.with_name("old")).with_name("file").write_bytes(bytes(1000)),
    ]
    for change in changes:
        change()
        assert found(runs, later, file) is None
        assert kept(runs, later, file) == KEY


def test_files_that_are_expected_are_found_as_they_were_then_and_others_one_by_one(runs: Path, later: Clock, file: Path) -> None:
    other, new = file.with_name("other"), file.with_name("new")
    for each in (other, new):
        each.write_bytes(bytes(1000))
    assert kept(runs, later, file) == kept(runs, later, other) == KEY
    found, beside, unknown = file.lstat(), other.lstat(), new.lstat()
    with StatCache(str(runs), later) as cache:
        cache.expect(found.st_dev, [found.st_ino, unknown.st_ino])
        assert [cache.find(each) for each in (found, beside, unknown)] == [KEY, KEY, None]
        os.utime(file, ns=(5, 5))
        assert cache.find(file.lstat()) is None
        (runs / FILE_NAME).write_bytes(b"no database")
        cache.expect(beside.st_dev, [beside.st_ino])
        assert cache.find(beside) is None


def test_a_small_file_is_known_by_its_bytes_and_a_key_of_the_wrong_length_is_not_kept(runs: Path, later: Clock, tmp_path: Path) -> None:
    for size in (0, 5, 128, 129):
        (tmp_path / "small").write_bytes(bytes(size))
        key = bytes(size) if size <= 128 else KEY
        assert kept(runs, later, tmp_path / "small", key + b"!") is None
        assert kept(runs, later, tmp_path / "small", key) == key


@pytest.mark.parametrize(
    ("ns", "grain_ns"), [(1_700_000_000_123_456_789, TIMESTAMP_GRAIN_NS), (1_700_000_000_000_000_000, COARSE_GRAIN_NS)]
)
def test_a_file_that_is_not_older_than_the_scan_is_not_kept(runs: Path, ns: int, grain_ns: int) -> None:
    def stat(size: int, mtime_ns: int, ctime_ns: int) -> os.stat_result:
        seconds = (0o100644, 7, 8, 1, 0, 0, size, 0, mtime_ns // 10**9, ctime_ns // 10**9)
        more = {"st_mtime_ns": mtime_ns, "st_ctime_ns": ctime_ns}
        return os.stat_result(seconds, more)

    old = 1_600_000_000_000_000_000
    for mtime_ns, ctime_ns in ((ns, old), (old, ns), (ns, ns)):
        one = stat(1000, mtime_ns, ctime_ns)
        started = -(-(ns + grain_ns) // 10**6) * 10**6
        with StatCache(str(runs), At(started - 10**6)) as cache:
            cache.keep(one, KEY)
            cache.save()
            assert cache.find(one) is None
        with StatCache(str(runs), At(started + 10**6)) as cache:
            cache.keep(one, KEY)
            cache.save()
            assert cache.find(one) == KEY
        (runs / FILE_NAME).unlink()


def test_a_change_in_the_tick_of_the_scan_is_not_missed(runs: Path, tmp_path: Path) -> None:
    top, shelf = tmp_path / "top", Shelf()
    top.mkdir()
    for number in range(30):
        file = top / "file"
        file.write_bytes(b"a" * 500 + bytes([number, 0]))
        with StatCache(str(runs), Clock()) as cache:
            taken(top, shelf, known=cache)
            file.write_bytes(b"a" * 500 + bytes([number, 1]))
        with StatCache(str(runs), Clock()) as cache:
            (entry,) = taken(top, shelf, known=cache)[0]
        assert shelf.bytes[entry.content] == file.read_bytes()


def test_an_unchanged_folder_is_not_read_again(runs: Path, tmp_path: Path, later: Clock) -> None:
    top, shelf = tmp_path / "top", Shelf()
    (top / "inner").mkdir(parents=True)
    for size in (0, 100, 1000):
        (top / "inner" / str(size)).write_bytes(os.urandom(size))
    with StatCache(str(runs), later) as cache:
        first, _ = taken(top, shelf, known=cache)
    before = snapshot(top)
    with StatCache(str(runs), later) as cache:
        second, _ = taken(top, shelf, known=cache)

    assert first == second
    assert shelf.reads == 3
    assert snapshot(top) == before


def garbage(file: Path) -> None:
    file.write_bytes(os.urandom(20_000))


def wound(at: int) -> Callable[[Path], None]:
    def write(file: Path) -> None:
        with file.open("r+b") as opened:
            opened.seek(at)
            opened.write(b"\xa5" * 200)

    return write


def foreign(file: Path) -> None:
    file.unlink()
    db = apsw.Connection(str(file))
    db.execute("CREATE TABLE known (x); PRAGMA application_id = 7")
    db.close()


def later_version(file: Path) -> None:
    db = apsw.Connection(str(file))
    db.execute("PRAGMA user_version = 9")
    db.close()


DAMAGES: dict[str, Callable[[Path], None]] = {
    "deleted": Path.unlink,
    "empty": lambda file: os.truncate(file, 0),
    "cut": lambda file: os.truncate(file, 5000),
    "garbage": garbage,
    "header": wound(0),
    "schema": wound(100),
    "table": wound(4096),
    "foreign": foreign,
    "another version": later_version,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_file_that_is_deleted_damaged_or_foreign_starts_empty(
    runs: Path, later: Clock, file: Path, damage: Callable[[Path], None]
) -> None:
    assert kept(runs, later, file) == KEY

    damage(runs / FILE_NAME)

    assert found(runs, later, file) is None
    assert kept(runs, later, file) == KEY


def test_a_flipped_bit_in_a_row_is_not_handed_out(runs: Path, later: Clock, file: Path) -> None:
    assert kept(runs, later, file) == KEY
    raw = bytearray((runs / FILE_NAME).read_bytes())
    raw[raw.index(KEY) + 5] ^= 1
    (runs / FILE_NAME).write_bytes(raw)

    assert found(runs, later, file) is None


def in_the_way_link(file: Path) -> None:
    file.symlink_to(file.with_name("victim"))
    file.with_name("victim").write_bytes(b"important")


def in_the_way_hard_link(file: Path) -> None:
    file.with_name("victim").write_bytes(b"important")
    file.hardlink_to(file.with_name("victim"))


@pytest.mark.parametrize("way", [in_the_way_link, in_the_way_hard_link, os.mkfifo, Path.mkdir])
def test_what_is_not_a_plain_file_is_left_alone_and_done_without(runs: Path, later: Clock, file: Path, way: Callable[[Path], None]) -> None:
    way(runs / FILE_NAME)
    before = snapshot(runs)

    assert kept(runs, later, file) is None
    assert snapshot(runs) == before


def test_a_folder_that_is_not_there_is_done_without(runs: Path, later: Clock, file: Path) -> None:
    runs.rmdir()

    assert kept(runs, later, file) is None
    assert not runs.exists()


def test_while_another_process_writes_nothing_is_kept_and_everything_is_found(runs: Path, later: Clock, file: Path) -> None:
    assert kept(runs, later, file) == KEY
    with locks(runs / FILE_NAME):
        other = file.with_name("other")
        other.write_bytes(bytes(1000))
        assert kept(runs, later, other) is None
        assert found(runs, later, file) == KEY
    assert kept(runs, later, other) == KEY


def test_several_at_once_see_what_the_others_saved(runs: Path, later: Clock, file: Path) -> None:
    with StatCache(str(runs), later) as one, StatCache(str(runs), later) as other:
        one.keep(file.lstat(), KEY)
        assert other.find(file.lstat()) is None
        one.save()
        assert other.find(file.lstat()) == KEY


def test_one_that_is_emptied_under_another_goes_on(runs: Path, later: Clock, file: Path) -> None:
    with StatCache(str(runs), later) as one:
        one.keep(file.lstat(), KEY)
        one.save()
        later_version(runs / FILE_NAME)
        assert found(runs, later, file) is None
        assert one.find(file.lstat()) is None
        one.keep(file.lstat(), KEY)
    assert found(runs, later, file) == KEY


def test_the_oldest_are_forgotten(runs: Path, later: Clock, tmp_path: Path) -> None:
    files = [tmp_path / str(number) for number in range(10)]
    with StatCache(str(runs), later, entries_max=4) as cache:
        for file in files:
            file.write_bytes(bytes(1000))
            cache.keep(file.lstat(), KEY)
    assert [found(runs, later, file) for file in files] == [None] * 6 + [KEY] * 4


def test_its_name_is_no_run_s_and_nobody_else_may_read_it(runs: Path, later: Clock) -> None:
    StatCache(str(runs), later).close()

    assert [path.name for path in runs.iterdir()] == [FILE_NAME]
    assert (runs / FILE_NAME).stat().st_mode & 0o777 == 0o600
    with pytest.raises(Exception, match="run id"):
        check_run_id(FILE_NAME.removesuffix(".sqlite"))


def test_a_scan_of_the_runs_does_not_open_it_under_sqlite(runs: Path, later: Clock) -> None:
    with StatCache(str(runs), later) as cache:
        inode = ((runs / FILE_NAME).stat().st_dev, (runs / FILE_NAME).stat().st_ino)
        assert REGISTRY.holds(inode)
        _, report = taken(runs, Shelf(), known=cache)
    assert {entry.reason.value for entry in report.skipped} == {"in_use"}
    assert not REGISTRY.holds(inode)


KILLED = """
import sys, os, signal
from pathlib import Path
from freehold.storage.clock import Clock
from freehold.storage.statcache import StatCache
class Later(Clock):
    def now_ms(self): return super().now_ms() + 3_600_000
cache = StatCache(sys.argv[1], Later())
for number in range(5000):
    cache.keep(os.stat(sys.argv[2]), b"k" * 32)
    if number % 10 == 0:
        cache.save()
        print(flush=True)
signal.pause()
"""


@pytest.fixture
def killed(runs: Path, file: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(runs), str(file)], stdout=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate(timeout=30)


def test_a_process_that_is_killed_while_it_saves_leaves_one_that_can_be_used(
    runs: Path, later: Clock, file: Path, killed: subprocess.Popen[bytes]
) -> None:
    assert killed.stdout is not None
    for _ in range(3):
        killed.stdout.readline()
    killed.kill()
    killed.wait(timeout=30)

    assert found(runs, later, file) == KEY
    assert kept(runs, later, file) == KEY
