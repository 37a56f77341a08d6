"""What happened to the files below one folder, step by step: every write, cut, sync and change of a name, and the marks between them."""

from __future__ import annotations

import os
from itertools import count
from typing import NamedTuple, TypeAlias

ABSENT = -1


class Wrote(NamedTuple):
    """Bytes were written into a file. Files are numbered: a name may come to mean another one."""

    file: int
    offset: int
    content: bytes


class Cut(NamedTuple):
    """A file was given another size; what it gains are zeros."""

    file: int
    size: int


class Synced(NamedTuple):
    """All that was written into a file before this became durable. Its name did not."""

    file: int


class Named(NamedTuple):
    """A new file or folder got a name."""

    name: str
    file: int
    is_folder: bool = False


class Renamed(NamedTuple):
    """A file changed its name, in one step."""

    name: str
    new: str
    file: int


class Removed(NamedTuple):
    """A name was taken away."""

    name: str


class SyncedFolder(NamedTuple):
    """All changes of names in a folder before this became durable."""

    name: str


class Marked(NamedTuple):
    """The scenario said something: usually that it has acknowledged something."""

    fact: object


Change: TypeAlias = Named | Renamed | Removed
Step: TypeAlias = Wrote | Cut | Synced | Change | SyncedFolder | Marked


class Record:
    """The steps of one scenario below *base*, and what stood there before it. Names are relative to *base*."""

    def __init__(self, base: str | os.PathLike[str]) -> None:
        """Begin with what stands there now. Nobody may own a file there: it is opened and closed by hand."""
        self.base = os.path.realpath(base)
        self.steps: list[Step] = []
        self.before: dict[str, bytes | None] = {}
        """Every name at the beginning and the content of its file; None is a folder's."""
        self.called: dict[int, str] = {}
        """The name that a file had first, by its number."""
        self._numbers = count()
        self._names: dict[str, int] = {}
        for folder, folders, files in os.walk(self.base):
            for name in folders:
                self._begin_with(os.path.join(folder, name), None)
            for name in files:
                with open(os.path.join(folder, name), "rb") as file:
                    self._begin_with(os.path.join(folder, name), file.read())

    def _begin_with(self, path: str, content: bytes | None) -> None:
        name = os.path.relpath(path, self.base)
        self.before[name] = content
        self._number(name)

    def _number(self, name: str) -> int:
        file = self._names[name] = next(self._numbers)
        self.called[file] = name
        return file

    def name_of(self, path: str) -> str | None:
        """Return *path* as it is written here, or None if it lies elsewhere."""
        name = os.path.relpath(path, self.base)
        return None if name == os.pardir or name.startswith(os.pardir + os.sep) else name

    def find(self, name: str) -> int:
        """Return the number of the file that *name* means now, or ABSENT."""
        return self._names.get(name, ABSENT)

    def add(self, step: Step) -> None:
        """Note what has just been done to a file or a folder, or what is to be marked."""
        self.steps.append(step)

    def add_name(self, name: str, *, is_folder: bool = False) -> int:
        """Note that a file or folder was created; return its number."""
        file = self._number(name)
        self.steps.append(Named(name, file, is_folder))
        return file

    def rename(self, name: str, new: str) -> None:
        """Note that a file was renamed inside its folder."""
        assert os.path.dirname(name) == os.path.dirname(new), "one folder's names change in one step, two folders' do not"
        file = self._names[new] = self._names.pop(name)
        self.steps.append(Renamed(name, new, file))

    def remove(self, name: str) -> None:
        """Note that a name was taken away; what never had one here (shared memory) is not told of."""
        if self._names.pop(name, None) is not None:
            self.steps.append(Removed(name))

    def describe(self, position: int) -> str:
        """Say in words what step number *position* did."""
        match self.steps[position]:
            case Wrote(file, offset, content):
                return f"{len(content)} bytes written at {offset} of {self.called[file]}"
            case Cut(file, size):
                return f"{self.called[file]} cut to {size} bytes"
            case Synced(file):
                return f"{self.called[file]} synced"
            case Named(name):
                return f"{name} created"
            case Renamed(name, new):
                return f"{name} renamed to {new}"
            case Removed(name):
                return f"{name} removed"
            case SyncedFolder(name):
                return f"folder {name} synced"
            case Marked():
                return "a mark"
