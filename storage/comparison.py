"""What has to happen for a folder to hold given entries: found out before anything of it is done.

Reads the folder by descriptors, follows nothing and writes nothing. What may not be touched is refused here, with its path.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from freehold.schema.errors import PathRefused
from freehold.schema.limits import PATH_DEPTH_MAX
from freehold.schema.skipped import Parts
from freehold.storage import platform
from freehold.storage.entries import Out
from freehold.storage.folders import Naming, is_folder, look, names_in, open_file, open_folder, target_of
from freehold.storage.platform import Inode
from freehold.storage.scan import Known, in_use
from freehold.storage.staging import is_staging
from freehold.storage.steady import identity
from freehold.storage.writer import Read


class Change(NamedTuple):
    """An entry that is to be put in its place, and whether it replaces something there."""

    out: Out
    replaces: bool


@dataclass(slots=True)
class Plan:
    """What is to be done, each list in the order of the paths. Removals come first."""

    remove: list[Parts] = field(default_factory=list)
    folders: list[Out] = field(default_factory=list)
    files: list[Change] = field(default_factory=list)
    links: list[Change] = field(default_factory=list)
    modes: dict[Parts, int] = field(default_factory=dict)
    """Folders that are there and need another mode."""
    barred: set[Parts] = field(default_factory=set)
    """Folders that are there and stay, and that their own user may not change."""
    kept: int = 0
    left_alone: list[Parts] = field(default_factory=list)

    def touched(self) -> set[Parts]:
        """Return the folders in which names change."""
        made = [*self.folders, *(change.out for change in (*self.files, *self.links))]
        return {path[:-1] for path in (*self.remove, *(out.parts for out in made))}


class Comparison:
    """Compares one folder with entries. Raises OSError with the path of what stands in the way: EBUSY for an open run file."""

    def __init__(
        self,
        entries: Sequence[Out],
        read: Read,
        *,
        exact: bool,
        leave_alone: Collection[Parts],
        known: Known | None,
        opened: Mapping[Parts, int] | None = None,
        runs: Inode | None = None,
    ) -> None:
        """*opened* are the modes of folders that stand open for the while; *runs* is the folder of runs."""
        self._entries = entries
        self._read = read
        self._exact = exact
        self._leave_alone = frozenset(leave_alone)
        self._known = known
        self._runs = runs
        self._opened = opened or {}
        self._plan = Plan()

    def plan(self, top_fd: int) -> Plan:
        """Return what has to happen in the folder of *top_fd*."""
        self._folder(top_fd, (), 0)
        return self._plan

    def _folder(self, dir_fd: int, parts: Parts, at: int) -> int:
        """Compare what is in one folder, from entry number *at* on; return the number of the first entry that is not in it."""
        with Naming(parts):
            names = set(names_in(dir_fd)) if self._exact else set()
        inodes: set[Inode] = set()
        while at < len(self._entries) and (out := self._entries[at]).parts[: len(parts)] == parts:
            name = out.parts[-1]
            with Naming(out.parts):
                found = look(name, dir_fd)
            if self._exact and name not in names:
                found = None  # it is there under another spelling, which goes first
            names.discard(name)
            if found is not None:
                _check_alone(out, name, dir_fd, found, inodes)
            at = self._entry(out, dir_fd, found, at)
        for name in sorted(names):
            if is_staging(name):  # another checkout's, which lives: the dead ones were swept; or somebody likes the name
                self._plan.left_alone.append((*parts, name))
            else:
                self._plan.remove += self._doomed((*parts, name), dir_fd)[1]
        return at

    def _entry(self, out: Out, dir_fd: int, found: os.stat_result | None, at: int) -> int:
        if found is not None and (out.parts in self._leave_alone or self._is_runs(found)):
            self._plan.left_alone.append(out.parts)
            return self._after(at)
        if found is not None and stat.S_IFMT(found.st_mode) != _FORMATS[out.kind]:
            found = self._clear(out, dir_fd, found)
        match out.kind:
            case "directory" if is_folder(found):
                return self._enter(out, dir_fd, at)
            case "directory":
                for new in self._entries[at : self._after(at)]:
                    self._make(new, replaces=False)
                return self._after(at)
            case "file" if found is not None and self._is_same_file(out, dir_fd, found):
                self._plan.kept += 1
            case "link" if found is not None and stat.S_ISLNK(found.st_mode) and target_of(out.parts[-1], dir_fd) == out.target:
                self._plan.kept += 1
            case _:
                self._make(out, replaces=found is not None)
        return at + 1

    def _clear(self, out: Out, dir_fd: int, found: os.stat_result) -> os.stat_result | None:
        """Plan the removal of what is of another kind than its entry, unless a rename replaces it; return what is left then."""
        kind = stat.S_IFMT(found.st_mode)
        if not self._exact:
            if kind == stat.S_IFLNK and out.kind != "link":
                raise _in_the_way(errno.ELOOP, out.parts)
            if kind == stat.S_IFDIR:
                raise _in_the_way(errno.EISDIR, out.parts)
            if kind not in (stat.S_IFREG, stat.S_IFLNK):
                raise _in_the_way(errno.EEXIST, out.parts)
        if kind != stat.S_IFDIR and out.kind != "directory":
            return found
        whole, paths = self._doomed(out.parts, dir_fd)
        if not whole:
            raise _in_the_way(errno.ENOTEMPTY, out.parts)
        self._plan.remove += paths
        return None

    def _enter(self, out: Out, dir_fd: int, at: int) -> int:
        with Naming(out.parts):
            fd = open_folder(out.parts[-1], dir_fd)
        try:
            mode = self._opened.get(out.parts, stat.S_IMODE(os.fstat(fd).st_mode))
            if mode & 0o777 == out.mode:
                self._plan.kept += 1
            else:
                self._plan.modes[out.parts] = mode & ~0o777 | out.mode
            if mode & 0o700 != 0o700:
                self._plan.barred.add(out.parts)
            return self._folder(fd, out.parts, at + 1)
        finally:
            os.close(fd)

    def _make(self, out: Out, *, replaces: bool) -> None:
        match out.kind:
            case "directory":
                self._plan.folders.append(out)
            case "file":
                self._plan.files.append(Change(out, replaces))
            case "link":
                self._plan.links.append(Change(out, replaces))

    def _is_same_file(self, out: Out, dir_fd: int, found: os.stat_result) -> bool:
        # A file with setuid is another one, whatever it holds. A folder keeps such bits: there they are for what is made in it.
        if not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) != out.mode or found.st_size != out.size:
            return False
        if self._known is not None and self._known.find(found) == out.content:
            return True
        try:
            fd = open_file(out.parts[-1], dir_fd)
        except OSError:
            return False  # it cannot be read, so it is written anew; what is wrong comes out then
        try:
            before = os.fstat(fd)
            if not all(os.read(fd, len(piece)) == piece for piece in self._read(out)) or os.read(fd, 1):
                return False
            if self._known is not None and identity(before) == identity(os.fstat(fd)):
                self._known.keep(before, out.content)
            return True
        finally:
            os.close(fd)

    def _doomed(self, parts: Parts, dir_fd: int) -> tuple[bool, list[Parts]]:
        """Return whether all of a path may go, and the paths that may."""
        # Asked first: it may be one that cannot even be looked at.
        if parts in self._leave_alone:
            self._plan.left_alone.append(parts)
            return False, []
        with Naming(parts):
            found = look(parts[-1], dir_fd)
        if found is None:
            return True, []
        if self._is_runs(found):
            self._plan.left_alone.append(parts)
            return False, []
        if in_use(parts[-1], dir_fd, found):
            raise _in_the_way(errno.EBUSY, parts)
        if not is_folder(found) or len(parts) > PATH_DEPTH_MAX:
            return True, [parts]
        with Naming(parts):
            fd = open_folder(parts[-1], dir_fd)
        try:
            inner = [self._doomed((*parts, name), fd) for name in sorted(names_in(fd))]
        finally:
            os.close(fd)
        if all(whole for whole, _ in inner):
            return True, [parts]
        if found.st_mode & 0o700 != 0o700:
            self._plan.barred.add(parts)
        return False, [path for _, paths in inner for path in paths]

    def _is_runs(self, found: os.stat_result) -> bool:
        return platform.inode_of(found) == self._runs

    def _after(self, at: int) -> int:
        """Return the number of the first entry that is not beneath entry number *at*."""
        parts = self._entries[at].parts
        at += 1
        while at < len(self._entries) and self._entries[at].parts[: len(parts)] == parts:
            at += 1
        return at


_FORMATS = {"file": stat.S_IFREG, "directory": stat.S_IFDIR, "link": stat.S_IFLNK}


def _check_alone(out: Out, name: str, dir_fd: int, found: os.stat_result, inodes: set[Inode]) -> None:
    """Refuse to write to an open run file, and to one file under two names that its file system takes for one."""
    if in_use(name, dir_fd, found):
        raise _in_the_way(errno.EBUSY, out.parts)
    inode = platform.inode_of(found)
    if inode in inodes and (found.st_nlink == 1 or is_folder(found)):
        raise PathRefused(f"{'/'.join(out.parts)!r} and another entry are one name there; nothing was written", code="bad_path")
    inodes.add(inode)


def _in_the_way(number: int, parts: Parts) -> OSError:
    return OSError(number, os.strerror(number), "/".join(parts))
