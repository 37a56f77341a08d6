"""Commands on a run's journal: history and verify."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import msgspec

import freehold
from freehold.cli.exits import DONE, gravest
from freehold.cli.faults import record_of
from freehold.cli.interrupt import postponed
from freehold.cli.options import Settings, shared_options
from freehold.cli.output import coloured, complain, json_text, plain, say, say_json, utc
from freehold.cli.progress import progress
from freehold.cli.table import table
from freehold.errors import Error
from freehold.event import Event


@click.command(epilog="Example: freehold history nightly src --reverse | head")
@click.argument("run")
@click.argument("path", required=False)
@click.option("--name", metavar="N", help="Only the events of this name.")
@click.option("--after", metavar="X", help="Only the events after X: a seq, an event's id, or a time such as 2026-11-23T12:00:00Z.")
@click.option("--reverse", is_flag=True, help="The latest first.")
@shared_options
@click.pass_obj
def history(settings: Settings, run: str, path: str | None, name: str | None, after: str | None, reverse: bool) -> int:  # noqa: FBT001 - click's signature
    """Print a run's events: seq, time, kind, name, value.

    With PATH, only those that changed the file, link or directory there; what was renamed is found under both paths.
    """
    with freehold.open(settings.root) as host:
        view = host.view(run)
        _ = view.info  # a run that is not there is said to be so, where its history would be empty
        events = view.history(name=name, path=path, after=after, reverse=reverse)
        if settings.json:
            return _write_document(settings, view.id, events)
        for event in events:
            say(f"{event.seq:>6}  {utc(event.time)}  {event.kind:<7}  {plain(event.name or '-')}  {_value(event)}\n")
    return DONE


@click.command(epilog="Example: freehold verify nightly weekly")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@shared_options
@click.pass_obj
def verify(settings: Settings, runs: tuple[str, ...]) -> int:
    """Check the whole file of each run, hashes and journal."""
    rows: list[dict[str, Any]] = []
    with freehold.open(settings.root) as host:
        for run in runs:
            error = _verified(host, run)
            rows.append({"run": run, "verified": error is None, "error": error, "exit_code": error["exit_code"] if error else DONE})
            if error is not None:
                complain(error, run)
    if settings.json:
        say_json(rows)
    else:
        say(table(("RUN", "FILE"), [(row["run"], f"[{row['error']['code']}]" if row["error"] else "verified") for row in rows]))
    return gravest(row["exit_code"] for row in rows)


def _verified(host: freehold.Host, run: str) -> dict[str, Any] | None:
    try:
        with progress(f"verifying {run}") as bar:
            host.view(run).verify(bar)
    except Error as error:
        return error.record()
    return None


def _write_document(settings: Settings, run: str, events: Iterator[Event]) -> int:
    """Write the events as they are read. What goes wrong meanwhile stands at the end of the document."""
    error: dict[str, Any] | None = None
    with postponed() as interrupted:
        settings.begun = True
        say(f'{{"run": {json_text(run)}, "events": [')
        try:
            for number, event in enumerate(events):
                say((",\n" if number else "\n") + json_text(event_record(event)))
                if (interrupt := interrupted()) is not None:
                    error = record_of(interrupt)
                    break
        except BrokenPipeError:
            raise
        except Exception as failure:  # noqa: BLE001 - the document is ended whatever has happened
            error = record_of(failure)
        exit_code = error["exit_code"] if error else DONE
        say(f'],\n"error": {json_text(error)}, "exit_code": {exit_code}}}\n')
    if error is not None:
        complain(error)
    return int(exit_code)


def _value(event: Event) -> str:
    """Return an event's value as it is printed: of a publish how much it has changed, or what it has failed with."""
    match event.kind, event.data:
        case "publish", {"changes": int(count), "skipped": list(listed), "more": int(more)}:
            return f"{count} change{'' if count == 1 else 's'}, {len(listed) + more} not taken as they were"
        case "publish", {"changes": int(count)}:
            return f"{count} change{'' if count == 1 else 's'}"
        case "publish", {"failed": str(kind), "path": str() | None as path}:
            return coloured(plain(f"failed: {kind}{'' if path is None else f': {path}'}"), "red")
    return plain(_text(event))


def _text(event: Event) -> str:
    _ = event.data  # what cannot be read is damage
    return event._record  # noqa: SLF001 - the one text of the value, where a record of ours may be a level deeper than a value


def event_record(event: Event) -> dict[str, Any]:
    """Return everything that an event says, as plain data."""
    return {
        "seq": event.seq,
        "id": event.id,
        "time": utc(event.time),
        "kind": event.kind,
        "name": event.name,
        "data": msgspec.json.decode(_text(event)),
        "execution": event.execution,
        "outcome": event.outcome,
        "root": event.root,
        "hash": event.hash,
    }
