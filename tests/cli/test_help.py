"""The help explains every command and option, each in a sentence, and every example that it shows works."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import click
import pytest
from program import COMMAND, Call, environment

import freehold
from freehold.cli import cli
from freehold.files import Files

RUNS = ["append", "create", "delete", "history", "list", "show", "tree", "verify"]
FILES = ["cat", "checkout", "diff", "files", "import", "mv", "put", "restore", "rm"]
COMMANDS = sorted(RUNS + FILES)


def examples(text: str) -> list[str]:
    """Return the lines to type that a help shows."""
    after = text.partition("Example")[2]
    return [line.partition("Example: ")[2] or line.strip() for line in f"Example{after}".splitlines() if "freehold " in line]


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
    assert any(f"freehold {name} " in line for line in examples(ended.out))
    assert ended.out == call(name, "-h").out


def test_the_help_of_the_program_names_commands_and_exit_codes(call: Call) -> None:
    ended = call("--help")

    assert ended.code == 0
    for word in (*COMMANDS, "Check the whole file", "4 refused", "5 damaged", "6 unavailable", "64 usage", "70 crashed", "130 interrupted"):
        assert word in ended.out
    # No sentence is cut in the list of commands.
    assert "..." not in ended.out.split("Commands:")[1]


@pytest.fixture(scope="module")
def nightly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with everything that the examples name: runs, a moment 40, files now and before, a file outside."""
    folder = tmp_path_factory.mktemp("examples")

    def first(files: Files) -> None:
        for name in ("src", "build", "notes"):
            files.mkdir(name)
        for name in ("src/a.py", "build/a.o", "report.md", "draft.md"):
            files.write_text(name, f"{name}\n")

    with freehold.open(folder / "runs") as host, host.create("nightly") as run, host.create("weekly"):
        run.publish("first", first)
        run.publish("second", lambda files: files.write_text("src/a.py", "second\n"))
        for _ in range(40):
            run.append("line")
    (folder / "draft.md").write_text("draft\n")
    return folder


@pytest.mark.parametrize("line", [line for command in (cli, *cli.commands.values()) for line in examples(command.epilog or "")])
def test_every_example_of_the_help_works(nightly: Path, tmp_path: Path, line: str) -> None:
    folder = shutil.copytree(nightly, tmp_path / "copy")
    if " create " in line:
        (folder / "runs" / "nightly.sqlite").unlink()

    done = in_shell(line, folder)

    assert done.returncode == 0
    assert "freehold: " not in done.stderr


def test_an_example_is_found_wherever_it_stands() -> None:
    assert examples("Usage: freehold x\n\n  Example: echo a | freehold x\n") == ["echo a | freehold x"]
    assert examples("Usage: freehold x\n\n  Examples:\n    freehold x\n    freehold y\n") == ["freehold x", "freehold y"]


def in_shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line as it would be typed, in *folder*."""
    script = f'set -o pipefail; freehold() {{ {" ".join(COMMAND)} "$@"; }}; {line}'
    return subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, env=environment(), check=False, timeout=50)
