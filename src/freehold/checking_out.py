"""Writing a root to a real folder. Imported when somebody does it: it brings what nobody else needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from freehold.checkout import Checkout, Replace
from freehold.pieces import Pieces
from freehold.schema.hashes import ObjectKind
from freehold.schema.limits import PATH_DEPTH_MAX
from freehold.schema.messages import Message
from freehold.schema.nodes import Directory, File
from freehold.schema.paths import Parts, fold, unportable
from freehold.schema.roots import tree_of
from freehold.storage.checkout import checkout
from freehold.storage.clock import Clock
from freehold.storage.content import Content, read
from freehold.storage.entries import Out, check_count
from freehold.storage.nodes import Nodes, unfit
from freehold.storage.platform import Inode
from freehold.storage.runsfolder import inode_of_runs
from freehold.storage.scan import scan
from freehold.storage.statcache import StatCache
from freehold.storage.temporary import temporary
from freehold.storage.trees import measure, walk

Ask = Callable[[Message], Any]


def check_out(ask: Ask, root: bytes, folder: str | None, replace: Replace, ignore: Sequence[str], home: str) -> Checkout:
    """Write the root of this hash to *folder*, or to a temporary one. Raises what `storage.checkout` raises."""
    pieces = Pieces(ask)
    nodes, tree = Nodes(pieces), tree_of(pieces.get(root, ObjectKind.ROOT))
    check_count(measure(nodes, tree).entries)  # what they say; what they are is counted, too
    entries = list(_outs(nodes, tree, ()))

    def content(out: Out) -> Iterator[bytes]:
        return read(pieces, Content(out.size, out.content))

    if folder is None:
        held = temporary(entries, content)
        return Checkout(held.path, root, 0, 0, 0, (), held)
    runs = inode_of_runs(home)
    if replace == "never":
        done = checkout(folder, entries, content, runs=runs)  # there is nothing to compare with, so the folder of runs stays as it is
    else:
        with StatCache(home, Clock()) as known:
            left = partial(_left_out, folder, ignore, runs, entries) if replace == "always" or ignore else ()
            done = checkout(folder, entries, content, replace=replace, leave_alone=left, known=known, runs=runs)
    return Checkout(str(Path(folder).absolute()), root, *done)


def _outs(nodes: Nodes, tree: bytes, above: Parts) -> Iterator[Out]:
    if len(above) > PATH_DEPTH_MAX:
        raise unfit()
    for entry in walk(nodes, tree):
        parts = (*above, entry.name)
        if isinstance(entry, File):
            yield Out(parts, "file", entry.mode, entry.size, content=entry.content)
        elif isinstance(entry, Directory):
            yield Out(parts, "directory", entry.mode)
            yield from _outs(nodes, entry.tree, parts)
        else:
            yield Out(parts, "link", target=entry.target)


def _left_out(folder: str, ignore: Sequence[str], runs: Inode | None, entries: Collection[Out]) -> frozenset[Parts]:
    """Return what stands in *folder* and is to be ignored, or could never have been taken from there: it is not removed.

    What the root itself names, *entries*, is never left as it is for that, but only because it is to be ignored.
    """
    own = frozenset(out.parts for out in entries)
    with scan(folder, ignore=ignore, unportable=unportable, fold=fold, runs=runs, own=own) as there:
        closed = {found.parts for found in there if found.is_closed}
        return (there.report.left_out() | closed).difference(own).union(there.report.ignored)
