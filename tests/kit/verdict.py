"""What a run file holds, told by our own code, against what it may hold; and whether the run can be lived in again."""

from __future__ import annotations

from pathlib import Path

import apsw
from book import Book, Line, State
from driver import Driver
from published import beneath

from freehold.schema.errors import Error, RunNotFound
from freehold.schema.hashes import ObjectKind
from freehold.schema.roots import EMPTY_ROOT, tree_of
from freehold.storage.events import last_seq, read_page, read_run, read_tenure, root_at
from freehold.storage.folder import Kept
from freehold.storage.objects import StoredObjects
from freehold.storage.path import RunPath
from freehold.storage.reader import reading
from freehold.storage.sight import Sight
from freehold.storage.verify import verify


class Violation(AssertionError):
    """The file breaks a promise."""


def look(path: RunPath) -> State | None:
    """Return what the file holds, recognised and verified whole, or None where there is none."""
    try:
        with reading(path) as db:
            verify(db, path)
            return read_state(db)
    except RunNotFound:
        return None
    except Error as error:
        raise Violation(f"it cannot be read: {error.code} {error.details}") from error


def read_state(db: apsw.Connection) -> State:
    """Return all that *db* says of its run."""
    run, tenure = read_run(db), read_tenure(db)
    events, rest = read_page(db, 0)
    if rest is not None or len(events) != last_seq(db):
        raise Violation("the journal does not come in one page; make the scenario smaller")
    known = db.execute("SELECT id, seq FROM request").fetchall()
    objects = StoredObjects(db)
    tree = tree_of(objects.get(root_at(db, None) or EMPTY_ROOT.hash, ObjectKind.ROOT))
    return State(
        txn=run.txn,
        epoch=run.epoch,
        status=run.status,
        closed=tenure is not None and tenure.closed_at is not None,
        lines=tuple(Line(event.kind, event.name, event.text if event.kind in ("note", "step") else None) for event in events),
        requests=dict(known),  # type: ignore[arg-type]
        hashes={event.seq: event.hash for event in events},
        files=dict(beneath(Sight(Kept(objects), tree))),
        staged=frozenset(hash_ for (hash_,) in db.execute("SELECT hash FROM staged JOIN object ON object.id = staged.object")),
    )


def judge(path: RunPath, book: Book) -> State | None:
    """Return what the file holds if it is one of the states that the book allows; raise Violation otherwise."""
    found = look(path)
    known = [state for state in book.possible if state == found]
    if not known:
        raise Violation(f"it holds {found}, and may hold one of {book.possible}")
    if found is not None and known[0] is not None:
        changed = [seq for seq, right in known[0].hashes.items() if found.hashes[seq] != right]
        if changed:
            raise Violation(f"it holds other events {changed} than were acknowledged")
    return found


def live_again(path: RunPath, found: State | None) -> None:
    """Own the run once more, or create it, and go on; raise Violation if anything does not go as on the first day."""
    driver = Driver(path, life=3)
    driver.book.possible = [found]
    try:
        if found is None:
            driver.create()
        driver.own()
        for request_id, seq in (found.requests if found is not None else {}).items():
            line = driver.state.lines[seq - 1]
            answer = driver.repeat(line.name or "", line.text or "", request_id)
            if (answer.seq, answer.hash) != (seq, driver.hashes[seq]):
                raise Violation("a request was answered with another event than before")
        driver.append("again")
        driver.close()
        judge(path, driver.book)
    except Error as error:
        raise Violation(f"it cannot be owned again: {error.code} {error.details}") from error
    finally:
        driver.crash()
    left = sorted(file.name for file in Path(path.folder).iterdir() if file.name.startswith((path.id, f".{path.id}")))
    if left != [Path(path.file).name]:
        raise Violation(f"its files after a clean close are {left}")
