"""Commands on whole runs: create, list, show, delete."""

from __future__ import annotations

import os
import sys
from typing import Any, get_args

import click

from freehold.cli.exits import DONE, gravest
from freehold.cli.options import Settings, shared_options
from freehold.cli.output import complain, json_text, note, plain, say, say_json
from freehold.cli.progress import progress
from freehold.cli.table import table
from freehold.cli.values import members_of
from freehold.errors import Refused
from freehold.info import RunInfo, Status
from freehold.schema.times import utc

_PROPS_CHARS_SHOWN = 60


@click.command(epilog="""Example: freehold create nightly --props '{"branch": "main"}'""")
@click.argument("run")
@click.option("--props", metavar="JSON", default="{}", help="Properties of the run: a JSON object, written as `show` prints them.")
@click.option("--project", metavar="P", default="", help="A label that the run carries.")
@shared_options
@click.pass_obj
def create(settings: Settings, run: str, props: str, project: str) -> int:
    """Create a run and print its id and its file."""
    members = members_of(props, """--props is a JSON object, such as '{"branch": "main"}'""", "nothing was created")
    with settings.open() as host, host.create(run, props=members, project=project) as made:
        made_id, path = made.id, str(made.path)
    if settings.json:
        say_json({"id": made_id, "path": path, "exit_code": DONE})
    else:
        say(f"{made_id}  {plain(path)}\n")
    return DONE


@click.command("list", epilog="Example: freehold list --status failed")
@click.option("--status", type=click.Choice(get_args(Status)), help="Only the runs of this status, and files that cannot be read.")
@click.option("--check", is_flag=True, help="Look at every file, also at those that have not changed since they were looked at last.")
@shared_options
@click.pass_obj
def list_(settings: Settings, status: str | None, check: bool) -> int:  # noqa: FBT001 - click's signature
    """List the runs, and the files that cannot be read."""
    found: list[RunInfo] = []
    done = 0
    with settings.open() as host, progress("reading the runs") as bar:
        whole = 0 if bar is None else len(host.files())
        root = str(host.root)
        for done, info in enumerate(host.runs(check=check), 1):
            if info.error is not None or status in (None, info.status):
                found.append(info)
            if bar is not None:
                bar(done, whole)
    if settings.json:
        say_json([{**info.record(), "exit_code": _exit_code(info)} for info in found])
    else:
        say(table(("ID", "STATUS", "EVENTS", "UPDATED", "PROPS"), map(_cells, found), right=("EVENTS",)))
        if not found:
            sys.stdout.flush()  # a reader that is gone ends it here, quietly
            note(f"no run of status {status} in {root}" if done else f"no runs in {root}; --root or $FREEHOLD_ROOT names another folder")
    for info in found:
        if info.error is not None:
            complain(info.error.record(), info.id)
    return gravest(map(_exit_code, found))


@click.command(epilog="Example: freehold show nightly")
@click.argument("run")
@shared_options
@click.pass_obj
def show(settings: Settings, run: str) -> int:
    """Show where a run stands, and who owns it now.

    Exit 0 whatever its status. The owner is a process: pid, hostname, since when; or nobody.
    """
    with settings.open() as host:
        view = host.view(run)
        info, owner, path = view.info, view.owner, str(view.path)
    record = info.record()
    del record["error"]
    if settings.json:
        held = None if owner is None else {"pid": owner.pid, "hostname": owner.hostname, "since": utc(owner.since)}
        say_json({**record, "owner": held, "path": path, "exit_code": DONE})
        return DONE
    by = None if owner is None else f"pid {owner.pid} on {owner.hostname} since {utc(owner.since)}"
    record |= {"owner": by, "path": path, "props": json_text(record["props"])}
    for name, value in record.items():
        say(f"{name.replace('_', ' '):<11} {'-' if value in (None, '') else plain(str(value))}\n")
    return DONE


@click.command(epilog="Example: freehold delete nightly --yes")
@click.argument("run")
@click.option("--yes", is_flag=True, help="Do not ask; needed where there is no terminal.")
@shared_options
@click.pass_obj
def delete(settings: Settings, run: str, yes: bool) -> int:  # noqa: FBT001 - click's signature
    """Delete a run for good; a terminal is asked first."""
    with settings.open() as host:
        path = str(host.view(run).path)
        # Of a run that is not there nobody is asked: the host says so.
        if not yes and os.path.lexists(path):
            _ask(f"Delete {path} for good? [y/N] ")
        host.delete(run)
    if settings.json:
        say_json({"id": run, "path": path, "deleted": True, "exit_code": DONE})
    else:
        note(f"deleted {path}")
    return DONE


def _ask(question: str) -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused("there is no terminal to ask on: say --yes to delete the run; nothing was deleted")
    sys.stderr.write(plain(question))
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("the question was not answered with yes; nothing was deleted")


def _cells(info: RunInfo) -> tuple[str, ...]:
    if info.error is not None:
        return info.id, f"[{info.error.code}]", "-", "-", ""
    props = json_text(info.record()["props"])
    if len(props) > _PROPS_CHARS_SHOWN:
        props = props[: _PROPS_CHARS_SHOWN - 3] + "..."
    return info.id, str(info.status), str(info.events), _time(info.updated), props


def _exit_code(info: RunInfo) -> int:
    return DONE if info.error is None else info.error.exit_code


def _time(time: Any) -> str:
    return "-" if time is None else utc(time)
