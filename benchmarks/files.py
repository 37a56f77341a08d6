"""New run files, as both sides of a measurement get them."""

from __future__ import annotations

from pathlib import Path

from freehold.storage.clock import Clock
from freehold.storage.create import create
from freehold.storage.path import RunPath, resolve
from freehold.storage.pin import Pin


def new_run(folder: Path, run_id: str) -> tuple[RunPath, Pin]:
    """Create a run; return where it is, and the pin that holds it until it is closed or handed on."""
    path = resolve(folder, run_id)
    return path, create(path, project="", props="{}", clock=Clock())
