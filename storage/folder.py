"""A workspace that is being changed: directories as they were, and over them what was set or removed since.

Only the directories on the way to a change are opened; a directory that is moved is moved whole. `fold` makes a tree of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec.structs import replace

from freehold.schema.hashes import ObjectKind
from freehold.schema.limits import NAMES_KEPT_MAX
from freehold.schema.nodes import Directory, Entry, Totals
from freehold.schema.paths import fold as folded
from freehold.schema.roots import EMPTY_ROOT, EMPTY_TREE, Object, tree_of
from freehold.storage.nodes import Nodes
from freehold.storage.objects import Objects
from freehold.storage.trees import edit, find, walk

DIRECTORY_MODE = 0o755
Names: TypeAlias = dict[str, str]


class Kept(Nodes):
    """Nodes at hand, and with them the tree of the last root, and the names of the directories that got new ones last.

    The names are found by what ignoring case makes of them.
    """

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self._root = EMPTY_ROOT.hash, EMPTY_TREE.hash
        self._names: dict[bytes, Names] = {}
        self._names_kept = 0

    @property
    def objects(self) -> Objects:
        """The place that it serves now."""
        return self._objects

    def serving(self, objects: Objects) -> Kept:
        """Go on over another place of the same objects, one turn after the other."""
        self._objects = objects
        return self

    def tree(self, root: bytes) -> bytes:
        """Return the top directory of a root. Raises Damaged."""
        if self._root[0] != root:
            self._root = root, tree_of(self._objects.get(root, ObjectKind.ROOT))
        return self._root[1]

    def keep_root(self, root: Object) -> bytes:
        """Return the top directory of a root that was just made, and keep it at hand: it is the next one that is asked for."""
        self._root = root.hash, tree_of(root.data)
        return self._root[1]

    def take_names(self, tree: bytes) -> Names:
        """Return the names of a directory, for whoever takes them to change; the first time, all of it is read."""
        if (found := self._names.pop(tree, None)) is None:
            return {folded(entry.name): entry.name for entry in walk(self, tree)}
        self._names_kept -= len(found) + 1
        return found

    def keep_names(self, tree: bytes, names: Names) -> None:
        """Keep the names of a directory at hand for the next time; the ones that were kept first give way."""
        if tree in self._names:
            return
        self._names[tree] = names
        self._names_kept += len(names) + 1  # a directory itself takes room too
        while self._names_kept > NAMES_KEPT_MAX and len(self._names) > 1:
            self.take_names(next(iter(self._names)))

    def forget(self) -> None:
        """Drop everything at hand."""
        super().forget()
        self._root = EMPTY_ROOT.hash, EMPTY_TREE.hash
        self._names.clear()
        self._names_kept = 0


class Folder:
    """One opened directory: a tree as it was, and what is different now."""

    __slots__ = ("changes", "in_place", "mode", "mode_before", "names", "tree")

    def __init__(self, tree: bytes = EMPTY_TREE.hash, mode: int = DIRECTORY_MODE, *, in_place: bool = False) -> None:
        self.tree = tree
        self.mode = self.mode_before = mode
        self.in_place = in_place
        """Whether it is a directory of the root that the changes began with, still where it was."""
        self.changes: dict[str, Change] = {}
        self.names: Names | None = None
        """Its names by what a system that ignores case makes of them, once that was asked for."""

    def child(self, nodes: Nodes, name: str) -> Entry | Folder | None:
        """Return what has this name now. Raises Damaged."""
        if name in self.changes:
            return self.changes[name]
        return find(nodes, self.tree, name)

    def children(self, nodes: Nodes) -> Iterator[tuple[str, Entry | Folder]]:
        """Yield what is in it now, in the order of names. Raises Damaged."""
        changed = [(name, entry) for name in sorted(self.changes) if (entry := self.changes[name]) is not None]
        at = 0
        for entry in walk(nodes, self.tree):
            while at < len(changed) and changed[at][0] < entry.name:
                yield changed[at]
                at += 1
            if entry.name not in self.changes:
                yield entry.name, entry
        yield from changed[at:]

    def open(self, nodes: Nodes, name: str) -> Folder:
        """Return the directory of this name, which is there, opened for changes."""
        found = self.child(nodes, name)
        if isinstance(found, Directory):
            self.changes[name] = found = Folder(found.tree, found.mode, in_place=self.in_place and name not in self.changes)
        assert isinstance(found, Folder)
        return found

    def put(self, name: str, entry: Change) -> None:
        """Set what has this name, or (None) remove it."""
        self.changes[name] = entry
        if self.names is not None:
            _note(self.names, name, entry)

    def twin(self, kept: Kept, name: str) -> str | None:
        """Return the name in it that a system which ignores case would take for *name*, and is another one."""
        if self.names is None:
            self.names = kept.take_names(self.tree)
            for changed, entry in self.changes.items():
                _note(self.names, changed, entry)
        found = self.names.get(folded(name))
        return None if found == name else found

    def is_empty(self, nodes: Nodes) -> bool:
        """Return whether nothing is in it."""
        return next(self.children(nodes), None) is None

    def still(self) -> Folder:
        """Return it with its changes as they are now; what is done to it later does not show there."""
        twin = Folder(self.tree, self.mode_before, in_place=self.in_place)
        twin.mode = self.mode
        twin.changes = {name: change.still() if isinstance(change, Folder) else change for name, change in self.changes.items()}
        return twin

    def fold(self, kept: Kept) -> Totals:
        """Make all that was changed a tree of its own, keep its nodes, and return what it holds."""
        entries = {name: entry.entry(kept, name) if isinstance(entry, Folder) else entry for name, entry in self.changes.items()}
        self.tree, totals = edit(kept, self.tree, entries)
        self.changes.clear()
        if self.names is not None:
            kept.keep_names(self.tree, self.names)
            self.names = None
        return totals

    def entry(self, kept: Kept, name: str) -> Directory:
        """Fold it, and return the entry by which its parent names it."""
        totals = self.fold(kept)
        return Directory(name, self.mode, self.tree, totals.entries, totals.size, totals.depth)


Change: TypeAlias = Entry | Folder | None
"""What stands in place of an entry, None for one that was removed."""


def renamed(entry: Entry | Folder, name: str) -> Entry | Folder:
    """Return *entry* as it is called *name*, in another place than it was."""
    if isinstance(entry, Folder):
        entry.in_place = False
        return entry
    return replace(entry, name=name)


def copied(kept: Kept, entry: Directory | Folder, name: str) -> Directory:
    """Return a directory as it is now, called *name*, for another place; what is done to one is not seen in the other.

    It is a whole one, however much of it was opened: what was opened doubles with each copy of it into itself.
    """
    return replace(entry, name=name) if isinstance(entry, Directory) else entry.still().entry(kept, name)


def _note(names: Names, name: str, entry: Change) -> None:
    if entry is not None:
        names[folded(name)] = name
    elif names.get(folded(name)) == name:
        del names[folded(name)]
