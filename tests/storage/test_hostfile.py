"""The host file is shared without a word of locks, says by name what is wrong with it, and may be deleted at any time."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from folder import snapshot
from hosting import host, host_file, known, users
from other import locks, write
from runfile import new_run

from freehold.schema.ddl import host_statements
from freehold.schema.errors import Error
from freehold.schema.version import HOST_FILE_ID
from freehold.storage import hostfile
from freehold.storage.hostfile import HostFile
from freehold.storage.known import put_known, read_known
from freehold.storage.living import enter_host, read_hosts
from freehold.storage.registry import REGISTRY


def made(root: Path, *statements: str) -> Path:
    """Make a host file, and change it with SQLite alone."""
    HostFile(str(root)).close()
    if statements:
        write(host_file(root), *statements)
    return host_file(root)


def refused(root: Path, **options: Any) -> Error:
    with pytest.raises(Error) as caught:
        HostFile(str(root), **options)
    return caught.value


def test_a_new_one_is_for_its_user_alone_in_wal_mode_and_one_file_when_it_is_closed(tmp_path: Path) -> None:
    file = HostFile(str(tmp_path))
    assert file.read(lambda db: (db.pragma("journal_mode"), db.pragma("synchronous"), db.pragma("foreign_keys"))) == ("wal", 1, 1)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    file.close()
    file.close()
    assert [path.name for path in tmp_path.iterdir()] == [".host.sqlite"]
    assert REGISTRY._places == {}


def test_no_folder_is_made_for_it(tmp_path: Path) -> None:
    assert refused(tmp_path / "runs").code == "bad_root"
    assert list(tmp_path.iterdir()) == []


def garbage(root: Path) -> None:
    host_file(root).write_bytes(b"hello " * 1000)


def link(root: Path) -> None:
    host_file(root).symlink_to("other")
    (root / "other").write_bytes(b"")


def hard_link(root: Path) -> None:
    (root / "other").hardlink_to(made(root))


def fifo(root: Path) -> None:
    os.mkfifo(host_file(root))


def foreign(root: Path) -> None:
    write(host_file(root), "CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")


def foreign_with_a_hot_journal(root: Path) -> None:
    foreign(root)
    crash = "import apsw,os,sys; db=apsw.Connection(sys.argv[1]); db.pragma('cache_size', 1); db.execute('BEGIN IMMEDIATE');"
    crash += "[db.execute('INSERT INTO t VALUES (randomblob(5000))') for _ in range(100)]; os._exit(1)"
    subprocess.run([sys.executable, "-c", crash, str(host_file(root))], check=False, timeout=30)
    assert host_file(root).with_name(".host.sqlite-journal").stat().st_size


def a_run(root: Path) -> None:
    Path(new_run(root).file).rename(host_file(root))


def newer(root: Path) -> None:
    made(root, "PRAGMA user_version = 2")


def of_no_version(root: Path) -> None:
    made(root, "PRAGMA user_version = 0")


def half_made(root: Path) -> None:
    write(host_file(root), f"PRAGMA application_id = {HOST_FILE_ID}", host_statements().split(";")[0], "PRAGMA user_version = 1")


def with_a_trigger(root: Path) -> None:
    made(root, "CREATE TRIGGER t AFTER INSERT ON known BEGIN DELETE FROM known; END")


def cut(root: Path) -> None:
    file = HostFile(str(root))
    file.write(lambda db: put_known(db, [known(f"r{number}") for number in range(500)]))
    file.close()
    os.truncate(host_file(root), 3 * 4096)


def overwritten(root: Path) -> None:
    with made(root).open("r+b") as opened:
        opened.seek(100)
        opened.write(b"\xff" * 3996)


WRONG: dict[Callable[[Path], None], str] = {
    garbage: "not_a_host_file",
    link: "not_a_host_file",
    hard_link: "not_a_host_file",
    fifo: "not_a_host_file",
    foreign: "not_a_host_file",
    foreign_with_a_hot_journal: "not_a_host_file",
    a_run: "not_a_host_file",
    newer: "host_file_version",
    of_no_version: "host_file_version",
    half_made: "host_file_version",
    with_a_trigger: "host_file_version",
    cut: "host_file_damaged",
    overwritten: "host_file_damaged",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_what_is_wrong_is_said_by_name_and_is_the_same_afterwards(tmp_path: Path, wrong: Callable[[Path], None]) -> None:
    wrong(tmp_path)
    before = {name: (entry.inode, entry.bytes) for name, entry in snapshot(tmp_path).items()}

    def use() -> None:
        with_it = HostFile(str(tmp_path))
        try:
            with_it.read(read_known)
            with_it.write(lambda db: put_known(db, [known(f"x{number}") for number in range(500)]))
        finally:
            with_it.close()

    with pytest.raises(Error) as caught:
        use()
    assert caught.value.code == WRONG[wrong]
    assert str(host_file(tmp_path)) in str(caught.value)
    assert "delete" in str(caught.value)
    assert {name: (entry.inode, entry.bytes) for name, entry in snapshot(tmp_path).items()} == before
    assert REGISTRY._places == {}


def test_who_holds_the_lock_for_too_long_is_waited_for_and_then_said(tmp_path: Path) -> None:
    file = HostFile(str(tmp_path), busy_ms=50)
    with locks(host_file(tmp_path)):
        with pytest.raises(Error) as caught:
            file.write(lambda db: put_known(db, [known()]))
        assert caught.value.code == "database_busy"
        assert caught.value.details == {"file": str(host_file(tmp_path)), "seconds": 0.05}
        assert file.read(read_known) == {}
        assert refused(tmp_path, busy_ms=50).code == "database_busy"
    file.write(lambda db: put_known(db, [known()]))
    assert file.read(read_known).keys() == {"a"}
    file.close()


def test_a_switch_to_wal_that_is_refused_as_busy_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = [apsw.exception_for(apsw.SQLITE_BUSY), None]

    class Unlucky:
        """A connection whose first switch meets another's lock."""

        def __init__(self, db: apsw.Connection) -> None:
            self._db = db

        def pragma(self, name: str, *value: Any) -> Any:
            if value and (refusal := refusals.pop(0)) is not None:
                raise refusal
            return self._db.pragma(name, *value)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._db, name)

    really = hostfile._enter_wal
    monkeypatch.setattr(hostfile, "_enter_wal", lambda db, file: really(Unlucky(db), file))  # type: ignore[arg-type]
    file = HostFile(str(tmp_path))
    assert file.read(lambda db: db.pragma("journal_mode")) == "wal"
    file.close()
    assert refusals == []


def test_what_fails_in_a_write_leaves_nothing_of_it(tmp_path: Path) -> None:
    def half(db: apsw.Connection) -> None:
        put_known(db, [known("b")])
        raise ZeroDivisionError

    file = HostFile(str(tmp_path))
    file.write(lambda db: put_known(db, [known("a")]))
    with pytest.raises(ZeroDivisionError):
        file.write(half)
    assert file.read(read_known).keys() == {"a"}
    file.close()


@pytest.mark.parametrize("names", [[""], ["", "-wal", "-shm"]], ids=["the file", "all of it"])
def test_one_that_is_deleted_under_its_users_is_made_anew_and_said_again(tmp_path: Path, names: list[str]) -> None:
    mine = host()
    one = HostFile(str(tmp_path), lambda db: enter_host(db, mine))
    two = HostFile(str(tmp_path))
    one.write(lambda db: enter_host(db, mine))
    for name in names:
        Path(f"{host_file(tmp_path)}{name}").unlink()
    assert (one.is_there(), two.is_there()) == (False, False)
    two.write(lambda db: put_known(db, [known()]))
    one.look()
    assert one.is_there()
    for file in (one, two):
        assert file.read(read_known).keys() == {"a"}
        assert [found.id for found in file.read(read_hosts)] == [mine.id]
    two.close()
    one.close()
    assert [path.name for path in tmp_path.iterdir()] == [".host.sqlite"]
    HostFile(str(tmp_path)).close()


def test_what_is_written_while_the_file_is_deleted_is_written_into_the_new_one(tmp_path: Path) -> None:
    def work(db: apsw.Connection) -> int:
        put_known(db, [known()])
        if not calls:
            host_file(tmp_path).unlink()
        calls.append(1)
        return len(calls)

    calls: list[int] = []
    file = HostFile(str(tmp_path))
    assert file.write(work) == 2
    assert file.read(read_known).keys() == {"a"}
    file.close()


def test_the_last_to_close_a_deleted_one_leaves_the_new_one_alone(tmp_path: Path) -> None:
    old = HostFile(str(tmp_path))
    old.write(lambda db: put_known(db, [known("old")]))
    for path in list(tmp_path.iterdir()):
        path.unlink()
    new = HostFile(str(tmp_path))
    new.write(lambda db: put_known(db, [known("new")]))
    old.close()
    assert (tmp_path / ".host.sqlite-wal").stat().st_size
    assert new.read(read_known).keys() == {"new"}
    new.close()


def test_a_folder_that_is_deleted_is_not_made_again(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    root.mkdir()
    file = HostFile(str(root))
    for path in list(root.iterdir()):
        path.unlink()
    root.rmdir()
    with pytest.raises(Error) as caught:
        file.write(lambda db: put_known(db, [known()]))
    assert caught.value.code == "bad_root"
    assert list(tmp_path.iterdir()) == []
    file.close()


def test_eight_processes_whose_file_is_deleted_again_and_again_all_go_on(tmp_path: Path) -> None:
    with users(4) as them:
        assert [code for code, _ in them.all("open", str(tmp_path))] == ["ok"] * 4
        for _ in range(5):
            for path in list(tmp_path.iterdir()):
                path.unlink(missing_ok=True)
            assert [code for code, _ in them.all("look")] == ["ok"] * 4
            assert them.all("hosts") == [["ok", 4]] * 4


FORKS = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from hosting import known
from freehold.schema.errors import Error
from freehold.storage.clock import Clock
from freehold.storage.hostfile import HostFile
from freehold.storage.hostlook import look_at
from freehold.storage.known import put_known, read_known

root = sys.argv[1]
file = HostFile(root)
file.write(lambda db: put_known(db, [known()]))

def told(call):
    try:
        call()
    except Error as error:
        return error.code
    return "ok"

os.mkdir(other := os.path.join(root, "other"))
if os.fork() == 0:
    calls = [file.look, lambda: HostFile(root), lambda: HostFile(other), lambda: look_at(root, read_known, Clock())]
    print([told(call) for call in calls], file.is_there(), os.listdir(other), flush=True)
    file.close()
    sys.exit()
os.wait()
file.write(lambda db: put_known(db, [known("b")]))
print(sorted(file.read(read_known)), file.read(lambda db: db.pragma("quick_check")))
file.close()
"""


def test_a_forked_child_leaves_it_alone(tmp_path: Path) -> None:
    paths = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", FORKS, str(tmp_path)], capture_output=True, text=True, check=False, timeout=30, env=paths)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"{['forked_process'] * 4} False []", "['a', 'b'] ok"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".host.sqlite", "other"]
