"""A process without file descriptors, for as long as a test wants."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def few(left: int) -> Iterator[None]:
    """Leave only *left* descriptors to this process until the end of the block."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(int(fd.name) for fd in Path("/proc/self/fd").iterdir()) + 20, limits[1]))
    try:
        try:
            while True:
                taken.append(os.open("/", os.O_PATH))
        except OSError:
            for fd in taken[:left]:
                os.close(fd)
            del taken[:left]
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for fd in taken:
            os.close(fd)
