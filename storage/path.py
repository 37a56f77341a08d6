"""How a run file is named: one canonical path for every spelling of it.

Nothing here opens a file; a path may name what does not exist yet.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from freehold.schema.errors import Refused
from freehold.schema.ids import FILE_SUFFIX, check_run_id

PATH_BYTES_MAX = 460
"""SQLite takes 512 bytes with a sibling's suffix; the temporary name of a file that is being created is longer than its own."""
_NAME_BYTES_MAX = 255

SIBLINGS = ("-journal", "-wal", "-shm")
"""What SQLite may leave beside a database."""


@dataclass(frozen=True, slots=True)
class RunPath:
    """The canonical place of a run file. Two spellings of one file are equal."""

    folder: str
    id: str

    @property
    def file(self) -> str:
        """The run file's absolute path, free of links."""
        return os.path.join(self.folder, self.id + FILE_SUFFIX)

    def sibling(self, suffix: str) -> str:
        """Return the path of SQLite's own file beside the run file: `-journal`, `-wal` or `-shm`."""
        return self.file + suffix

    def __str__(self) -> str:
        return self.file


def resolve_root(root: str | os.PathLike[str]) -> str:
    """Return the canonical path of a folder of runs, whether it exists or not.

    Raises Refused (bad_root) for what cannot be a folder's path.
    """
    try:
        text = os.fspath(root)
        if not isinstance(text, str) or not text:
            raise TypeError
        text.encode()  # lone surrogates stand for bytes that are not UTF-8, which SQLite cannot be given
        folder = os.path.realpath(text)
        folder.encode()
    except (TypeError, ValueError, OSError):
        raise _bad_root("the folder of runs must be a path: text in UTF-8, not empty, without NUL") from None
    _check_length(folder)
    return folder


def resolve(root: str | os.PathLike[str], run_id: str) -> RunPath:
    """Return where the run *run_id* in *root* is or would be.

    A link is followed to the run file that it names; the file's own name is the one that counts.
    Raises Refused (bad_run_id, bad_root); nothing was created.
    """
    run_id = check_run_id(run_id)
    return _canonical(os.path.join(resolve_root(root), run_id + FILE_SUFFIX))


def beneath(root: str, run_id: str) -> RunPath:
    """Return where the run *run_id* in *root* is, a canonical path, if the file of that name is known to be no link.

    Raises as `resolve` does.
    """
    path = RunPath(root, check_run_id(run_id))
    _check_length(path.file)
    return path


def resolve_file(file: str | os.PathLike[str]) -> RunPath:
    """Return which run file the path *file*, as a user gives it, names.

    Raises Refused (bad_run_id, bad_root); nothing was created.
    """
    return _canonical(resolve_root(file))


def _canonical(file: str) -> RunPath:
    try:
        folder, name = os.path.split(os.path.realpath(file))
        folder.encode()
    except (ValueError, OSError):
        raise _bad_root("the path leads to one that is not UTF-8") from None
    if not name.endswith(FILE_SUFFIX):
        raise Refused("a run file is named <run id>.sqlite, and this path is or leads to none; nothing was opened", code="bad_run_id")
    path = RunPath(folder, check_run_id(name.removesuffix(FILE_SUFFIX)))
    _check_length(path.file)
    return path


def _check_length(path: str) -> None:
    raw = path.encode()
    if len(raw) > PATH_BYTES_MAX or any(len(part) > _NAME_BYTES_MAX for part in raw.split(b"/")):
        raise _bad_root(f"a run file's whole path must not be longer than {PATH_BYTES_MAX} bytes, and no part than {_NAME_BYTES_MAX}")


def _bad_root(why: str) -> Refused:
    return Refused(f"{why}; nothing was opened or created", code="bad_root")
