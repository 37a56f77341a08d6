"""A run file comes to be whole or not at all, once, and its creator owns it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Barrier
from typing import Any

import apsw
import pytest
from folder import descriptors, snapshot
from runfile import new_run

from freehold.schema.errors import Damaged, OwnedElsewhere, Refused, RunExists, RunNotFound, StorageFailed, Unavailable
from freehold.storage import create as module
from freehold.storage import journal, platform
from freehold.storage.clock import Clock
from freehold.storage.connection import SYNCHRONOUS_EXTRA
from freehold.storage.create import create, sweep, uncreate
from freehold.storage.disk import Disk
from freehold.storage.path import RunPath, resolve
from freehold.storage.pin import Pin, pin
from freehold.storage.recognise import recognise
from freehold.storage.registry import REGISTRY
from freehold.storage.vfs.faults import Faulty

RACE = """
import sys
from freehold.schema.errors import RunExists
from freehold.storage.clock import Clock
from freehold.storage.create import create
from freehold.storage.path import resolve
print("ready", flush=True)
sys.stdin.readline()
try:
    pin = create(resolve(sys.argv[1], "a"), project="", props="{}", clock=Clock())
    print("won", flush=True)
    sys.stdin.readline()
except RunExists:
    print("lost", flush=True)
"""

AS_NOBODY = """
import os, sys
from freehold.schema.ddl import statements
from freehold.schema.errors import Error
from freehold.storage.clock import Clock
from freehold.storage.create import create
from freehold.storage.path import resolve
statements()  # read now what the other user may not reach
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
try:
    create(resolve(sys.argv[1], "a"), project="", props="{}", clock=Clock())
except Error as error:
    print(error.code)
"""

# Ends at the Nth call of any function, ours or Python's: one crash after another, from the first line to the last. A process
# without threads forks a creator for each, so that the test does not have to.
CRASHES = """
import os, signal, sys
from pathlib import Path
from freehold.storage.clock import Clock
from freehold.storage.create import create
from freehold.storage.path import resolve
from freehold.storage.pin import pin
from freehold.storage.recognise import recognise
path, step = resolve(sys.argv[1], "a"), int(sys.argv[2])
def create_and_die(left):
    def count(frame, event, arg):
        nonlocal left
        left -= event in ("call", "c_call")
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    sys.setprofile(count)
    create(path, project="", props="{}", clock=Clock())
    sys.setprofile(None)
    os._exit(0)
killed = whole = 0
ended = signal.SIGKILL
while ended == signal.SIGKILL:
    if (child := os.fork()) == 0:
        create_and_die(killed * step)
    _, ended = os.waitpid(child, 0)
    killed += ended == signal.SIGKILL
    if Path(path.file).exists():
        held = pin(path, exclusive=True)
        whole += recognise(held).last_seq
        held.close()
        Path(path.file).unlink()
print(ended, killed, whole)
"""


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return resolve(tmp_path / "runs", "a")


def created(path: RunPath, owner: object = None) -> Pin:
    return create(path, project="paint", props="{}", clock=Clock(), owner=owner)


def names(path: RunPath) -> list[str]:
    """Return what stands in the folder, sorted."""
    return sorted(file.name for file in Path(path.folder).iterdir())


def test_a_creator_owns_what_it_has_created(path: RunPath) -> None:
    owner = object()
    held = created(path, owner)

    assert held.path == path
    assert held.names_this()
    assert REGISTRY.owner_of(held.inode) is owner
    assert platform.lock_holders(held.inode) == [(os.getpid(), True)]
    assert recognise(held).run.project == "paint"
    held.close()
    pin(path, exclusive=True).close()


def test_one_file_is_left_that_only_its_user_may_read(path: RunPath) -> None:
    created(path).close()

    assert names(path) == ["a.sqlite"]
    assert Path(path.file).stat().st_mode & 0o777 == 0o600
    assert Path(path.file).stat().st_nlink == 1


def test_a_run_is_written_with_every_sync_and_its_foreign_keys_kept(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    write = journal.write_first_event
    found: list[dict[str, object]] = []

    def look_first(db: apsw.Connection, **named: Any) -> None:
        found.append({name: db.pragma(name) for name in ("synchronous", "foreign_keys")})
        write(db, **named)

    monkeypatch.setattr(module, "write_first_event", look_first)
    created(path).close()

    assert found == [{"synchronous": SYNCHRONOUS_EXTRA, "foreign_keys": 1}]


def test_missing_folders_are_made(tmp_path: Path) -> None:
    path = resolve(tmp_path / "x" / "y" / "z", "a")
    created(path).close()

    assert names(path) == ["a.sqlite"]


def test_an_id_that_exists_is_refused_and_left_alone(path: RunPath) -> None:
    new_run(Path(path.folder))
    before = snapshot(Path(path.folder))
    with pytest.raises(RunExists):
        created(path)

    assert snapshot(Path(path.folder)) == before


@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
def test_leftover_siblings_without_a_run_are_refused_by_name(path: RunPath, suffix: str) -> None:
    Path(path.folder).mkdir()
    Path(path.sibling(suffix)).touch()
    before = snapshot(Path(path.folder))
    with pytest.raises(Refused, match=f"a.sqlite{suffix}") as raised:
        created(path)

    assert (raised.value.code, raised.value.details) == ("leftover_files", {"files": [f"a.sqlite{suffix}"]})
    assert snapshot(Path(path.folder)) == before


def test_a_leftover_link_that_leads_nowhere_is_refused_too(path: RunPath) -> None:
    Path(path.folder).mkdir()
    Path(path.sibling("-wal")).symlink_to("nowhere")
    before = snapshot(Path(path.folder))
    with pytest.raises(Refused) as raised:
        created(path)

    assert raised.value.code == "leftover_files"
    assert snapshot(Path(path.folder)) == before


def test_a_leftover_that_appears_meanwhile_is_not_taken_over(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = module._rename

    def leave_first(*args: Any) -> None:
        Path(path.sibling("-wal")).touch()
        rename(*args)

    monkeypatch.setattr(module, "_rename", leave_first)
    with pytest.raises(Refused) as raised:
        created(path)

    assert raised.value.code == "leftover_files"
    assert names(path) == ["a.sqlite-wal"]


def test_a_file_in_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs").touch()
    before = snapshot(tmp_path)
    for root in (tmp_path / "runs", tmp_path / "runs" / "x"):
        with pytest.raises(Refused) as raised:
            created(resolve(root, "a"))
        assert raised.value.code == "bad_root"

    assert snapshot(tmp_path) == before


def test_a_network_file_system_is_refused_before_a_folder_is_made(path: RunPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "filesystem_of", lambda _: "nfs4")
    before = snapshot(tmp_path)
    with pytest.raises(Refused) as raised:
        created(path)
    assert raised.value.code == "network_filesystem"
    assert snapshot(tmp_path) == before

    create(path, project="", props="{}", clock=Clock(), any_filesystem=True).close()


def test_of_eight_racing_threads_one_creates(path: RunPath) -> None:
    barrier = Barrier(8)

    def race(_: int) -> Pin | None:
        barrier.wait(10)
        try:
            return created(path)
        except RunExists:
            return None

    with ThreadPoolExecutor(8) as threads:
        winners = [held for held in threads.map(race, range(8)) if held]

    assert len(winners) == 1
    assert names(path) == ["a.sqlite"]
    assert recognise(winners[0]).run.id == "a"
    winners[0].close()


def test_of_four_racing_processes_one_creates_and_owns(path: RunPath) -> None:
    racers = [
        subprocess.Popen([sys.executable, "-c", RACE, path.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    answers = [racer.stdout.readline() for racer in racers if racer.stdout]

    assert sorted(answers) == ["lost\n"] * 3 + ["won\n"]
    with pytest.raises(OwnedElsewhere):
        pin(path, exclusive=True)
    for racer in racers:
        racer.communicate("\n", timeout=30)
    assert names(path) == ["a.sqlite"]
    held = pin(path, exclusive=True)
    assert recognise(held).last_seq == 1
    held.close()


def test_a_creator_killed_at_any_point_leaves_a_whole_run_or_none(path: RunPath) -> None:
    # Steps of a prime, so that the points are not in step with any loop of the code.
    command = [sys.executable, "-c", CRASHES, path.folder, "5"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=50).stdout
    ended, killed, whole = (int(number) for number in answer.split())

    assert ended == 0
    assert killed > 20
    assert 1 < whole < killed  # one of them was not killed
    # Whatever those left behind, the next creation of the same id removes.
    created(path).close()
    assert names(path) == ["a.sqlite"]


def test_a_dead_creators_file_is_swept_and_a_living_ones_is_not(path: RunPath) -> None:
    Path(path.folder).mkdir()
    folder = Path(path.folder)
    dead = [folder / name for name in (".a.1-1.new", ".a.1-1.new-journal", ".b.2-7.new")]
    other = [folder / name for name in (".a.new", "a.1-1.new", ".a.1-x.new", ".host.sqlite")]
    for file in [*dead, *other]:
        file.touch()
    os.mkfifo(folder / ".a.9-9.new")
    living = platform.create_new(str(folder / ".a.3-3.new"))
    assert platform.lock_exclusive(living)

    assert sweep(path.folder, "a") == [".a.1-1.new"]
    assert sweep(path.folder) == [".b.2-7.new"]
    assert sweep(path.folder) == []
    assert set(names(path)) == {".a.3-3.new", ".a.9-9.new", *(file.name for file in other)}
    os.close(living)
    assert sweep(path.folder) == [".a.3-3.new"]


def test_a_creation_removes_what_dead_ones_of_the_same_id_have_left(path: RunPath) -> None:
    Path(path.folder).mkdir()
    for name in (".a.1-1.new", ".a.1-2.new-journal", ".b.1-1.new"):
        Path(path.folder, name).touch()
    created(path).close()

    assert names(path) == [".b.1-1.new", "a.sqlite"]


def test_a_sweep_leaves_neither_place_nor_descriptor_behind(path: RunPath) -> None:
    Path(path.folder).mkdir()
    for name in (".a.1-1.new", ".a.1-2.new"):
        Path(path.folder, name).touch()
    before = descriptors()

    assert len(sweep(path.folder)) == 2
    assert (descriptors(), REGISTRY._places) == (before, {})


def test_what_another_sweeper_has_removed_just_now_is_passed_over(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(path.folder).mkdir()
    Path(path.folder, ".a.1-3.new").touch()
    with monkeypatch.context() as earlier:
        earlier.setattr(os, "listdir", lambda _: [".a.1-1.new", ".a.1-2.new-journal", ".a.1-3.new"])
        assert sweep(path.folder) == [".a.1-3.new"]

    assert names(path) == []


def test_a_sweep_never_opens_what_this_process_is_creating(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    # An open and close by hand would drop the locks that SQLite holds in its transaction.
    write = journal.write_first_event
    locks: list[list[str]] = []

    def sweep_first(*args: Any, **named: Any) -> None:
        locks.append(posix_locks(path))
        assert sweep(path.folder) == []
        locks.append(posix_locks(path))
        write(*args, **named)

    monkeypatch.setattr(module, "write_first_event", sweep_first)
    created(path).close()

    assert locks[0]
    assert locks[1] == locks[0]


def posix_locks(path: RunPath) -> list[str]:
    """Return the fcntl locks on what stands in the folder."""
    inodes = [f":{file.stat().st_ino} " for file in Path(path.folder).iterdir()]
    lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    return sorted(line.split(maxsplit=1)[1] for line in lines if " POSIX " in line and any(inode in line for inode in inodes))


def test_a_creator_whose_file_is_swept_from_under_it_takes_another(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = platform.lock_exclusive
    numbers = iter(range(100))

    def swept_first(fd: int) -> bool:
        if next(numbers) == 0:
            Path(f"/proc/self/fd/{fd}").readlink().unlink()
        return lock(fd)

    monkeypatch.setattr(platform, "lock_exclusive", swept_first)
    created(path).close()

    assert names(path) == ["a.sqlite"]
    assert next(numbers) == 2


def test_a_creator_that_finds_its_temporary_name_taken_takes_another(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    # A creator in another pid namespace may have our pid.
    Path(path.folder).mkdir()
    monkeypatch.setattr(module, "_COUNTER", count(1))
    living = platform.create_new(other := str(Path(path.folder, f".a.{os.getpid()}-1.new")))
    assert platform.lock_exclusive(living)
    created(path).close()

    assert names(path) == [Path(other).name, "a.sqlite"]
    assert Path(other).stat().st_size == 0
    os.close(living)


class Outrun(Disk):
    """A disk on which a sweeper comes between a new file and its creator."""

    def __init__(self, way: str, times: int) -> None:
        self.way = way
        self.left = times
        self.taken: list[int] = []

    def create_new(self, file: str) -> int:
        fd = super().create_new(file)
        self.left -= 1
        if self.left >= 0 and self.way != "in another":
            REGISTRY.own(platform.inode_of(os.fstat(fd)), None)
            if self.way == "in this process":
                Path(file).unlink()  # else the number was just another file's
            self.taken.append(os.dup(fd))  # the inode is not used again
        elif self.left >= 0:
            self.taken.append(os.open(file, os.O_RDONLY))
            assert platform.lock_exclusive(self.taken[-1])
        return fd

    def end(self) -> None:
        for fd in self.taken:
            if self.way != "in another":
                REGISTRY.release(platform.inode_of(os.fstat(fd)))
            os.close(fd)


@pytest.mark.parametrize("way", ["in this process", "in another", "by its number"])
def test_a_creator_that_a_sweeper_outruns_takes_another_file(path: RunPath, way: str) -> None:
    disk, before = Outrun(way, times=2), descriptors()
    held = create(path, project="", props="{}", clock=Clock(), disk=disk)

    assert descriptors() == before + 1 + len(disk.taken)
    assert platform.lock_exclusive(held.fd)  # we have it already: nobody else could
    assert names(path) == ["a.sqlite"]
    held.close()
    disk.end()


def test_a_creator_that_never_keeps_a_file_gives_up_and_leaves_nothing(path: RunPath) -> None:
    disk, before = Outrun("in another", times=1000), descriptors()
    with pytest.raises(Unavailable):
        create(path, project="", props="{}", clock=Clock(), disk=disk)
    disk.end()

    assert (names(path), descriptors()) == ([], before)


def test_where_there_is_no_wal_mode_no_run_is_created(path: RunPath) -> None:
    disk = Disk()
    disk.vfs = "unix-none"  # one of SQLite's own, without shared memory
    with pytest.raises(Damaged) as raised:
        create(path, project="", props="{}", clock=Clock(), disk=disk)

    assert raised.value.details["rule"] == "format"
    assert names(path) == []


def test_a_file_system_that_is_mounted_read_only_is_told_as_that(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> int:
        raise OSError(errno.EROFS, "read-only")

    monkeypatch.setattr(platform, "create_new", refuse)
    with pytest.raises(Refused) as raised:
        created(path)

    assert raised.value.code == "no_permission"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EINVAL])
@pytest.mark.parametrize("call", ["create_new", "rename_new", "sync_folder"])
def test_a_failing_disk_leaves_nothing(path: RunPath, monkeypatch: pytest.MonkeyPatch, call: str, number: int) -> None:
    Path(path.folder).mkdir()

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(platform, call, fail)
    with pytest.raises(StorageFailed) as raised:
        created(path)
    assert raised.value.executed == "no"
    assert names(path) == []

    monkeypatch.undo()
    created(path).close()


class FullVFS(apsw.VFS):
    """A disk that takes a number of writes and is then full."""

    left = 0

    def __init__(self) -> None:
        super().__init__("full", "", makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        return FullFile(name, flags)


class FullFile(apsw.VFSFile):
    """A file on it."""

    def __init__(self, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        FullVFS.left -= 1
        if FullVFS.left < 0:
            raise apsw.FullError("full")
        super().xWrite(data, offset)


@pytest.fixture
def full_disk() -> Iterator[type[FullVFS]]:
    vfs = FullVFS()
    yield FullVFS
    vfs.unregister()


def test_a_full_disk_leaves_nothing_wherever_it_is_full(path: RunPath, full_disk: type[FullVFS]) -> None:
    Path(path.folder).mkdir()
    failed: list[StorageFailed] = []
    left: list[str] = []
    for writes in count(0, 3):
        full_disk.left = writes
        try:
            created(path).close()
            break
        except StorageFailed as error:
            failed.append(error)
        left += names(path)
    assert left == []
    assert len(failed) > 3
    assert {error.executed for error in failed} == {"no"}
    assert names(path) == ["a.sqlite"]


def test_a_failed_creation_gives_back_place_and_descriptors(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(path.folder).mkdir()
    open_before = descriptors()
    monkeypatch.setattr(platform, "rename_new", rename_taken)
    with pytest.raises(RunExists):
        created(path)

    assert descriptors() == open_before
    assert REGISTRY._places == {}
    with pytest.raises(RunNotFound):
        pin(path, exclusive=True)


def rename_taken(*_: object) -> None:
    """Fail as the second of two racers does."""
    raise FileExistsError(errno.EEXIST, "taken")


def test_siblings_that_appear_beside_a_rivals_run_are_not_called_leftover(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = module._rename

    def rival_first(*args: object) -> None:
        monkeypatch.setattr(module, "_rename", rename)
        created(path).close()
        Path(path.sibling("-wal")).touch()
        rename(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_rename", rival_first)
    with pytest.raises(RunExists):
        created(path)
    assert names(path) == ["a.sqlite", "a.sqlite-wal"]


def test_a_rival_that_appears_with_its_wal_while_we_look_is_told_as_a_rival(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    lexists = os.path.lexists

    def rival_after(file: str) -> bool:
        found = lexists(file)
        monkeypatch.setattr(os.path, "lexists", lexists)
        new_run(Path(path.folder))
        Path(path.sibling("-wal")).touch()
        return found

    monkeypatch.setattr(os.path, "lexists", rival_after)
    with pytest.raises(RunExists):
        created(path)


class Told(Disk):
    """A disk that says what was done to it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def make_folder(self, folder: str) -> None:
        super().make_folder(folder)
        self.done.append(f"make {Path(folder).name}")

    def remove(self, file: str) -> None:
        super().remove(file)
        self.done.append(f"remove {Path(file).name}")

    def sync_folder(self, folder: str) -> None:
        super().sync_folder(folder)
        self.done.append(f"sync {Path(folder).name}")


def test_the_folders_of_a_new_run_are_durable_one_by_one(tmp_path: Path) -> None:
    disk = Told()
    create(resolve(tmp_path / "x" / "y", "a"), project="", props="{}", clock=Clock(), disk=disk).close()

    assert disk.done == ["make x", f"sync {tmp_path.name}", "make y", "sync x", "sync y"]


# Taken back


def test_taking_a_creation_back_removes_siblings_first_and_for_good(path: RunPath) -> None:
    held, disk = created(path), Told()
    Path(path.sibling("-wal")).touch()
    uncreate(held, disk)

    assert disk.done == ["remove a.sqlite-wal", "remove a.sqlite", "sync runs"]
    assert (names(path), REGISTRY._places) == ([], {})


def test_taking_a_creation_back_leaves_what_has_come_in_its_place(path: RunPath, tmp_path: Path) -> None:
    held = created(path)
    other = new_run(tmp_path / "other")
    Path(other.file).rename(path.file)
    before = snapshot(Path(path.folder))
    uncreate(held)

    assert snapshot(Path(path.folder)) == before
    pin(path, exclusive=True).close()


def test_a_creation_that_can_be_neither_owned_nor_removed_is_told_and_free(path: RunPath) -> None:
    held = created(path)
    with Faulty() as disk:
        disk.arm("eio", 1, calls=["remove"])
        with pytest.raises(StorageFailed) as raised:
            uncreate(held, disk)

    assert (raised.value.executed, raised.value.details["rolled_back"]) == ("yes", False)
    again = pin(path, exclusive=True)
    assert recognise(again).last_seq == 1
    again.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_that_another_user_may_not_write_to_is_refused() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        before = snapshot(folder)
        for root in (folder, folder / "new"):
            answer = subprocess.run([sys.executable, "-c", AS_NOBODY, root], capture_output=True, text=True, check=True, timeout=30)
            assert answer.stdout == "no_permission\n"

        assert snapshot(folder) == before
