"""Power losses in bulk: every image of a record judged, lived in again, and what was wrong told with what repeats it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from book import Book
from scenario import path_in
from verdict import Violation, judge, live_again

from freehold.storage.vfs.image import CrashImage

_MEMORY = Path("/dev/shm")


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a folder in memory where the machine has one: what is proved here has its power losses behind it."""
    in_memory = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK)
    with tempfile.TemporaryDirectory(dir=_MEMORY if in_memory else None) as folder:
        yield Path(folder)


def survey(images: Iterable[CrashImage], folder: Path, *, at_most: int = 5) -> tuple[int, list[str]]:
    """Return how many images were looked at, and what was wrong with those that break a promise; stop after *at_most*."""
    count = 0
    wrong: list[str] = []
    for image in images:
        count += 1
        try:
            check(image, folder / str(image.index))
        except Violation as violation:
            wrong.append(f"{violation}: {image}")
            if len(wrong) == at_most:
                break
    return count, wrong


def check(image: CrashImage, folder: Path) -> None:
    """Let the image stand in *folder* and the run in it live again. Raises Violation."""
    path = path_in(image.restore(folder))
    try:
        live_again(path, judge(path, Book(image.marks)))  # type: ignore[arg-type]
    finally:
        rmtree(folder)
