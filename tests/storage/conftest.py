"""Where tests of many files run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    """Return a folder in memory where the machine has one: twenty thousand files are a matter of seconds there."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)
