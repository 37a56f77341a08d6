"""Every way of the face to look at a run, or to ask for it, and what each is told: `ok`, or a code and the rule in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import freehold
from freehold import Error, Host
from freehold.schema.nodes import File, Link
from freehold.schema.paths import Parts, text
from freehold.storage.content import Content
from freehold.storage.content import read as read_content
from freehold.storage.workspace import Workspace

MARK = "zyxwvq"
"""Stands in everything that a test stores; no message of ours may say it, nor a piece of it."""
_PIECES = tuple(MARK[at : at + 4] for at in range(len(MARK) - 3))

Way = Callable[[Host, str], Any]


def told(call: Callable[[], Any]) -> str:
    """Return how a call ends. An exception that is not ours is raised on; one that tells a stored value is a failure."""
    try:
        call()
    except Error as error:
        return say(error)
    return "ok"


def say(error: Error) -> str:
    """Return an error as code and rule, once it is sure that neither it nor what it is chained to tells a stored value."""
    cause: BaseException | None = error
    while cause is not None:
        assert not any(piece in f"{cause!r} {cause} {getattr(cause, 'details', '')}" for piece in _PIECES), type(cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    rule = error.details.get("rule")
    return error.code if rule in (None, error.code) else f"{error.code}:{rule}"


def read(view: freehold.RunView, *, reverse: bool = False) -> list[tuple[Any, ...]]:
    """Return everything that every event says."""
    return [(e.seq, e.id, e.kind, e.name, e.execution, e.data, e.root, e.time, e.hash) for e in view.history(reverse=reverse)]


def files_of(files: freehold.ReadFiles) -> dict[str, tuple[int, bytes | str | None]]:
    """Return everything that stands in a root: mode, and content, target or nothing."""
    return files._using(lambda workspace: dict(_below(workspace, ())))  # in one look: each takes its time on a file that nobody owns


def _below(workspace: Workspace, above: Parts) -> Iterator[tuple[str, tuple[int, bytes | str | None]]]:
    for name, entry in workspace.children(above):
        parts = (*above, name)
        if isinstance(entry, File):
            yield text(parts), (entry.mode, b"".join(read_content(workspace.kept, Content(entry.size, entry.content))))
        elif isinstance(entry, Link):
            yield text(parts), (0o777, entry.target)
        else:
            yield text(parts), (entry.mode, None)
            yield from _below(workspace, parts)


def listed(host: Host, run_id: str) -> None:
    """Find the run in the list, and raise what the list says of it."""
    info = next(info for info in host.runs() if info.id == run_id)
    if info.error is not None:
        raise info.error


def file_of(host: Host, run_id: str) -> Path:
    """Return the path that a user would write down for a run."""
    return host.root / f"{run_id}.sqlite"


LOOKS: dict[str, Way] = {
    "info": lambda host, run: host.view(run).info,
    "history": lambda host, run: read(host.view(run)),
    "history in reverse": lambda host, run: read(host.view(run), reverse=True),
    "files": lambda host, run: files_of(host.view(run).files),
    "verify": lambda host, run: host.view(run).verify(),
    "runs": listed,
    "view(file).info": lambda host, run: freehold.view(file_of(host, run)).info,
    "view(file).history": lambda host, run: read(freehold.view(file_of(host, run))),
    "view(file).verify": lambda host, run: freehold.view(file_of(host, run)).verify(),
}
"""They change nothing, whatever the file is."""

OWNS: dict[str, Way] = {
    "open": lambda host, run: host.open(run).close(),
    "ensure": lambda host, run: host.ensure(run, props={"mark": MARK}, project="paint").close(),
    "create": lambda host, run: host.create(run).close(),
}
"""They ask for ownership; a refusal changes nothing either."""
