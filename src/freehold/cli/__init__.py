"""The command line: `freehold COMMAND …`.

Standard output is data; notes, progress and errors go to standard error. With --json it is one document, also for an
error, and the document says the same exit code as the process. Where events are followed it is one a line, and the last says it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

import freehold
from freehold.cli import difference, edits, files, folders, journal, runs, tree
from freehold.cli.exits import BROKEN_PIPE, DONE
from freehold.cli.faults import record_of
from freehold.cli.interrupt import heed_nothing, heed_termination
from freehold.cli.options import Settings, shared_options
from freehold.cli.output import complain, drop, flush, prepare_streams, say_json, takes_a_line

_EPILOG = """\b
Exit codes:
  0 done        1 failed       2 suspended   3 cancelled
  4 refused     5 damaged      6 unavailable (try later)
  7 done, but not whole        64 usage      70 crashed
  130 interrupted              141 whoever reads standard output has gone
  143 terminated

With --json an object says its exit_code; of a list, the gravest exit_code of its members counts, and an empty one is 0.

\b
Examples:
  freehold create nightly --props '{"branch": "main"}'
  freehold list --status failed
  freehold append nightly please '{"stop after": 3}' --request-id please/3
  freehold --json history nightly --after 40
  freehold verify nightly weekly
  freehold tree
  freehold put nightly report.md draft.md
  freehold diff nightly 2 --text
  freehold checkout nightly work --before 3
"""


@click.group(
    epilog=_EPILOG,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(freehold.__version__, message="freehold %(version)s", help="Show the version and exit.")
@shared_options
def cli() -> None:
    """Look at and keep workflow runs, each of them one SQLite file with exactly one owner."""


_RUNS = (runs.create, runs.list_, runs.show, journal.append, journal.history, journal.verify, runs.delete, tree.tree)
_FILES = (files.files, files.cat, edits.put, edits.rm, edits.mv, difference.diff)
_FOLDERS = (folders.import_, folders.checkout, folders.restore)
for _command in (*_RUNS, *_FILES, *_FOLDERS):
    cli.add_command(_command)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that *argv* names (default: the process's own words) and return the exit code. Raises nothing."""
    words = sys.argv[1:] if argv is None else list(argv)
    settings = Settings()
    prepare_streams()
    heed_termination()
    try:
        try:
            code = _run(words, settings)
            flush()
        except BrokenPipeError:
            raise
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - what nobody expected is ours, and is told as such
            code = _fail(error, settings, words)
    except BrokenPipeError:
        # Whoever read us has seen enough, as `head` has. Nothing is said, neither here nor when the interpreter flushes.
        drop(sys.stdout)
        drop(sys.stderr)
        return BROKEN_PIPE
    return code


def _run(words: list[str], settings: Settings) -> int:
    # Not `cli.main`, which has its own mind about interrupts and broken pipes. A copy, because click takes words off it.
    try:
        with cli.make_context("freehold", list(words), obj=settings) as context:
            return int(cli.invoke(context) or DONE)
    except click.exceptions.Exit as end:
        return end.exit_code


def _fail(error: BaseException, settings: Settings, words: list[str]) -> int:
    if isinstance(error, KeyboardInterrupt):
        heed_nothing()  # come yet again, it would only disturb the end
    record = record_of(error)
    complain(record)
    # A wrong command line may not have been read as far as its --json.
    as_json = settings.json or (isinstance(error, click.UsageError) and "--json" in words)
    if as_json and not settings.begun and (takes_a_line() or not isinstance(error, KeyboardInterrupt)):
        say_json(record)
        flush()
    elif isinstance(error, KeyboardInterrupt):
        drop(sys.stdout)  # its reader may have stopped reading, and the last flush would wait for it
    return int(record["exit_code"])
