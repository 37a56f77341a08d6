"""Real folders and what is in them, as entries and as plain facts, with a shelf for the bytes of files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from freehold.schema.hashes import ObjectKind, object_hash
from freehold.schema.limits import INLINE_BYTES_MAX
from freehold.schema.skipped import Report
from freehold.storage.entries import Out
from freehold.storage.scan import scan

Tree = dict[str, tuple[str, int, bytes]]
"""Paths with kind, mode, and a file's bytes or a link's target."""


class Shelf:
    """Where the bytes of files stand while they are in no folder."""

    def __init__(self) -> None:
        self.bytes: dict[bytes, bytes] = {}
        self.reads = 0

    def take(self, pieces: Iterable[bytes]) -> bytes:
        """Keep the bytes; return their key."""
        self.reads += 1
        return self.put(b"".join(pieces))

    def put(self, content: bytes) -> bytes:
        """Keep the bytes; return their key."""
        key = content if len(content) <= INLINE_BYTES_MAX else object_hash(ObjectKind.CHUNK, content)
        self.bytes[key] = content
        return key

    def read(self, out: Out) -> Iterator[bytes]:
        """Yield the bytes in pieces of odd length."""
        content = self.bytes[out.content]
        yield from (content[at : at + 50_001] for at in range(0, len(content), 50_001))

    def file(self, path: str, content: bytes = b"content", mode: int = 0o644) -> Out:
        """Return the entry of a file."""
        return Out(tuple(path.split("/")), "file", mode, len(content), "", self.put(content))


def folder(path: str, mode: int = 0o755) -> Out:
    """Return the entry of a folder."""
    return Out(tuple(path.split("/")), "directory", mode)


def link(path: str, target: str) -> Out:
    """Return the entry of a link."""
    return Out(tuple(path.split("/")), "link", 0o777, 0, target)


def taken(top: Path, shelf: Shelf, **options: Any) -> tuple[list[Out], Report]:
    """Return what a scan makes of a folder: its entries, and its report."""
    found = []
    with scan(str(top), **options) as entries:
        for entry in entries:
            if entry.kind != "file":
                found.append(Out(entry.parts, entry.kind, entry.mode, 0, entry.target))
            elif entry.known is not None:
                found.append(Out(entry.parts, entry.kind, entry.mode, entry.size, "", entry.known))
            elif (read := entry.read(shelf.take)) is not None:
                found.append(Out(entry.parts, entry.kind, read.mode, read.size, "", read.content))
        return found, entries.report


def tree(top: Path) -> Tree:
    """Return what is in a folder, by means of our own: no descriptors, no scan. A folder that is not there holds nothing.

    What is closed to us is opened for the look.
    """
    found: Tree = {}
    if top.exists():
        _walk(top, "", found)
    return found


def _walk(folder: Path, above: str, found: Tree) -> None:
    for path in sorted(folder.iterdir()):
        mode = path.lstat().st_mode
        name = above + path.name
        if stat.S_ISLNK(mode):
            found[name] = "link", 0o777, os.fsencode(os.readlink(path))  # noqa: PTH115 - a Path would leave out a slash at the end
        elif stat.S_ISDIR(mode):
            found[name] = "directory", stat.S_IMODE(mode), b""
            with _opened(path):
                _walk(path, name + "/", found)
        elif stat.S_ISREG(mode):
            with _opened(path):
                found[name] = "file", stat.S_IMODE(mode), path.read_bytes()
        else:
            found[name] = "special", stat.S_IMODE(mode), b""


@contextmanager
def _opened(path: Path) -> Iterator[None]:
    if os.access(path, os.R_OK | os.X_OK * path.is_dir()):
        yield
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    path.chmod(0o700)
    yield
    path.chmod(mode)


def as_tree(entries: Iterable[Out], shelf: Shelf) -> Tree:
    """Return entries as `tree` returns a folder that holds them."""
    return {
        "/".join(out.parts): (out.kind, out.mode, out.target.encode() if out.kind == "link" else shelf.bytes.get(out.content, b""))
        for out in entries
    }


def plant(top: Path, entries: Iterable[Out], shelf: Shelf) -> None:
    """Make a folder that holds *entries*, by means of our own."""
    top.mkdir(exist_ok=True)
    entries = list(entries)
    for out in entries:
        path = top.joinpath(*out.parts)
        if out.kind == "directory":
            path.mkdir()
        elif out.kind == "file":
            path.write_bytes(shelf.bytes[out.content])
            path.chmod(out.mode)
        else:
            path.symlink_to(out.target)
    for out in reversed(entries):
        if out.kind == "directory":
            top.joinpath(*out.parts).chmod(out.mode)


def plant_tree(top: Path, found: Tree) -> None:
    """Make the folder that `tree` has found so."""
    top.mkdir()
    for path, (kind, mode, raw) in sorted(found.items()):
        if kind == "link":
            os.symlink(raw, os.fsencode(top / path))  # noqa: PTH211 - a Path would leave out a slash at the end
        elif kind == "directory":
            (top / path).mkdir()
        else:
            (top / path).write_bytes(raw)
            (top / path).chmod(mode)
    for path, (kind, mode, _) in found.items():
        if kind == "directory":
            (top / path).chmod(mode)


def stagings(top: Path) -> list[str]:
    """Return the names of the staging folders in a folder."""
    return [name for name in names(top) if name.startswith(".freehold-")]


def names(top: Path) -> list[str]:
    """Return the names in a folder, in order."""
    return sorted(path.name for path in top.iterdir())
