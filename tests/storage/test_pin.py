"""A run file is pinned or refused, and neither changes anything in its folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest
from folder import descriptors, snapshot
from runfile import Owner, new_run

from freehold.schema.errors import Error, OwnedElsewhere, Refused, RunNotFound
from freehold.storage import platform
from freehold.storage.path import RunPath, resolve
from freehold.storage.pin import Pin, look, owned_elsewhere, pin
from freehold.storage.platform import LockHolder
from freehold.storage.registry import REGISTRY, OwnedHere

PIN = """
import os, sys
from freehold.schema.errors import Error
from freehold.storage.path import resolve_file
from freehold.storage.pin import pin
if len(sys.argv) > 3:  # only now: the other user may not reach the interpreter's files
    os.setgroups([])
    os.setgid(int(sys.argv[3]))
    os.setuid(int(sys.argv[3]))
try:
    pin(resolve_file(sys.argv[1]), exclusive=sys.argv[2] == "own").close()
    print("pinned")
except Error as error:
    print(error.code)
"""


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


@pytest.fixture
def public() -> Iterator[Path]:
    """Return a folder that every user can reach, unlike the test's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def in_a_child(path: RunPath, how: str, user: int | None = None) -> str:
    """Return what a process of its own, perhaps of another user, is told when it pins."""
    command = [sys.executable, "-c", PIN, path.file, how, *([] if user is None else [str(user)])]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()


def test_an_owner_holds_lock_and_place_until_it_closes(path: RunPath, tmp_path: Path) -> None:
    before = snapshot(tmp_path)
    owner = object()
    held = pin(path, exclusive=True, owner=owner)

    assert REGISTRY.owner_of(held.inode) is owner
    assert platform.lock_holders(held.inode) == [(os.getpid(), True)]
    assert in_a_child(path, "own") == in_a_child(path, "read") == "owned_elsewhere"
    held.close()
    held.close()
    assert REGISTRY.owner_of(held.inode) is None
    assert in_a_child(path, "own") == "pinned"
    assert snapshot(tmp_path) == before


def test_a_pin_that_closes_twice_does_not_end_the_next_one(path: RunPath) -> None:
    first = pin(path, exclusive=True)
    first.close()
    second = pin(path, exclusive=True, owner=second_owner)
    first.close()

    assert REGISTRY.owner_of(second.inode) is second_owner
    assert in_a_child(path, "own") == "owned_elsewhere"
    second.close()


def second_owner() -> None:
    """Stand for an owner."""


def test_readers_keep_owners_out_and_not_each_other(path: RunPath) -> None:
    first, second = pin(path, exclusive=False), pin(path, exclusive=False)
    assert in_a_child(path, "read") == "pinned"
    assert in_a_child(path, "own") == "owned_elsewhere"
    with pytest.raises(OwnedElsewhere) as raised:
        pin(path, exclusive=True)
    assert raised.value.details["shared"] is True

    first.close()
    first.close()
    assert in_a_child(path, "own") == "owned_elsewhere"
    second.close()
    assert in_a_child(path, "own") == "pinned"


def test_an_opener_is_told_whether_waiting_helps(path: RunPath, tmp_path: Path) -> None:
    before = snapshot(tmp_path)
    with Owner(path) as other:
        for exclusive in (True, False):
            with pytest.raises(OwnedElsewhere) as raised:
                pin(path, exclusive=exclusive)
            assert raised.value.details == {"shared": False, "pids": [other.pid]}
    fd = os.open(path.file, os.O_RDONLY | os.O_NOATIME)  # stands for a reader in another process
    assert platform.lock_shared(fd)
    with pytest.raises(OwnedElsewhere) as raised:
        pin(path, exclusive=True)
    os.close(fd)

    assert raised.value.details == {"shared": True, "pids": [os.getpid()]}
    assert snapshot(tmp_path) == before


def test_a_reader_of_this_process_own_run_is_sent_to_its_owner(path: RunPath) -> None:
    held = pin(path, exclusive=True, owner="actor")
    with pytest.raises(OwnedHere) as raised:
        look(path)
    with pytest.raises(OwnedElsewhere, match="this process"):
        pin(path, exclusive=True)
    assert raised.value.owner == "actor"

    # Neither has opened the file: that would have dropped SQLite's locks, and the flock is still ours.
    assert in_a_child(path, "own") == "owned_elsewhere"
    held.close()


def test_a_second_owner_in_this_process_drops_no_lock_of_the_first(path: RunPath) -> None:
    held = pin(path, exclusive=True, owner="actor")
    db = apsw.Connection(path.file)
    db.execute("BEGIN IMMEDIATE")
    before = posix_locks(path)
    with pytest.raises(OwnedElsewhere):
        pin(path, exclusive=True)

    assert before
    assert posix_locks(path) == before
    db.close()
    held.close()


def posix_locks(path: RunPath) -> list[str]:
    """Return the fcntl locks on the run file."""
    inode = f":{Path(path.file).stat().st_ino} "
    lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    return sorted(line.split(maxsplit=1)[1] for line in lines if " POSIX " in line and inode in line)


def test_a_reader_that_has_left_keeps_no_owner_out_though_another_still_looks(path: RunPath) -> None:
    looker, reader = look(path), look(path)
    assert reader.share()
    assert reader.share()
    assert in_a_child(path, "own") == "owned_elsewhere"
    reader.close()

    assert in_a_child(path, "own") == "pinned"
    looker.close()


def test_a_place_is_free_when_its_descriptor_is_closed_and_not_before(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    held = pin(path, exclusive=True, owner="actor")
    fd, close = held.fd, os.close
    owners: list[object] = []

    def watched(closed: int) -> None:
        if closed == fd:
            owners.append(REGISTRY.owner_of(held.inode))
        close(closed)

    monkeypatch.setattr(os, "close", watched)
    held.close()

    assert owners == ["actor"]
    assert REGISTRY.owner_of(held.inode) is None


@pytest.mark.parametrize(
    ("looks", "told"),
    [
        ([[], [], [(7, True)]], {"shared": False, "pids": [7]}),
        ([[], [(7, False), (8, False)]], {"shared": True, "pids": [7, 8]}),
        ([[(0, True)]], {"shared": False, "pids": []}),
        ([[], [], []], {"shared": False, "pids": []}),
    ],
    ids=["an owner at the third look", "two readers at the second", "an owner in another namespace", "nobody"],
)
def test_what_the_lock_table_tells_of_a_holder_is_told_on(
    path: RunPath, monkeypatch: pytest.MonkeyPatch, looks: list[list[tuple[int, bool]]], told: dict[str, object]
) -> None:
    found = iter(looks)
    monkeypatch.setattr(platform, "lock_holders", lambda _: [LockHolder(*holder) for holder in next(found)])

    assert owned_elsewhere((0, 0)).details == told


def hard_link(folder: Path) -> None:
    (folder / "b.sqlite").hardlink_to(folder / "a.sqlite")


def fifo(folder: Path) -> None:
    (folder / "a.sqlite").unlink()
    os.mkfifo(folder / "a.sqlite")


def subfolder(folder: Path) -> None:
    (folder / "a.sqlite").unlink()
    (folder / "a.sqlite").mkdir()


def device(folder: Path) -> None:
    (folder / "a.sqlite").unlink()
    (folder / "a.sqlite").symlink_to("/dev/null")  # resolved by hand below


def loop(folder: Path) -> None:
    (folder / "a.sqlite").unlink()
    (folder / "a.sqlite").symlink_to("a.sqlite")


@pytest.mark.parametrize(
    ("change", "code"),
    [(hard_link, "hard_link"), (fifo, "not_a_file"), (subfolder, "not_a_file"), (device, "not_a_file"), (loop, "not_a_file")],
)
@pytest.mark.parametrize("exclusive", [True, False])
def test_what_is_not_one_plain_file_is_refused(
    path: RunPath, tmp_path: Path, change: Callable[[Path], None], code: str, exclusive: bool
) -> None:
    change(tmp_path)
    before = snapshot(tmp_path)
    with pytest.raises(Refused) as raised:
        pin(path, exclusive=exclusive)

    assert raised.value.code == code
    assert snapshot(tmp_path) == before


def test_a_link_leads_to_the_same_run_and_a_dangling_one_to_none(path: RunPath, tmp_path: Path) -> None:
    (tmp_path / "alias.sqlite").symlink_to("a.sqlite")
    (tmp_path / "lost.sqlite").symlink_to("nothing.sqlite")
    before = snapshot(tmp_path)
    held = pin(path, exclusive=True)
    with pytest.raises(OwnedHere):
        look(resolve(tmp_path, "alias"))
    held.close()

    for exclusive in (True, False):
        with pytest.raises(RunNotFound):
            pin(resolve(tmp_path, "lost"), exclusive=exclusive)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("root", ["", "missing", "a.sqlite"])
def test_a_missing_run_or_folder_is_not_found_and_not_created(path: RunPath, tmp_path: Path, root: str) -> None:
    before = snapshot(tmp_path)
    with pytest.raises(RunNotFound) as raised:
        pin(resolve(tmp_path / root, "b"), exclusive=True)

    assert isinstance(raised.value, LookupError)
    assert snapshot(tmp_path) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_file_that_another_user_keeps_for_himself_is_refused(public: Path) -> None:
    path = new_run(public)
    before = snapshot(public)
    for how in ("own", "read"):
        assert in_a_child(path, how, user=65534) == "no_permission"
    assert snapshot(public) == before

    Path(path.file).chmod(0o644)
    assert in_a_child(path, "read", user=65534) == "pinned"
    public.chmod(0o700)
    assert in_a_child(path, "read", user=65534) == "no_permission"


def test_a_refused_pin_gives_back_its_place_and_its_descriptors(path: RunPath, tmp_path: Path) -> None:
    inode = platform.inode_of(Path(path.file).stat())
    open_before = descriptors()
    with Owner(path), pytest.raises(Error):
        pin(path, exclusive=True)
    hard_link(tmp_path)
    with pytest.raises(Error):
        pin(path, exclusive=False)

    assert descriptors() == open_before
    REGISTRY.own(inode, None)
    REGISTRY.release(inode)


@pytest.mark.parametrize("replaced", [True, False])
def test_a_file_that_was_deleted_or_replaced_before_we_had_its_lock_is_not_pinned(
    path: RunPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaced: bool
) -> None:
    lock = platform.lock_exclusive

    def change_first(fd: int) -> bool:
        Path(path.file).unlink()
        if replaced:
            Path(path.file).touch()
        return lock(fd)

    monkeypatch.setattr(platform, "lock_exclusive", change_first)
    with pytest.raises(Error) as raised:
        pin(path, exclusive=True)

    assert raised.value.code == ("changed_while_reading" if replaced else "run_not_found")


def test_a_forked_child_lets_go_so_that_the_run_is_free_when_its_owner_closes(path: RunPath) -> None:
    held = pin(path, exclusive=True)
    waiting, wake = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(wake)
        os.read(waiting, 1)
        os._exit(0)
    assert in_a_child(path, "own") == "owned_elsewhere"
    held.close()
    assert in_a_child(path, "own") == "pinned"

    os.close(wake)
    os.close(waiting)
    os.waitpid(child, 0)


def test_a_forked_child_leaves_a_readers_descriptor_to_the_registry(path: RunPath) -> None:
    reader = look(path)
    fd = reader.fd
    reader.forked()
    reader.close()

    assert platform.inode_of(os.fstat(fd)) == reader.inode
    REGISTRY.leave(reader.inode)


def test_a_pin_knows_whether_its_path_still_names_it(path: RunPath) -> None:
    held: Pin = pin(path, exclusive=True)
    assert held.names_this()
    Path(path.file).rename(path.file + ".moved")
    assert not held.names_this()
    Path(path.file).symlink_to(path.file + ".moved")
    assert not held.names_this()  # another file's name may lead anywhere tomorrow
    held.close()
