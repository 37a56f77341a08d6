"""The options that every command takes, before its name or after it, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Settings:
    """What this call asks for, whatever its command."""

    root: str | None = None
    json: bool = False
    begun: bool = False
    """A document that is written piece by piece has been begun; no other may follow."""


def shared_options(command: F) -> F:
    """Give *command* --root and --json. Where both the group and the command are given one, the command's counts."""
    root = click.option(
        "--root",
        metavar="DIR",
        expose_value=False,
        callback=_set_root,
        help="The folder of runs (default: $FREEHOLD_ROOT, else ./runs).",
    )
    as_json = click.option(
        "--json",
        "as_json",
        is_flag=True,
        expose_value=False,
        callback=_set_json,
        help="Write exactly one JSON document to standard output; with --follow one a line.",
    )
    return root(as_json(command))


def name_option(usual: str) -> Callable[[F], F]:
    """Give a command that changes files --name, which is *usual* when it is left out."""
    return click.option("--name", metavar="N", default=usual, help=f"The name of the event (default: {usual}), such as who changes what.")


def _set_root(context: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.ensure_object(Settings).root = value


def _set_json(context: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
    if value:
        context.ensure_object(Settings).json = True
