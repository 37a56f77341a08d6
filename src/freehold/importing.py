"""Taking a real folder into a workspace, and what of it a root cannot hold. Imported when somebody does it."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from functools import partial

from freehold.schema.errors import Refused
from freehold.schema.nodes import Directory, File, Link
from freehold.schema.paths import Parts, fold, text, unportable
from freehold.schema.secrets import SecretFilter
from freehold.schema.skipped import Reason, Report
from freehold.storage.clock import Clock
from freehold.storage.content import write_stream
from freehold.storage.folder import Folder
from freehold.storage.runsfolder import inode_of_runs
from freehold.storage.scan import Found, scan
from freehold.storage.sight import Found as There
from freehold.storage.sight import Touch, failed
from freehold.storage.statcache import StatCache
from freehold.storage.workspace import Workspace

_FOLDERS = (Directory, Folder)


def import_folder(
    workspace: Workspace, folder: str, into: Parts, ignore: Sequence[str], cache_folder: str, secrets: SecretFilter
) -> Report:
    """Put what is in the real *folder* beneath *into*, and return what could not be put there.

    What is there already and not in the folder stays; a file or link of the same path is replaced, a directory filled. The folder
    of runs, in which the cache stands, is left out, what has a secret in its path, or in what a link says, and a new name that is
    there already but for its case. Raises OSError of the folder, and FileExistsError where a directory would have to replace
    something else or the other way round.
    """
    workspace.mkdir(into, parents=True, exist_ok=True)
    way, _ = workspace.lead(into)
    with (
        StatCache(cache_folder, Clock()) as known,
        scan(folder, ignore=ignore, known=known, unportable=unportable, fold=fold, above=way, runs=inode_of_runs(cache_folder)) as entries,
    ):
        levels = _Levels(workspace, way)
        for found in entries:
            place, there = levels.find(found.parts)
            is_there = _is_there(found, there)
            if not is_there and (secret := _secret_in(secrets, place, found)) is not None:
                entries.decline(found.parts, Reason.SECRET, secret)
                continue
            workspace.touch(place, Touch.ENTRY)  # also where it is left as it is: that is what the import rests on
            if not is_there and (twin := _put(workspace, place, there, found)) is not None:
                entries.decline(found.parts, Reason.COLLISION, twin)
        return entries.report


class _Levels:
    """What stands in the directories on the way to an entry; entries come in the order of their paths."""

    def __init__(self, workspace: Workspace, top: Parts) -> None:
        self._workspace = workspace
        self._top = top
        self._levels: list[tuple[Parts, dict[str, There]]] = []

    def find(self, parts: Parts) -> tuple[Parts, There | None]:
        """Return the way to an entry's place, and what stands there."""
        way = self._top + parts
        above = way[:-1]
        if not self._levels or self._levels[-1][0] != above:
            while self._levels and self._levels[-1][0] != above[: len(self._levels[-1][0])]:
                self._levels.pop()
            if not self._levels or self._levels[-1][0] != above:
                self._levels.append((above, dict(self._workspace.entries(above))))
        return way, self._levels[-1][1].get(way[-1])


def _is_there(found: Found, there: There | None) -> bool:
    """Return whether an entry is known, without being read, to stand there as it is."""
    if found.kind == "directory":
        return isinstance(there, _FOLDERS) and there.mode == found.mode
    if found.kind == "link":
        return isinstance(there, Link) and there.target == found.target
    if found.known is None or not isinstance(there, File):
        return False
    return (there.size, there.content, there.mode) == (found.size, found.known, found.mode)


def _secret_in(secrets: SecretFilter, place: Parts, found: Found) -> str | None:
    """Return the name of the secret, or the kind of the shape, that an entry would bring into the file; None where it brings none."""
    try:
        secrets.check_text(text(place), "a path")
        secrets.check_text(found.target, "what a link says")
    except Refused as refusal:
        return str(refusal.details.get("secret") or refusal.details["shape"])
    return None


def _put(workspace: Workspace, way: Parts, there: There | None, found: Found) -> str | None:
    """Put an entry into its place; return the name that stands in its way because a system that ignores case would take both for one."""
    is_folder = isinstance(there, _FOLDERS)
    if there is not None and is_folder != (found.kind == "directory"):
        raise failed(errno.EEXIST, way)
    if there is None and (twin := workspace.twin(way)) is not None:
        return twin
    if found.kind == "directory":
        if not isinstance(there, _FOLDERS):
            workspace.place(way, there, Folder(mode=found.mode))
        else:
            workspace.chmod(way, found.mode)
    elif found.kind == "link":
        workspace.place(way, there, Link(way[-1], found.target))
    elif (file := _file(workspace, found, there, way[-1])) is not None and file != there:
        workspace.place(way, there, file)
    return None


def _file(workspace: Workspace, found: Found, there: There | None, name: str) -> File | None:
    if found.known is not None and isinstance(there, File) and (there.size, there.content) == (found.size, found.known):
        return File(name, found.mode, there.size, there.content)  # its pieces are in this run, so it need not be read
    taken = found.read(partial(_take, workspace))
    return None if taken is None else File(name, taken.mode, taken.size, taken.content)


def _take(workspace: Workspace, pieces: Iterable[bytes]) -> bytes:
    return write_stream(workspace.kept, pieces).where
