"""A real folder, read entry by entry in the order of their paths: what a root can hold, and a report of everything else.

Nothing is followed, nothing is changed, and no more is in memory than the listings of the folders on the way down.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, Self

from msgspec import Struct

from freehold.schema.errors import Unavailable
from freehold.schema.limits import ENTRY_NAME_BYTES_MAX, LINK_TARGET_BYTES_MAX, PATH_BYTES_MAX, PATH_DEPTH_MAX, STAT_CACHE_EXPECTED
from freehold.schema.skipped import Parts, Reason, Report, Skipped
from freehold.storage import platform
from freehold.storage.folders import Naming, as_utf8, is_folder, look, open_folder, open_top, raw, target_of
from freehold.storage.path import SIBLINGS
from freehold.storage.platform import Inode
from freehold.storage.registry import REGISTRY
from freehold.storage.runsfolder import is_ours
from freehold.storage.staging import is_staging
from freehold.storage.steady import Reader

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

Kind = Literal["file", "directory", "link"]
_TRIES = 2
_SPECIAL_BITS = 0o7000
_SWAPPED = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EINVAL})
"""What the system says of a name that is something else than it was a moment ago."""


class Known(Protocol):
    """What files held when they were read last."""

    def expect(self, device: int, inodes: Sequence[int]) -> None:
        """Be told which files are likely to be looked up next, so that it is done with one query."""

    def find(self, found: os.stat_result) -> bytes | None:
        """Return the content key of a file that is still what it was, or None."""

    def keep(self, found: os.stat_result, content: bytes) -> None:
        """Remember the content key of a file that was read just now."""


class Taken(NamedTuple):
    """A file's content as it was read: what the reader made of its bytes, with the mode and size that belong to them."""

    mode: int
    size: int
    content: bytes


class Found(Struct, frozen=True):
    """One entry that a root can hold. A file can be read until the scan goes on."""

    parts: Parts
    kind: Kind
    mode: int
    size: int = 0
    target: str = ""
    known: bytes | None = None
    """The content key that a file had when it was read last, if it has not changed since."""
    _level: _Level | None = None
    _scan: Scan | None = None

    @property
    def is_closed(self) -> bool:
        """Whether this is a file that its mode keeps from us."""
        return self._level is not None and not os.access(raw(self.parts[-1]), os.R_OK, dir_fd=self._level.fd)

    def open(self) -> Reader:
        """Return a reader of the file's bytes. Raises OSError, Unavailable (changed_while_reading)."""
        assert self._level is not None, "only a file is read"
        return Reader(self.parts[-1], self._level.fd, self.parts)

    def read(self, take: Callable[[Iterable[bytes]], bytes]) -> Taken | None:
        """Return the content key that *take* makes of the bytes, or None for what cannot be read; the report then says why.

        A file that was changed meanwhile is read once more; *take* begins anew.
        """
        assert self._scan is not None, "only a file is read"
        for _ in range(_TRIES):
            try:
                with self.open() as reader:
                    content = take(reader)
                    found = reader.settled()
            except Unavailable as error:
                if error.code != "changed_while_reading":
                    raise
                continue
            except OSError as error:
                if error.errno in _SWAPPED:
                    continue
                if (reason := _reason_of(error)) is None:
                    raise
                self._scan.skip(self.parts, reason)
                return None
            self._scan.keep(found, content)
            return Taken(found.st_mode & 0o777, found.st_size, content)
        self._scan.skip(self.parts, Reason.CHANGED_WHILE_READING)
        return None


class _NotHeld(Exception):
    """A name that no root can hold."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


class _Level:
    """One folder on the way down: its descriptor, and the names that are still to come."""

    def __init__(self, fd: int, parts: Parts, path_bytes: int, known: Known | None) -> None:
        self.fd = fd
        self.parts = parts
        self.path_bytes = path_bytes
        self.folded: dict[str, str] = {}
        try:
            with Naming(parts), os.scandir(fd) as entries:
                listed = sorted((as_utf8(entry.name), entry.inode()) for entry in entries)
            self.names = _announced(listed, os.fstat(fd).st_dev, known)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        fd, self.fd = self.fd, -1  # a Found that is read too late must not meet another folder under this number
        if fd >= 0:
            os.close(fd)


def _announced(listed: Sequence[tuple[str, int]], device: int, known: Known | None) -> Iterator[str]:
    """Yield the names, after it was said of which files they are: as the folder tells it, which may be wrong where one is mounted."""
    for begun in range(0, len(listed), STAT_CACHE_EXPECTED):
        several = listed[begun : begun + STAT_CACHE_EXPECTED]
        if known is not None:
            known.expect(device, [inode for _, inode in several])
        for name, _ in several:
            yield name


class Scan(Iterator[Found]):
    """The entries of a folder, in the order of their paths, and the report of what cannot be held. Close it, or read it to its end."""

    def __init__(
        self,
        folder: str,
        ignore: GitIgnoreSpec | None,
        known: Known | None,
        unportable: Callable[[str], str | None] | None,
        fold: Callable[[str], str] | None,
        above: Parts,
        runs: Inode | None,
        own: Container[Parts],
    ) -> None:
        self.report = Report()
        self._depth = len(above)
        self._ignore = ignore
        self._known = known
        self._unportable = unportable
        self._fold = fold
        self._runs = runs
        self._own = own
        self._levels = [_Level(open_top(folder), (), sum(len(name.encode()) + 1 for name in above), known)]
        self._among_runs = platform.inode_of(os.fstat(self._levels[0].fd)) == runs

    def __next__(self) -> Found:
        while self._levels:
            level = self._levels[-1]
            name = next(level.names, None)
            if name is None:
                self._levels.pop().close()
            elif (found := self._look(level, name)) is not None:
                return found
        raise StopIteration

    def close(self) -> None:
        """Give the descriptors back. Closing twice changes nothing."""
        while self._levels:
            self._levels.pop().close()

    def skip(self, parts: Parts, reason: Reason, detail: str = "") -> None:
        """Put a path into the report."""
        self.report.skipped.append(Skipped(parts, reason, detail))

    def decline(self, parts: Parts, reason: Reason, detail: str = "") -> None:
        """Put the entry that was returned last into the report: it is not taken, a folder not entered, and its name is free for a twin."""
        self.skip(parts, reason, detail)
        if self._levels[-1].parts == parts:
            self._levels.pop().close()
        if self._fold is not None:
            del self._levels[-1].folded[self._fold(parts[-1])]

    def keep(self, found: os.stat_result, content: bytes) -> None:
        """Remember what a file held that was just read."""
        if self._known is not None:
            self._known.keep(found, content)

    def _look(self, level: _Level, name: str) -> Found | None:
        parts = (*level.parts, name)
        for _ in range(_TRIES):
            try:
                return self._hold(level, name, parts)
            except _NotHeld as refusal:
                self.skip(parts, refusal.reason, refusal.detail)
                return None
            except OSError as error:
                if error.errno in _SWAPPED:
                    continue
                if (reason := _reason_of(error)) is None:
                    raise
                self.skip(parts, reason)
                return None
        self.skip(parts, Reason.CHANGED_WHILE_READING)
        return None

    def _hold(self, level: _Level, name: str, parts: Parts) -> Found | None:
        """Return a name's entry, or None for an ignored one. Raises _NotHeld, and OSError for what was swapped meanwhile."""
        with Naming(parts):
            found = os.stat(raw(name), dir_fd=level.fd, follow_symlinks=False)
        if self._ignore is not None and self._ignore.match_file("/".join(parts) + "/" * is_folder(found)):
            self.report.ignored.append(parts)
            return None
        folded = self._folded(name) if parts in self._own else self._check_name(level, name, parts)
        match stat.S_IFMT(found.st_mode):
            case stat.S_IFREG:
                entry = self._file(level, name, parts, found)
            case stat.S_IFDIR:
                entry = self._folder(level, name, parts)
            case stat.S_IFLNK:
                entry = self._link(level, name, parts)
            case stat.S_IFIFO:
                raise _NotHeld(Reason.FIFO)
            case stat.S_IFSOCK:
                raise _NotHeld(Reason.SOCKET)
            case _:
                raise _NotHeld(Reason.DEVICE)
        level.folded[folded] = name
        return entry

    def _check_name(self, level: _Level, name: str, parts: Parts) -> str:
        """Return what no other name of the folder may be made by folding. Raises _NotHeld."""
        try:
            name_bytes = len(name.encode())
        except UnicodeEncodeError:
            raise _NotHeld(Reason.NOT_UTF8) from None
        if name_bytes > ENTRY_NAME_BYTES_MAX:
            raise _NotHeld(Reason.NAME_TOO_LONG)
        if self._depth + len(parts) > PATH_DEPTH_MAX:
            raise _NotHeld(Reason.TOO_DEEP)
        if level.path_bytes + name_bytes > PATH_BYTES_MAX:
            raise _NotHeld(Reason.PATH_TOO_LONG)
        if self._among_runs and len(parts) == 1 and is_ours(name):
            raise _NotHeld(Reason.RUNS_FOLDER)
        if is_staging(name):
            raise _NotHeld(Reason.UNFINISHED_CHECKOUT)
        if self._unportable is not None and (rule := self._unportable(name)) is not None:
            raise _NotHeld(Reason.UNPORTABLE, rule)
        folded = self._folded(name)
        if (other := level.folded.get(folded)) is not None:
            raise _NotHeld(Reason.COLLISION, other)
        return folded

    def _folded(self, name: str) -> str:
        return name if self._fold is None else self._fold(name)

    def _file(self, level: _Level, name: str, parts: Parts, found: os.stat_result) -> Found:
        if in_use(name, level.fd, found):
            raise _NotHeld(Reason.IN_USE)
        if found.st_nlink > 1:
            self.skip(parts, Reason.HARD_LINK)
        known = self._known.find(found) if self._known is not None else None
        return Found(parts, "file", self._mode(parts, found), found.st_size, "", known, level, self)

    def _folder(self, level: _Level, name: str, parts: Parts) -> Found:
        with Naming(parts):
            fd = open_folder(name, level.fd)
        found = os.fstat(fd)
        if platform.inode_of(found) == self._runs:
            os.close(fd)
            raise _NotHeld(Reason.RUNS_FOLDER)
        self._levels.append(_Level(fd, parts, level.path_bytes + len(name.encode()) + 1, self._known))
        return Found(parts, "directory", self._mode(parts, found))

    def _link(self, level: _Level, name: str, parts: Parts) -> Found:
        with Naming(parts):
            target = target_of(name, level.fd)
        try:
            target_bytes = len(target.encode())
        except UnicodeEncodeError:
            raise _NotHeld(Reason.LINK_TARGET, "not UTF-8") from None
        if target_bytes > LINK_TARGET_BYTES_MAX:
            raise _NotHeld(Reason.LINK_TARGET, "too long")
        return Found(parts, "link", 0o777, 0, target)

    def _mode(self, parts: Parts, found: os.stat_result) -> int:
        if found.st_mode & _SPECIAL_BITS:
            self.skip(parts, Reason.SPECIAL_BITS, f"{found.st_mode & _SPECIAL_BITS:04o}")
        return found.st_mode & 0o777

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def scan(
    folder: str,
    *,
    ignore: Sequence[str] = (),
    known: Known | None = None,
    unportable: Callable[[str], str | None] | None = None,
    fold: Callable[[str], str] | None = None,
    above: Parts = (),
    runs: Inode | None = None,
    own: Container[Parts] = (),
) -> Scan:
    """Return the entries of *folder*, which may itself be a link to one, in the order of their paths.

    *ignore* holds patterns as in a .gitignore file; an ignored folder is not entered. *unportable* names the rule that a
    name breaks; of two names in one folder that *fold* makes equal, the first is held. *above* is where a root will hold
    the folder: what is too deep or too long there is not held. *runs* is the folder of runs: it is not entered, and where it is
    *folder* itself, the files that are called like ours are left out. The paths of *own* stand in a root already, so there is
    nothing to say against their names.

    Raises FileNotFoundError, NotADirectoryError, PermissionError for the folder itself; ValueError for a pattern; while it
    is read, OSError for a disk that fails. Danger: reading a file ends the POSIX locks that this process has on it; files
    that freehold has open are therefore left out, those that other code of this process has open are not.
    """
    if isinstance(ignore, str):
        raise TypeError("ignore is a sequence of patterns, not one text")
    patterns = None
    if ignore:
        from pathspec import GitIgnoreSpec

        patterns = GitIgnoreSpec.from_lines(ignore)
    return Scan(folder, patterns, known, unportable, fold, above, runs, own)


def in_use(name: str, dir_fd: int, found: os.stat_result) -> bool:
    """Return whether this process has that run file open, or the one that this file stands beside: a close would drop its locks."""
    if REGISTRY.holds(platform.inode_of(found)):
        return True
    if not name.endswith(SIBLINGS):
        return False
    main = look(name[: name.rindex("-")], dir_fd)
    return main is not None and REGISTRY.holds(platform.inode_of(main))


def _reason_of(error: OSError) -> Reason | None:
    if isinstance(error, PermissionError):
        return Reason.NO_PERMISSION
    if isinstance(error, FileNotFoundError):
        return Reason.VANISHED
    return None
