"""The help explains every command and option, each in a sentence."""

from __future__ import annotations

import click
import pytest
from program import Call

from freehold.cli import cli

COMMANDS = ["create", "delete", "history", "list", "show", "verify"]


def unexplained(command: click.Command, context: click.Context) -> list[str]:
    """Return the command and those of its options that say nothing, or no whole sentence."""
    told = {command.name or "": command.help or ""}
    told |= {option.opts[-1]: option.help or "" for option in command.get_params(context) if isinstance(option, click.Option)}
    return [name for name, text in told.items() if not (text.strip()[:1].isupper() and text.strip().endswith("."))]


def test_the_commands_are_those_that_are_promised() -> None:
    assert sorted(cli.commands) == COMMANDS


def test_every_command_and_option_is_explained() -> None:
    context = click.Context(cli, **cli.context_settings)
    found = {command.name: unexplained(command, click.Context(command, parent=context)) for command in (cli, *cli.commands.values())}

    assert {name: words for name, words in found.items() if words} == {}


def test_a_silent_option_is_found() -> None:
    command = click.Command("x", help="Do it.", params=[click.Option(["--loud"])])

    assert unexplained(command, click.Context(command)) == ["--loud"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_exit_0(call: Call, name: str) -> None:
    ended = call(name, "--help")

    assert (ended.code, ended.err) == (0, "")
    assert f"Example: freehold {name} " in ended.out
    assert ended.out == call(name, "-h").out


def test_the_help_of_the_program_names_commands_and_exit_codes(call: Call) -> None:
    ended = call("--help")

    assert ended.code == 0
    for word in (*COMMANDS, "Check the whole file", "4 refused", "5 damaged", "6 unavailable", "64 usage", "70 crashed", "130 interrupted"):
        assert word in ended.out
    # No sentence is cut in the list of commands.
    assert "..." not in ended.out.split("Commands:")[1]


def test_every_example_of_the_help_works(call: Call) -> None:
    for line in (
        "create nightly --props {}",
        "list --status failed",
        "--json history nightly --after 40",
        "show nightly",
        "verify nightly",
    ):
        assert call(*line.split()).code == 0
        assert line.split()[-1] in call("--help").out + "".join(call(name, "--help").out for name in COMMANDS) or "{}" in line
