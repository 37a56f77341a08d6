"""Where files are changed: one workspace, in one thread, whose file errors are known again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from freehold.actors.own_thread import OwnThread
from freehold.pieces import over
from freehold.portion import Step, portion
from freehold.schema.errors import PathRefused, Refused
from freehold.schema.ids import Root
from freehold.schema.limits import ENTRIES_AT_ONCE_MAX
from freehold.schema.roots import root_text
from freehold.schema.skipped import Skipped
from freehold.storage.entries import too_many
from freehold.storage.objects import Objects
from freehold.storage.workspace import Workspace

T = TypeVar("T")
_RAISED_AT = "_raised_at"


class Desk:
    """Where files are changed: one workspace, in one thread, until it is cleared away. Its file errors are known by identity."""

    def __init__(self, workspace: Workspace, home: str) -> None:
        self.workspace: Workspace | None = workspace
        self.home = home
        """The folder of runs, in which a stat cache may lie."""
        self.skipped: list[Skipped] = []
        """What imports could not take, and no event has told yet."""
        self._thread = OwnThread()
        self._mark = object()

    def root(self) -> Root:
        """Make a root of what there is now, and return its identity."""
        return root_text(self.working(lambda workspace: workspace.root()).hash)

    def looking(self, work: Callable[[Workspace], T]) -> T:
        """Let *work* read or change the workspace. Raises Refused (transaction_over) once it was cleared away, and in another thread."""
        if not self._thread.is_here:
            raise Refused("these files belong to the thread that began with them; nothing was changed", code="transaction_over")
        if self.workspace is None:
            raise over()
        return work(self.workspace)

    def working(self, work: Callable[[Workspace], T]) -> T:
        """Let *work* read or change the workspace as its user has asked: a file error that it raises is one of this desk's."""
        return self.attempt(lambda: self.looking(work))

    def attempt(self, work: Callable[[], T]) -> T:
        """Return what *work* does, and know again the file error that it raises."""
        try:
            return work()
        except (OSError, PathRefused) as error:
            self.know(error)
            raise

    def know(self, error: BaseException) -> None:
        """Know a file error again as one of this desk's."""
        # On the error itself: it may come back long after others, and a list would keep all of them alive.
        vars(error)[_RAISED_AT] = self._mark

    def knows(self, error: BaseException) -> bool:
        """Return whether *error* is a file error that was raised here."""
        return vars(error).get(_RAISED_AT) is self._mark

    def lasting(self) -> Objects:
        """Return the objects of the workspace."""
        return self.looking(lambda workspace: workspace.kept)

    def going(self, step: Step[T], start: object) -> Iterator[T]:
        """Return what is found from a place on, as it is now: what is changed on the way does not show."""
        found, rest = self.working(lambda workspace: portion(step, workspace, (start, None), ENTRIES_AT_ONCE_MAX))
        if rest is not None:
            raise too_many()
        return iter(found)

    def clear(self) -> None:
        """End it: nothing is read or changed here any more, and files that are still open keep nothing."""
        if self.workspace is not None:
            self.workspace.end()
        self.workspace = None
