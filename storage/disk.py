"""What a run file stands on: SQLite's file system, and the calls that change a folder's names.

SQLite has a seam of its own for what it does to a file; this is the one for what we do beside it. A proof puts a disk
here that records, or fails where it is told to.
"""

from __future__ import annotations

import os

from freehold.storage import platform


class Disk:
    """The machine's own disk."""

    vfs: str | None = None
    """The file system that SQLite opens run files on; None is its default."""

    def create_new(self, file: str) -> int:
        """Return a descriptor on a new, empty file. Raises FileExistsError."""
        return platform.create_new(file)

    def rename_new(self, old: str, new: str) -> None:
        """Rename in one step unless the new name is taken. Raises FileExistsError."""
        platform.rename_new(old, new)

    def remove(self, file: str) -> None:
        """Take away a file's name. Raises FileNotFoundError."""
        os.unlink(file)

    def make_folder(self, folder: str) -> None:
        """Make a folder whose parent is there, unless it is there itself."""
        os.makedirs(folder, exist_ok=True)

    def sync_folder(self, folder: str) -> None:
        """Make the names in *folder* durable."""
        platform.sync_folder(folder)


DISK = Disk()
"""The one of this machine."""
