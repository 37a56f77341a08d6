"""What is published from another process, held in the owner's turn against everything that its own publishes keep to.

A process of another version may send anything: before its root becomes the current one, all that is new in it is looked at. It
costs what is new. Whatever was published once is whole, and what lies ahead of a publish is listed, so the rest is known to be right.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import apsw

from freehold.schema.errors import Damaged
from freehold.schema.hashes import ObjectKind, object_hash
from freehold.schema.index import CHUNK_LEVEL, child_size, top_level
from freehold.schema.limits import ENTRY_NAME_BYTES_MAX, PATH_BYTES_MAX
from freehold.schema.nodes import Directory, Entry, File, Item, Link, Totals, make_node
from freehold.schema.ours import members
from freehold.schema.paths import Parts, fold, text, unportable
from freehold.schema.roots import EMPTY_TREE, make_root, tree_of
from freehold.schema.secrets import SecretFilter
from freehold.schema.wire import malformed
from freehold.storage.content import Content, Piece, load_node
from freehold.storage.difference import changes, differing
from freehold.storage.nodes import Nodes, unfit
from freehold.storage.objects import StoredObjects, missing
from freehold.storage.trees import edit, walk

_FIND = "SELECT o.kind, o.size, s.object IS NOT NULL FROM object o LEFT JOIN staged s ON s.object = o.id WHERE o.hash = ?"


def check_arrival(db: apsw.Connection, now: bytes, root: bytes, record: str, secrets: SecretFilter) -> set[bytes]:
    """Return the hashes of what was met of a root that takes the place of the one with the hash *now*; nothing of it is ahead any more.

    Raises Refused: malformed_frame for a root that is not whole, or holds what no workspace takes, or of which the *record* counts
    other changes; secret_refused for a new name, or a new word of a link, that tells a secret. Nothing was changed.
    """
    arrival = _Arrival(db, secrets)
    try:
        arrival.check(now, root)
        if arrival.count(now, root) != members(record)["changes"]:
            raise malformed("a publish counts other changes than lead to its root")
    except (Damaged, OSError):  # OSError: more than can be counted
        raise malformed("the files that are to be published are not whole") from None
    arrival.met.add(object_hash(ObjectKind.ROOT, root))
    return arrival.met


class _Trees(Nodes):
    """The nodes of a file, of which none is added: what an edit would keep is only looked at."""

    def put_node(self, level: int, items: Sequence[Item], _known: set[bytes]) -> bytes:
        return make_node(level, items).hash


class _Read(StoredObjects):
    """The pieces of a file, and which were asked for."""

    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(db)
        self.met: set[bytes] = set()

    def get(self, hash_: bytes, kind: ObjectKind) -> bytes:
        self.met.add(hash_)
        return super().get(hash_, kind)


class _Arrival:
    """One look at one root."""

    def __init__(self, db: apsw.Connection, secrets: SecretFilter) -> None:
        self._db = db
        self._secrets = secrets
        self._read = _Read(db)
        self._trees = _Trees(self._read)
        self.met = self._read.met
        self._held: dict[bytes, Totals] = {}
        self._pieces: set[Piece] = set()
        self._longest: dict[tuple[bytes, bytes], int] = {}
        self._todo: list[tuple[Parts, bytes, bytes, Totals | None]] = []

    def check(self, now: bytes, root: bytes) -> None:
        """Raise Damaged unless *root* is the root of a whole tree, Refused where something in it may not be published."""
        old, new = tree_of(self._read.get(now, ObjectKind.ROOT)), tree_of(root)
        self._todo.append(((), old, new, None))
        while self._todo:
            way, before, after, said = self._todo.pop()
            if after not in self._held:
                self._held[after] = self._directory(way, before, after)
            if said not in (None, self._held[after]):
                raise unfit()
        held = self._held[new]
        if make_root(new, *held).data != root:
            raise unfit()
        # Only beneath many levels a path can become too long; then it is looked for.
        if held.depth * (ENTRY_NAME_BYTES_MAX + 1) > PATH_BYTES_MAX and self._path_bytes(old, new) > PATH_BYTES_MAX:
            raise unfit()

    def count(self, now: bytes, root: bytes) -> int:
        """Return how many changes lead to *root*, which was checked."""
        return len(changes(self._trees, tree_of(self._read.get(now, ObjectKind.ROOT)), tree_of(root)))

    def _directory(self, way: Parts, old: bytes, new: bytes) -> Totals:
        """Check one directory that takes the place of another, and return what it holds; those beneath it are to be checked next.

        Of one that was published before only its form is looked at: its top may have been a lower node of a larger one.
        """
        is_known = self._is_known(new)
        edits: dict[str, Entry | None] = {}
        added: list[str] = []
        for before, after in differing(self._trees, old, new):
            if after is None:
                assert before is not None
                edits[before.name] = None
                continue
            edits[after.name] = after
            if not is_known:
                self._entry((*way, after.name), before, after)
                if before is None:
                    added.append(after.name)
        # Whatever was found above: only the tree that the same edit makes here has its one form, its order and its totals.
        tree, held = edit(self._trees, old, edits)
        if tree != new:
            raise unfit()
        self._check_twins(new, added)
        return held

    def _is_known(self, tree: bytes) -> bool:
        """Return whether a node was part of a publish before: it is kept, and not listed as ahead of one."""
        kind, _, is_ahead = self._find(tree)
        return kind == ObjectKind.TREE and not is_ahead

    def _entry(self, way: Parts, before: Entry | None, after: Entry) -> None:
        name = way[-1]
        if before is None:
            if unportable(name) is not None:
                raise malformed("a name that is to be published is not portable")
            self._secrets.check_text(text(way), "a path")
        if isinstance(after, Directory):
            beneath = before.tree if isinstance(before, Directory) else EMPTY_TREE.hash
            self._todo.append((way, beneath, after.tree, Totals(after.entries, after.size, after.depth)))
        elif isinstance(after, Link):
            if not isinstance(before, Link) or before.target != after.target:
                self._secrets.check_text(after.target, "what a link says")
        elif not isinstance(before, File) or (before.size, before.content) != (after.size, after.content):
            content = Content(after.size, after.content)
            if not content.is_inline:
                self._piece(Piece(top_level(content.size), content.where, content.size))

    def _piece(self, piece: Piece) -> None:
        """Check a piece of a file's content, and those that it names unless they were published before."""
        if piece in self._pieces:
            return
        self._pieces.add(piece)
        kind, size, is_ahead = self._find(piece.hash)
        self.met.add(piece.hash)
        if kind != piece.kind:
            raise unfit()
        if piece.level == CHUNK_LEVEL:
            if size != piece.size:
                raise unfit()
            return
        node = load_node(self._read, piece)
        for number, child in enumerate(node.children if is_ahead else ()):
            self._piece(Piece(piece.level - 1, child, child_size(piece.level, piece.size, number)))

    def _find(self, hash_: bytes) -> tuple[int, int, bool]:
        """Return the kind and the size of an object, and whether it is listed as ahead of its publish. Raises Damaged."""
        found = self._db.execute(_FIND, (hash_,)).get
        if found is None:
            raise missing()
        kind, size, is_ahead = found
        return kind, size, bool(is_ahead)

    def _check_twins(self, tree: bytes, added: Collection[str]) -> None:
        """Refuse new names of which one, or one that is there, is the same to a system that ignores case."""
        names = {fold(name): name for name in added}
        if names and any(names.get(fold(entry.name), entry.name) != entry.name for entry in walk(self._trees, tree)):
            raise malformed("two names of one directory are the same where case is ignored")

    def _path_bytes(self, old: bytes, new: bytes) -> int:
        """Return how long the longest path is that is new in a directory, or may be."""
        if (old, new) not in self._longest:
            longest = 0
            for before, after in differing(self._trees, old, new):
                if after is not None:
                    length = len(after.name.encode())
                    if isinstance(after, Directory):
                        beneath = self._path_bytes(before.tree if isinstance(before, Directory) else EMPTY_TREE.hash, after.tree)
                        length += 1 + beneath if beneath else 0
                    longest = max(longest, length)
            self._longest[old, new] = longest
        return self._longest[old, new]
