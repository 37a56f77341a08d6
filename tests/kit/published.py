"""Runs with files for tests of the face: everything that is in them, and what the journal says of their publishes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from freehold import RunView
from freehold.files import ReadFiles
from freehold.schema.nodes import File, Link
from freehold.schema.paths import Parts, text
from freehold.storage.content import Content, read
from freehold.storage.sight import Sight


def contents(files: ReadFiles) -> dict[str, bytes | str]:
    """Return what is in a workspace, seen in one look: a file's bytes, `>` and what a link says, `/` for a directory."""
    return files._using(lambda sight: dict(beneath(sight)))


def beneath(sight: Sight, way: Parts = ()) -> Iterator[tuple[str, bytes | str]]:
    """Yield what is in a directory and in all beneath it, as `contents` returns it."""
    for name, entry in sight.children(way):
        here = (*way, name)
        if isinstance(entry, File):
            yield text(here), b"".join(read(sight.kept, Content(entry.size, entry.content)))
        elif isinstance(entry, Link):
            yield text(here), f">{entry.target}"
        else:
            yield text(here), "/"
            yield from beneath(sight, here)


def publishes(run: RunView) -> list[tuple[str | None, Any]]:
    """Return the names and records of all publishes."""
    return [(event.name, event.data) for event in run.history() if event.kind == "publish"]


def staged(run: RunView) -> int:
    """Return how many objects are listed as written ahead of their publish."""
    return _count(run, "staged")


def objects(run: RunView) -> int:
    """Return how many objects there are."""
    return _count(run, "object")


def _count(run: RunView, table: str) -> int:
    import apsw

    db = apsw.Connection(str(run.path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(db.execute(f"SELECT count(*) FROM {table}").get)
    finally:
        db.close()
