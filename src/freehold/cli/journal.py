"""Commands on a run's journal: append, history and verify."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

import freehold
from freehold.cli.changes import change_line, change_record
from freehold.cli.events import event_line, event_record
from freehold.cli.exits import DONE, gravest
from freehold.cli.faults import record_of
from freehold.cli.interrupt import postponed
from freehold.cli.options import Settings, request_id_option, shared_options
from freehold.cli.output import check_reader, complain, flush, json_text, need_output, say, say_json
from freehold.cli.progress import progress
from freehold.cli.table import table
from freehold.cli.values import input_text, is_fed, value_of
from freehold.errors import Error, Refused
from freehold.event import Event
from freehold.schema.changes import Change
from freehold.schema.ids import Root
from freehold.schema.values import Value


class Told:
    """What each event has changed in the files."""

    def __init__(self, view: freehold.RunView) -> None:
        self._view = view
        self._roots: dict[int, Root] = {}

    def changes(self, event: Event) -> Sequence[Change]:
        """Return what is different in the files after *event* from before it. Raises Damaged, RunNotFound."""
        before = self._roots.get(event.seq - 1)
        self._roots = {event.seq: event.root}
        if before == event.root:
            return ()  # as of most events, when they are read in order
        return self._view.diff(event.seq - 1, event.seq)


@click.command(epilog="""Example: freehold append nightly please '{"stop after": 3}'""")
@click.argument("run")
@click.argument("name")
@click.argument("value", metavar="[JSON|-]", required=False)
@request_id_option("NAME and JSON: with another one of either it is refused")
@shared_options
@click.pass_obj
def append(settings: Settings, run: str, name: str, value: str | None, request_id: str | None) -> int:
    """Add a note to a run's journal, and print its event.

    Its value is JSON, written as `history --json` prints it, or what standard input (-) says; without JSON it is standard input
    where that is a pipe or a file with anything in it, else null. Whoever owns the run carries it out.
    """
    said = _value(value)
    with settings.open() as host, host.handle(run) as handle:
        run_id, event = handle.id, handle.append(name, said, request_id=request_id)
    if settings.json:
        say_json({"run": run_id, "event": event_record(event), "exit_code": DONE})
    else:
        say(event_line(event))
    return DONE


@click.command(epilog="Example: freehold history nightly src --reverse | head")
@click.argument("run")
@click.argument("path", required=False)
@click.option("--name", metavar="N", help="Only the events of this name.")
@click.option("--after", metavar="X", help="Only the events after X: a seq, an event's id, or a time such as 2026-11-23T12:00:00Z.")
@click.option("--reverse", is_flag=True, help="The latest first.")
@click.option("--follow", is_flag=True, help="Go on as events come, until the run is completed, cancelled or deleted.")
@click.option("--changes", "with_changes", is_flag=True, help="Beneath each event what it has changed in the files.")
@shared_options
@click.pass_obj
def history(
    settings: Settings,
    run: str,
    path: str | None,
    name: str | None,
    after: str | None,
    reverse: bool,  # noqa: FBT001 - click's signature
    follow: bool,  # noqa: FBT001 - click's signature
    with_changes: bool,  # noqa: FBT001 - click's signature
) -> int:
    """Print a run's events: seq, time, kind, name, value.

    With PATH, only those that changed the file, link or directory there; what was renamed is found under both paths.

    With --follow it goes on, also beside an owner in another process. With --json each line is then an event, and the last one has
    an exit_code instead.
    """
    if follow:
        need_output()  # else nobody would ever see that it goes on
    if follow and reverse:
        raise Refused("--follow goes forward, and takes no --reverse; nothing was read", code="bad_option")
    with settings.open() as host:
        view = host.view(run)
        _ = view.info  # a run that is not there is said to be so, where its history would be empty
        told = Told(view) if with_changes else None
        if follow:
            events = view._follow(after, name, path, check_reader)  # noqa: SLF001 - only the program has a reader who may go away
            return _write_on(settings, view.id, events, told)
        events = view.history(name=name, path=path, after=after, reverse=reverse)
        if settings.json:
            return _write_document(settings, view.id, events, told)
        for event in events:
            say(_text(event, told))
    return DONE


@click.command(epilog="Example: freehold verify nightly weekly")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@shared_options
@click.pass_obj
def verify(settings: Settings, runs: tuple[str, ...]) -> int:
    """Check the whole file of each run, hashes and journal."""
    rows: list[dict[str, Any]] = []
    with settings.open() as host:
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


def _value(given: str | None) -> Value:
    """Return the value of a new note, from what was given on the command line or what comes in."""
    text = given
    if text is None or text == "-":
        text = input_text() if text or is_fed() else ""
        if given is None and not text.strip():
            return None
    return value_of(text, """the value is JSON, such as '{"done": 3}' or '"done"'""", "nothing was changed")


def _verified(host: freehold.Host, run: str) -> dict[str, Any] | None:
    try:
        with progress(f"verifying {run}") as bar:
            host.view(run).verify(bar)
    except Error as error:
        return error.record()
    return None


def _text(event: Event, told: Told | None) -> str:
    line = event_line(event)
    changes = () if told is None else told.changes(event)
    return line + "".join(f"        {change_line(change)}" for change in changes)


def _record(event: Event, told: Told | None) -> dict[str, Any]:
    record = event_record(event)
    if told is not None:
        record["changes"] = [change_record(change) for change in told.changes(event)]
    return record


def _write_on(settings: Settings, run: str, events: Iterator[Event], told: Told | None) -> int:
    """Write each event as it comes, and as documents an end of their own after the last; an error is the end as well."""
    for event in events:
        if not settings.json:
            say(_text(event, told))
            flush()
            continue
        text = json_text(_record(event, told))
        with postponed() as interrupted:
            settings.begun = True  # what is broken off in the middle of a line is followed by no other
            say(text + "\n")
            flush()
            settings.begun = False
        if (interrupt := interrupted()) is not None:
            raise interrupt
    if settings.json:
        say_json({"run": run, "error": None, "exit_code": DONE})
    return DONE


def _write_document(settings: Settings, run: str, events: Iterator[Event], told: Told | None) -> int:
    """Write the events as they are read. What goes wrong meanwhile stands at the end of the document."""
    error: dict[str, Any] | None = None
    with postponed() as interrupted:
        settings.begun = True
        say(f'{{"run": {json_text(run)}, "events": [')
        try:
            for number, event in enumerate(events):
                say((",\n" if number else "\n") + json_text(_record(event, told)))
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
