"""Everything that can be done to files, on two sides: through `Files`, and through os and pathlib in a real folder."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISLNK
from typing import Any

from trees import Tree, names

from freehold import PathRefused
from freehold.files import ReadFiles

Deed = tuple[str, tuple[Any, ...]]
"""The name of a method of both sides, and its arguments."""
Steps = tuple[Deed, ...]
"""What is done with one open file."""


class Ours:
    """The side of `Files`."""

    def __init__(self, files: Any) -> None:
        self.files = files
        self.held: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self.files, name)
        return method

    def iterdir(self, path: str) -> list[str]:
        return [each.rpartition("/")[2] for each in self.files.iterdir(path)]

    def walk(self, path: str) -> list[tuple[str, list[str], list[str]]]:
        return list(self.files.walk(path))

    def glob(self, pattern: str) -> list[str]:
        return list(self.files.glob(pattern))

    def stat(self, path: str, follow: bool) -> tuple[int, int]:
        found = self.files.stat(path, follow_symlinks=follow)
        return found.st_mode, found.st_size

    def mkdir(self, path: str, parents: bool, exist_ok: bool) -> None:
        self.files.mkdir(path, parents=parents, exist_ok=exist_ok)

    def touch(self, path: str, exist_ok: bool) -> None:
        self.files.touch(path, exist_ok=exist_ok)

    def opened(self, path: str, mode: str, steps: Steps) -> list[Any]:
        return _story(self.files.open(path, mode), steps)

    def hold(self, slot: int, path: str, mode: str) -> None:
        _hold(self, slot, lambda: self.files.open(path, mode, 0))

    def held_do(self, slot: int, steps: Steps) -> list[Any]:
        return _steps(self.held[slot], steps) if slot in self.held else []

    def let_go(self, slot: int) -> None:
        if slot in self.held:
            self.held.pop(slot).close()


class Real:
    """The side of a real folder, *top*; beside it there may be a temporary one."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.held: dict[int, Any] = {}

    def read_bytes(self, path: str) -> bytes:
        return self._at(path).read_bytes()

    def read_text(self, path: str) -> str:
        return self._at(path).read_text("utf-8")

    def write_bytes(self, path: str, content: bytes) -> None:
        self._at(path).write_bytes(content)

    def write_text(self, path: str, content: str) -> None:
        self._at(path).write_text(content, "utf-8")

    def exists(self, path: str) -> bool:
        return self._at(path).exists()

    def is_file(self, path: str) -> bool:
        return self._at(path).is_file()

    def is_dir(self, path: str) -> bool:
        return self._at(path).is_dir()

    def is_symlink(self, path: str) -> bool:
        return self._at(path).is_symlink()

    def stat(self, path: str, follow: bool) -> tuple[int, int]:
        found = self._at(path).stat(follow_symlinks=follow)
        return found.st_mode, 0 if S_ISDIR(found.st_mode) else found.st_size

    def readlink(self, path: str) -> str:
        return os.readlink(self._at(path))  # noqa: PTH115 - a Path would no longer say what stands there

    def iterdir(self, path: str) -> list[str]:
        return names(self._at(path))

    def walk(self, path: str) -> list[tuple[str, list[str], list[str]]]:
        return list(self._walk(path))

    def _walk(self, path: str) -> Iterator[tuple[str, list[str], list[str]]]:
        here = names(self._at(path))
        folders = [name for name in here if S_ISDIR((self._at(path) / name).lstat().st_mode)]
        yield path, folders, [name for name in here if name not in folders]
        for name in folders:
            yield from self._walk(name if path == "." else f"{path}/{name}")

    def glob(self, pattern: str) -> list[str]:
        return sorted(
            (str(found.relative_to(self.top)) for found in self.top.glob(pattern)), key=lambda path: path.split("/") * (path != ".")
        )

    def mkdir(self, path: str, parents: bool, exist_ok: bool) -> None:
        self._at(path).mkdir(parents=parents, exist_ok=exist_ok)

    def touch(self, path: str, exist_ok: bool) -> None:
        self._at(path).touch(exist_ok=exist_ok)

    def symlink(self, path: str, target: str) -> None:
        os.symlink(target, self._at(path))  # noqa: PTH211 - a Path would leave out a slash at the end

    def remove(self, path: str) -> None:
        self._at(path).unlink()

    def rmdir(self, path: str) -> None:
        self._at(path).rmdir()

    def rmtree(self, path: str) -> None:
        if S_ISLNK(self._at(path).lstat().st_mode):
            raise NotADirectoryError(20, "shutil refuses a link without a number")
        shutil.rmtree(self._at(path))

    def rename(self, path: str, to: str) -> None:
        self._at(path).rename(self._at(to))

    def copy(self, path: str, to: str) -> None:
        source, target = self._at(path), self._at(to)
        if S_ISDIR(source.stat().st_mode):
            aside = self.top.parent / "aside"
            shutil.copytree(source, aside, symlinks=True)
            try:
                target.mkdir()
                aside.rename(target)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
        elif not (target.exists() and target.samefile(source)):
            shutil.copyfile(source, target)
            shutil.copymode(source, target)

    def chmod(self, path: str, mode: int) -> None:
        if self._at(path).exists() and self._at(path).samefile(self.top):
            raise OSError(errno.EBUSY, "the top of a workspace has no permissions of its own")
        self._at(path).chmod(mode)

    def opened(self, path: str, mode: str, steps: Steps) -> list[Any]:
        return _story(self._open(path, mode), steps)

    def hold(self, slot: int, path: str, mode: str) -> None:
        _hold(self, slot, lambda: self._open(path, mode, 0))

    def held_do(self, slot: int, steps: Steps) -> list[Any]:
        return _steps(self.held[slot], steps) if slot in self.held else []

    def let_go(self, slot: int) -> None:
        if slot in self.held:
            self.held.pop(slot).close()

    def _open(self, path: str, mode: str, buffering: int = -1) -> Any:
        return self._at(path).open(mode, buffering, None if "b" in mode else "utf-8")

    def _at(self, path: str) -> Path:
        return self.top / path

    def may_be_refused(self, deed: Deed) -> bool:
        """Return whether a workspace refuses what a real folder does: a way that leads out, or a name that another is taken for."""
        paths = [self.top / path for path in deed[1] if isinstance(path, str)]
        return self.leads_out() or any(self._has_twin(path) for path in paths)

    def _has_twin(self, path: Path) -> bool:
        place = Path(os.path.realpath(path.parent)) / path.name
        ends = {place, Path(os.path.realpath(path)), *(each for each in path.parents if each.is_relative_to(self.top))}
        return any(
            name != end.name and name.lower() == end.name.lower() for end in ends if end.parent.is_dir() for name in names(end.parent)
        )

    def leads_out(self) -> bool:
        """Return whether any link in the folder leads out of it."""
        inside = os.path.realpath(self.top)
        links = (path for path in self.top.rglob("*") if path.is_symlink())
        return any(not (os.path.realpath(path) + "/").startswith(inside + "/") for path in links)


def outcome(side: Any, deed: Deed) -> tuple[Any, ...]:
    """Do it; return what it returned, or the class and number of the error that it raised."""
    name, arguments = deed
    try:
        return "ok", getattr(side, name)(*arguments)
    except PathRefused:
        return ("refused",)
    except OSError as error:
        return type(error), error.errno
    except ValueError as error:
        return (type(error),)


def tree_of(files: ReadFiles) -> Tree:
    """Return all that is in a workspace, as `trees.tree` returns a real folder."""
    found: Tree = {}
    for above, folders, others in files.walk():
        for name in (*folders, *others):
            path = name if above == "." else f"{above}/{name}"
            mode = files.stat(path, follow_symlinks=False).st_mode
            if S_ISLNK(mode):
                found[path] = "link", 0o777, os.fsencode(files.readlink(path))
            else:
                folder = S_ISDIR(mode)
                found[path] = "directory" if folder else "file", S_IMODE(mode), b"" if folder else files.read_bytes(path)
    return found


def _hold(side: Ours | Real, slot: int, open_: Callable[[], Any]) -> None:
    if slot not in side.held:
        side.held[slot] = open_()


def _story(file: Any, steps: Steps) -> list[Any]:
    with file:
        return _steps(file, steps)


def _steps(file: Any, steps: Steps) -> list[Any]:
    return [outcome(file, step) for step in steps]
