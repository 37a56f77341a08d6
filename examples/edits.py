"""What a publish changes: decided by its number, and by what it finds there, so the same on a run's files as on their twin.

Whoever knows the number of a publish, and the files before it, knows the files after it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from random import Random

from twin import Twin

from freehold import Files

TREE = "tree"
"""The directory that the real folder is imported into."""
SHARED = "edits.txt"
"""A file that many publishes add a line to. Two that have read the same lines cannot both be right."""

SHARED_SHARE = 0.125
SMALL_ENTRIES = 32
CHOICES = {
    "nothing": ("write", "write", "mkdir"),
    "file": ("write", "append", "patch", "rename", "copy", "link", "chmod", "remove"),
    "link": ("rename", "remove"),
    "directory": ("rename", "copy", "chmod", "remove"),
}
Places = tuple[list[str], list[str]]
"""All paths at which something is changed, and those of them that are new: each in a directory that was imported."""


def places_in(imported: Iterable[str], directories: Iterable[str]) -> Places:
    """Return where something may be edited, in a workspace that holds nothing but what was imported."""
    old, homes = sorted(set(imported) - {TREE}), sorted(directories)
    word = "freehold"
    # A new name is in no path that is there, in upper case neither: a workspace refuses two names that some system takes for one.
    while any(word in path.casefold() for path in old):
        word += "-"
    new = [f"{homes[number % len(homes)]}/{word}-{number}" for number in range(max(16, len(old) // 8))]
    return old + new, new


def edit(files: Files | Twin, number: int, places: Places) -> None:
    """Make the changes of publish *number*: one to four, and in one of eight publishes a line in the file that all share."""
    dice = Random(f"publish {number}")  # noqa: S311 - it must be the same everywhere
    everywhere, new = places
    for _ in range(dice.randint(1, 4)):
        change(files, dice, dice.choice(everywhere), dice.choice(new))
    if dice.random() < SHARED_SHARE:
        with files.open(SHARED, "ab") as file:
            file.write(f"{number}\n".encode())


def change(files: Files | Twin, dice: Random, path: str, free: str) -> None:
    """Make one change at *path*, whatever stands there by now; what it renames, copies or links goes to *free* if that is free."""
    kind = kind_of(files, path)
    what = dice.choice(CHOICES[kind])
    if kind == "nothing" and not files.is_dir(parent(path)):
        return
    if what in {"rename", "copy", "link"} and (kind_of(files, free) != "nothing" or not files.is_dir(parent(free)) or is_in(free, path)):
        return
    if kind == "directory" and what in {"copy", "remove"} and len(list(files.iterdir(path))) > SMALL_ENTRIES:
        return
    match what:
        case "write":
            files.write_bytes(path, dice.randbytes(dice.choice((20, 2_000, 200_000))))
        case "append":
            with files.open(path, "ab") as file:
                file.write(dice.randbytes(200))
        case "patch":
            with files.open(path, "r+b") as file:
                file.seek(dice.randint(0, file.seek(0, os.SEEK_END)))
                file.write(dice.randbytes(200))
        case "mkdir":
            files.mkdir(path)
            files.write_bytes(f"{path}/{free.rpartition('/')[2]}", dice.randbytes(20))
        case "rename":
            files.rename(path, free)
        case "copy":
            files.copy(path, free)
        case "link":
            files.symlink(free, os.path.relpath(path, parent(free)))
        case "chmod":
            files.chmod(path, dice.choice((0o700, 0o755) if kind == "directory" else (0o444, 0o600, 0o644, 0o755)))
        case _:
            (files.rmtree if kind == "directory" else files.remove)(path)


def kind_of(files: Files | Twin, path: str) -> str:
    """Return what stands at a path; a link is a link, wherever it leads."""
    if files.is_symlink(path):
        return "link"
    return "directory" if files.is_dir(path) else "file" if files.is_file(path) else "nothing"


def parent(path: str) -> str:
    """Return the path of the directory that *path* is in."""
    return path.rpartition("/")[0]


def is_in(path: str, directory: str) -> bool:
    """Return whether a path is *directory* or beneath it."""
    return f"{path}/".startswith(f"{directory}/")
