"""Workspaces for tests of storage: over the objects of a real file, with short ways to say what is in them and what is put there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kept import kept

from freehold.schema.nodes import Directory, File, Link
from freehold.schema.paths import parse
from freehold.schema.roots import EMPTY_TREE
from freehold.storage.content import Content, read, write_stream
from freehold.storage.folder import Folder, Kept
from freehold.storage.sight import Sight
from freehold.storage.workspace import Workspace


@contextmanager
def shelf(folder: Path) -> Iterator[Kept]:
    """Yield nodes at hand over the objects of a new file in *folder*, which has the empty directory."""
    with kept(folder) as objects:
        objects.put(EMPTY_TREE)
        yield Kept(objects)


def fill(workspace: Workspace, *things: str) -> None:
    """Make things: `d/` is a directory, `l>target` a link, `f=content` a file; the directories on the way are made."""
    for thing in things:
        path, sign, rest = thing.partition(">" if ">" in thing else "=")
        parts = parse(path)
        workspace.mkdir(parts[:-1], parents=True, exist_ok=True) if parts[:-1] else None
        if thing.endswith("/") and not sign:
            workspace.mkdir(parts)
        elif sign == ">":
            workspace.symlink(parts, rest)
        else:
            write(workspace, path, rest.encode())


def write(workspace: Workspace, path: str, content: bytes) -> None:
    """Make *content* that of a file."""
    workspace.set_content(parse(path), write_stream(workspace.kept, [content]))


def text(workspace: Workspace, path: str) -> str:
    """Return the content of a file."""
    return b"".join(read(workspace.kept, workspace.content(parse(path)))).decode()


def listing(workspace: Sight, path: str = ".") -> list[str]:
    """Return all that is beneath a directory, as `fill` takes it."""
    found: list[str] = []
    way = parse(path)
    for name, entry in workspace.children(way):
        here = "/".join((*way, name))
        if isinstance(entry, Directory | Folder):
            found += listing(workspace, here) or [f"{here}/"]
        elif isinstance(entry, Link):
            found.append(f"{here}>{entry.target}")
        else:
            found.append(f"{here}={_content(workspace, entry)}")
    return found


def _content(workspace: Sight, entry: File) -> str:
    return b"".join(read(workspace.kept, Content(entry.size, entry.content))).decode()


def opened(workspace: Workspace, path: str, mode: str = "rb", **how: Any) -> Any:
    """Open a file without a buffer."""
    return workspace.open(parse(path), mode, 0 if "b" in mode else -1, None if "b" in mode else "utf-8", None, None, **how)
