"""put, rm and mv publish once, own the run for no longer, and leave everything as it was where they are refused."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from folder import run_files, snapshot
from other import owns
from program import COMMAND, Call, environment, run_program
from runfile import Owner

import freehold
from freehold.actors import listener
from freehold.schema.limits import PORTION_BYTES
from freehold.storage.path import resolve_file


@pytest.fixture
def local(tmp_path: Path) -> Path:
    """Return a file beside the runs, which may be executed."""
    file = tmp_path / "local.bin"
    file.write_bytes(bytes(range(256)))
    file.chmod(0o750)
    return file


def give(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Let *data* be the standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_put_makes_a_file_the_content_of_a_path(call: Call, filled: freehold.RunView, local: Path) -> None:
    assert call("put", "a", "docs/new.bin", str(local)) == (0, "A  docs/new.bin\n", "")
    assert call("put", "a", "docs/guide.md", str(local)) == (0, "M  docs/guide.md\n", "")
    assert call("put", "a", "link/guide.md", str(local)) == (0, "", "nothing is different now\n")

    assert filled.files.read_bytes("docs/new.bin") == filled.files.read_bytes("docs/guide.md") == bytes(range(256))
    assert [(event.name, event.data) for event in filled.history(after=2)] == [("put", {"changes": count}) for count in (1, 1, 0)]


def test_a_new_file_has_the_permissions_of_its_original_and_an_old_one_keeps_its_own(
    call: Call, filled: freehold.RunView, local: Path
) -> None:
    call("put", "a", "new", str(local))
    call("put", "a", "docs/guide.md", str(local))

    assert oct(filled.files.stat("new").st_mode) == "0o100750"
    assert oct(filled.files.stat("docs/guide.md").st_mode) == "0o100644"


@pytest.mark.parametrize("words", [[], ["-"]], ids=["nothing", "dash"])
def test_put_reads_standard_input(call: Call, filled: freehold.RunView, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    give(monkeypatch, b"\x00\xff\r\n")

    assert call("put", "a", "new", *words) == (0, "A  new\n", "")
    assert filled.files.read_bytes("new") == b"\x00\xff\r\n"
    assert oct(filled.files.stat("new").st_mode) == "0o100644"


def test_an_empty_input_is_an_empty_file(call: Call, filled: freehold.RunView, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, b"")

    assert call("put", "a", "run.sh").code == 0
    assert filled.files.read_bytes("run.sh") == b""


def test_parents_are_made_when_they_are_asked_for(call: Call, filled: freehold.RunView, local: Path) -> None:
    root = filled.files.root

    ended = call("put", "a", "x/y/z", str(local))

    assert ended == (4, "", "freehold: x/y/z: No such file or directory\n")
    assert filled.files.root == root
    assert call("put", "a", "x/y/z", str(local), "--parents").out == "A  x/y/z\n"
    assert call("put", "a", "x/y/other", str(local), "-p").out == "A  x/y/other\n"
    assert call("put", "a", "top", str(local), "-p").out == "A  top\n"


@pytest.mark.parametrize("words", ["put a run.sh", "rm a run.sh", "mv a run.sh go.sh", "restore a 1", "import a folder"])
def test_an_event_can_be_given_a_name(
    call: Call, filled: freehold.RunView, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"other")))

    assert call(*words.split(), "--name", "ann").code == 0
    assert call(*words.split()).code in (0, 4)  # what was removed cannot be removed again, which is recorded
    names = [event.name for event in filled.history(after=2)]
    assert names == ["ann", words.split(maxsplit=1)[0]]


@pytest.mark.parametrize("words", ["put a new -", "rm a run.sh", "mv a run.sh go.sh", "restore a 1 docs", "import a folder"])
@pytest.mark.parametrize("owned", [False, True], ids=["nobody owns it", "another process owns it"])
def test_the_same_request_id_changes_nothing_more_and_prints_the_same_event(
    call: Call, root: Path, filled: freehold.RunView, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, owned: bool
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "new").touch()
    monkeypatch.chdir(tmp_path)
    ended = []
    with owns(root, "a") if owned else nullcontext():
        if words.startswith("restore"):
            call("rm", "a", "docs", "-r")
            words = words.replace(" 1 ", " 2 ")
        for content in (b"first", b"second"):
            give(monkeypatch, content)
            ended.append(call(*words.split(), "--request-id", "r", "--json"))
        give(monkeypatch, b"third")
        text = call(*words.split(), "--request-id", "r")
        other = call(*words.split(), "--request-id", "r", "--name", "other")

    assert [each.code for each in ended] == [0, 0]
    assert ended[0].document == ended[1].document
    assert (text.code, len(text.out.splitlines()), text.err) == (0, len(ended[0].document["changes"]), "")
    assert (other.code, "[request_conflict]" in other.err) == (4, True)
    assert [event.seq for event in filled.history(after=2)][-1:] == [ended[0].document["event"]["seq"]]


def test_an_effect_is_one_document(call: Call, filled: freehold.RunView) -> None:
    document = call("mv", "a", "run.sh", "go.sh", "--json").document

    (event,) = filled.history(after=2)
    assert document["event"].pop("time")
    assert document == {
        "run": "a",
        "event": {
            "seq": 3,
            "id": event.id,
            "kind": "publish",
            "name": "mv",
            "data": {"changes": 1},
            "execution": None,
            "outcome": None,
            "root": filled.files.root,
            "hash": event.hash,
        },
        "changes": [{"path": "go.sh", "kind": "renamed", "before": "run.sh", "after": "go.sh"}],
        "skipped": [],
        "exit_code": 0,
    }


def test_rm_removes_files_and_links_and_directories_when_it_is_asked_to(call: Call, filled: freehold.RunView) -> None:
    assert call("rm", "a", "docs") == (4, "", "freehold: docs: Is a directory\n")
    assert call("rm", "a", "link", "-r") == (0, "D  link\n", "")
    assert call("rm", "a", "run.sh", "--recursive") == (0, "D  run.sh\n", "")
    assert call("rm", "a", "docs", "-r") == (0, "D  docs/deep/all.bin\nD  docs/guide.md\n", "")

    assert list(filled.files.iterdir()) == []
    assert filled.snapshot(before=4).is_file("docs/guide.md")


def test_mv_gives_another_path_and_replaces_what_is_there(call: Call, filled: freehold.RunView) -> None:
    assert call("mv", "a", "docs/deep", "deep") == (0, "R  docs/deep -> deep\n", "")
    assert call("mv", "a", "run.sh", "docs/guide.md").code == 0

    assert filled.files.read_text("docs/guide.md") == "true\n"
    assert not filled.files.exists("run.sh")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["rm", "a", "gone"], "gone: No such file or directory"),
        (["rm", "a", "gone", "-r"], "gone: No such file or directory"),
        (["rm", "a", ".", "-r"], ".: Device or resource busy"),
        (["mv", "a", "gone", "x"], "gone: No such file or directory"),
        (["mv", "a", "run.sh", "x/y"], "x/y: No such file or directory"),
        (["mv", "a", "run.sh", "docs"], "docs: Is a directory"),
        (["mv", "a", "docs", "docs/deep/x"], "docs: Invalid argument"),
        (["put", "a", "docs", "/dev/null"], "docs: Is a directory"),
        (["put", "a", "run.sh/x", "/dev/null", "-p"], "run.sh: File exists"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_a_refusal_is_one_line_changes_no_file_and_is_recorded(call: Call, filled: freehold.RunView, words: list[str], line: str) -> None:
    root = filled.files.root

    assert call(*words) == (4, "", f"freehold: {line}\n")

    assert filled.files.root == root
    (event,) = filled.history(after=2)
    assert event.name == words[0]
    assert event.data["path"] == line.split(":", maxsplit=1)[0]
    document = call(*words, "--json")
    assert (document.code, document.document["message"], document.document["exit_code"]) == (4, line, 4)


@pytest.mark.parametrize(
    "words",
    [
        ["put", "a", "x", "{tmp}/gone"],
        ["put", "a", "x", "{tmp}"],
        ["put", "a", "x", ""],
        ["put", "a", "../x", "/dev/null"],
        ["put", "a", "", "/dev/null"],
        ["put", "b", "x", "/dev/null"],
        ["rm", "b", "x"],
        ["mv", "b", "x", "y"],
    ],
    ids=" ".join,
)
def test_what_is_wrong_before_the_run_is_touched_leaves_it_untouched(
    call: Call, root: Path, tmp_path: Path, filled: freehold.RunView, words: list[str]
) -> None:
    before = snapshot(root)

    ended = call(*(word.format(tmp=tmp_path) for word in words))

    assert ended.code == 4
    assert ended.err.startswith("freehold: ")
    assert "Traceback" not in ended.err
    assert snapshot(root) == before


def test_a_path_that_looks_like_a_secret_is_refused_and_not_repeated(call: Call, filled: freehold.RunView) -> None:
    secret = "ghp_" + "a1B2" * 9

    for words in (["put", "a", secret, "/dev/null"], ["mv", "a", "run.sh", secret]):
        ended = call(*words)
        assert ended.code == 4
        assert "[secret_refused]" in ended.err
        assert secret not in ended.err


@pytest.mark.parametrize("words", [["put", "a", "x", "/dev/null"], ["rm", "a", "run.sh"], ["mv", "a", "run.sh", "x"]], ids=" ".join)
def test_whoever_owns_the_run_in_another_process_carries_it_out(root: Path, filled: freehold.RunView, words: list[str]) -> None:
    with freehold.open(root) as host, host.open("a") as run:
        ended = run_program("--root", str(root), "--json", *words)
        assert (ended.code, ended.document["event"]["seq"]) == (0, 3)
        assert run.append("still ours").seq == 4
    (made,) = filled.history(name=words[0])
    assert made.root == ended.document["event"]["root"]
    filled.verify()


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("words", [["put", "a", "x", "/dev/null"], ["rm", "a", "run.sh"], ["mv", "a", "run.sh", "x"]], ids=" ".join)
def test_an_owner_that_cannot_be_asked_is_exit_6_and_named(
    root: Path, filled: freehold.RunView, words: list[str], as_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "listen", no_socket)
    with freehold.open(root) as host, host.open("a"):
        ended = run_program("--root", str(root), *(["--json"] if as_json else []), *words)

    assert ended.code == 6
    assert str(os.getpid()) in ended.err
    if as_json:
        assert ended.code_in_document == 6
        assert ended.document["details"]["holder"]["pid"] == os.getpid()
    assert filled.info.events == 2


def no_socket(*_: object) -> None:
    """Be a folder in which no socket can be made."""
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def test_nothing_is_owned_after_a_command(call: Call, root: Path, filled: freehold.RunView) -> None:
    call("mv", "a", "run.sh", "go.sh")

    assert run_files(root) == ["a.sqlite"]
    with Owner(resolve_file(root / "a.sqlite"), "SELECT * FROM run"):
        assert call("files", "a").code == 0


def start(root: Path, *words: str) -> subprocess.Popen[bytes]:
    """Start a command whose standard input is ours."""
    return subprocess.Popen(
        [*COMMAND, "--root", str(root), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )


def test_a_run_is_not_owned_while_nothing_has_come_yet(root: Path, filled: freehold.RunView) -> None:
    with start(root, "put", "a", "new", "--json") as process:
        assert process.stdin is not None
        process.stdin.write(b"first")
        process.stdin.flush()
        with freehold.open(root) as host, host.open("a") as run:
            run.append("meanwhile")
        out, _ = process.communicate(b" second", timeout=50)

    assert json.loads(out)["event"]["seq"] == 4
    assert filled.files.read_text("new") == "first second"


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, b"interrupted [interrupted]"), (signal.SIGTERM, 143, b"terminated [terminated]")],
)
def test_ctrl_c_in_the_middle_publishes_nothing(
    root: Path, filled: freehold.RunView, number: signal.Signals, code: int, said: bytes
) -> None:
    before = filled.files.root
    with start(root, "put", "a", "run.sh") as process:
        assert process.stdin is not None
        process.stdin.write(os.urandom(PORTION_BYTES))
        process.stdin.flush()
        while filled.info.epoch == 1:  # until it owns the run
            assert process.poll() is None

        process.send_signal(number)
        _, err = process.communicate(timeout=50)

    assert (process.returncode, err) == (code, b"freehold: " + said + b"\n")
    assert not filled.path.with_name("a.sqlite-wal").exists()  # closed in order
    assert filled.files.root == before
    assert filled.info.events == 2
    filled.verify()


def test_what_comes_through_a_pipe_is_never_whole_in_memory(root: Path, filled: freehold.RunView) -> None:
    size = 24 * PORTION_BYTES
    peaks = []
    for count in (1, size):
        with start(root, "put", "a", "large") as process:
            assert process.stdin is not None
            for offset in range(0, count, PORTION_BYTES):
                process.stdin.write(bytes(min(PORTION_BYTES, count - offset)))
            process.stdin.close()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        peaks.append(usage.ru_maxrss * 1024)

    assert filled.files.stat("large").st_size == size
    assert peaks[1] - peaks[0] < size / 2


def test_an_input_that_cannot_be_read_is_said_to_be_so(root: Path, tmp_path: Path, filled: freehold.RunView) -> None:
    with (tmp_path / "written").open("wb") as written:
        done = subprocess.run(
            [*COMMAND, "--root", str(root), "put", "a", "x"],
            stdin=written,
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
            timeout=50,
        )

    assert (done.returncode, done.stderr) == (4, "freehold: standard input: Bad file descriptor\n")
    assert filled.info.epoch == 1
