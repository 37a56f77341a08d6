"""C50: a command exited 0 though what it was asked for had failed, also with --json; text and code said different things."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from neighbours import Neighbours
from program import Ended
from runfile import forge, new_run

import freehold
from freehold import Status
from freehold.cli import cli, main

NOTHING = "/dev/null"
CALLS: dict[str, list[str]] = {
    "create": ["RUN"],
    "list": [],
    "show": ["RUN"],
    "history": ["RUN"],
    "verify": ["RUN"],
    "delete": ["RUN", "--yes"],
    "tree": [],
    "files": ["RUN"],
    "cat": ["RUN", "f"],
    "append": ["RUN", "n", "1"],
    "put": ["RUN", "new", NOTHING],
    "rm": ["RUN", "f"],
    "mv": ["RUN", "f", "g"],
    "diff": ["RUN", "0"],
    "import": ["RUN", "EMPTY"],
    "checkout": ["RUN", "OUT"],
    "restore": ["RUN", "1"],
}
"""Each command as it does well."""
ABOUT_ALL = frozenset({"list", "tree"})
STATUSES = list(get_args(Status))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder with a run of one file."""
    folder = tmp_path / "runs"
    with freehold.open(folder) as host, host.create("a") as run:
        run.publish("first", lambda files: files.write_text("f", "1"))
    (tmp_path / "empty").mkdir()
    return folder


@pytest.fixture(params=[False, True], ids=["text", "json"])
def as_json(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def words_of(command: str, run: str, folder: Path) -> list[str]:
    given = {"RUN": run, "EMPTY": str(folder / "empty"), "OUT": str(folder / "out")}
    return [command, *(given.get(word, word) for word in CALLS[command])]


def ended_with(ended: Ended, code: int, as_json: bool) -> None:
    """Show that code, text and document agree."""
    assert (ended.code, bool(ended.err)) == (code, code != 0), ended
    if as_json:
        assert ended.code_in_document == code


@pytest.fixture
def call(root: Path, as_json: bool, capsysbinary: pytest.CaptureFixture[bytes]) -> Any:
    def run(*words: str) -> Ended:
        capsysbinary.readouterr()
        code = main(["--root", str(root), *(["--json"] if as_json else []), *words])
        out, err = capsysbinary.readouterr()
        return Ended(code, out.decode(), err.decode())

    return run


def test_every_command_is_looked_at() -> None:
    assert set(CALLS) == set(cli.commands)


@pytest.mark.parametrize("command", CALLS)
def test_what_goes_well_is_0(call: Any, root: Path, command: str, as_json: bool) -> None:
    ended = call(*words_of(command, "new" if command == "create" else "a", root.parent))
    assert ended.code == 0
    if as_json and command != "cat":  # its output is the file
        assert ended.code_in_document == 0


@pytest.mark.parametrize("command", sorted(CALLS.keys() - ABOUT_ALL - {"create"}))
def test_an_unknown_run_is_4(call: Any, root: Path, command: str, as_json: bool) -> None:
    ended_with(call(*words_of(command, "unknown", root.parent)), 4, as_json)
    assert not (root / "unknown.sqlite").exists()


@pytest.mark.parametrize("command", CALLS)
def test_bad_input_is_64(call: Any, root: Path, command: str, as_json: bool) -> None:
    ended_with(call(*words_of(command, "a", root.parent), "--no-such-option"), 64, as_json)


@pytest.mark.parametrize("command", sorted(CALLS.keys() - {"tree", "create", "delete"}))
def test_a_corrupt_file_is_5(call: Any, root: Path, command: str, as_json: bool) -> None:
    forge(new_run(root, "bad"), "UPDATE event SET hash = zeroblob(32)")
    ended_with(call(*words_of(command, "bad", root.parent)), 5, as_json)


@pytest.mark.parametrize("command", CALLS)
def test_an_owner_in_another_process_is_asked_and_the_code_says_what_came_of_it(
    call: Any, village: Neighbours, root: Path, command: str, as_json: bool
) -> None:
    other = village.new(root)
    other.do("run = host.open('a')")
    ended = call(*words_of(command, "a", root.parent))
    other.end()
    code = {"create": 4, "delete": 6}.get(command, 0)
    assert ended.code == code, ended
    if as_json and command != "cat":
        assert ended.code_in_document == code
    assert ended.err.startswith("freehold: ") == (code != 0)


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("command", ["show", "list", "history", "verify"])
def test_looking_at_a_run_is_0_however_it_ended_and_says_how(
    call: Any, village: Neighbours, root: Path, command: str, status: str, as_json: bool
) -> None:
    other = village.new(root)
    other.do("run = host.open('a')")
    if status != "created":
        other.do("run.transact(lambda tx: tx.begin_execution())")
    if status not in ("created", "running"):
        other.do(f"run.transact(lambda tx: tx.settle({status!r}, code='asked'))")
    ended = call(*words_of(command, "a", root.parent))
    other.end()

    assert (ended.code, ended.err) == (0, "")
    if as_json:
        assert ended.code_in_document == 0
    if command in ("show", "list"):
        assert status in ended.out


def test_of_several_runs_the_gravest_counts(call: Any, root: Path, as_json: bool) -> None:
    forge(new_run(root, "bad"), "UPDATE event SET hash = zeroblob(32)")
    ended_with(call("verify", "a", "bad", "unknown"), 5, as_json)
