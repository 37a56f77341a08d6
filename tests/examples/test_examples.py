"""Every example runs, says what it is there to say, and leaves nothing behind."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from time import time
from types import ModuleType

import pytest
from example import EXAMPLES, ODD_NAMES, number, odd_folder, processes_of, run, table
from folder import run_files, snapshot

import freehold

DEMO = EXAMPLES / "01_index_a_folder.py"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return an empty folder for what an example makes by itself."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of about 300 files, with every odd thing in it that a folder can hold."""
    return odd_folder(tmp_path / "folder", 40)


@pytest.fixture(scope="module")
def demo() -> Iterator[ModuleType]:
    """Return the demo as a module, to try its parts."""
    spec = importlib.util.spec_from_file_location("index_a_folder", DEMO)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        yield module


def test_the_demo_loses_nothing_that_was_acknowledged(folder: Path, home: Path) -> None:
    before = snapshot(folder)

    ended = run(DEMO, folder, home=home)

    assert ended.returncode == 0, ended.stderr
    rows = table(ended.stdout)
    files = 7 * 40 + len(ODD_NAMES) + 1
    assert number(rows, "files") == files
    assert number(rows, "links and what cannot be read, recorded as skipped") == 3
    assert number(rows, "records, each path exactly once") == files + 3
    acknowledged = number(rows, "acknowledged before the kill")
    assert (files + 3) // 2 <= acknowledged <= number(rows, "found after it")
    assert number(rows, "sent again, answered from the journal") == number(rows, "found after it")
    assert number(rows, "acknowledged and lost") == number(rows, "half there") == number(rows, "changed while this ran") == 0
    assert number(rows, "records per second") > 0
    assert number(rows, "raw commits per second, same disk") > 0
    assert "Everything held." in ended.stdout
    assert (snapshot(folder), list(home.iterdir())) == (before, [])


def test_a_demo_killed_at_its_first_record_keeps_its_run_when_asked(folder: Path, home: Path) -> None:
    root = home / "runs"

    ended = run(DEMO, folder, "--root", root, "--keep", "--kill-after", "1", home=home)

    assert ended.returncode == 0, ended.stderr
    assert 1 <= number(table(ended.stdout), "acknowledged before the kill") < 150
    view = freehold.view(root / "index.sqlite")
    view.verify()
    paths = {event.data["path"]: event.name for event in view.history(after=1)}
    assert len(paths) == view.info.events - 1
    # What is no text, and what looks like its escape, are two paths.
    assert {r"\xff\xfe", r"\\xff", r"back\\slash", "new\nline", r"\xfd/inside"} <= paths.keys()
    assert {path for path, name in paths.items() if name == "skipped"} == {"link", "dangling", "fifo"}
    assert run_files(root) == ["index.sqlite"]


@pytest.mark.parametrize("files", [0, 1])
def test_the_demo_takes_a_folder_of_hardly_anything(files: int, tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for file in range(files):
        (folder / str(file)).touch()

    ended = run(DEMO, folder, home=home)

    assert ended.returncode == 0, ended.stderr
    assert number(table(ended.stdout), "records, each path exactly once") == files


def test_a_folder_may_contain_the_run_s_own_root(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    for file in range(20):
        (folder / "sub" / str(file)).touch()
    before = snapshot(folder / "sub")

    ended = run(DEMO, folder, "--root", folder / "runs", home=folder)

    assert ended.returncode == 0, ended.stderr
    assert number(table(ended.stdout), "records, each path exactly once") == 20
    assert [file.name for file in folder.iterdir()] == ["sub"]
    assert snapshot(folder / "sub") == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "is not a folder"),
        (["x" * 300], "nothing was made"),
        (["full/file"], "is not a folder"),
        (["empty", "--root", "empty"], "the very folder"),
        (["empty", "--root", "full"], "is not a new or empty folder"),
        (["empty", "--root", "full/file"], "is not a new or empty folder"),
        (["empty", "--root", "nowhere/runs"], "is not a folder"),
        (["empty", "--kill-after", "-1"], "0 or more"),
    ],
)
def test_a_wrong_command_line_makes_nothing(arguments: list[str], said: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "empty").mkdir()
    (home / "full").mkdir()
    (home / "full" / "file").touch()
    before = snapshot(home)
    monkeypatch.chdir(home)

    ended = run(DEMO, *arguments, home=home)

    assert ended.returncode == 2
    assert said in ended.stderr
    assert snapshot(home) == before


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_stops_its_child_and_leaves_nothing_behind(kind: signal.Signals, home: Path) -> None:
    root = home / "runs"
    command = [sys.executable, str(DEMO), "--root", str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        # There is no event for a file that another process makes.
        while not (root / "index.sqlite").exists() and demo.poll() is None:
            threading.Event().wait(0.01)

        demo.send_signal(kind)
        output, errors = demo.communicate()

    assert demo.returncode == 130
    assert "Interrupted." in errors
    assert "held" not in output
    assert processes_of(root) == []
    assert list(home.iterdir()) == []


def test_what_is_not_as_it_was_recorded_is_told_from_what_changed_meanwhile(folder: Path, home: Path, demo: ModuleType) -> None:
    with freehold.open(home, on_secret_shape="allow") as host, host.create("index") as lease:
        for path in demo.paths_below(folder, home):
            if path != "part1/1.txt":
                lease.append(*demo.look_at(folder, path))
        lease.append("file", {"path": "gone", "size": 1, "sha256": "0" * 64})
        lease.append("file", {"path": "part2/1.txt", "size": 1, "sha256": "0" * 64})

    def compare(since: float) -> tuple[set[str], set[str]]:
        result = demo.compare(folder, home, {2: "0" * 64}, since, lambda: None)
        assert result.lost == [2]
        return set(result.wrong), set(result.changed)

    twice, differing = "recorded twice: 'part2/1.txt'", {"part1/1.txt", "gone", "part2/1.txt"}
    assert compare(time() + 60) == ({twice, *(f"not as it was recorded: {path!r}" for path in differing)}, set())
    assert compare(0) == ({twice}, differing)


def test_a_demo_in_which_something_did_not_hold_ends_with_1(
    tmp_path: Path, home: Path, demo: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TMPDIR", str(home))
    monkeypatch.setattr(demo, "missing", lambda _events, _promised: [2])
    monkeypatch.setattr(sys, "argv", [str(DEMO), str(tmp_path)])
    before = signal.getsignal(signal.SIGTERM)

    try:
        assert demo.main() == 1
    finally:
        signal.signal(signal.SIGTERM, before)

    output, errors = capfd.readouterr()
    assert "Something did not hold." in output
    assert "event 2 was acknowledged and is lost" in errors
    assert list(home.iterdir()) == []


def test_what_cannot_be_read_is_recorded_as_skipped(tmp_path: Path, home: Path, demo: ModuleType) -> None:
    if os.geteuid() == 0:
        pytest.skip("root can read everything")
    (tmp_path / "closed").mkdir(mode=0)
    (tmp_path / "secret").touch(mode=0)

    found = {path: demo.look_at(tmp_path, path) for path in demo.paths_below(tmp_path, home)}

    (tmp_path / "closed").chmod(0o700)
    assert found["closed"] == ("skipped", {"path": "closed", "why": "a folder that cannot be read"})
    assert found["secret"] == ("skipped", {"path": "secret", "why": "EACCES"})


def test_a_file_that_changed_after_an_earlier_life_had_recorded_it_is_not_recorded_again(
    tmp_path: Path, home: Path, demo: ModuleType
) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    with freehold.open(home) as host, host.create("index") as lease:
        first = demo.record(lease, tmp_path, "file")
        assert demo.record(lease, tmp_path, "file") == first

        file.write_text("after")
        assert demo.record(lease, tmp_path, "file") == "known\n"
        assert [f"{event.seq} {event.hash}\n" for event in lease.history(after=1)] == [first]


def test_every_path_becomes_text_and_comes_back(demo: ModuleType) -> None:
    names = [*ODD_NAMES, b"a\\x41", b"a\\\\x41", b"\\", b"\xe2\x82", b"\\\xff"]
    texts = [demo.path_text(os.fsdecode(name)) for name in names]

    assert len(set(texts)) == len(names)
    assert [os.fsencode(demo.path_of(text)) for text in texts] == names
    assert "".join(texts).encode()


def test_the_tour_shows_each_promise(home: Path) -> None:
    ended = run(EXAMPLES / "02_take_turns.py", home=home)

    assert (ended.returncode, ended.stderr) == (0, "")
    for said in (
        "asked again it is the same event: True",
        "transact returned 'served'",
        "nothing was spilt: []",
        "was it carried out? no",
        "it is completed, and event 7 says why",
        "is owned by pid",
        "and sees 8 events all the same",
    ):
        assert said in ended.stdout
    assert ["note", "apology"] in [line.split()[1:3] for line in ended.stdout.splitlines()]
    assert "biscuits " not in ended.stdout.partition("created")[2]
    assert list(home.iterdir()) == []


def test_a_crashed_actor_of_one_s_own_is_started_anew(home: Path) -> None:
    ended = run(EXAMPLES / "03_supervise_actors.py", home=home)

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == [
        "words so far: 3",
        "the crash came back to the asker: there is nothing to count",
        "words so far: 1",
        "counter was down: ValueError, restarting: True",
        "desk  running",
        "  watcher  running",
        "  counter  running  restarted once",
    ]
    assert "desk/counter crashed: ValueError" in ended.stderr
    assert "nothing to count" not in ended.stderr


def test_a_worker_that_is_killed_answers_each_request_exactly_once(home: Path) -> None:
    ended = run(EXAMPLES / "05_talk_to_a_worker.py", home=home)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        "20 answers are there, and the worker owns the run: True",
        "the worker was killed: -9",
        "another one goes on where it was: True",
        "40 requests, 40 answers, to each of them one: True",
        "Everything held.",
    ]
    assert (processes_of(home), list(home.iterdir())) == ([], [])


def test_every_example_and_every_module_of_theirs_stands_in_the_table() -> None:
    listed = re.findall(r"^\| \[(\w+\.py)\]\((\w+\.py)\) \|", (EXAMPLES / "README.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert [name for name, _ in listed] == [link for _, link in listed]
    assert sorted(name for name, _ in listed) == sorted(file.name for file in EXAMPLES.glob("*.py"))
