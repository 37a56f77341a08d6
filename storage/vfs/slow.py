"""A slow disk: the default file system, with every sync lasting two milliseconds at least.

On it a commit costs the same on every machine, so what sharing one commit gains shows whatever the disk underneath.
"""

from __future__ import annotations

import time

import apsw

SLOW = "freehold-slow"
SYNC_S = 0.002


class SlowFile(apsw.VFSFile):
    """A file of the default file system. Nothing is acknowledged sooner than it is true: the real sync comes first."""

    def __init__(self, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("", name, flags)

    def xSync(self, flags: int) -> None:
        until = time.perf_counter() + SYNC_S
        super().xSync(flags)
        if (left := until - time.perf_counter()) > 0:
            time.sleep(left)


class SlowVFS(apsw.VFS):
    """The default file system with slow syncs."""

    def __init__(self) -> None:
        super().__init__(SLOW, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return SlowFile(name, flags)


SLOWS = SlowVFS()
"""The one of this process; registered when this module is first imported."""
