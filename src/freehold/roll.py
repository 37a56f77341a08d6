"""The roll of a folder's runs: which there are, the folder says; what each says, its file, or whoever has seen it as it still is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from freehold.actors.look import look
from freehold.actors.registrar import Gone, Ran
from freehold.actors.runs import Runs
from freehold.info import RunInfo, run_info
from freehold.schema.errors import Error
from freehold.schema.limits import KNOWN_BATCH_RUNS
from freehold.schema.messages import ReadRun
from freehold.schema.rows import Known
from freehold.storage.clock import Clock
from freehold.storage.filesystem import check_filesystem
from freehold.storage.known import known_as
from freehold.storage.path import RunPath
from freehold.storage.stamp import is_settled, is_sure, stamp_of


def roll(runs: Runs, files: Callable[[], Iterable[RunPath]], root: str, *, any_filesystem: bool, check: bool) -> Iterator[RunInfo]:
    """Yield what each run of the folder *root* says, in the order of *files*; of a file that cannot be read, why.

    With *check* every file is looked at. What was looked at is told to the registrar, if the host has one, and so is what is gone.
    """
    known = {} if check else runs.known()  # before the names: a run that is created meanwhile is not taken for one that is gone
    paths = list(files())
    names = {known_as(path, root) for path in paths}
    if gone := [run for run in known if run not in names]:
        runs.tell_registrar(Gone(gone))
    look = _Look(runs, root, any_filesystem=any_filesystem)
    try:
        for path in paths:
            row = known.get(known_as(path, root))
            try:
                info = (None if row is None else look.recall(path, row)) or look.at(path)
            except Error as error:
                info = RunInfo(path.id, error=error)  # one that cannot be read hides none of the others
            yield info
    finally:
        look.tell()


class _Look:
    """Looks at files one by one, and tells the registrar, if there is one, what they said."""

    def __init__(self, runs: Runs, root: str, *, any_filesystem: bool) -> None:
        self._runs = runs
        self._root = root
        self._any_filesystem = any_filesystem
        self._clock = Clock()
        self._reliable: dict[str, bool] = {}
        self._seen: list[Known] = []

    def recall(self, path: RunPath, known: Known) -> RunInfo | None:
        """Return what *path* said when it was looked at last, if it is still as it was then."""
        if not is_sure(known) or stamp_of(path) != known.stamp or not self._is_reliable(path.folder):
            return None
        try:
            return run_info(known.row, known.events)
        except (Error, ValueError, OverflowError):
            return None  # not what a file can have said: it will say itself

    def at(self, path: RunPath) -> RunInfo:
        """Return what *path* says now. Raises as `look` does."""
        if self._runs.registrar is None:
            return run_info(*look(path, ReadRun(), any_filesystem=self._any_filesystem))
        seen_at, before = self._clock.now_ms(), stamp_of(path)
        row, events = look(path, ReadRun(), any_filesystem=self._any_filesystem)
        if before is not None and is_settled(before, seen_at) and stamp_of(path) == before:
            self._seen.append(Known(known_as(path, self._root), before, sealed=False, seen_at=seen_at, row=row, events=events))
            if len(self._seen) >= KNOWN_BATCH_RUNS:
                self.tell()
        return run_info(row, events)

    def tell(self) -> None:
        """Tell the registrar what was seen since."""
        seen, self._seen = self._seen, []
        if seen:
            self._runs.tell_registrar(Ran(seen))

    def _is_reliable(self, folder: str) -> bool:
        """Return whether what a file there looks like can be relied on; else the look at it is refused."""
        if folder not in self._reliable:
            try:
                check_filesystem(folder, any_filesystem=self._any_filesystem)
                self._reliable[folder] = True
            except Error:
                self._reliable[folder] = False
        return self._reliable[folder]
