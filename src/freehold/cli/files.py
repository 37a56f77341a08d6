"""Commands that read the files of a run: files and cat."""

from __future__ import annotations

import sys
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from stat import S_IMODE, S_ISDIR, S_ISLNK, filemode
from typing import Any

import click

from freehold.cli.exits import DONE
from freehold.cli.faults import file_errors
from freehold.cli.moments import files_of, moment_options
from freehold.cli.options import Settings, shared_options
from freehold.cli.output import need_output, plain, say, say_bytes, say_json
from freehold.cli.table import table
from freehold.listing import Listed, listing, portions

_COLOURS = {"d": "blue", "l": "cyan"}
_PLURALS = {"directory": "directories", "file": "files", "link": "links"}


@click.command(epilog="Example: freehold files nightly src -R --at 3")
@click.argument("run")
@click.argument("path", default=".")
@click.option("--recursive", "-R", is_flag=True, help="What is in its directories, too.")
@moment_options
@shared_options
@click.pass_obj
def files(settings: Settings, run: str, path: str, recursive: bool, at: str | None, before: str | None) -> int:  # noqa: FBT001 - click's signature
    """List the files of a run: mode, size in bytes, path.

    PATH is a directory, whose content is listed, or anything else (default: all of them). A link is not followed unless it is
    PATH itself and leads to a directory.
    """
    with settings.open() as host, file_errors():
        seen = files_of(host, run, at, before)
        found = listing(seen, path, recursive=recursive)
        root = seen.root
    if settings.json:
        say_json({"run": run, "root": root, "files": [_record(item) for item in found], "exit_code": DONE})
    elif sys.stdout.isatty():
        rows = [(filemode(item.stat.st_mode), _size(item), _name(item)) for item in found]
        say(table(("MODE", "SIZE", "PATH"), rows, right=("SIZE",), whole="PATH", style=_style))
        say(_totals(found))
    else:
        for item in found:
            say(f"{filemode(item.stat.st_mode)}  {_size(item):>12}  {plain(_name(item))}\n")
    return DONE


@click.command(epilog="Example: freehold cat nightly report.md --before 3 > old.md")
@click.argument("run")
@click.argument("path")
@moment_options
@shared_options
@click.pass_obj
def cat(settings: Settings, run: str, path: str, at: str | None, before: str | None) -> int:
    """Write the content of a file to standard output, byte for byte.

    With --json it is a document: path, size, mode, and the content as `text`, or as `base64` where it is not UTF-8.
    """
    need_output()
    with settings.open() as host, file_errors():
        seen = files_of(host, run, at, before)
        if settings.json:
            content = seen.read_bytes(path)
            mode = seen.stat(path).st_mode
            say_json({"path": path, "size": len(content), "mode": _octal(mode), **_text(content), "exit_code": DONE})
            return DONE
        for portion in portions(seen, path):
            say_bytes(portion)
    return DONE


def _record(item: Listed) -> dict[str, Any]:
    mode = item.stat.st_mode
    return {
        "path": item.path,
        "type": _type(mode),
        "mode": _octal(mode),
        "size": None if S_ISDIR(mode) else item.stat.st_size,
        "target": item.target,
    }


def _type(mode: int) -> str:
    return "directory" if S_ISDIR(mode) else "link" if S_ISLNK(mode) else "file"


def _octal(mode: int) -> str:
    return f"{S_IMODE(mode):04o}"


def _text(content: bytes) -> dict[str, str]:
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(content).decode()}


def _size(item: Listed) -> str:
    return "-" if S_ISDIR(item.stat.st_mode) else str(item.stat.st_size)


def _name(item: Listed) -> str:
    return item.path if item.target is None else f"{item.path} -> {item.target}"


def _style(row: Sequence[str]) -> str:
    return _COLOURS.get(row[0][0], "")


def _totals(found: Sequence[Listed]) -> str:
    counts = Counter(_type(item.stat.st_mode) for item in found)
    size = sum(item.stat.st_size for item in found if _type(item.stat.st_mode) == "file")
    parts = [f"{counts[kind]:,} {kind if counts[kind] == 1 else plural}" for kind, plural in _PLURALS.items() if counts[kind]]
    return f"{', '.join(parts) or 'no files'}; {size:,} byte{'' if size == 1 else 's'}\n"
