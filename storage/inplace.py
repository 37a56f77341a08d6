"""A folder that holds something already, made to hold given entries, name by name.

Every file is whole at any moment: it is written under a name of its own and renamed over the old one, never cut short in
place, so that its other names and its open readers keep what they had.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from freehold.schema.limits import SYNC_EACH_ENTRIES_MAX
from freehold.schema.skipped import Parts
from freehold.storage import platform
from freehold.storage.ajar import Ajar
from freehold.storage.comparison import Change, Plan
from freehold.storage.entries import Out, SameName, check_folding
from freehold.storage.folders import Descent, Naming, is_folder, look, move_new, raw
from freehold.storage.staging import Staging
from freehold.storage.writer import Read, make_link, write_file


class CheckedOut(NamedTuple):
    """What a checkout has done: how many entries it wrote, kept and removed, and which paths it left alone."""

    written: int
    kept: int = 0
    removed: int = 0
    left_alone: tuple[Parts, ...] = ()


def carry_out(plan: Plan, top_fd: int, entries: Sequence[Out], read: Read, same: SameName, ajar: Ajar) -> CheckedOut:
    """Do what *plan* says in the folder of *top_fd*, which is to hold *entries*; *ajar* closes those that stand open.

    Raises PathRefused before the first write; then OSError with the path, what *read* raises, Damaged. What was done by
    then stays: whole files, none half.
    """
    made = [*plan.files, *plan.links]
    written = len(made) + len(plan.folders) + len(plan.modes)
    if written or plan.remove:
        sync_each = written + len(plan.remove) <= SYNC_EACH_ENTRIES_MAX
        with Staging(top_fd) as staging, Descent(top_fd) as descent:
            check_folding(entries, staging.fd, same)
            _prepare(made, staging.fd, read, sync_each=sync_each)
            for parts in sorted(plan.touched() & plan.barred):
                ajar.open(parts)
            _remove(plan.remove, staging.fd, descent)
            for out in plan.folders:
                dir_fd = descent.at(out.parts[:-1])
                with Naming(out.parts):
                    os.mkdir(raw(out.parts[-1]), 0o700, dir_fd=dir_fd)
            for number, change in enumerate(made):
                _place(str(number), staging.fd, descent, change)
            _finish(plan, descent, ajar, sync_each=sync_each)
        if not sync_each:
            platform.sync_filesystem(top_fd)
    return CheckedOut(written, plan.kept, len(plan.remove), tuple(plan.left_alone))


def _prepare(made: Sequence[Change], staging_fd: int, read: Read, *, sync_each: bool) -> None:
    """Write every file and link under its number, and make them durable before the first takes its place."""
    for number, (out, _) in enumerate(made):
        if out.kind == "file":
            write_file(str(number), staging_fd, out, read, sync=sync_each)
        else:
            make_link(str(number), staging_fd, out)
    if not sync_each:
        platform.sync_filesystem(staging_fd)


def _remove(paths: Sequence[Parts], staging_fd: int, descent: Descent) -> None:
    """Move what is to go into the staging folder, which goes as a whole at the end."""
    for number, parts in enumerate(paths):
        dir_fd = descent.at(parts[:-1])
        with Naming(parts), suppress(FileNotFoundError):  # it has gone by itself
            try:
                os.rename(raw(parts[-1]), f"gone-{number}", src_dir_fd=dir_fd, dst_dir_fd=staging_fd)
            except PermissionError:
                if not is_folder(look(parts[-1], dir_fd)):
                    raise
                platform.open_passable(raw(parts[-1]), dir_fd)  # a folder that moves is itself written to: its ".."
                os.rename(raw(parts[-1]), f"gone-{number}", src_dir_fd=dir_fd, dst_dir_fd=staging_fd)


def _place(name: str, staging_fd: int, descent: Descent, change: Change) -> None:
    parts = change.out.parts
    dir_fd = descent.at(parts[:-1])
    with Naming(parts):
        if change.replaces:
            os.rename(name, raw(parts[-1]), src_dir_fd=staging_fd, dst_dir_fd=dir_fd)
        else:
            move_new(name, staging_fd, parts[-1], dir_fd)  # what appeared meanwhile is not ours to replace


def _finish(plan: Plan, descent: Descent, ajar: Ajar, *, sync_each: bool) -> None:
    """Make names durable, and set the modes of folders when nothing beneath them has to be reached any more."""
    for parts in sorted(plan.touched(), reverse=True) if sync_each else ():
        os.fsync(descent.at(parts))
    for parts, mode in (plan.modes | {out.parts: out.mode for out in plan.folders}).items():
        ajar.leave(parts, mode)
    ajar.close(sync=sync_each)
