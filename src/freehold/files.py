"""The files of a workspace, as pathlib and os have them: paths are relative, errors are Python's own.

Reading sees one root, that of the moment of each call or a fixed one. Changing is for whoever has been given `Files` by a
publish or a transaction; there, what was written is read.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterable, Iterator
from stat import S_IFDIR, S_IFLNK, S_IFREG
from typing import Any, NamedTuple, Protocol, TypeVar

from freehold.desk import Desk
from freehold.glob import Pattern
from freehold.patterns import list_of_patterns
from freehold.portion import Step, directory
from freehold.schema.errors import PathRefused
from freehold.schema.hashes import ObjectKind
from freehold.schema.ids import Root
from freehold.schema.nodes import Directory, File, Link
from freehold.schema.paths import Parts, PathObject, parse, plain, text
from freehold.schema.roots import tree_of
from freehold.schema.secrets import SecretFilter
from freehold.schema.skipped import Report
from freehold.storage.content import EMPTY, Content, read, write
from freehold.storage.filestate import FileState
from freehold.storage.folder import DIRECTORY_MODE, Folder
from freehold.storage.objects import Objects
from freehold.storage.opened import open_file
from freehold.storage.openmode import parse_mode
from freehold.storage.sight import Found, failed
from freehold.storage.workspace import Workspace

T = TypeVar("T")
StrPath = str | PathObject
LINK_MODE = 0o777


class Stat(NamedTuple):
    """What a path is: `st_mode` as the modules os and stat have it, `st_size` in bytes (of a link: of what it says)."""

    st_mode: int
    st_size: int


class Moment(Protocol):
    """Where files are read: one root at a time."""

    def root(self) -> Root:
        """Return the identity of the root that is read."""

    def looking(self, work: Callable[[Workspace], T]) -> T:
        """Return what *work* finds in it, all of it in one root."""

    def lasting(self) -> Objects:
        """Return its objects for a file that stays open."""

    def going(self, step: Step[T], start: object) -> Iterator[T]:
        """Return what is found from a place on, all of it in one root."""


class ReadFiles:
    """Files to read.

    Everything raises what Python's own functions do (FileNotFoundError, NotADirectoryError, IsADirectoryError, OSError with
    ELOOP), PathRefused (bad_path) for a path that no workspace has and for a link that leads out of it, and Damaged.
    """

    def __init__(self, moment: Moment) -> None:
        self._moment = moment

    @property
    def root(self) -> Root:
        """The identity of what is read, 64 hexadecimal digits: equal for equal files, however they came to be."""
        return self._moment.root()

    def read_bytes(self, path: StrPath) -> bytes:
        """Return the content of a file."""
        return self._look(path, lambda workspace, parts: b"".join(read(workspace.kept, workspace.content(parts))))

    def read_text(self, path: StrPath, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the content of a file as text, its line ends as Python reads them."""
        raw = io.TextIOWrapper(io.BytesIO(self.read_bytes(path)), encoding, errors)
        return raw.read()

    def open(
        self,
        path: StrPath,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> Any:
        """Open a file for reading, as Python's `open` does; text is UTF-8 unless told otherwise. It is read in pieces, not whole.

        Raises OSError (EROFS) for a mode that writes.
        """
        asked = parse_mode(mode, buffering=buffering, encoding=encoding, errors=errors, newline=newline)
        if asked.writes:
            raise failed(errno.EROFS, parse(path))
        content = self._look(path, lambda workspace, parts: workspace.content(parts))
        state = FileState(self._moment.lasting(), content)
        encoding = encoding or ("utf-8" if asked.is_text else None)
        return open_file(state, mode, buffering, encoding, errors, newline, name=text(parse(path)), closed=_nobody)

    def exists(self, path: StrPath, *, follow_symlinks: bool = True) -> bool:
        """Return whether the path leads to anything. A link that leads nowhere, or out, does not exist, except when not followed."""
        return self._kind(path, follow=follow_symlinks) is not None

    def is_file(self, path: StrPath) -> bool:
        """Return whether the path leads to a file."""
        return self._kind(path) is File

    def is_dir(self, path: StrPath) -> bool:
        """Return whether the path leads to a directory."""
        return self._kind(path) is Directory

    def is_symlink(self, path: StrPath) -> bool:
        """Return whether the path itself is a link."""
        return self._kind(path, follow=False) is Link

    def stat(self, path: StrPath, *, follow_symlinks: bool = True) -> Stat:
        """Return mode and size of what the path leads to."""
        return self._look(path, lambda workspace, parts: stat_of(workspace.get(parts, follow=follow_symlinks)))

    def readlink(self, path: StrPath) -> str:
        """Return what a link says. Raises OSError (EINVAL) for what is none."""
        return self._look(path, lambda workspace, parts: workspace.readlink(parts))

    def iterdir(self, path: StrPath = ".") -> Iterator[str]:
        """Return the paths of what is in a directory, in the order of their names."""
        return iter(self._look(path, lambda workspace, parts: [text((*parts, name)) for name, _ in workspace.children(parts)]))

    def walk(self, path: StrPath = ".") -> Iterator[tuple[str, list[str], list[str]]]:
        """Return, for a directory and every one beneath it, its path and the names of its directories and of all else, as Path.walk does.

        Links are not followed, and stand among all else. A directory stands before what is in it. All of it is of one root. Of
        files that are only read it comes step by step, however much there is; of those of a publish or transaction it is
        taken at once. There Refused (too_many_entries) is raised for more than two million.
        """
        return self._moment.going(directory, self._parse(path))

    def glob(self, pattern: str) -> Iterator[str]:
        """Return the paths that match a pattern as pathlib has them: `*`, `?`, `[…]`, and `**` for any directories; sorted.

        `**` at the end finds directories alone, on every Python (pathlib's finds files, too, from 3.13 on: that is `**/*`). It
        comes as `walk` does. Raises PathRefused for a pattern that is empty, absolute, or has `..` in it.
        """
        wanted = self._pattern(pattern)
        return self._moment.going(wanted.step, wanted.start)

    def _pattern(self, pattern: str) -> Pattern:
        return Pattern(pattern)

    def _kind(self, path: StrPath, *, follow: bool = True) -> type | None:
        def kind(workspace: Workspace, parts: Parts) -> type | None:
            try:
                found = workspace.lead(parts, follow=follow)[1]
            except (OSError, PathRefused):
                return None
            return Directory if isinstance(found, Folder) else None if found is None else type(found)

        return self._look(path, kind)

    def _look(self, path: StrPath, work: Callable[[Workspace, Parts], T]) -> T:
        parts = self._parse(path)
        return self._using(lambda workspace: work(workspace, parts))

    def _parse(self, path: StrPath) -> Parts:
        return parse(path)

    def _using(self, work: Callable[[Workspace], T]) -> T:
        return self._moment.looking(work)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class Files(ReadFiles):
    """Files to change, inside a publish or a transaction. What was changed is read at once here, and by nobody else before its end."""

    def __init__(self, desk: Desk, secrets: SecretFilter) -> None:
        super().__init__(desk)
        self._desk = desk
        self._secrets = secrets

    def open(
        self,
        path: StrPath,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> Any:
        """Open a file as Python's `open` does, in every mode; text is UTF-8 unless told otherwise.

        What was written is there from the close on, a new file too; left by an exception or never closed, it is discarded.
        Several handles on one file see each other's writes.
        """
        asked = parse_mode(mode, buffering=buffering, encoding=encoding, errors=errors, newline=newline)
        encoding = encoding or ("utf-8" if asked.is_text else None)
        check = self._new if asked.writes else self._parse
        parts = check(path)
        return self._using(lambda workspace: workspace.open(parts, mode, buffering, encoding, errors, newline, self._desk.know))

    def write_bytes(self, path: StrPath, data: bytes) -> None:
        """Make *data* the content of a file, which is created if it is not there; its directory must be."""
        view = bytes(memoryview(data))
        self._make(path, lambda workspace, parts: workspace.set_content(parts, write(workspace.kept, view)))

    def write_text(self, path: StrPath, data: str, encoding: str = "utf-8", errors: str = "strict", newline: str | None = None) -> None:
        """Make *data* the content of a file; see `write_bytes`."""
        raw = io.BytesIO()
        with io.TextIOWrapper(raw, encoding, errors, newline or "") as writer:
            writer.write(data)
            writer.flush()
            self.write_bytes(path, raw.getvalue())

    def touch(self, path: StrPath, *, exist_ok: bool = True) -> None:
        """Create an empty file, or leave the one that is there as it is. Raises FileExistsError without *exist_ok*."""

        def touch(workspace: Workspace, parts: Parts) -> None:
            if not exist_ok:
                workspace.create(parts)
            elif workspace.lead(parts)[1] is None:
                workspace.set_content(parts, EMPTY)

        self._make(path, touch)

    def mkdir(self, path: StrPath, mode: int = DIRECTORY_MODE, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Make a directory; see pathlib.Path.mkdir. Raises FileExistsError."""
        self._make(path, lambda workspace, parts: workspace.mkdir(parts, mode, parents=parents, exist_ok=exist_ok))

    def symlink(self, path: StrPath, target: StrPath) -> None:
        """Make a link at *path* that says *target*, relative to its own directory; it is followed inside the workspace only.

        Raises FileExistsError.
        """
        says = self._desk.attempt(lambda: plain(target))
        self._secrets.check_text(says, "what a link says")
        self._make(path, lambda workspace, parts: workspace.symlink(parts, says))

    def remove(self, path: StrPath) -> None:
        """Remove a file or a link."""
        self._look(path, lambda workspace, parts: workspace.remove(parts))

    def rmdir(self, path: StrPath) -> None:
        """Remove an empty directory. Raises OSError (ENOTEMPTY)."""
        self._look(path, lambda workspace, parts: workspace.rmdir(parts))

    def rmtree(self, path: StrPath) -> None:
        """Remove a directory with all beneath it."""
        self._look(path, lambda workspace, parts: workspace.rmtree(parts))

    def rename(self, path: StrPath, to: StrPath) -> None:
        """Give a file, a link or a whole directory another path, as os.rename does: what is there is replaced if it can be."""
        there = self._new(to)
        self._look(path, lambda workspace, parts: workspace.rename(parts, there))

    def copy(self, path: StrPath, to: StrPath) -> None:
        """Copy a file over whatever file is at *to*, or a whole directory to where nothing is; neither takes more room."""
        there = self._new(to)
        self._look(path, lambda workspace, parts: workspace.copy(parts, there))

    def import_tree(self, folder: StrPath, into: StrPath = ".", *, ignore: Iterable[str] = ()) -> Report:
        """Take a real folder in, beneath *into*, and return what could not be taken; nothing is left out silently.

        Links are taken as links, and none is followed but *folder* itself. What is there already stays, a file or link of the same
        path is replaced. Left out are the folder of runs, what has a declared secret, or the shape of one, in its name or in what it
        says as a link, and a new name beside one that differs from it by case only. *ignore* holds patterns as in a .gitignore file.

        Raises OSError of the folder, FileExistsError where a directory would have to replace something else, or the other way round,
        and PathRefused for *into*; whoever catches that here keeps what was taken until then.
        """
        from freehold.importing import import_folder

        real = os.fspath(folder)
        patterns = list_of_patterns(ignore)
        home, secrets = self._desk.home, self._secrets

        def take(workspace: Workspace, parts: Parts) -> Report:
            return import_folder(workspace, real, parts, patterns, home, secrets)

        parts = self._new(into)
        report = self._using(lambda workspace: take(workspace, parts))
        self._desk.skipped += report.skipped
        return report

    def chmod(self, path: StrPath, mode: int) -> None:
        """Set the permissions, 0 to 0o777, of a file or directory."""
        self._look(path, lambda workspace, parts: workspace.chmod(parts, mode))

    def _make(self, path: StrPath, work: Callable[[Workspace, Parts], None]) -> None:
        """Let *work* make what stands at *path* afterwards; a name with a secret is refused."""
        parts = self._new(path)
        self._using(lambda workspace: work(workspace, parts))

    def _parse(self, path: StrPath) -> Parts:
        return self._desk.attempt(lambda: parse(path))

    def _pattern(self, pattern: str) -> Pattern:
        return self._desk.attempt(lambda: Pattern(pattern))

    def _new(self, path: StrPath) -> Parts:
        parts = self._parse(path)
        self._secrets.check_text(text(parts), "a path")
        return parts

    def _using(self, work: Callable[[Workspace], T]) -> T:
        return self._desk.working(work)


def put_back(files: Files, parts: Parts, root: bytes) -> None:
    """Make what *parts* names what it was in the root of this hash."""

    def back(workspace: Workspace) -> None:
        tree = tree_of(workspace.kept.get(root, ObjectKind.ROOT))
        workspace.restore(parts, Workspace(workspace.kept, tree))

    files._using(back)  # noqa: SLF001 - a part of this file


def _nobody(_content: Content) -> None:
    """Tell nobody what a file that was opened for reading holds."""


def stat_of(found: Found) -> Stat:
    """Return mode and size of what stands in a workspace."""
    if isinstance(found, File):
        return Stat(S_IFREG | found.mode, found.size)
    if isinstance(found, Link):
        return Stat(S_IFLNK | LINK_MODE, len(found.target.encode()))
    return Stat(S_IFDIR | found.mode, 0)
