"""A real folder made from entries: whole, in a staging folder beside it, then renamed into place.

A failure at any point leaves the target as it was. Everything is reached by descriptors, links are made last, and none
is ever followed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from typing import Literal

from freehold.schema.skipped import Parts
from freehold.storage import platform
from freehold.storage.ajar import Ajar
from freehold.storage.comparison import Comparison
from freehold.storage.entries import Out, SameName, check_folding, checked
from freehold.storage.folders import is_folder, look, move_new, open_folder, open_top, raw, same_name
from freehold.storage.inplace import CheckedOut, carry_out
from freehold.storage.platform import Inode
from freehold.storage.room import check_room
from freehold.storage.runsfolder import check_is_another
from freehold.storage.scan import Known
from freehold.storage.staging import Staging, sweep
from freehold.storage.writer import Read, write_tree

Replace = Literal["never", "changed", "always"]
"""What of a folder that holds something a checkout may replace."""

_TREE = "tree"


def checkout(
    target: str,
    entries: Iterable[Out],
    read: Read,
    *,
    replace: Replace = "never",
    leave_alone: Collection[Parts] | Callable[[], Collection[Parts]] = (),
    known: Known | None = None,
    runs: Inode | None = None,
    same: SameName = same_name,
) -> CheckedOut:
    """Write *entries* to the folder *target*. One that is itself a link is refused; links on the way to it are followed.

    A new or empty target appears whole or not at all, but for an empty one that is a mount or the current folder. One that
    holds something is refused with "never"; with "changed" what differs is replaced, file by file, and what is not an entry
    stays; with "always" that is removed, too. What stands at or beneath the paths of *leave_alone* stays as it is; a function
    is asked for them when every folder that is an entry can be looked into. *known* tells which files there need not be read
    to compare them. *runs* is the folder of runs, which stays as it is, too.

    Raises, before the first write: Refused (runs_folder) for the folder of runs itself; PathRefused for entries that are no tree
    or names that the target cannot tell apart; Refused (too_many_entries); OSError (ENOSPC) where there is less room than they
    take; FileExistsError, FileNotFoundError, NotADirectoryError, ELOOP for a link; in a folder that holds something also OSError
    with the path of what stands in the way (ELOOP: a link). While it writes: OSError, what *read* raises, Damaged where that is
    not the size.
    """
    check_is_another(target, runs)
    outs = checked(entries)
    parent, name = _split(target)
    with ExitStack() as undo:
        parent_fd = open_top(parent)
        undo.callback(os.close, parent_fd)
        here = look(name or ".", parent_fd)
        if here is not None and stat.S_ISLNK(here.st_mode):
            raise OSError(errno.ELOOP, "it is a link; name the real folder that it leads to", target)
        if here is None:
            check_room(parent_fd, outs, target)
            return _appear(name, parent_fd, None, outs, read, same)
        if replace == "never" and not is_folder(here):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        target_fd = open_folder(name or ".", parent_fd)
        undo.callback(os.close, target_fd)
        is_empty = not os.listdir(target_fd)
        # A mounted folder cannot be replaced, and the current one would be gone from under our feet.
        if is_empty and name and here.st_dev == os.fstat(parent_fd).st_dev and not _is_current(here):
            check_room(parent_fd, outs, target)
            return _appear(name, parent_fd, here, outs, read, same)
        if replace == "never" and not is_empty:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        if not platform.lock_exclusive(target_fd):
            raise BlockingIOError(errno.EAGAIN, "another checkout writes to this folder", target)
        sweep(target_fd)
        ajar = undo.enter_context(Ajar(target_fd))
        ajar.open_all(outs)
        left = leave_alone() if callable(leave_alone) else leave_alone
        comparison = Comparison(outs, read, exact=replace == "always", leave_alone=left, known=known, opened=ajar.modes, runs=runs)
        plan = comparison.plan(target_fd)
        check_room(target_fd, [*plan.folders, *(change.out for change in (*plan.files, *plan.links))], target)
        return carry_out(plan, target_fd, outs, read, same, ajar)


def _split(target: str) -> tuple[str, str]:
    """Return the folder that holds *target*, links followed, and its name there; no name for "/"."""
    above, name = os.path.split(target.rstrip("/") or "/")
    if name in {"", os.curdir, os.pardir}:  # these are never links themselves
        above, name = os.path.split(os.path.realpath(target))
    return os.path.realpath(above), os.fsencode(name).decode("utf-8", "surrogateescape")


def _is_current(here: os.stat_result) -> bool:
    try:
        return os.path.samestat(here, os.stat(os.curdir))
    except FileNotFoundError:
        return False


def _appear(name: str, parent_fd: int, here: os.stat_result | None, outs: Sequence[Out], read: Read, same: SameName) -> CheckedOut:
    """Write everything beside the target, then rename it into place."""
    sweep(parent_fd)
    with Staging(parent_fd) as staging, ExitStack() as undo:
        check_folding(outs, staging.fd, same)
        os.mkdir(_TREE, dir_fd=staging.fd)  # with the mode that every new folder of this process has
        tree_fd = open_folder(_TREE, staging.fd)
        undo.callback(os.close, tree_fd)
        if here is not None:
            _take_over(tree_fd, here)
        write_tree(tree_fd, outs, read, durable=True)
        if here is None:
            move_new(_TREE, staging.fd, name, parent_fd)
        else:
            os.rename(_TREE, raw(name), src_dir_fd=staging.fd, dst_dir_fd=parent_fd)  # refused if it is not empty any more
        os.fsync(parent_fd)
    return CheckedOut(written=len(outs))


def _take_over(tree_fd: int, here: os.stat_result) -> None:
    """Give the new folder the owner and mode of the empty one that it replaces."""
    mine = os.fstat(tree_fd)
    if (mine.st_uid, mine.st_gid) != (here.st_uid, here.st_gid):
        os.fchown(tree_fd, here.st_uid, here.st_gid)
    os.fchmod(tree_fd, here.st_mode & 0o7777)
