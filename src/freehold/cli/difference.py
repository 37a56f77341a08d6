"""The command diff: what is different in the files of a run between two moments."""

from __future__ import annotations

import click

from freehold.cli.changes import change_line, change_record
from freehold.cli.exits import DONE
from freehold.cli.faults import file_errors
from freehold.cli.moments import MOMENT, files_of
from freehold.cli.options import Settings, shared_options
from freehold.cli.output import say, say_json
from freehold.cli.unified import say_lines, unified
from freehold.files import ReadFiles
from freehold.schema.changes import Change
from freehold.schema.paths import Parts, parse

NOW = "now"


@click.command(
    epilog="Example: freehold diff nightly 2 now src --text",
    help=f"""Print what is different between two moments of the files.

    One line a change from A to B: A added, M other content, D removed, R renamed (old -> new), T another mode. With PATH, only
    what is there or beneath it. Exit 0 whether anything is different or not.

    A and B are each {MOMENT}; B may also be `{NOW}`, which it is when it is left out.
    """,
)
@click.argument("run")
@click.argument("a")
@click.argument("b", default=NOW)
@click.argument("path", default=".")
@click.option("--text", "with_text", is_flag=True, help="The lines, too, of text files up to 1 MiB and 20,000 lines, as a unified diff.")
@shared_options
@click.pass_obj
def diff(settings: Settings, run: str, a: str, b: str, path: str, with_text: bool) -> int:  # noqa: FBT001 - click's signature
    """Print what is different."""
    parts = parse(path)
    with settings.open() as host, file_errors():
        before, after = files_of(host, run, a), files_of(host, run, None if b == NOW else b)
        roots = before.root, after.root
        changes = [change for change in host.view(run).diff(*roots) if _is_beneath(change, parts, before, after)]
        if settings.json:
            members = [change_record(change) | ({"text": unified(before, after, change)} if with_text else {}) for change in changes]
            say_json({"run": run, "from": roots[0], "to": roots[1], "changes": members, "exit_code": DONE})
            return DONE
        for change in changes:
            say(change_line(change))
            if with_text and (lines := unified(before, after, change)):
                say_lines(lines)
    return DONE


def _is_beneath(change: Change, parts: Parts, before: ReadFiles, after: ReadFiles) -> bool:
    """Return whether a change tells of what is at a path or beneath it. One of a whole directory speaks for all in it."""
    for path, files in ((change.before, before), (change.after, after)):
        if path is None:
            continue
        way = tuple(path.split("/"))
        if way[: len(parts)] == parts:
            return True
        if way == parts[: len(way)] and change.kind != "mode" and files.is_dir(path) and not files.is_symlink(path):
            return True
    return False
