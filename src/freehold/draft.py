"""Files on their way into a run: a workspace on the root that was current, and what it takes to publish what became of it."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from freehold.desk import Desk
from freehold.pieces import Pieces
from freehold.schema.changes import Change
from freehold.schema.errors import Refused
from freehold.schema.limits import SKIPPED_LISTED_MAX
from freehold.schema.messages import Message, ReadRoot
from freehold.schema.roots import Object, tree_of
from freehold.schema.secrets import SecretFilter
from freehold.schema.skipped import Reason, Skipped
from freehold.storage.difference import changes
from freehold.storage.folder import Kept
from freehold.storage.journal import as_record, publish_record
from freehold.storage.sight import path_of
from freehold.storage.workspace import Workspace

Ask = Callable[[Message], Any]


class Mark(NamedTuple):
    """Where a draft stood: the root that was published last, its tree, that of what there was, and what was skipped and is not told."""

    root: bytes
    published: bytes
    tree: bytes
    skipped: tuple[Skipped, ...] = ()


class Draft:
    """What becomes of the files of one transaction or publish, from the root that *ask* says is current."""

    def __init__(self, ask: Ask, shelf: Kept, home: str, *, ahead: bool = False) -> None:
        self._ask = ask
        self.pieces = Pieces(ask, ahead=ahead)
        self.kept = shelf.serving(self.pieces)
        self.root: bytes = ask(ReadRoot())
        self.tree = self.kept.tree(self.root)
        self.desk = Desk(Workspace(self.kept, self.tree), home)
        self.beginning = Mark(self.root, self.tree, self.tree)

    def sealed(self) -> tuple[Object | None, Sequence[Change]]:
        """Return the root of what there is now, and what is different from the one before; None and nothing where nothing is."""
        root = self.desk.working(lambda workspace: workspace.seal())
        if root.hash == self.root:
            return None, ()
        return root, changes(self.kept, self.tree, self.kept.keep_root(root))

    def published(self, root: Object) -> None:
        """Go on from *root*, which is current now."""
        self.root, self.tree = root.hash, tree_of(root.data)

    def mark(self) -> Mark:
        """Keep all objects there are, and return where the draft stands."""
        root = self.desk.looking(lambda workspace: workspace.seal())
        self.pieces.flush()
        return Mark(self.root, self.tree, tree_of(root.data), tuple(self.desk.skipped))

    def undo(self, mark: Mark) -> None:
        """Go back to *mark*. Files that are open keep nothing, whenever they were opened: they would still hold what was undone."""
        self.end()
        self.pieces = Pieces(self._ask)
        self.kept.serving(self.pieces)
        self.root, self.tree = mark.root, mark.published
        self.desk.workspace = Workspace(self.kept, mark.tree)
        self.desk.skipped[:] = mark.skipped

    def end(self) -> None:
        """Take no more changes, and let no file that is still open keep anything."""
        self.desk.clear()
        self.pieces.end()


def record_of(changed: Sequence[Change], skipped: Sequence[Skipped], secrets: SecretFilter) -> str:
    """Return the record of a publish that has changed so much, and of what an import in it has skipped; no path that tells a secret."""
    if not skipped:
        return publish_record(len(changed))
    listed = [[_shown(each.path, secrets), str(each.reason)] for each in skipped[:SKIPPED_LISTED_MAX]]
    return as_record({"changes": len(changed), "skipped": listed, "more": len(skipped) - len(listed)})


def skipped_of(record: Mapping[str, Any]) -> list[Skipped]:
    """Return what the record of a publish lists as skipped. Its paths are those that were shown."""
    return [Skipped(tuple((path or "").split("/")), Reason(reason)) for path, reason in record.get("skipped", ())]


def record_of_failure(error: BaseException, secrets: SecretFilter) -> str:
    """Return the record of a publish that ended with a file error: its name, its symbol, and the path in the workspace.

    None stands for a path that holds a secret, and for one of a real folder, which is none of the workspace.
    """
    path = path_of(error)
    path = None if path is None else _shown(path, secrets)
    number = getattr(error, "errno", None)
    return as_record({"failed": type(error).__name__, "errno": errno.errorcode.get(number) if number else None, "path": path})


def _shown(path: str, secrets: SecretFilter) -> str | None:
    """Return a path as it may be stored: None where it tells a secret, or is no text."""
    try:
        path.encode()
        secrets.check_text(path, "a path")
    except (Refused, UnicodeEncodeError):
        return None
    return path
