"""Folders and what is in them, reached by descriptors and single names: no link is ever followed, no path ever joined.

Whatever is swapped in between two calls is met as itself. Refusals are OSError with the path beneath the folder. A name is
UTF-8 on the disk, whatever the locale says; a byte that is not is a lone surrogate here.
"""

from __future__ import annotations

import errno
import os
import stat
from types import TracebackType
from typing import Self

from freehold.schema.limits import PATH_DEPTH_MAX
from freehold.schema.skipped import Parts
from freehold.storage import platform

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO that was swapped in is not waited for
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DEPTH_MAX = PATH_DEPTH_MAX // 4
"""How many descriptors a removal holds; what lies deeper is brought up first."""


def raw(name: str) -> bytes:
    """Return a name, or what a link says, as it is on the disk."""
    return name.encode("utf-8", "surrogateescape")


def as_utf8(name: str) -> str:
    """Return a name, as the system tells it in whatever the locale says, as UTF-8."""
    return os.fsencode(name).decode("utf-8", "surrogateescape")


def names_in(dir_fd: int) -> list[str]:
    """Return the names in a folder, in no order."""
    return list(map(as_utf8, os.listdir(dir_fd)))


def target_of(name: str, dir_fd: int) -> str:
    """Return what the link *name* says."""
    return os.readlink(raw(name), dir_fd=dir_fd).decode("utf-8", "surrogateescape")


def open_top(folder: str) -> int:
    """Return a descriptor on *folder*, which may be a link to one. Raises FileNotFoundError, NotADirectoryError, PermissionError."""
    return _open(folder, _FOLDER, None)


def open_folder(name: str, dir_fd: int) -> int:
    """Return a descriptor on the folder *name* of *dir_fd*. A link is refused as what it is: ELOOP."""
    try:
        return _open(name, _FOLDER | os.O_NOFOLLOW, dir_fd)
    except NotADirectoryError:
        found = look(name, dir_fd)
        number = errno.ELOOP if found is not None and stat.S_ISLNK(found.st_mode) else errno.ENOTDIR
        raise OSError(number, os.strerror(number), name) from None


def open_file(name: str, dir_fd: int) -> int:
    """Return a reading descriptor on *name*, whatever it is. Raises OSError, ELOOP for a link."""
    return _open(name, _READ, dir_fd)


def _open(name: str, flags: int, dir_fd: int | None) -> int:
    """Open for reading, without moving the access time if we may say so."""
    path = name if dir_fd is None else raw(name)
    with Naming((name,)):
        try:
            return os.open(path, flags | os.O_NOATIME, dir_fd=dir_fd)
        except PermissionError as error:
            if error.errno != errno.EPERM:  # EACCES: it may not be read at all
                raise
            return os.open(path, flags, dir_fd=dir_fd)  # O_NOATIME is for the file's owner only


def create_file(name: str, dir_fd: int) -> int:
    """Return a writing descriptor on a new file that only its user may read. Raises FileExistsError, also for a link."""
    with Naming((name,)):
        return os.open(raw(name), _NEW, 0o600, dir_fd=dir_fd)


def look(name: str, dir_fd: int) -> os.stat_result | None:
    """Return what *name* is, links not followed, or None where there is nothing."""
    with Naming((name,)):
        try:
            return os.stat(raw(name), dir_fd=dir_fd, follow_symlinks=False)
        except FileNotFoundError:
            return None


def is_folder(found: os.stat_result | None) -> bool:
    """Return whether *found* tells of a folder."""
    return found is not None and stat.S_ISDIR(found.st_mode)


def same_name(dir_fd: int, first: str, second: str) -> bool:
    """Return whether the file system takes two names for one, by a try in an empty folder of ours."""
    os.close(create_file(first, dir_fd))
    try:
        os.close(create_file(second, dir_fd))
    except FileExistsError:
        return True
    else:
        os.unlink(raw(second), dir_fd=dir_fd)
        return False
    finally:
        os.unlink(raw(first), dir_fd=dir_fd)


def move_new(old: str, old_fd: int, new: str, new_fd: int) -> None:
    """Rename unless the new name is taken, in one step where the file system can. Raises FileExistsError."""
    try:
        platform.rename_new_at(old_fd, raw(old), new_fd, raw(new))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        if look(new, new_fd) is not None:  # else a look just before has to do
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from None
        os.rename(raw(old), raw(new), src_dir_fd=old_fd, dst_dir_fd=new_fd)


class Naming:
    """Gives every OSError of its block the whole path, where the system tells a single name."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, OSError):
            raise OSError(error.errno, os.strerror(error.errno or 0), "/".join(self._parts)) from None


class Descent:
    """A way down from one folder, by descriptors. Going from one folder to the next opens only what they do not share."""

    def __init__(self, top_fd: int) -> None:
        self._top_fd = top_fd
        self._parts: list[str] = []
        self._fds: list[int] = []

    def at(self, parts: Parts) -> int:
        """Return a descriptor on the folder at *parts*, good until the next call. Raises OSError, ELOOP where a link stands."""
        shared = 0
        for mine, its in zip(self._parts, parts, strict=False):
            if mine != its:
                break
            shared += 1
        self._up(shared)
        for depth in range(shared, len(parts)):
            with Naming(parts[: depth + 1]):
                fd = open_folder(parts[depth], self._fds[-1] if self._fds else self._top_fd)
            self._fds.append(fd)
            self._parts.append(parts[depth])
        return self._fds[-1] if self._fds else self._top_fd

    def _up(self, depth: int) -> None:
        while len(self._fds) > depth:
            self._parts.pop()
            os.close(self._fds.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._up(0)


def empty(top_fd: int) -> None:
    """Remove everything in a folder, however deep it is; links are removed as names, never followed."""
    moved = 0
    while names := names_in(top_fd):
        with _Removal(top_fd, moved) as removal:
            for name in names:
                removal.remove(name, top_fd)
        moved = removal.moved


class _Removal:
    """One pass through a tree that is to go. What lies too deep for descriptors is moved to the top, for the next pass."""

    def __init__(self, top_fd: int, moved: int) -> None:
        self._top_fd = top_fd
        self._fds: list[int] = []
        self.moved = moved

    def remove(self, name: str, dir_fd: int) -> None:
        found = look(name, dir_fd)
        if found is None:
            return
        if is_folder(found) and found.st_mode & 0o700 != 0o700:
            with Naming((name,)):
                platform.open_passable(raw(name), dir_fd)  # for root, too: in a container it may have no more rights than others
        if not is_folder(found):
            with Naming((name,)):
                os.unlink(raw(name), dir_fd=dir_fd)
        elif len(self._fds) == _DEPTH_MAX:
            self._move_up(name, dir_fd)
        else:
            self._empty(name, dir_fd)
            with Naming((name,)):
                os.rmdir(raw(name), dir_fd=dir_fd)

    def _empty(self, name: str, dir_fd: int) -> None:
        self._fds.append(fd := open_folder(name, dir_fd))
        for inner in names_in(fd):
            self.remove(inner, fd)
        os.close(self._fds.pop())

    def _move_up(self, name: str, dir_fd: int) -> None:
        while True:
            self.moved += 1
            try:
                return platform.rename_new_at(dir_fd, raw(name), self._top_fd, raw(f"{self.moved}.deep"))
            except FileExistsError:
                continue

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        while self._fds:
            os.close(self._fds.pop())
