"""Going through a tree in portions, each one look: no more is in memory than one portion and what is still to come on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from freehold.schema.nodes import Directory
from freehold.schema.paths import Parts, text
from freehold.storage.folder import Folder
from freehold.storage.workspace import Workspace

T = TypeVar("T")
Step = Callable[[Workspace, Any], tuple[T | None, Sequence[Any]]]
"""Says what is found at one place, and which places in it come next, in order."""
Pending = tuple[Any, "Pending"] | None
"""The next place, and those after it. It never changes, so that a portion can be begun anew."""


def portion(step: Step[T], workspace: Workspace, pending: Pending, most: int) -> tuple[list[T], Pending]:
    """Return what is found at the next *most* places, and what is still to come."""
    found: list[T] = []
    while pending is not None and most:
        most -= 1
        place, pending = pending
        result, inside = step(workspace, place)
        if result is not None:
            found.append(result)
        for each in reversed(inside):
            pending = (each, pending)
    return found, pending


def directory(workspace: Workspace, parts: Parts) -> tuple[tuple[str, list[str], list[str]], list[Parts]]:
    """Be the step of a walk: say what is in a directory as Path.walk does, and go on in those in it."""
    folders: list[str] = []
    others: list[str] = []
    for name, found in workspace.children(parts):
        (folders if isinstance(found, Directory | Folder) else others).append(name)
    return (text(parts), folders, others), [(*parts, name) for name in folders]
