"""What a demonstration needs around it: a command line, a folder that is gone afterwards, and what the bare disk can do."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import apsw
from files_below import STANDARD_LIBRARY

RAW_SECONDS = 0.5


def command_line(about: str, counted: str) -> argparse.ArgumentParser:
    """Return the options that a demonstration on a folder has."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("folder", nargs="?", type=Path, default=STANDARD_LIBRARY, metavar="FOLDER", help="default: the standard library")
    parser.add_argument("--root", type=Path, metavar="DIR", help="keep the run there, in a new or empty folder; default: a temporary one")
    parser.add_argument("--keep", action="store_true", help="leave the run there at the end")
    parser.add_argument("--kill-after", type=int, metavar="N", help=f"kill after N acknowledged {counted}; default: half of them")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser


def checked(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return what the command line says; a wrong one ends here, before anything is made."""
    given = parser.parse_args()
    try:
        wrong = None if given.child else what_is_wrong(given)
        given.folder = given.folder.resolve()
    except OSError as error:
        wrong = str(error)
    if wrong is not None:
        parser.error(f"{wrong}; nothing was made")
    return given


def what_is_wrong(given: argparse.Namespace) -> str | None:
    """Return why the demonstration cannot begin, or None."""
    if not given.folder.is_dir():
        return f"{str(given.folder)!r} is not a folder"
    if given.kill_after is not None and given.kill_after < 0:
        return "--kill-after takes 0 or more"
    if given.root is None:
        return None
    if given.root.resolve() == given.folder.resolve():
        return "the run cannot be kept in the very folder that is shown"
    if not given.root.parent.is_dir():
        return f"{str(given.root.parent)!r}, where the run's folder would be made, is not a folder"
    if given.root.exists() and not (given.root.is_dir() and not any(given.root.iterdir())):
        return f"{str(given.root)!r} is not a new or empty folder"
    return None


@contextmanager
def root_folder(wanted: Path | None, run: str, *, keep: bool) -> Iterator[Path]:
    """Make the folder that the run is kept in, and take it away again: what was not there before, and nothing else."""
    made = wanted is None or not wanted.exists()
    if wanted is None:
        # Rather not /tmp, which is memory on many machines: a commit costs nothing there, and proves nothing.
        place = os.environ.get("TMPDIR") or ("/var/tmp" if os.access("/var/tmp", os.W_OK) else None)  # noqa: S108 - mkdtemp
        root = Path(tempfile.mkdtemp(prefix="freehold-demo-", dir=place))
    else:
        root = wanted
        root.mkdir(exist_ok=True)
    before, tempfile.tempdir = tempfile.tempdir, str(root.resolve())  # so that checkouts for a while lie there, too
    try:
        yield root.resolve()
    finally:
        tempfile.tempdir = before
        for path in root.iterdir():
            if path.is_dir():
                remove(path)
            elif not keep:
                path.unlink()
        if keep:
            print(f"The run is kept: {root / run}.sqlite", file=sys.stderr)
        elif made:
            root.rmdir()


def remove(folder: Path) -> None:
    """Remove a folder with all that is in it, also what its own modes protect from us."""
    for inside, _, _ in os.walk(folder):
        Path(inside).chmod(0o700)
    shutil.rmtree(folder)


def raw_commits_per_second(root: Path) -> float:
    """Return how fast this disk takes bare commits: one INSERT each, WAL, FULL, and nothing of Freehold."""
    file = root / "raw.db"
    db = apsw.Connection(str(file))
    try:
        db.pragma("journal_mode", "wal")
        db.pragma("synchronous", 2)
        db.execute("CREATE TABLE record (seq INTEGER PRIMARY KEY, text TEXT) STRICT")
        commits, began = 0, perf_counter()
        while (seconds := perf_counter() - began) < RAW_SECONDS:
            db.execute("BEGIN IMMEDIATE; INSERT INTO record (text) VALUES (?); COMMIT", ("x" * 200,))
            commits += 1
        return commits / seconds
    finally:
        db.close()
        file.unlink()
