"""Every end of a command has one exit code, and --json says the same one in exactly one document."""

from __future__ import annotations

import signal
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest
from folder import snapshot
from program import Call, environment, run_program
from runfile import Owner, forge, new_run

import freehold
from freehold.cli import cli, main

BROKEN_HASH = "UPDATE event SET hash = zeroblob(32) WHERE seq = 1"

ENDS = [
    (0, ["list"]),
    (0, ["list", "--status", "failed"]),
    (0, ["tree"]),
    (0, ["show", "good"]),
    (0, ["history", "good"]),
    (0, ["history", "good", "--after", "99"]),
    (0, ["verify", "good"]),
    (0, ["create", "new"]),
    (0, ["delete", "good", "--yes"]),
    (0, ["files", "good"]),
    (0, ["diff", "good", "0"]),
    (0, ["history", "good", "a"]),
    (0, ["put", "good", "a", "/dev/null"]),
    (4, ["files", "missing"]),
    (4, ["files", "good", "a"]),
    (4, ["files", "good", "--at", "yesterday"]),
    (4, ["cat", "missing", "a"]),
    (4, ["cat", "good", "a"]),
    (4, ["cat", "good", "a", "--at", "0", "--before", "1"]),
    (4, ["diff", "missing", "0"]),
    (4, ["diff", "good", "yesterday"]),
    (4, ["history", "good", "/a"]),
    (4, ["put", "missing", "a", "/dev/null"]),
    (4, ["put", "good", "a/b", "/dev/null"]),
    (4, ["put", "good", "a", "/dev/null/x"]),
    (4, ["rm", "missing", "a"]),
    (4, ["rm", "good", "a"]),
    (4, ["mv", "missing", "a", "b"]),
    (4, ["mv", "good", "a", "b"]),
    (0, ["restore", "good", "1"]),
    (4, ["import", "missing", "."]),
    (4, ["import", "good", "/dev/null/x"]),
    (4, ["import", "good", ".", "--into", "/"]),
    (4, ["checkout", "missing", "/dev/null/x"]),
    (4, ["checkout", "good", "/dev/null"]),
    (4, ["restore", "missing", "1"]),
    (4, ["restore", "good", "1", "a"]),
    (64, ["import", "good"]),
    (64, ["checkout", "good"]),
    (64, ["checkout", "good", "x", "--replace", "all"]),
    (64, ["restore", "good"]),
    (64, ["files"]),
    (64, ["cat", "good"]),
    (64, ["diff", "good"]),
    (64, ["put", "good"]),
    (64, ["put", "good", "a", "b", "c"]),
    (64, ["rm", "good", "a", "b"]),
    (64, ["mv", "good", "a"]),
    (4, ["show", "missing"]),
    (4, ["history", "missing"]),
    (4, ["verify", "missing"]),
    (4, ["delete", "missing"]),
    (4, ["delete", "missing", "--yes"]),
    (4, ["delete", "good"]),
    (4, ["create", "good"]),
    (4, ["create", ".hidden"]),
    (4, ["create", "new", "--props", "[1]"]),
    (4, ["create", "new", "--project", "a\nb"]),
    (4, ["show", "--", "-x"]),
    (4, ["show", ""]),
    (4, ["history", "good", "--after", "yesterday"]),
    (4, ["history", "good", "--name", ""]),
    (4, ["history", "missing", "--follow"]),
    (4, ["history", "good", "--follow", "--reverse"]),
    (4, ["history", "good", "--follow", "--after", "yesterday"]),
    (4, ["history", "good", "--follow", "--name", ""]),
    (4, ["history", "good", "/a", "--follow"]),
    (64, ["tree", "good"]),
    (64, []),
    (64, ["burn", "good"]),
    (64, ["show"]),
    (64, ["show", "good", "better"]),
    (64, ["show", "-x"]),
    (64, ["show", "good", "--jso"]),
    (64, ["verify"]),
    (64, ["list", "--status", "happy"]),
    (64, ["history", "good", "--after"]),
    (64, ["--root"]),
]


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize(("code", "words"), ENDS, ids=lambda given: " ".join(given) if isinstance(given, list) else str(given))
def test_text_and_document_say_the_same_exit_code(call: Call, root: Path, code: int, words: list[str], as_json: bool) -> None:
    new_run(root, "good")

    ended = call(*(["--json"] if as_json else []), *words)

    assert ended.code == code
    if as_json:
        assert ended.code_in_document == code
    if code != 0:
        assert ended.err.startswith("freehold: ")
        assert ended.out == "" or as_json or words[0] == "verify"


@pytest.mark.parametrize(
    "words",
    [["show", "--json"], ["burn", "--json"], ["--burn", "--json"], ["show", "-x", "--json"], ["--json", "--burn"]],
    ids=" ".join,
)
def test_a_command_line_that_is_wrong_before_or_after_its_json_is_still_answered_with_a_document(call: Call, words: list[str]) -> None:
    ended = call(*words)

    assert (ended.code, ended.code_in_document, ended.document["code"]) == (64, 64, "usage")


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["show", "bad"],
        ["history", "bad"],
        ["verify", "bad"],
        ["files", "bad"],
        ["cat", "bad", "a"],
        ["diff", "bad", "0"],
        ["history", "bad", "a"],
        ["put", "bad", "a", "/dev/null"],
        ["rm", "bad", "a"],
        ["mv", "bad", "a", "b"],
        ["import", "bad", "/"],
        ["checkout", "bad", "/dev/null/x"],
        ["restore", "bad", "1"],
    ],
    ids=" ".join,
)
def test_a_damaged_file_is_exit_5(call: Call, root: Path, words: list[str], as_json: bool) -> None:
    forge(new_run(root, "bad"), BROKEN_HASH)

    ended = call(*words, *(["--json"] if as_json else []))

    assert ended.code == 5
    assert "[damaged]" in ended.err
    if as_json:
        assert ended.code_in_document == 5


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_a_run_that_is_owned_elsewhere_is_exit_6_for_who_wants_to_own_it_and_can_be_looked_at(
    call: Call, root: Path, as_json: bool
) -> None:
    path = new_run(root, "a")
    flag = ["--json"] if as_json else []

    with Owner(path, "SELECT * FROM run"):
        ended = call("delete", "a", "--yes", *flag)
        assert call("show", "a", *flag).code == 0
        assert call("verify", "a", *flag).code == 0
        assert call("list", *flag).code == 0

    assert ended.code == 6
    assert "[owned_elsewhere]" in ended.err
    assert Path(path.file).exists()
    if as_json:
        assert ended.code_in_document == 6


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_what_nobody_expected_is_exit_70_and_shows_no_value(call: Call, monkeypatch: pytest.MonkeyPatch, as_json: bool) -> None:
    @click.command(help="Fail.")
    def burn() -> None:
        raise ZeroDivisionError("hunter2")

    monkeypatch.setitem(cli.commands, "burn", burn)

    ended = call(*(["--json"] if as_json else []), "burn")

    assert ended.code == 70
    assert ended.err.count("\n") == 1
    assert "ZeroDivisionError" in ended.err
    assert "hunter2" not in ended.err + ended.out
    if as_json:
        assert ended.document["code"] == "crashed"
        assert ended.code_in_document == 70


def test_what_nobody_expected_shows_where_it_happened_when_asked(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command(help="Fail.")
    def burn() -> None:
        raise ZeroDivisionError

    monkeypatch.setitem(cli.commands, "burn", burn)
    monkeypatch.setenv("FREEHOLD_DEBUG", "1")

    assert "in burn\n" in call("burn").err


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_ctrl_c_is_exit_130(call: Call, monkeypatch: pytest.MonkeyPatch, as_json: bool) -> None:
    @click.command(help="Wait.")
    def wait() -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.commands, "wait", wait)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where whoever started the tests has it ignored

    ended = call(*(["--json"] if as_json else []), "wait")

    assert ended.code == 130
    assert ended.err == "freehold: interrupted [interrupted]\n"
    # Pressed once more, it does not disturb the end.
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if as_json:
        assert ended.code_in_document == 130


def test_both_options_stand_before_or_after_the_command(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new_run(root, "a")

    outputs = []
    for words in (
        ["--json", "--root", str(root), "list"],
        ["list", "--json", "--root", str(root)],
        ["--json", "list", "--root", str(root)],
    ):
        assert main(words) == 0
        outputs.append(capsys.readouterr().out)
    assert '"a"' in outputs[0]
    assert outputs == outputs[:1] * 3

    assert main(["--root", str(tmp_path / "other"), "list", "--json", "--root", str(root)]) == 0
    assert capsys.readouterr().out == outputs[0]


def test_the_root_is_that_of_the_environment_else_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["create", "a"]) == 0
    assert (tmp_path / "runs" / "a.sqlite").exists()

    monkeypatch.setenv("FREEHOLD_ROOT", str(tmp_path / "mine"))
    assert main(["create", "b"]) == 0
    assert (tmp_path / "mine" / "b.sqlite").exists()


def test_a_root_that_is_no_folder_is_refused_as_itself(call: Call, root: Path) -> None:
    root.write_text("a file", encoding="utf-8")
    before = snapshot(root.parent)

    for words in (["list"], ["tree"], ["create", "a"], ["show", "a"]):
        ended = call(*words)
        assert ended.code == 4
        assert "[bad_root]" in ended.err
    assert snapshot(root.parent) == before


def test_looking_and_refusing_change_nothing_in_the_folder(call: Call, root: Path) -> None:
    new_run(root, "a")
    forge(new_run(root, "bad"), BROKEN_HASH)
    (root / "notes.sqlite").write_text("not a run", encoding="utf-8")
    (root / "notes.txt").write_text("not a run", encoding="utf-8")
    before = snapshot(root.parent)

    for run in ("a", "bad", "notes", "missing", ".."):
        for words in (["show", run], ["history", run, "--reverse"], ["verify", run], ["create", run, "--props", "1"]):
            call(*words)
            call(*words, "--json")
    for words in (["list"], ["tree"], ["delete", "a"], ["delete", "bad"], ["delete", "notes", "--yes"], ["create", "a"]):
        call(*words)

    assert snapshot(root.parent) == before


@pytest.mark.parametrize("command", ["list", "tree", "show", "history", "verify", "delete"])
def test_a_missing_root_is_not_made(call: Call, root: Path, command: str) -> None:
    words = [command] if command in ("list", "tree") else [command, "a"]

    assert call(*words).code == (0 if command in ("list", "tree") else 4)
    assert not root.parent.joinpath("runs").exists()


def test_an_error_is_one_line_with_its_code_and_a_hint(call: Call, root: Path) -> None:
    first, hint = call("show", "missing").err.splitlines()

    assert first == f"freehold: there is no run file {root}/missing.sqlite; nothing was created [run_not_found]"
    assert hint == "  hint: `freehold list` names the runs of the root, and `freehold create RUN` makes one."


def test_an_error_prints_no_control_character_of_a_path(call: Call, root: Path) -> None:
    ended = call("show", "a", "--root", f"{root}\x1b[31m\n\u202e")

    assert "\\u001b[31m\\n\\u202e/a.sqlite" in ended.err
    assert "\x1b" not in ended.err
    assert "\u202e" not in ended.err


def test_the_installed_program_is_this_one() -> None:
    (point,) = entry_points(group="console_scripts", name="freehold")

    assert point.load() is main


def test_the_module_is_the_program(root: Path) -> None:
    ended = run_program("--root", str(root), "show", "a", "--json")

    assert (ended.code, ended.code_in_document) == (4, 4)
    assert run_program("--version") == (0, f"freehold {freehold.__version__}\n", "")


def test_what_draws_tables_is_loaded_only_to_draw_one(root: Path) -> None:
    program = (
        "import sys\nfrom freehold.cli import main\n"
        "for words in (['--version'], ['create', 'a'], ['show', 'a'], ['history', 'a']): assert main(words) == 0\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'rich'], file=sys.stderr)"
    )
    env = environment(FREEHOLD_ROOT=str(root))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, check=True, timeout=50)

    assert done.stderr == "[]\n"
