"""What can be seen of a workspace: what a path leads to, and what was looked at. Links are followed inside it and never out of it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from enum import IntFlag

from freehold.schema.errors import PathRefused
from freehold.schema.limits import LINK_HOPS_MAX, PATH_DEPTH_MAX
from freehold.schema.nodes import Directory, Entry, File, Link
from freehold.schema.paths import Parts, text
from freehold.storage.content import Content
from freehold.storage.folder import Folder, Kept
from freehold.storage.nodes import unfit
from freehold.storage.trees import find

Found = Entry | Folder
_OF_A_WORKSPACE = "_of_a_workspace"


class Touch(IntFlag):
    """What was looked at of a path, and so what must still be the same."""

    ENTRY = 1
    """What stands there; of a directory, that it is one, and its mode."""
    LISTING = 2
    """The names in it, and what kind of thing has each."""
    WHOLE = 4
    """All beneath it."""
    NAME = 8
    """That a new thing can be called so: its directory is there, and no name in it that ignoring case would take for this one."""


class Sight:
    """The files of one tree to look at, with the changes that were made to them. Used by one thread."""

    def __init__(self, kept: Kept, tree: bytes) -> None:
        self.kept = kept
        self.top = Folder(tree, in_place=True)
        self.touched: dict[Parts, Touch] | None = None
        """What was looked at or changed, by the ways without links; None unless somebody asks for it."""

    def lead(self, parts: Parts, *, follow: bool = True) -> tuple[Parts, Found | None]:
        """Return the way to *parts* without links on it, and what stands at its end; None where nothing does.

        Without *follow* the last name is taken as it is. Raises FileNotFoundError or NotADirectoryError for a way that
        does not lead there, OSError (ELOOP) after 40 links, PathRefused (bad_path) where a link leads out.
        """
        way: list[str] = []
        trail: list[Folder | Directory] = [self.top]
        rest = list(reversed(parts))
        hops = 0
        found: Found | None = self.top
        while rest:
            name = rest.pop()
            if name in ("", "."):  # in what a link says, as the end of one that must lead to a directory
                continue
            if name == "..":
                if not way:
                    raise _outside(parts)
                self.touch(tuple(way), Touch.ENTRY)
                way.pop()
                trail.pop()
                found = trail[-1]
                continue
            found = self._child(trail[-1], name)
            if isinstance(found, Link) and (rest or follow):
                self.touch((*way, name), Touch.ENTRY)
                hops += 1
                if hops > LINK_HOPS_MAX:
                    raise failed(errno.ELOOP, parts)
                if found.target.startswith("/"):
                    raise _outside(parts)
                rest += reversed(found.target.split("/"))
                found = trail[-1]
                continue
            way.append(name)
            if isinstance(found, Directory | Folder):
                trail.append(found)
            elif rest:
                self.touch(tuple(way), Touch.ENTRY)
                raise failed(errno.ENOENT if found is None else errno.ENOTDIR, parts)
        self.touch(tuple(way), Touch.ENTRY)
        return tuple(way), found

    def get(self, parts: Parts, *, follow: bool = True) -> Found:
        """Return what *parts* leads to. Raises FileNotFoundError, and as `lead` does."""
        _, found = self.lead(parts, follow=follow)
        if found is None:
            raise failed(errno.ENOENT, parts)
        return found

    def at(self, way: Parts) -> Found | None:
        """Return what stands at the end of a way without links; None where nothing does."""
        found: Found | None = self.top
        for name in way:
            if not isinstance(found, Directory | Folder):
                return None
            found = self._child(found, name)
        return found

    def content(self, parts: Parts) -> Content:
        """Return the content of the file that *parts* leads to. Raises IsADirectoryError, and as `get` does."""
        found = self.get(parts)
        if not isinstance(found, File):
            raise failed(errno.EISDIR, parts)
        return Content(found.size, found.content)

    def readlink(self, parts: Parts) -> str:
        """Return what a link says. Raises OSError (EINVAL) for what is none, and as `get` does."""
        found = self.get(parts, follow=False)
        if not isinstance(found, Link):
            raise failed(errno.EINVAL, parts)
        return found.target

    def children(self, parts: Parts) -> Iterator[tuple[str, Found]]:
        """Return what is in a directory, in the order of names, as it is now. Raises NotADirectoryError, and as `get` does; Damaged."""
        way, found = self.lead(parts)
        if found is None:
            raise failed(errno.ENOENT, parts)
        if not isinstance(found, Directory | Folder):
            raise failed(errno.ENOTDIR, parts)
        if len(way) > PATH_DEPTH_MAX:  # so whoever goes down a tree comes to an end, whatever its totals say
            raise unfit()
        self.touch(way, Touch.LISTING)
        return _still(found).children(self.kept)

    def entries(self, way: Parts) -> Iterator[tuple[str, Found]]:
        """Return what is in the directory at a way without links, as it is now, for whoever notes by itself what it rests on."""
        found = self.at(way)
        assert isinstance(found, Directory | Folder)
        return _still(found).children(self.kept)

    def watch(self) -> None:
        """Note from now on what is looked at."""
        self.touched = {}

    def touch(self, way: Parts, what: Touch) -> None:
        """Note that *way* was looked at, if anybody wants to know."""
        if self.touched is not None:
            self.touched[way] = self.touched.get(way, Touch(0)) | what

    def _child(self, folder: Folder | Directory, name: str) -> Found | None:
        return folder.child(self.kept, name) if isinstance(folder, Folder) else find(self.kept, folder.tree, name)


def failed(number: int, parts: Parts) -> OSError:
    """Return Python's own error for *number*, of this path."""
    error = OSError(number, os.strerror(number), text(parts))
    vars(error)[_OF_A_WORKSPACE] = True
    return error


def path_of(error: BaseException) -> str | None:
    """Return the path that a file error is about if it is one of a workspace: those of real folders are told by Python itself."""
    return str(error.filename) if isinstance(error, OSError) and vars(error).get(_OF_A_WORKSPACE) else None


def _still(found: Directory | Folder) -> Folder:
    """Return a directory as it is now: what is changed while it is looked through does not show. A tree never changes."""
    still = Folder(found.tree)
    if isinstance(found, Folder):
        still.changes = dict(found.changes)
    return still


def _outside(parts: Parts) -> PathRefused:
    return PathRefused(f"{text(parts)!r}: a link on this way leads out of the workspace; nothing was changed or read")
