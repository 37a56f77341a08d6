"""A checkout for a while: a folder beneath the system's temporary one, gone when it is closed."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from freehold.storage.entries import Out, SameName, check_folding, checked
from freehold.storage.folders import open_folder, open_top, same_name
from freehold.storage.room import check_room
from freehold.storage.staging import Staging, sweep
from freehold.storage.writer import Read, write_tree

_TREE = "tree"


class Temporary:
    """A folder that holds entries until it is closed; what was changed in it goes with it. One that its process left is swept."""

    def __init__(self, staging: Staging, path: str) -> None:
        self._staging = staging
        self.path = path

    def close(self) -> None:
        """Remove the folder and all that is in it, by descriptors. Closing twice changes nothing."""
        self._staging.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if self._staging.fd >= 0:
            warnings.warn(f"the temporary checkout {self.path} was never closed", ResourceWarning, stacklevel=1)
            self.close()


def temporary(entries: Iterable[Out], read: Read, *, same: SameName = same_name) -> Temporary:
    """Return a new folder that holds *entries*, which only this user can enter. It is not made durable.

    Raises what `checkout` raises for a new target; nothing is left then.
    """
    outs = checked(entries)
    with ExitStack() as undo:
        top = os.path.realpath(tempfile.gettempdir())
        top_fd = open_top(top)
        undo.callback(os.close, top_fd)
        sweep(top_fd)
        check_room(top_fd, outs, top)
        with ExitStack() as kept:
            staging = kept.enter_context(Staging(top_fd))
            check_folding(outs, staging.fd, same)
            os.mkdir(_TREE, dir_fd=staging.fd)
            tree_fd = open_folder(_TREE, staging.fd)
            undo.callback(os.close, tree_fd)
            write_tree(tree_fd, outs, read, durable=False)
            kept.pop_all()
        return Temporary(staging, os.path.join(top, staging.name, _TREE))
