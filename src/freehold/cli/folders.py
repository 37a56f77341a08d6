"""Commands between the files of a run and the world: import and checkout with real folders, restore with another moment."""

from __future__ import annotations

import os
from typing import get_args

import click

from freehold.checkout import Checkout, Replace
from freehold.cli.changes import say_effect
from freehold.cli.exits import DONE
from freehold.cli.faults import file_errors
from freehold.cli.moments import MOMENT, moment_options
from freehold.cli.options import Settings, name_option, request_id_option, shared_options
from freehold.cli.output import note, plain, say, say_json
from freehold.schema.paths import parse


@click.command("import", epilog="Example: freehold import nightly . --into src --ignore '*.o' --ignore runs/")
@click.argument("run")
@click.argument("folder", metavar="DIR")
@click.option("--into", metavar="PATH", default=".", help="The directory of the run that it is put in (default: the top); it is made.")
@click.option("--ignore", metavar="P", multiple=True, help="Leave out what matches P, a pattern as in .gitignore; as often as you like.")
@name_option("import")
@request_id_option("--name, --into and --ignore, and not for what is in DIR")
@shared_options
@click.pass_obj
def import_(settings: Settings, run: str, folder: str, into: str, ignore: tuple[str, ...], name: str, request_id: str | None) -> int:
    """Take a folder with all beneath it into a run.

    What is there already and not in DIR stays: what was removed from DIR since a checkout is not removed here. Links are taken as
    links. What a run cannot hold is told, each path with its reason; then the exit code is 7. What is left out by --ignore is no loss.
    """
    parse(into)
    with file_errors():
        os.scandir(folder).close()  # one that is not there is said to be so before the run is ours
        with settings.open() as host, host.handle(run) as handle:
            run_id, effect = handle.id, handle.import_tree(folder, into, ignore=ignore, name=name, request_id=request_id)
    return say_effect(settings, run_id, effect)


@click.command(epilog="Example: freehold checkout nightly work --before 3 --replace changed")
@click.argument("run")
@click.argument("folder", metavar="DIR")
@moment_options
@click.option(
    "--replace",
    type=click.Choice(get_args(Replace)),
    default="never",
    help="What of a DIR that holds something may be replaced: nothing (the default), what is different, or that and all else is removed.",
)
@click.option("--ignore", metavar="P", multiple=True, help="Leave alone what stands in DIR and matches P, a pattern as in .gitignore.")
@shared_options
@click.pass_obj
def checkout(
    settings: Settings, run: str, folder: str, at: str | None, before: str | None, replace: Replace, ignore: tuple[str, ...]
) -> int:
    """Write the files of a run to a folder, as they are or were.

    A DIR that is new or empty, unless it is the current one, appears whole or not at all. Nothing outside of it is written: no
    link in it is followed, and a DIR that is itself a link is refused.
    """
    with settings.open() as host, file_errors(executed="unknown"):
        view = host.view(run)
        _ = view.info  # a run that is not there is said to be so
        with view.checkout(folder, at=at, before=before, replace=replace, ignore=ignore) as made:
            return _say_checkout(settings, view.id, made)


@click.command(
    epilog="Example: freehold restore nightly 2 src/a.py",
    help=f"""Make the files of a run what they were at X.

    With PATH, only what is there. What is there now is replaced, and stays in the history. X is {MOMENT}.
    """,
)
@click.argument("run")
@click.argument("at", metavar="X")
@click.argument("path", default=".")
@name_option("restore")
@request_id_option("--name, PATH and the root at X")
@shared_options
@click.pass_obj
def restore(settings: Settings, run: str, at: str, path: str, name: str, request_id: str | None) -> int:
    """Restore."""
    parse(path)
    with settings.open() as host, file_errors(), host.handle(run) as handle:
        run_id, effect = handle.id, handle.restore(at, path, name=name, request_id=request_id)
    return say_effect(settings, run_id, effect)


def _say_checkout(settings: Settings, run: str, made: Checkout) -> int:
    counts = {"written": made.written, "kept": made.kept, "removed": made.removed}
    if settings.json:
        say_json({"run": run, "path": str(made.path), "root": made.root, **counts, "left_alone": list(made.left_alone), "exit_code": DONE})
        return DONE
    say(f"{made.root}  {plain(str(made.path))}\n")
    for path in made.left_alone:
        note(f"left alone, no run could hold it: {path}")
    note(", ".join(f"{count:,} {what}" for what, count in counts.items()))
    return DONE
