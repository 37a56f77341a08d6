"""Every call that is Linux's own does what its name says."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from folder import descriptors

from freehold.schema.errors import UnsupportedPlatform
from freehold.storage import platform
from freehold.storage.platform import LockHolder

MOUNTS = r"""
23 22 0:30 / /srv rw shared:1 - xfs /dev/vdb rw
24 23 0:31 / /srv/my\040runs rw,noatime - nfs4 host:/x rw
25 23 0:32 / /srv/twice rw - ext4 /dev/vdc rw
26 25 0:33 / /srv/twice rw - fuse.sshfs x rw
22 27 0:21 / / rw - ext4 /dev/vda rw
""".strip()


def opened(file: Path) -> int:
    path_fd = platform.open_path(str(file))
    try:
        return platform.reopen(path_fd)
    finally:
        os.close(path_fd)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "file"
    file.write_bytes(b"content")
    return file


def both(spot: platform.Spot, monkeypatch: pytest.MonkeyPatch) -> list[tuple[platform.Inode, int] | None]:
    """What *spot* finds, asked in the kernel's newer way and in the older one."""
    found = [spot.find()]
    with monkeypatch.context() as patch:
        patch.setattr(spot, "_statx", None)
        found.append(spot.find())
    return found


def test_a_spot_tells_which_file_stands_there_and_how_long_it_is(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spot = platform.Spot(str(file))
    first, told = platform.find_inode(str(file)), both(spot, monkeypatch)
    file.rename(file.with_name("moved"))
    gone = both(spot, monkeypatch)
    file.write_bytes(b"another one")
    second = platform.find_inode(str(file))

    assert told == [(first, 7)] * 2
    assert gone == [None, None]
    assert first != second
    assert both(spot, monkeypatch) == [(second, 11)] * 2


def test_a_spot_follows_no_link(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = file.with_name("link")
    link.symlink_to(file)

    assert both(platform.Spot(str(link)), monkeypatch) == [(platform.find_inode(str(link)), len(str(file)))] * 2


def test_looking_at_a_spot_leaves_the_time_of_the_next_write_as_coarse_as_it_was(tmp_path: Path) -> None:
    """Where a file's time was read, Linux from 6.13 on gives its next write a time of its own, which a sync has to write as well."""

    def is_coarse(number: int) -> bool:
        earlier, file = tmp_path / f"{number}.earlier", tmp_path / f"{number}"
        spot = platform.Spot(str(file))
        with earlier.open("wb", buffering=0) as before, file.open("wb", buffering=0) as written:
            before.write(b"1")
            written.write(b"1")
            spot.find()
            written.write(b"2")
        return earlier.stat().st_mtime_ns == file.stat().st_mtime_ns

    assert any(is_coarse(number) for number in range(200))  # not where a tick of the clock comes between


def test_another_platform_is_refused() -> None:
    platform.check_platform()
    with pytest.raises(UnsupportedPlatform) as raised:
        platform.check_platform("darwin")

    assert raised.value.code == "unsupported_platform"


def test_a_reopened_file_is_the_pinned_inode_whatever_stands_at_the_path_now(file: Path) -> None:
    path_fd = platform.open_path(str(file))
    file.rename(file.with_name("moved"))
    file.write_bytes(b"another")
    fd = platform.reopen(path_fd)

    assert os.pread(fd, 10, 0) == b"content"
    os.close(path_fd)
    os.close(fd)


def test_reading_a_reopened_file_moves_no_access_time(file: Path) -> None:
    os.utime(file, ns=(1, file.stat().st_mtime_ns))
    fd = opened(file)
    os.pread(fd, 10, 0)
    os.close(fd)

    assert file.stat().st_atime_ns == 1


def test_a_pin_does_not_wait_at_a_fifo_and_does_not_follow_a_link(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    for name in ("fifo", "link"):
        fd = platform.open_path(str(tmp_path / name))
        assert platform.inode_of(os.fstat(fd)) == platform.inode_of((tmp_path / name).lstat())
        os.close(fd)


@pytest.mark.timeout(10)  # whoever waits for one, waits for ever
def test_an_exclusive_lock_keeps_everybody_out_and_a_shared_one_only_owners(file: Path) -> None:
    first, second = opened(file), opened(file)

    assert platform.lock_exclusive(first)
    assert not platform.lock_exclusive(second)
    assert not platform.lock_shared(second)
    platform.unlock(first)
    assert platform.lock_shared(first)
    assert platform.lock_shared(second)
    assert not platform.lock_exclusive(second)
    os.close(first)
    os.close(second)


def test_lock_holders_are_found_in_the_table_of_the_kernel(file: Path) -> None:
    fd = opened(file)
    inode = platform.inode_of(os.fstat(fd))

    assert platform.lock_holders(inode) == []
    assert platform.lock_shared(fd)
    assert platform.lock_holders(inode) == [LockHolder(os.getpid(), exclusive=False)]
    platform.unlock(fd)
    assert platform.lock_exclusive(fd)
    assert platform.lock_holders(inode) == [LockHolder(os.getpid(), exclusive=True)]
    os.close(fd)


def test_a_waiting_process_and_other_kinds_of_lock_hold_nothing() -> None:
    table = (
        "1: FLOCK  ADVISORY  WRITE 70 fe:00:123 0 EOF\n"
        "1: -> FLOCK  ADVISORY  WRITE 71 fe:00:123 0 EOF\n"
        "2: POSIX  ADVISORY  READ 72 fe:00:123 0 EOF\n"
        "3: FLOCK  ADVISORY  READ 73 fe:01:123 0 EOF\n"
        "3: FLOCK  ADVISORY  READ 73 fe:01:123 0 EOF\n"
        "4: FLOCK  ADVISORY  WRITE 74 fe:00:124 0 EOF\n"
    )

    assert platform.lock_holders((os.makedev(0xFE, 0), 123), table) == [LockHolder(70, exclusive=True)]
    assert platform.lock_holders((os.makedev(0xFE, 1), 123), table) == [LockHolder(73, exclusive=False)]
    # A device that the table does not know: a btrfs subvolume.
    assert len(platform.lock_holders((os.makedev(0, 77), 123), table)) == 2


def test_a_rename_never_replaces(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "taken").write_bytes(b"taken")
    with pytest.raises(FileExistsError):
        platform.rename_new(str(tmp_path / "old"), str(tmp_path / "taken"))
    assert (tmp_path / "taken").read_bytes() == b"taken"

    platform.rename_new(str(tmp_path / "old"), str(tmp_path / "new"))
    platform.sync_folder(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "taken"]

    with pytest.raises(OSError, match="directory") as raised:
        platform.rename_new(str(tmp_path / "old"), str(tmp_path / "newer"))
    assert raised.value.errno == errno.ENOENT


def test_a_rename_between_two_folders_never_replaces_either(tmp_path: Path) -> None:
    for name in ("a/x", "b/taken"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(name)
    fds = [os.open(tmp_path / name, os.O_RDONLY) for name in ("a", "b")]
    with pytest.raises(FileExistsError):
        platform.rename_new_at(fds[0], b"x", fds[1], b"taken")
    platform.rename_new_at(fds[0], b"x", fds[1], b"y")
    platform.sync_filesystem(fds[0])
    for fd in fds:
        os.close(fd)

    assert (tmp_path / "b" / "y").read_text() == "a/x"
    assert (tmp_path / "b" / "taken").read_text() == "b/taken"
    with pytest.raises(OSError, match="descriptor"):
        platform.sync_filesystem(-1)


def test_a_folder_is_synced_and_closed_also_when_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = descriptors()
    synced = []

    def fail(fd: int) -> None:
        synced.append(platform.inode_of(os.fstat(fd)))
        raise OSError(errno.EIO, "the disk refuses")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="the disk refuses"):
        platform.sync_folder(str(tmp_path))

    assert synced == [platform.inode_of(tmp_path.stat())]
    assert descriptors() == before


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/home/x", "ext4"),
        ("/srv", "xfs"),
        ("/srv/not/there/yet", "xfs"),
        ("/srvx", "ext4"),
        ("/srv/my runs/a", "nfs4"),
        ("/srv/my", "xfs"),
        ("/srv/twice/a", "fuse.sshfs"),
    ],
)
def test_a_path_is_on_the_longest_mount_point_and_of_two_on_the_later(path: str, kind: str) -> None:
    assert platform.filesystem_of(path, MOUNTS) == kind


def test_this_machine_has_a_file_system_a_boot_and_a_name() -> None:
    assert platform.filesystem_of("/proc/self") == "proc"
    assert len(platform.boot_id()) == 16
    assert platform.boot_id() == platform.boot_id()
    assert platform.hostname()
    assert platform.pid_namespace() > 0


def test_a_machine_without_a_name_is_called_localhost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "", "6.1", "1", "x86_64")))

    assert platform.hostname() == "localhost"


def test_a_process_has_a_start_and_a_dead_one_has_none(tmp_path: Path) -> None:
    # A program's name may look like the rest of the line.
    name = tmp_path / "a) S 1 ("
    name.symlink_to(sys.executable)
    child = subprocess.Popen([name, "-c", "print(flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    start = platform.process_start(child.pid)
    child.communicate(b"\n")

    ticks = os.sysconf("SC_CLK_TCK")
    assert platform.process_start(os.getpid()) <= start <= time.clock_gettime(time.CLOCK_BOOTTIME) * ticks
    assert platform.process_start(child.pid) == 0


def test_a_connection_that_is_closed_was_hung_up() -> None:
    one, other = socket.socketpair()
    assert not platform.has_hung_up(one)
    other.close()
    assert platform.has_hung_up(one)
    one.close()
    assert platform.has_hung_up(one)
