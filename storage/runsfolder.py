"""The folder of runs, met by who writes or reads real folders: it is known by its inode, whatever path leads to it."""

from __future__ import annotations

import os
import re

from freehold.schema.errors import Refused
from freehold.storage import platform
from freehold.storage.platform import Inode

_OURS = re.compile(
    r".+\.sqlite(-wal|-shm|-journal)?|\.host-[0-9a-f]{16}\.(sock|new)|\..+\.[0-9]+-[0-9]+\.new(-wal|-shm|-journal)?", re.DOTALL
)


def inode_of_runs(home: str) -> Inode | None:
    """Return the inode of the folder of runs, or None where there is none yet."""
    return platform.inode_of(os.stat(home)) if os.path.isdir(home) else None


def is_ours(name: str) -> bool:
    """Return whether a file of the folder of runs is called as those are that are kept there: runs, what stands beside them, caches."""
    return _OURS.fullmatch(name) is not None


def check_is_another(target: str, runs: Inode | None) -> None:
    """Raise Refused (runs_folder) for a target that is the folder of runs. One in a folder beneath it harms no run."""
    if runs is not None and os.path.isdir(target) and platform.inode_of(os.stat(target)) == runs:
        raise Refused(f"{target} is the folder of runs; nothing was written", code="runs_folder")
