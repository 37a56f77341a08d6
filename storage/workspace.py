"""A workspace at work: every way to change what is in it, as POSIX has them and with Python's own errors.

Changes are seen at once by whoever works with it and by nobody else; `seal` makes a root of them.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

from msgspec.structs import replace

from freehold.schema.errors import PathRefused
from freehold.schema.limits import ENTRY_NAME_BYTES_MAX, LINK_TARGET_BYTES_MAX, PATH_BYTES_MAX, PATH_DEPTH_MAX
from freehold.schema.nodes import Directory, File, Link
from freehold.schema.paths import Parts, text, unportable
from freehold.schema.roots import Object, make_root
from freehold.storage.content import Content, read
from freehold.storage.folder import DIRECTORY_MODE, Change, Folder, Kept, copied, renamed
from freehold.storage.handles import Handles
from freehold.storage.nodes import unfit
from freehold.storage.opened import File as OpenedFile
from freehold.storage.openfile import nobody
from freehold.storage.openmode import parse_mode
from freehold.storage.sight import Found, Sight, Touch, failed
from freehold.storage.trees import walk

FILE_MODE = 0o644
PERMISSIONS = 0o777


class Workspace(Sight):
    """The files of one tree, and the changes made to them. Used by one thread."""

    def __init__(self, kept: Kept, tree: bytes) -> None:
        super().__init__(kept, tree)
        # Not over *kept*, which goes on to serve others: a handle that is forgotten must not reach what they keep.
        self.handles = Handles(kept.objects, self._told)
        self._over = False

    def set_content(self, parts: Parts, content: Content) -> None:
        """Make *content* that of the file that *parts* leads to, a new one where none is. Raises as `content` does."""
        way, found = self.lead(parts)
        self.check_file(parts, way, found)
        self._put_file(way, content, _mode_of(found))

    def create(self, parts: Parts) -> None:
        """Make an empty file where nothing is, not even a link. Raises FileExistsError, and as `lead` does."""
        way, found = self.lead(parts, follow=False)
        if found is not None:
            raise failed(errno.EEXIST, parts)
        self._check_new(way, found)
        self._put(way, File(way[-1], FILE_MODE, 0, b""))

    def open(
        self,
        parts: Parts,
        mode: str,
        buffering: int,
        encoding: str | None,
        errors: str | None,
        newline: str | None,
        fails: Callable[[BaseException], None] = nobody,
    ) -> OpenedFile:
        """Open a file as Python's own `open` does. What was written is seen from its close on; a new file is there from then on.

        *fails* gets each file error before the file raises it. Raises what `open` raises, and as `lead` does.
        """
        asked = parse_mode(mode, buffering=buffering, encoding=encoding, errors=errors, newline=newline)
        way, found = self.lead(parts, follow=not asked.creates)
        if found is None and not (asked.creates or asked.truncates or asked.appends):
            raise failed(errno.ENOENT, parts)
        if found is not None and asked.creates:
            raise failed(errno.EEXIST, parts)
        self.check_file(parts, way, found)
        content = Content(found.size, found.content) if isinstance(found, File) else None
        return self.handles.open(way, content, mode, buffering, encoding, errors, newline, fails)

    def mkdir(self, parts: Parts, mode: int = DIRECTORY_MODE, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Make a directory, with *parents* those on the way too. Raises FileExistsError, and as `lead` does."""
        try:
            way, found = self.lead(parts, follow=False)
        except FileNotFoundError:
            if not parents:
                raise
            self.mkdir(parts[:-1], parents=True, exist_ok=True)
            way, found = self.lead(parts, follow=False)
        if found is not None:
            if exist_ok and self._leads_to_folder(parts):
                return
            raise failed(errno.EEXIST, parts)
        self._check_new(way, found)
        self._put(way, Folder(mode=permissions(mode, parts)))

    def symlink(self, parts: Parts, target: str) -> None:
        """Make a link that says *target*, which need not be there. Raises FileExistsError, PathRefused, and as `lead` does."""
        way, found = self.lead(parts, follow=False)
        if found is not None:
            raise failed(errno.EEXIST, parts)
        self._check_new(way, found)
        self._put(way, Link(way[-1], _target(target)))

    def remove(self, parts: Parts) -> None:
        """Remove a file or a link. Raises IsADirectoryError, and as `get` does."""
        way, found = self._existing(parts)
        if isinstance(found, Directory | Folder):
            raise failed(errno.EISDIR, parts)
        self._put(way, None)
        self.handles.removed(way)

    def rmdir(self, parts: Parts) -> None:
        """Remove an empty directory. Raises NotADirectoryError, OSError (ENOTEMPTY), and as `get` does."""
        way, found = self._existing(parts)
        if not isinstance(found, Directory | Folder):
            raise failed(errno.ENOTDIR, parts)
        if self._holds_any(way):
            raise failed(errno.ENOTEMPTY, parts)
        self._put(way, None)
        self.handles.removed(way)

    def rmtree(self, parts: Parts) -> None:
        """Remove a directory with all beneath it. Raises NotADirectoryError, and as `get` does."""
        way, found = self._existing(parts)
        if not isinstance(found, Directory | Folder):
            raise failed(errno.ENOTDIR, parts)
        self.touch(way, Touch.WHOLE)
        self._put(way, None)
        self.handles.removed(way)

    def rename(self, parts: Parts, to: Parts) -> None:
        """Give what *parts* names, with all beneath it, another place.

        As POSIX has it, a file or link there is replaced, an empty directory by a directory. Raises what `os.rename`
        raises, and as `get` does.
        """
        way, found = self.lead(parts, follow=False)
        there, other = self.lead(to, follow=False)
        if not way or not there:
            raise failed(errno.EBUSY, to)
        if found is None:
            raise failed(errno.ENOENT, parts)
        if there == way:
            return
        if there[: len(way)] == way:
            raise failed(errno.EINVAL, parts)
        if way[: len(there)] == there:
            raise failed(errno.ENOTEMPTY, to)
        is_folder = isinstance(found, Directory | Folder)
        if other is not None:
            if is_folder != isinstance(other, Directory | Folder):
                raise failed(errno.ENOTDIR if is_folder else errno.EISDIR, to)
            if is_folder and self._holds_any(there):
                raise failed(errno.ENOTEMPTY, to)
        if is_folder:
            self.touch(way, Touch.WHOLE)
        self._check_new(there, other, gone=way)
        self._check_room(there, found)
        self._put(way, None)
        self._put(there, renamed(found, there[-1]))
        self.handles.moved(way, there)

    def copy(self, parts: Parts, to: Parts) -> None:
        """Copy a file, with its permissions, over whatever file is at *to*, or a directory with all beneath it to where nothing is.

        Raises FileExistsError, IsADirectoryError, and as `get` does.
        """
        way, found = self.lead(parts)
        if found is None:
            raise failed(errno.ENOENT, parts)
        if isinstance(found, Directory | Folder):
            there, other = self.lead(to, follow=False)
            if other is not None:
                raise failed(errno.EEXIST, to)
            self._check_new(there, other)
            self.touch(way, Touch.WHOLE)
            copy = copied(self.kept, found, there[-1])
            self._check_room(there, copy)
            self._put(there, copy)
            return
        assert isinstance(found, File)
        there, other = self.lead(to)
        self.check_file(to, there, other)
        self._put_file(there, Content(found.size, found.content), found.mode)

    def place(self, way: Parts, there: Found | None, entry: Found) -> None:
        """Put *entry* at a way without links, instead of what stands *there* now. Raises PathRefused for a new name that cannot be."""
        self.touch(way, Touch.ENTRY)
        self._check_new(way, there)
        self._put(way, entry)

    def twin(self, way: Parts) -> str | None:
        """Return the name beside a new one at *way* that a system which ignores case would take for it, None where there is none."""
        self.touch(way, Touch.NAME)
        twin = self.opened(way[:-1]).twin(self.kept, way[-1])
        if twin is not None:
            self.touch((*way[:-1], twin), Touch.ENTRY)
        return twin

    def restore(self, parts: Parts, other: Workspace) -> None:
        """Make what *parts* names what it is in another workspace of the same run, with all beneath it; the way to it is made.

        A link at its end is taken as it is. Raises FileNotFoundError where it is not there either, NotADirectoryError, and
        PathRefused where the links on the way, here or there, do not lead to the same place.
        """
        way, found = other.lead(parts, follow=False)
        if found is None:
            raise failed(errno.ENOENT, parts)
        assert not isinstance(found, Folder) or not way
        if not way:
            self.top = Folder(other.top.tree)
            return
        if any(isinstance(self.at(way[:depth]), Link) for depth in range(1, len(way))):
            raise _elsewhere(parts)
        if way[:-1]:
            self.mkdir(way[:-1], parents=True, exist_ok=True)
        if way != parts and self._place(parts) != way:
            raise _elsewhere(parts)
        now = self.at(way)
        self.touch(way, Touch.WHOLE)
        self._check_new(way, now)
        assert not isinstance(found, Folder)
        self._put(way, found)
        self.handles.removed(way)

    def chmod(self, parts: Parts, mode: int) -> None:
        """Set the permissions of a file or a directory. Raises OSError (EINVAL) for other bits than 0o777, and as `get` does."""
        way, found = self.lead(parts)
        mode = permissions(mode, parts)
        if found is None:
            raise failed(errno.ENOENT, parts)
        if not way:
            raise failed(errno.EBUSY, parts)
        if isinstance(found, File):
            self._put(way, replace(found, mode=mode))
        else:
            self.opened(way).mode = mode

    def still(self) -> tuple[Folder, dict[Parts, Touch]]:
        """Return the changes as they are now, apart from what is done later, and what was looked at."""
        return self.top.still(), dict(self.touched or {})

    def end(self) -> None:
        """Take no more changes: files that are still open are told so at their close, and keep nothing."""
        self._over = True

    def seal(self) -> Object:
        """Make a root of what there is now: its nodes are kept, the root object itself is the caller's to keep.

        The workspace goes on from there: what was changed before is no longer told apart from what it began with.
        """
        totals = self.top.fold(self.kept)
        return make_root(self.top.tree, *totals)

    def root(self) -> Object:
        """Return the root of what there is now; where it is noted what was looked at, that is all, and the changes stay as they are."""
        if self.touched is None:
            return self.seal()
        self.touch((), Touch.WHOLE)
        top = self.top.still()
        totals = top.fold(self.kept)
        return make_root(top.tree, *totals)

    def opened(self, way: Parts) -> Folder:
        """Return the directory at *way*, opened for changes."""
        folder = self.top
        for name in way:
            folder = folder.open(self.kept, name)
        return folder

    def check_file(self, parts: Parts, way: Parts, found: Found | None) -> None:
        """Raise IsADirectoryError unless a file can stand at *way*, PathRefused unless a new one may be called so."""
        if isinstance(found, Directory | Folder):
            raise failed(errno.EISDIR, parts)
        self._check_new(way, found)

    def _existing(self, parts: Parts) -> tuple[Parts, Found]:
        way, found = self.lead(parts, follow=False)
        if found is None:
            raise failed(errno.ENOENT, parts)
        if not way:
            raise failed(errno.EBUSY, parts)
        return way, found

    def _place(self, parts: Parts) -> Parts | None:
        """Return the way to *parts* without links on it; None where none leads there."""
        try:
            return self.lead(parts, follow=False)[0]
        except (OSError, PathRefused):
            return None

    def _leads_to_folder(self, parts: Parts) -> bool:
        try:
            return isinstance(self.lead(parts)[1], Directory | Folder)
        except OSError:
            return False

    def _check_room(self, way: Parts, found: Found) -> None:
        """Refuse a place at which what is beneath a directory could not be named any more."""
        if not isinstance(found, Directory | Folder):
            return
        held = found.still().entry(self.kept, way[-1]) if isinstance(found, Folder) else found
        if len(way) + held.depth > PATH_DEPTH_MAX:
            raise PathRefused(f"a path in a workspace has at most {PATH_DEPTH_MAX} names; nothing was changed")
        size = len(text(way).encode())
        # Only beneath many levels a path can become too long; then it is looked for.
        if size + held.depth * (ENTRY_NAME_BYTES_MAX + 1) > PATH_BYTES_MAX and size + self._longest(held.tree, {}) > PATH_BYTES_MAX:
            raise PathRefused(f"a path in a workspace has at most {PATH_BYTES_MAX} bytes; nothing was changed")

    def _longest(self, tree: bytes, known: dict[bytes, int], levels: int = PATH_DEPTH_MAX) -> int:
        """Return how many bytes the longest path beneath a directory adds to its own; equal directories are looked at once.

        Raises Damaged beneath too many *levels*.
        """
        if levels < 0:
            raise unfit()
        if tree not in known:
            known[tree] = max(
                (
                    1 + len(entry.name.encode()) + (self._longest(entry.tree, known, levels - 1) if isinstance(entry, Directory) else 0)
                    for entry in walk(self.kept, tree)
                ),
                default=0,
            )
        return known[tree]

    def _holds_any(self, way: Parts) -> bool:
        return next(self.children(way), None) is not None

    def _put(self, way: Parts, entry: Change) -> None:
        self.opened(way[:-1]).put(way[-1], entry)

    def _put_file(self, way: Parts, content: Content, mode: int) -> None:
        if self.handles.has(way):
            # Whoever has it open sees it, as they see each other's writes.
            with self.handles.open(way, None, "wb", 0, None, None, None) as file:
                for chunk in read(self.kept, content):
                    file.write(chunk)  # type: ignore[arg-type]  # it is a binary one
        self._put(way, File(way[-1], mode, content.size, content.where))

    def _told(self, way: Parts, content: Content) -> None:
        if self._over:
            raise failed(errno.ESTALE, way)
        found = self.at(way)
        if found is not None and not isinstance(found, File):
            raise failed(errno.EEXIST, way)  # it came while the file was open, which was not there yet
        self._check_new(way, found)
        self._put(way, File(way[-1], _mode_of(found), content.size, content.where))

    def _check_new(self, way: Parts, found: Found | None, gone: Parts | None = None) -> None:
        """Refuse a new name that a target of a checkout could not hold; the one at *gone* is about to go."""
        if found is not None:
            return
        name = way[-1]
        if (rule := unportable(name)) is not None:
            raise PathRefused(f"{text(way)!r}: a path in a workspace has {rule}; nothing was changed")
        if len(way) > PATH_DEPTH_MAX:
            raise PathRefused(f"a path in a workspace has at most {PATH_DEPTH_MAX} names; nothing was changed")
        twin = self.twin(way)
        if twin is not None and (*way[:-1], twin) != gone:
            raise PathRefused(
                f"{text(way)!r}: {twin!r} is there, and a system that ignores case would take both for one; nothing was changed"
            )


def permissions(mode: int, parts: Parts) -> int:
    """Return *mode* if a workspace can hold it. Raises OSError (EINVAL)."""
    if isinstance(mode, bool) or not isinstance(mode, int) or mode & ~PERMISSIONS:
        raise failed(errno.EINVAL, parts)
    return mode


def _elsewhere(parts: Parts) -> PathRefused:
    return PathRefused(
        f"{text(parts)!r}: the links on this way do not lead where they led then; restore the links first, or the path that they "
        "led to. Nothing was changed"
    )


def _mode_of(found: Found | None) -> int:
    return found.mode if isinstance(found, File) else FILE_MODE


def _target(target: str) -> str:
    problem = None
    try:
        size = len(target.encode())
    except UnicodeEncodeError:
        problem = "is text that UTF-8 can say"
    else:
        if not size or size > LINK_TARGET_BYTES_MAX or "\x00" in target:
            problem = f"has 1 to {LINK_TARGET_BYTES_MAX} bytes and no NUL"
    if problem is not None:
        raise PathRefused(f"what a link says {problem}; nothing was changed")
    return target
