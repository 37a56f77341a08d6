"""What a test may leave behind: nothing. Threads of ours and descriptors of run files, before and after."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

JOIN_S = 5.0
"""A thread that was told to end may still be on its way out; one that does not end is left behind."""


def freehold_threads() -> frozenset[threading.Thread]:
    """Return the living threads that are ours."""
    return frozenset(thread for thread in threading.enumerate() if thread.name.startswith("freehold"))


def open_run_files() -> Counter[str]:
    """Return how many descriptors of this process point to each run file, its siblings (-wal, -shm, …) included."""
    found: Counter[str] = Counter()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            target = descriptor.readlink()
        except FileNotFoundError:  # the descriptor of this very listing, or one that was closed meanwhile
            continue
        if ".sqlite" in target.name:
            found[str(target)] += 1
    return found


@dataclass(frozen=True)
class Before:
    """What there was when it was made."""

    threads: frozenset[threading.Thread] = field(default_factory=freehold_threads)
    files: Counter[str] = field(default_factory=open_run_files)

    def left(self, *, join_s: float = JOIN_S) -> list[str]:
        """Return what there is now and was not before: threads by name, descriptors by file."""
        started = freehold_threads() - self.threads
        for thread in started:
            thread.join(join_s)
        threads = [f"thread {thread.name}" for thread in started if thread.is_alive()]
        files = [f"{count} open descriptor(s) of {file}" for file, count in (open_run_files() - self.files).items()]
        return sorted(threads) + sorted(files)
