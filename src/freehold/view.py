"""Reading a run: its standing, its journal, its integrity. A view owns nothing and changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from freehold.actors.deadline import Seconds
from freehold.actors.following import Watch
from freehold.actors.look import find_holder, look, look_about, look_beside, look_whole
from freehold.checkout import Checkout, Replace, check_replace
from freehold.event import Event
from freehold.files import ReadFiles, StrPath
from freehold.history import Wait, follow, walk
from freehold.info import RunInfo, run_info
from freehold.moment import At
from freehold.patterns import list_of_patterns
from freehold.pieces import Pieces
from freehold.position import At as Moment
from freehold.position import root_of
from freehold.schema.changes import Change
from freehold.schema.errors import Holder, Refused, RunNotFound
from freehold.schema.hashes import ObjectKind
from freehold.schema.messages import Message, ReadChanges, ReadRun
from freehold.schema.roots import EMPTY_ROOT, tree_of
from freehold.storage.difference import changes
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
    def exists(self) -> bool:
        """Whether the run is there. Of one that is not, the journal and the files are empty. Raises Damaged, Refused as `info` does."""
        try:
            self._look(ReadRun())
        except RunNotFound:
            return False
        return True

    @property
    def info(self) -> RunInfo:
        """The run as it stands now. Raises RunNotFound, Damaged, Refused of a file that is no run."""
        row, events = self._look(ReadRun())
        return run_info(row, events)

    @property
    def owner(self) -> Holder | None:
        """The process that owns the run now, this one too, or None where nobody does and where the run is not there.

        It says who, and never OwnedElsewhere; by the next call it may be another. Raises Damaged, Refused as `info` does.
        """
        try:
            return find_holder(self._path, any_filesystem=self._any_filesystem)
        except RunNotFound:
            return None

    def history(
        self, *, name: str | None = None, path: StrPath | None = None, after: Moment | None = None, reverse: bool = False
    ) -> Iterator[Event]:
        """Yield the events in order, or in reverse: those of one *name*, those that changed the files at *path*, those beyond *after*.

        *after* is an event, a seq, an event's id or a time.

        What changes a path is an event after which another file, link or directory stands there than before, or none, or one
        in which anything is different; what was renamed is found under both paths. Links on the path are not followed.

        In reverse it is the same events, the newest first. The journal is read in pages while it is iterated, and only then: a
        `fail_after` around this call bounds nothing, one around the loop does. A run that is not there has none. Raises
        Refused (bad_name, bad_position), PathRefused, Damaged.
        """
        return walk(self._about, name=name, path=path, after=after, reverse=reverse)

    def follow(self, after: Moment | None = None, *, timeout: Seconds | None = None) -> Iterator[Event]:
        """Yield the events beyond *after* in order, and then each new one as it comes, until the run has come to its end.

        It ends when the run is completed or cancelled and all its events were yielded, when it is deleted, and of a run that is not
        there at once; with *timeout*, also when so many seconds are up since this call, whatever the body of the loop does. What
        this process owns is waited for without looking again; any other file is looked at ten times a second. It holds nothing: it
        can be left at any moment, and no run stays open for it. Raises Refused (bad_position, bad_option), Damaged; DeadlineExceeded
        under `fail_after`; on a lease what its calls raise.
        """
        return follow(self._about, self._watch(), after, timeout=timeout)

    def _follow(self, after: Moment | None, name: str | None, path: StrPath | None, meanwhile: Callable[[], object]) -> Iterator[Event]:
        """Follow, at the file, what `history` yields for *name* and *path*; *meanwhile* is called while nothing comes, and may end it."""
        return follow(self._about, Watch(self._path, meanwhile).wait, after, name=name, path=path)

    def _watch(self) -> Wait:
        """Return what waits until what a follower has seen may be over."""
        return Watch(self._path).wait

    @property
    def files(self) -> ReadFiles:
        """The files as they are now: each call reads the root that is current then. A run that is not there has none."""
        return ReadFiles(At(self._about, self._look))

    def snapshot(self, at: Moment | None = None, *, before: Moment | None = None) -> ReadFiles:
        """Return the files as they were *at* a moment, or just *before* it; without any, as they are now and stay.

        A moment is an event, a seq, an event's id or a time; *at* may also be a root, before which there is nothing. Raises
        Refused (bad_position), Damaged.
        """
        try:
            root = self._about(lambda ask: root_of(at, before, ask))
        except RunNotFound:
            root = EMPTY_ROOT.hash
        return ReadFiles(At(self._about, self._look, root))

    def diff(self, a: Moment, b: Moment | None = None) -> Sequence[Change]:
        """Return what is different in the files at *b*, or now, from those at *a*, by path.

        Raises Refused (bad_position), RunNotFound, Damaged.
        """

        def different(ask: Callable[[Message], Any]) -> Sequence[Change]:
            roots = [root_of(each, None, ask) for each in (a, b)]
            few: Sequence[Change] | None = ask(ReadChanges(*roots))
            if few is not None:
                return few
            pieces = Pieces(ask)
            pieces.expect(roots)
            return changes(pieces, *(tree_of(pieces.get(root, ObjectKind.ROOT)) for root in roots))

        found: Sequence[Change] = self._about(different)
        return found

    def checkout(
        self,
        folder: StrPath | None = None,
        *,
        at: Moment | None = None,
        before: Moment | None = None,
        replace: Replace = "never",
        ignore: Iterable[str] = (),
    ) -> Checkout:
        """Write the files, as they are now or were at a moment, to a real folder; without *folder* to a temporary one.

        A new or empty folder, unless it is the current one, appears whole or not at all. One that holds something is refused
        with "never"; with "changed" what differs is replaced and the rest stays; with "always" the rest is removed, but for what
        no root could hold; what stands under a name of the root's own gives way to it. What stands there and *ignore* matches
        is left alone.

        No link in the folder is followed, and one in its place is refused (ELOOP): nothing outside is touched. Raises
        FileExistsError and other OSErrors of the folder, PathRefused for names that the folder cannot tell apart, Refused
        (bad_position, bad_option), RunNotFound, Damaged.
        """
        from freehold.checking_out import check_out

        word, left = check_replace(replace), list_of_patterns(ignore)
        if left and (word == "never" or folder is None):
            raise Refused("there is nothing to ignore where nothing may be replaced; nothing was written", code="bad_option")
        real = None if folder is None else os.fspath(folder)
        home = self._path.folder

        def write(ask: Callable[[Message], Any]) -> Checkout:
            return check_out(ask, root_of(at, before, ask), real, word, left, home)

        return look_beside(self._path, write, any_filesystem=self._any_filesystem)

    def verify(self, progress: Progress | None = None) -> None:
        """Check everything: structure, every hash, and what the journal says derived again and compared.

        *progress* is called with what is done and what there is to do, in the thread that checks, which is not the main
        one. Raises Damaged, whose detail `rule` says what is broken; RunNotFound.
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

    def _about(self, work: Callable[[Callable[[Message], Any]], Any]) -> Any:
        return look_about(self._path, work, any_filesystem=self._any_filesystem)

    def _look(self, message: Message) -> Any:
        return look(self._path, message, any_filesystem=self._any_filesystem)


def view(file: str | PathLike[str]) -> RunView:
    """Return a view of the run file *file*, wherever it lies. It takes no ownership and writes no byte.

    Raises Refused (bad_root, bad_run_id) for what cannot be a run file's path; what is wrong with the file, or that it
    is not there, is said by the call that looks at it.
    """
    return RunView(resolve_file(file))
