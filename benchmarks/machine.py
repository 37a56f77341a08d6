"""The machine that was measured on, and how much else it had to do meanwhile."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field

import apsw

import freehold


def load() -> float:
    """Return how many processes have wanted a core in the last minute, in the mean."""
    return os.getloadavg()[0]


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(slots=True)
class Machine:
    """Where a report comes from. Others at work show in the load before; the load after is partly our own."""

    filesystem: str
    load_before: float = field(default_factory=load)
    load_after: float = 0.0

    def finish(self) -> None:
        """Look at the load once more, when everything is measured."""
        self.load_after = load()

    @property
    def is_noisy(self) -> bool:
        """Whether others were at work: then ratios and CPU mean something, and rates alone do not."""
        return self.load_before > cores() / 2 or self.load_after > cores() + 1

    def sentence(self) -> str:
        """Return a line for people."""
        about = (
            f"Python {sys.version.split()[0]}, SQLite {apsw.sqlite_lib_version()}, {cores()} cores, {self.filesystem}; "
            f"load {self.load_before:.1f} before, {self.load_after:.1f} after."
        )
        if self.is_noisy:
            return f"{about} The machine was busy with other work: trust the ratios and the CPU, not the rates."
        return about

    def record(self) -> dict[str, object]:
        """Return the same as plain JSON."""
        return {
            "freehold": freehold.__version__,
            "python": sys.version.split()[0],
            "sqlite": apsw.sqlite_lib_version(),
            "cores": cores(),
            "filesystem": self.filesystem,
            "load_before": self.load_before,
            "load_after": self.load_after,
            "noisy": self.is_noisy,
        }
