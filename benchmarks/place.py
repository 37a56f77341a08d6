"""Where the files of a measurement stand: a temporary folder on a real disk, gone afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from freehold.storage.platform import filesystem_of

NO_DISK = frozenset({"tmpfs", "ramfs"})
"""A sync costs nothing there, so that every figure would flatter us."""


class NoDisk(Exception):
    """No candidate is on a disk. Nothing was measured."""


@contextmanager
def on_disk(wanted: Path | None) -> Iterator[tuple[Path, str]]:
    """Yield a new folder and the type of its file system: in *wanted*, else where temporary files go, else here.

    Raises NoDisk when they are all kept in memory.
    """
    candidates = [wanted] if wanted is not None else [Path(tempfile.gettempdir()), Path("/var/tmp"), Path.cwd()]
    for parent in candidates:
        if parent.is_dir() and (kind := filesystem_of(str(parent.resolve()))) not in NO_DISK:
            with tempfile.TemporaryDirectory(prefix="freehold-benchmarks-", dir=parent) as folder:
                yield Path(folder).resolve(), kind
            return
    raise NoDisk("no folder on a disk was found (tmpfs makes every sync free); name one with --folder")
