"""Which moment of a run's files a command looks at: --at X or --before X, else now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

import freehold
from freehold.files import ReadFiles

F = TypeVar("F", bound=Callable[..., Any])
MOMENT = "a seq (0 is before everything), an event's id, a time such as 2026-11-23T12:00:00Z, or a root (8 or more of its digits)"


def moment_options(command: F) -> F:
    """Give *command* --at and --before."""
    at = click.option("--at", metavar="X", help=f"The files as they were at X: {MOMENT}.")
    before = click.option("--before", metavar="X", help="The files as they were just before X, which is no root.")
    return at(before(command))


def files_of(host: freehold.Host, run: str, at: str | None = None, before: str | None = None) -> ReadFiles:
    """Return the files of a run at a moment, or as they are now and stay. Raises RunNotFound, where the API has no files."""
    view = host.view(run)
    _ = view.info
    return view.snapshot(at, before=before)
