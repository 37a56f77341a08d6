"""Where the files of a run are read: the root that is current at each call, or the one of a moment, for good."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, TypeVar

from freehold.pieces import Pieces
from freehold.portion import Pending, Step, portion
from freehold.schema.errors import RunNotFound
from freehold.schema.hashes import ObjectKind
from freehold.schema.ids import Root
from freehold.schema.limits import LOOK_ENTRIES
from freehold.schema.messages import Message, ReadRoot
from freehold.schema.roots import EMPTY_ROOT, EMPTY_TREE, root_text, tree_of
from freehold.storage.folder import Kept
from freehold.storage.objects import NoObjects, Objects
from freehold.storage.workspace import Workspace

T = TypeVar("T")
Ask = Callable[[Message], Any]
About = Callable[[Callable[[Ask], Any]], Any]
"""Calls a function with somebody to ask, and returns what it returns."""


class At:
    """The files of one root, or of the current one. A run that is not there has none."""

    def __init__(self, about: About, ask: Ask, root: bytes | None = None, tree: bytes | None = None) -> None:
        self._about = about
        self._ask = ask
        self._root = root
        self._tree = tree

    def root(self) -> Root:
        """Return the identity of the root that is read."""
        try:
            return root_text(self._about(self._which))
        except RunNotFound:
            return root_text(EMPTY_ROOT.hash)

    def looking(self, work: Callable[[Workspace], T]) -> T:
        """Return what *work* finds in the root, all of it in one."""

        def inside(ask: Ask) -> T:
            pieces = Pieces(ask)
            tree = self._tree or tree_of(pieces.get(self._which(ask), ObjectKind.ROOT))
            return work(Workspace(Kept(pieces), tree))

        try:
            found: T = self._about(inside)
        except RunNotFound:
            return work(Workspace(Kept(NoObjects()), EMPTY_TREE.hash))
        return found

    def lasting(self) -> Objects:
        """Return the objects of the run, for a file that stays open."""
        return Pieces(self._ask)

    def going(self, step: Step[T], start: object) -> Iterator[T]:
        """Return what is found from a place on, step by step, all of it in the root of the first step."""
        found, pending, tree = self._portion(step, (start, None))
        same = At(self._about, self._ask, tree=tree)

        def rest(pending: Pending) -> Iterator[T]:
            while pending is not None:
                found, pending, _ = same._portion(step, pending)
                yield from found

        return chain(found, rest(pending))

    def _portion(self, step: Step[T], pending: Pending) -> tuple[list[T], Pending, bytes]:
        return self.looking(lambda workspace: (*portion(step, workspace, pending, LOOK_ENTRIES), workspace.top.tree))

    def _which(self, ask: Ask) -> bytes:
        return self._root if self._root is not None else bytes(ask(ReadRoot()))
