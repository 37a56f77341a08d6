"""C46: a command that failed is told with its host and its user, and without the token in it, however it is spelled."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import freehold
from freehold.cli import main

TOKEN = "tok_ABC123"
CLONE = ["git", "clone", f"https://oauth2:{TOKEN}@localhost:1/x.git"]
CURL = ["curl", "-H", f"Authorization: Bearer {TOKEN}", "http://localhost:1/"]


def fails(command: list[str]) -> Callable[[], None]:
    def call() -> None:
        try:
            raise subprocess.CalledProcessError(128, command, stderr=f"fatal: unable to access '{command[-1]}'")
        except subprocess.CalledProcessError as error:
            error.add_note(f"$ {shlex.join(command)}")
            raise RuntimeError(f"could not run {command!r}, that is {shlex.quote(shlex.join(command))}") from error

    return call


def found(root: Path, secret: str) -> list[str]:
    """Return the files in which the secret stands."""
    return [file.name for file in root.iterdir() if file.is_file() and secret.encode() in file.read_bytes()]


@pytest.mark.parametrize("command", [CLONE, CURL], ids=["clone", "curl"])
@pytest.mark.parametrize("options", [{"secrets": {"token": TOKEN}}, {"secrets": {"token": TOKEN}, "on_secret_shape": "allow"}], ids=str)
def test_the_token_is_in_no_place_that_is_stored_or_shown(
    tmp_path: Path, command: list[str], options: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with freehold.open(tmp_path, **options) as host, host.create("a") as run:
        with pytest.raises(RuntimeError):
            run.once("bootstrap", fails(command))
        (event,) = run.history(name="bootstrap")
    failure = event.data["failure"]
    assert TOKEN not in str(event.data)
    assert "localhost:1" in failure["message"]
    assert failure["cause"]["details"]["returncode"] == 128
    assert "localhost:1" in str(failure["cause"]["details"]["cmd"])
    assert "localhost:1" in failure["cause"]["notes"][0]
    assert found(tmp_path, TOKEN) == []
    for command_line in (["history", "a"], ["--json", "history", "a"], ["show", "a"], ["verify", "a"]):
        assert main(["--root", str(tmp_path), *command_line]) == 0
        out, err = capsys.readouterr()
        assert TOKEN not in out + err


def test_a_token_that_nobody_declared_is_known_by_its_shape(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as host, host.create("a") as run:
        with pytest.raises(RuntimeError):
            run.once("bootstrap", fails(CLONE))
        (event,) = run.history(name="bootstrap")
    assert TOKEN not in str(event.data)
    assert "oauth2" in event.data["failure"]["message"]


def test_the_fingerprint_of_the_input_does_not_let_a_short_secret_be_guessed(tmp_path: Path) -> None:
    with freehold.open(tmp_path, secrets={"pin": "4711"}) as host, host.create("a") as run:
        run.once("login", lambda *given, **named: len(given) + len(named), "4711", user="me")
        run.once("greet", lambda *given, **named: len(given) + len(named), "hello", user="me")
        first, second = (event.data["input"] for event in run.history(after=1))
    assert first is None
    assert second is not None
