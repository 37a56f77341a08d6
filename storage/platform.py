"""Every call that is Linux's own: descriptors that pin an inode, owner locks, renames, mounts, who a process is.

What another system needs to be supported is this file. Nothing here knows what a run is; refusals are OSError,
and Unavailable (no_descriptors) where the kernel is asked through a file of its own.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import select
import socket
import stat
import struct
import sys
from typing import NamedTuple
from uuid import UUID

from freehold.schema.errors import Unavailable, UnsupportedPlatform

Inode = tuple[int, int]
"""Device and inode number: what a file is, whatever it is called. Sure only while a descriptor on it is open."""

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_AT_SYMLINK_NOFOLLOW = 0x100
_STATX_INO_AND_SIZE = 0x100 | 0x200
_STATX = struct.Struct("=32xQQ88xII")
"""Inode number, size, and the two halves of the device number, as the kernel lays out its 256 bytes."""
_LIBC = ctypes.CDLL(None, use_errno=True)
_OCTAL = re.compile(r"\\([0-7]{3})")


class LockHolder(NamedTuple):
    """One process that holds an flock on a file. A pid of another pid namespace is 0 or less."""

    pid: int
    exclusive: bool


def check_platform(name: str = sys.platform) -> None:
    """Raise UnsupportedPlatform elsewhere than on Linux."""
    if name != "linux":
        raise UnsupportedPlatform("Freehold runs on Linux; nothing was opened or created", platform=name)


def open_path(file: str) -> int:
    """Return a descriptor that names *file*'s inode without opening it.

    It follows no link, does not wait at a FIFO, and closing it drops no lock of this process.
    """
    return os.open(file, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)


def reopen(path_fd: int) -> int:
    """Return a reading descriptor on the very inode that *path_fd* names, without moving its access time if we may say so."""
    file = f"/proc/self/fd/{path_fd}"
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(file, flags | os.O_NOATIME)
    except PermissionError as error:
        if error.errno != errno.EPERM:  # EACCES: it may not be read at all
            raise
        return os.open(file, flags)  # O_NOATIME is for the file's owner only


def create_new(file: str) -> int:
    """Return a descriptor on a new, empty file that only its user may read. Raises FileExistsError."""
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def inode_of(found: os.stat_result) -> Inode:
    """Return which file it was that *found* tells of."""
    return found.st_dev, found.st_ino


def find_inode(file: str) -> Inode | None:
    """Return which file *file* names just now, links not followed, or None."""
    try:
        return inode_of(os.lstat(file))
    except OSError:
        return None


class Spot:
    """A name that is asked often what stands there, while that is being written to. Used by one thread at a time.

    It never asks for times. On Linux from 6.13 on a file whose times were read gets a finer one at its next write, and then a sync has to
    write its inode too: as much again as the sync itself.
    """

    def __init__(self, file: str) -> None:
        self._file = os.fsencode(file)
        self._found = ctypes.create_string_buffer(256)
        self._statx = getattr(_LIBC, "statx", None)

    def find(self) -> tuple[Inode, int] | None:
        """Return which file the name stands for just now, links not followed, and its size; or None."""
        if self._statx is not None and not self._statx(_AT_FDCWD, self._file, _AT_SYMLINK_NOFOLLOW, _STATX_INO_AND_SIZE, self._found):
            number, size, major, minor = _STATX.unpack_from(self._found)
            return (os.makedev(major, minor), number), size
        try:  # it is not there, or this C library or sandbox does not have that call
            found = os.lstat(self._file)
        except OSError:
            return None
        return inode_of(found), found.st_size


def is_regular(found: os.stat_result) -> bool:
    """Return whether *found* tells of a plain file."""
    return stat.S_ISREG(found.st_mode)


def lock_exclusive(fd: int) -> bool:
    """Take the owner's lock without waiting; return whether we have it now."""
    return _flock(fd, fcntl.LOCK_EX)


def lock_shared(fd: int) -> bool:
    """Take a reader's lock without waiting; return whether we have it now."""
    return _flock(fd, fcntl.LOCK_SH)


def unlock(fd: int) -> None:
    """Give the lock back. Harmless where there is none."""
    fcntl.flock(fd, fcntl.LOCK_UN)


def _flock(fd: int, how: int) -> bool:
    # flock, not lockf: a second lockf of this process would succeed, and its close would free the first.
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def rename_new(old: str, new: str) -> None:
    """Rename in one step unless the new name is taken. Raises FileExistsError; OSError where the file system cannot."""
    rename_new_at(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new))


def rename_new_at(old_fd: int, old: bytes, new_fd: int, new: bytes) -> None:
    """Rename as `rename_new` does, each name in the folder that its descriptor holds."""
    if _LIBC.renameat2(old_fd, old, new_fd, new, ctypes.c_uint(_RENAME_NOREPLACE)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fsdecode(new))


def open_passable(name: bytes, dir_fd: int) -> int:
    """Let our user read, change and enter the folder *name* of *dir_fd*; return the mode that it had. A link is not followed."""
    fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISDIR(mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
        os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(mode) | 0o700)
        return stat.S_IMODE(mode)
    finally:
        os.close(fd)


def address_in(folder_fd: int, name: str) -> str:
    """Return the address of the socket *name* in the folder that a descriptor holds: short, however long the folder's path is."""
    return f"/proc/self/fd/{folder_fd}/{name}"


def peer_uid(connection: socket.socket) -> int:
    """Return which user was at the other end of a Unix socket when it was connected, as the kernel tells."""
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return int(uid)


def has_hung_up(connection: socket.socket) -> bool:
    """Return whether the other end is closed, whatever is still to be read, or this one is."""
    look = select.poll()
    try:
        look.register(connection, 0)
    except ValueError:  # it has no descriptor any more
        return True
    return bool(look.poll(0))


def sync_folder(folder: str) -> None:
    """Make the names in *folder* durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_filesystem(fd: int) -> None:
    """Make everything durable that was written to the file system that *fd* is on: one wait, however many files there are."""
    if _LIBC.syncfs(fd):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def filesystem_of(path: str, mountinfo: str | None = None) -> str:
    """Return the type of the file system that *path*, an absolute one without links, is or would be on."""
    best, kind = "", ""
    for line in (mountinfo if mountinfo is not None else _read("/proc/self/mountinfo")).splitlines():
        before, _, after = line.partition(" - ")
        point = _OCTAL.sub(lambda found: chr(int(found[1], 8)), before.split(" ")[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # of two mounts on one point, the later one is on top
            best, kind = point, after.split(" ")[0]
    return kind


def boot_id() -> bytes:
    """Return the 16 bytes that name this boot of the machine."""
    return UUID(_read("/proc/sys/kernel/random/boot_id").strip()).bytes


def pid_namespace() -> int:
    """Return the inode of this process's pid namespace: pids mean something only within one."""
    return os.stat("/proc/self/ns/pid").st_ino


def process_start(pid: int) -> int:
    """Return when *pid* started, in clock ticks since boot, or 0 when there is no such process.

    A pid is used again; a pid with its start is not, within one boot.
    """
    try:
        text = _read(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    # The second field is the program's name in parentheses, which may hold spaces and parentheses itself.
    return int(text.rpartition(")")[2].split()[19])


def is_running(pid: int, start: int) -> bool:
    """Return whether the process *pid* that began at *start* still runs. One that has ended and was not waited for does not."""
    try:
        fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return int(fields[19]) == start and fields[0] not in "ZX"


def hostname() -> str:
    """Return the machine's name; never empty."""
    return os.uname().nodename or "localhost"


def lock_holders(inode: Inode, locks: str | None = None) -> list[LockHolder]:
    """Return who holds an flock on *inode*, as far as the kernel tells this process.

    The table is not read in one moment: while others lock and unlock, a line may come twice, or not at all.
    """
    device = f"{os.major(inode[0]):02x}:{os.minor(inode[0]):02x}"
    exact, alike = [], []
    for line in (locks if locks is not None else _read("/proc/locks")).splitlines():
        fields = line.split()
        if len(fields) < 6 or fields[1] != "FLOCK":  # a waiting one has "->" there
            continue
        where, _, number = fields[5].rpartition(":")
        if int(number) == inode[1]:
            holder = LockHolder(int(fields[4]), fields[3] == "WRITE")
            alike.append(holder)
            if where == device:
                exact.append(holder)
    # btrfs shows each subvolume under a device number that the lock table does not know: there the inode alone has to do.
    return list(dict.fromkeys(exact or alike))


def keep_for_ever(thing: object) -> None:
    """Keep *thing* from ever being destroyed, also at the end of the process: its destructor would touch a file."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def no_descriptors(error: OSError | None = None) -> Unavailable | None:
    """Return what is said when *error* is that no descriptor is left; without one, when none is left just now. Else None."""
    if error is None:
        try:
            os.close(os.open("/", os.O_PATH | os.O_CLOEXEC))
        except OSError as now:
            error = now
    if error is None or error.errno not in (errno.EMFILE, errno.ENFILE):
        return None
    return Unavailable(f"no file descriptor is left ({os.strerror(error.errno)}); nothing was changed", code="no_descriptors")


def _read(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:
            return opened.read()
    except OSError as error:
        raise no_descriptors(error) or error from None
