"""Reading a run: its standing, its journal, its integrity. A view owns nothing and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from freehold.actors.look import look, look_whole
from freehold.event import Event
from freehold.info import RunInfo, run_info
from freehold.position import At, seq_of
from freehold.schema.errors import Refused, RunNotFound
from freehold.schema.ids import check_name
from freehold.schema.messages import Message, ReadPage, ReadRun
from freehold.storage.path import RunPath, resolve_file
from freehold.storage.verify import Progress

_BEYOND_THE_LAST = 2**62


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

        The journal is read in pages while it is iterated; a run that is not there has none. Raises Refused
        (bad_position), Damaged.
        """
        if name is not None:
            name = check_name(name)
        beyond = 0 if after is None else self._seq(after)
        return self._reversed(name, beyond) if reverse else self._forward(name, beyond)

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

    def _seq(self, at: At) -> int:
        try:
            return seq_of(at, self._look)
        except RunNotFound:
            return 0

    def _forward(self, name: str | None, after: int) -> Iterator[Event]:
        at: int | None = after
        while at is not None:
            rows, at = self._page(ReadPage(at, name))
            yield from map(Event, rows)

    def _reversed(self, name: str | None, beyond: int) -> Iterator[Event]:
        at: int | None = _BEYOND_THE_LAST
        while at is not None:
            rows, at = self._page(ReadPage(at, name, reverse=True))
            for row in rows:
                if row.seq <= beyond:
                    return
                yield Event(row)

    def _page(self, message: ReadPage) -> tuple[list[Any], int | None]:
        try:
            rows, at = self._look(message)
        except RunNotFound:
            return [], None
        return rows, at


def view(file: str | PathLike[str]) -> RunView:
    """Return a view of the run file *file*, wherever it lies. It takes no ownership and writes no byte.

    Raises Refused (bad_root, bad_run_id) for what cannot be a run file's path; what is wrong with the file, or that it
    is not there, is said by the call that looks at it.
    """
    return RunView(resolve_file(file))
