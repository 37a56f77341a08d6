"""Reading a run: its standing, its journal, its integrity. A view owns nothing and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from freehold.actors.look import look, look_whole
from freehold.event import Event
from freehold.history import walk
from freehold.info import RunInfo, run_info
from freehold.position import At
from freehold.schema.errors import Refused
from freehold.schema.messages import Message, ReadRun
from freehold.storage.path import RunPath, resolve_file
from freehold.storage.verify import Progress


class RunView:
    """A run to look at. Each call is one snapshot; none of them takes ownership, creates or changes anything.

    It works on a file that nobody owns, beside a live owner in another process, and through the owner in this one.
    """

    def __init__(self, path: RunPath, *, any_filesystem: bool = False) -> None:
        self._path = path
        self._any_filesystem = any_filesystem

    @property
    def id(self) -> str:
        """The run's id."""
        return self._path.id

    @property
    def path(self) -> Path:
        """The run's file."""
        return Path(self._path.file)

    @property
    def info(self) -> RunInfo:
        """The run as it stands now. Raises RunNotFound, Damaged, Refused of a file that is no run."""
        row, events = self._look(ReadRun())
        return run_info(row, events)

    def history(self, *, name: str | None = None, after: At | None = None, reverse: bool = False) -> Iterator[Event]:
        """Yield the events in order, or in reverse: those of one *name*, those beyond *after*.

        In reverse it is the same events, the newest first. The journal is read in pages while it is iterated; a run that
        is not there has none. Raises Refused (bad_name, bad_position), Damaged.
        """
        return walk(self._look, name, after, reverse=reverse)

    def verify(self, progress: Progress | None = None) -> None:
        """Check everything: structure, every hash, and what the journal says derived again and compared.

        *progress* is called with what is done and what there is to do. Raises Damaged, whose detail `rule` says what
        is broken; RunNotFound.
        """
        if progress is not None and not callable(progress):
            raise Refused("progress is a function of two numbers; nothing was checked", code="bad_option")
        look_whole(self._path, progress, any_filesystem=self._any_filesystem)

    def close(self) -> None:
        """End the view. A view holds nothing, so closing it is for symmetry."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    def _look(self, message: Message) -> Any:
        return look(self._path, message, any_filesystem=self._any_filesystem)


def view(file: str | PathLike[str]) -> RunView:
    """Return a view of the run file *file*, wherever it lies. It takes no ownership and writes no byte.

    Raises Refused (bad_root, bad_run_id) for what cannot be a run file's path; what is wrong with the file, or that it
    is not there, is said by the call that looks at it.
    """
    return RunView(resolve_file(file))
