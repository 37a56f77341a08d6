"""The options that every command takes, before its name or after it, what they say, and those that several have."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

import freehold
from freehold.schema.limits import ASK_TIMEOUT_S, TREE_TIMEOUT_S

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Settings:
    """What this call asks for, whatever its command."""

    root: str | None = None
    timeout: float | None = None
    """How many seconds an owner that does not answer is waited for, where that was said."""
    json: bool = False
    begun: bool = False
    """A document that is written piece by piece has been begun; no other may follow."""

    def open(self) -> freehold.Host:
        """Open a host on the folder of runs. Each of its calls is bounded by itself: what a command waits for in between is not counted."""
        return freehold.open(self.root, timeout=ASK_TIMEOUT_S if self.timeout is None else self.timeout)


def shared_options(command: F) -> F:
    """Give *command* --root, --timeout and --json. Where both the group and the command are given one, the command's counts."""
    root = click.option(
        "--root",
        metavar="DIR",
        expose_value=False,
        callback=_set_root,
        help="The folder of runs (default: $FREEHOLD_ROOT, else ./runs).",
    )
    timeout = click.option(
        "--timeout",
        metavar="SECONDS",
        type=float,
        expose_value=False,
        callback=_set_timeout,
        help=f"How long an owner that does not answer is waited for (default: {ASK_TIMEOUT_S:g}; of tree {TREE_TIMEOUT_S:g}).",
    )
    as_json = click.option(
        "--json",
        "as_json",
        is_flag=True,
        expose_value=False,
        callback=_set_json,
        help="Write exactly one JSON document to standard output; with --follow one a line.",
    )
    return root(timeout(as_json(command)))


def name_option(usual: str) -> Callable[[F], F]:
    """Give a command that changes files --name, which is *usual* when it is left out."""
    return click.option("--name", metavar="N", default=usual, help=f"The name of the event (default: {usual}), such as who changes what.")


def request_id_option(stands_for: str) -> Callable[[F], F]:
    """Give a command that changes a run --request-id, and say in its help what an id *stands for*."""
    return click.option(
        "--request-id",
        metavar="ID",
        help=f"Ask as ID: the same one again changes nothing more, and prints the same event. It stands for {stands_for}.",
    )


def _set_root(context: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.ensure_object(Settings).root = value


def _set_timeout(context: click.Context, _option: click.Parameter, value: float | None) -> None:
    if value is None:
        return
    if not 0 < value < math.inf:
        raise click.BadParameter("it is a number of seconds above 0, such as 2.5")
    context.ensure_object(Settings).timeout = value


def _set_json(context: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
    if value:
        context.ensure_object(Settings).json = True
