"""The command tree: what lives on the folder, whichever process it lives in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from freehold.cli.exits import DONE, gravest
from freehold.cli.options import Settings, shared_options
from freehold.cli.output import flush, note, plain, say, say_json
from freehold.hosts import LivingHost
from freehold.schema.limits import TREE_TIMEOUT_S
from freehold.schema.times import utc


@click.command(epilog="Example: freehold tree --json")
@shared_options
@click.pass_obj
def tree(settings: Settings) -> int:
    """Show the supervision tree of each host, in any process.

    A host is shown from its first run on: who it is, and beneath it its actors, what each is at and how much waits for it. All are
    asked at once; one that does not answer within three seconds (--timeout), or cannot be asked, is shown with the reason, whose exit
    code counts (mostly 6, unavailable).
    """
    with settings.open() as mine:  # it owns nothing, and so is none of those
        root = str(mine.root)
        found = mine.hosts(TREE_TIMEOUT_S if settings.timeout is None else settings.timeout)
    if settings.json:
        say_json([_record(host) for host in found])
    else:
        for host in found:
            say("".join(f"{plain(line)}\n" for line in _lines(host)))
    flush()  # a reader that is gone ends it here, quietly
    if not found:
        note(f"no host lives on {root}; --root or $FREEHOLD_ROOT names another folder")
    unasked = [host for host in found if host.error is not None]
    if unasked:
        note(f"freehold: {len(unasked)} of {len(found)} host{'' if len(found) == 1 else 's'} did not answer")
    return gravest(map(_exit_code, found))


def _lines(host: LivingHost) -> Iterator[str]:
    yield str(host)
    if host.tree is not None:
        for line in host.tree.lines():
            yield f"  {line}"
    else:
        yield "  it has ended meanwhile" if host.error is None else f"  {host.error} [{host.error.code}]"


def _record(host: LivingHost) -> dict[str, Any]:
    return {
        "pid": host.pid,
        "hostname": host.hostname,
        "since": utc(host.since),
        "socket": host.socket,
        "tree": None if host.tree is None else host.tree.record(),
        "gone": host.is_gone,
        "error": None if host.error is None else host.error.record(),
        "exit_code": _exit_code(host),
    }


def _exit_code(host: LivingHost) -> int:
    return DONE if host.error is None else host.error.exit_code
