"""Commands that change the files of a run, each in one publish: put, rm, mv. Whoever owns the run carries it out."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import BinaryIO

import click

from freehold.cli.changes import say_effect
from freehold.cli.faults import file_errors
from freehold.cli.options import Settings, name_option, request_id_option, shared_options
from freehold.cli.values import STDIN
from freehold.files import Files
from freehold.schema.limits import PORTION_BYTES
from freehold.schema.paths import parse, text


@click.command(epilog="Example: echo done | freehold put nightly notes/today.md --parents")
@click.argument("run")
@click.argument("path")
@click.argument("file", default="-")
@click.option("--parents", "-p", is_flag=True, help="Make the directories on the way that are not there.")
@name_option("put")
@request_id_option("--name alone, and not for PATH or the content")
@shared_options
@click.pass_obj
def put(
    settings: Settings,
    run: str,
    path: str,
    file: str,
    parents: bool,  # noqa: FBT001 - click's signature
    name: str,
    request_id: str | None,
) -> int:
    """Make FILE, or standard input (-), the content of PATH in a run.

    A new file gets the permissions of FILE; one that is there keeps its own. What was read is published
    when the last of it has come, or not at all.
    """
    parts = parse(path)
    with ExitStack() as stack:
        stack.enter_context(file_errors())
        source, about, mode = _opened(stack, file)
        content = _content(source, about)
        first = next(content, b"")  # whoever makes it may take its time; until it comes, the run is not ours
        host = stack.enter_context(settings.open())
        handle = stack.enter_context(host.handle(run))
        with handle.publish(name, request_id=request_id) as staged:
            if parents and parts[:-1]:
                staged.mkdir(text(parts[:-1]), parents=True, exist_ok=True)
            is_new = not staged.exists(path)
            with staged.open(path, "wb") as target:
                target.write(first)
                for portion in content:
                    target.write(portion)
            if is_new and mode is not None:
                staged.chmod(path, mode)
        run_id, effect = handle.id, staged.effect
    return say_effect(settings, run_id, effect)


@click.command(epilog="Example: freehold rm nightly build -r")
@click.argument("run")
@click.argument("path")
@click.option("--recursive", "-r", is_flag=True, help="A directory, too, with all beneath it.")
@name_option("rm")
@request_id_option("--name alone, and not for PATH")
@shared_options
@click.pass_obj
def rm(settings: Settings, run: str, path: str, recursive: bool, name: str, request_id: str | None) -> int:  # noqa: FBT001 - click's signature
    """Remove a file or a link of a run.

    What was there stays in its history: `cat --before` still reads it.
    """

    def remove(files: Files) -> None:
        if recursive and files.is_dir(path) and not files.is_symlink(path):
            files.rmtree(path)
        else:
            files.remove(path)

    with settings.open() as host, file_errors(), host.handle(run) as handle:
        run_id, effect = handle.id, handle.publish(name, remove, request_id=request_id)
    return say_effect(settings, run_id, effect)


@click.command(epilog="Example: freehold mv nightly draft.md report.md")
@click.argument("run")
@click.argument("path", metavar="A")
@click.argument("to", metavar="B")
@name_option("mv")
@request_id_option("--name alone, and not for A and B")
@shared_options
@click.pass_obj
def mv(settings: Settings, run: str, path: str, to: str, name: str, request_id: str | None) -> int:
    """Give A in a run, a whole directory too, the path B.

    B is the new path itself, never a directory to put it in. A file that is there is replaced.
    """
    with settings.open() as host, file_errors(), host.handle(run) as handle:
        run_id, effect = handle.id, handle.publish(name, lambda files: files.rename(path, to), request_id=request_id)
    return say_effect(settings, run_id, effect)


def _opened(stack: ExitStack, file: str) -> tuple[BinaryIO, str, int | None]:
    """Return what is to be read, how it is called, and the permissions of a new copy."""
    if file == "-":
        return sys.stdin.buffer, STDIN, None
    source = stack.enter_context(open(file, "rb", buffering=0))  # noqa: PTH123, SIM115 - a name as it was given, closed by the stack
    return source, file, os.fstat(source.fileno()).st_mode & 0o777


def _content(source: BinaryIO, about: str) -> Iterator[bytes]:
    with file_errors(about):
        while portion := source.read(PORTION_BYTES):
            yield portion
