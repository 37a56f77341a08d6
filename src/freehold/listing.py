"""Looking at many files in few looks: what is in a directory, and a file's content in portions. Of files of one root, to be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from freehold.files import ReadFiles, Stat, StrPath, stat_of
from freehold.schema.errors import PathRefused
from freehold.schema.limits import PORTION_BYTES
from freehold.schema.nodes import Directory, Link
from freehold.schema.paths import Parts, text
from freehold.storage.content import read
from freehold.storage.entries import check_count
from freehold.storage.folder import Folder
from freehold.storage.sight import Found
from freehold.storage.trees import measure
from freehold.storage.workspace import Workspace


class Listed(NamedTuple):
    """One path, what stands there, and of a link what it says."""

    path: str
    stat: Stat
    target: str | None


def listing(files: ReadFiles, path: StrPath, *, recursive: bool = False) -> list[Listed]:
    """Return what is in a directory, with *recursive* all that is beneath it, in the order of names; of all else, the thing itself.

    Beneath *path* no link is followed. Raises Refused (too_many_entries), and as `ReadFiles` does.
    """

    def look(workspace: Workspace, parts: Parts) -> list[Listed]:
        here = workspace.get(parts, follow=False)
        if not _leads_to_folder(workspace, parts):
            return [_listed(parts, here)]
        beneath = workspace.get(parts)
        if recursive and isinstance(beneath, Directory | Folder):
            check_count(measure(workspace.kept, beneath.tree).entries)
        return list(_beneath(workspace, parts, recursive=recursive))

    return files._look(path, look)  # noqa: SLF001 - the same package


def portions(files: ReadFiles, path: StrPath) -> Iterator[bytes]:
    """Yield a file's content, no more of it at once than a portion. Raises as `ReadFiles.read_bytes` does."""
    offset = 0

    def look(workspace: Workspace, parts: Parts) -> bytes:
        return b"".join(read(workspace.kept, workspace.content(parts), offset, PORTION_BYTES))

    while portion := files._look(path, look):  # noqa: SLF001 - the same package
        yield portion
        offset += len(portion)


def _beneath(workspace: Workspace, parts: Parts, *, recursive: bool) -> Iterator[Listed]:
    for name, found in workspace.children(parts):
        yield _listed((*parts, name), found)
        if recursive and _is_folder(found):
            yield from _beneath(workspace, (*parts, name), recursive=True)


def _listed(parts: Parts, found: Found) -> Listed:
    return Listed(text(parts), stat_of(found), found.target if isinstance(found, Link) else None)


def _leads_to_folder(workspace: Workspace, parts: Parts) -> bool:
    try:
        return _is_folder(workspace.lead(parts)[1])
    except (OSError, PathRefused):  # a link that leads nowhere, or out, is there itself
        return False


def _is_folder(found: Found | None) -> bool:
    return isinstance(found, Directory | Folder)
