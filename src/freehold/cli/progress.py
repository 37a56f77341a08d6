"""A progress bar on standard error while something long is done, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from freehold.cli.output import plain


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """Yield what is to be called with what is done and what there is to do, or None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(plain(title), total=None)
        yield lambda done, whole: bar.update(task, completed=done, total=whole)
