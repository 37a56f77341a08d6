"""The demonstration of files holds on every folder, and says so when something does not."""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from time import time
from types import ModuleType

import pytest
from example import EXAMPLES, ODD_NAMES, number, odd_folder, processes_of, run, table
from folder import run_files, snapshot

import freehold
from freehold import Files

DEMO = EXAMPLES / "04_edit_a_folder.py"
NOT_HELD = {b"new\nline", b"tab\t", b"\xff\xfe", b"\\xff", b"back\\slash"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return an empty folder for what the demonstration makes by itself."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def demo() -> Iterator[ModuleType]:
    """Return the demonstration as a module, to try its parts."""
    spec = importlib.util.spec_from_file_location("edit_a_folder", DEMO)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        yield module


@pytest.fixture
def imported(tmp_path: Path, home: Path) -> Iterator[freehold.Run]:
    """Return a run into which a small folder was imported."""
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    for name in ("a", "b", "inner/c"):
        (folder / name).write_text(name * 100)
    with freehold.open(home) as host, host.create("edits") as lease:
        lease.import_tree(folder, "tree")
        yield lease


def test_no_publish_is_lost_and_none_is_half_there(tmp_path: Path, home: Path) -> None:
    folder = odd_folder(tmp_path / "folder", 10)
    before = snapshot(folder)

    ended = run(DEMO, folder, "--publishes", "64", home=home)

    assert ended.returncode == 0, ended.stderr
    rows = table(ended.stdout)
    assert number(rows, "files imported") == 7 * 10 + len(ODD_NAMES) - len(NOT_HELD)
    assert number(rows, "left out: cannot be held, or not be read") == len(NOT_HELD) + 2
    assert r"'new\nline' (unportable)" in ended.stderr
    assert r"'\udcff\udcfe' (not_utf8)" in ended.stderr
    assert "'fifo' (fifo)" in ended.stderr
    assert number(rows, "publishes, each exactly once") == 64
    assert 32 <= number(rows, "acknowledged before the kill") <= number(rows, "found after it")
    assert number(rows, "sent again, answered from the journal") == number(rows, "found after it")
    for none in ("acknowledged and lost", "half there", "not as in the twin", "changed while this ran"):
        assert number(rows, none) == 0
    assert number(rows, "differences between first and last root") > 0
    assert "Everything held." in ended.stdout
    assert (snapshot(folder), list(home.iterdir())) == (before, [])


def test_one_that_is_killed_at_its_first_publish_keeps_its_run_in_the_very_folder_when_asked(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_text("one")
    root = folder / "[runs] !"

    ended = run(DEMO, folder, "--root", root, "--keep", "--publishes", "24", "--kill-after", "1", home=folder)

    assert ended.returncode == 0, ended.stderr
    rows = table(ended.stdout)
    assert (number(rows, "files imported"), number(rows, "left out: cannot be held, or not be read")) == (1, 0)
    assert 1 <= number(rows, "acknowledged before the kill") < 24
    view = freehold.view(root / "edits.sqlite")
    view.verify()
    names = [str(event.name) for event in view.history(after=1)]
    assert (names[0], sorted(names[1:])) == ("import", sorted(f"edit {which}" for which in range(24)))
    assert set(run_files(root)) <= {"edits.sqlite", ".stat-cache.sqlite"}
    assert {file.name for file in folder.iterdir()} == {"file", root.name}


@pytest.mark.skipif(os.geteuid() == 0 and which("setpriv") is None, reason="root reads everything, but for setpriv")
def test_what_cannot_be_read_is_left_out_and_what_cannot_be_written_is_no_obstacle(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "closed").mkdir(parents=True)
    (folder / "closed" / "file").touch()
    (folder / "secret").touch(mode=0)
    (folder / "fixed" / "inner").mkdir(parents=True)
    (folder / "fixed" / "file").touch()
    (folder / "closed").chmod(0)
    (folder / "fixed").chmod(0o555)
    rights = "-dac_override,-dac_read_search"
    prefix = ("setpriv", "--bounding-set", rights, "--inh-caps", rights) if os.geteuid() == 0 else ()

    ended = run(DEMO, folder, "--publishes", "16", "--kill-after", "0", home=home, prefix=prefix)

    (folder / "closed").chmod(0o700)
    (folder / "fixed").chmod(0o700)
    assert ended.returncode == 0, ended.stderr
    assert "'closed' (no_permission)" in ended.stderr
    assert "'secret' (no_permission)" in ended.stderr
    rows = table(ended.stdout)
    assert (number(rows, "files imported"), number(rows, "publishes, each exactly once")) == (1, 16)
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "is not a folder"),
        (["x" * 300], "nothing was made"),
        (["empty", "--root", "empty"], "the very folder"),
        (["empty", "--root", "full"], "is not a new or empty folder"),
        (["empty", "--root", "full/file"], "is not a new or empty folder"),
        (["empty", "--root", "nowhere/runs"], "is not a folder"),
        (["empty", "--kill-after", "-1"], "0 or more"),
        (["empty", "--publishes", "0"], "1 or more"),
    ],
)
def test_a_wrong_command_line_makes_nothing(
    arguments: list[str], said: str, home: Path, demo: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "empty").mkdir()
    (home / "full").mkdir()
    (home / "full" / "file").touch()
    before = snapshot(home)
    monkeypatch.chdir(home)
    monkeypatch.setattr(sys, "argv", [str(DEMO), *arguments])

    with pytest.raises(SystemExit, match="2"):
        demo.main()

    assert said in capsys.readouterr().err
    assert snapshot(home) == before


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_one_stops_its_child_and_leaves_nothing_behind(kind: signal.Signals, home: Path) -> None:
    root = home / "runs"
    command = [sys.executable, str(DEMO), "--root", str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        # There is no event for a file that another process makes.
        while not (root / "edits.sqlite").exists() and demo.poll() is None:
            threading.Event().wait(0.01)

        demo.send_signal(kind)
        output, errors = demo.communicate()

    assert demo.returncode == 130
    assert "Interrupted." in errors
    assert "held" not in output
    assert processes_of(root) == []
    assert list(home.iterdir()) == []


def test_one_in_which_something_did_not_hold_ends_with_1(
    tmp_path: Path, home: Path, demo: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(home))
    monkeypatch.setattr(demo.Replay, "lost", lambda _self, _promised: [2])
    monkeypatch.setattr(sys, "argv", [str(DEMO), str(folder), "--publishes", "8"])
    before = signal.getsignal(signal.SIGTERM)

    try:
        assert demo.main() == 1
    finally:
        signal.signal(signal.SIGTERM, before)

    output, errors = capfd.readouterr()
    assert "Something did not hold." in output
    assert "event 2 was acknowledged and is lost" in errors
    assert list(home.iterdir()) == []


def test_a_publish_that_has_done_something_else_is_found(imported: freehold.Run, demo: ModuleType) -> None:
    first = imported.info.events
    walked = demo.places_of(imported.files)

    def publish(which: int, *, without: int = 0, also: str | None = None) -> None:
        def work(files: Files) -> None:
            if which != without:
                demo.edit(files, which, walked)
            if also is not None:
                files.write_text(also, "of nobody")

        imported.publish(f"edit {which}", work)

    publish(1)
    assert found(imported, demo, first) == ([], [])
    last = imported.info.events
    publish(2, also="tree/a stranger")
    publish(3, without=3)
    publish(1)
    imported.append("edit two")

    halves, wrong = found(imported, demo, first, whole=last + 1)

    assert halves == [last + 1, last + 2, last + 3, last + 4]
    assert wrong == [f"after event {last + 1} not as in the twin: 'tree/a stranger'"]


def test_a_promise_that_is_not_in_the_journal_is_found(imported: freehold.Run, demo: ModuleType) -> None:
    replay = demo.Replay(imported, imported.info.events)
    event = imported.publish("edit 5", lambda files: demo.edit(files, 5, replay.places))
    replay.follow(imported, (), lambda: None)
    told = {"number": 5, "hash": event.hash, "root": event.root}

    assert replay.lost({event.seq: told}) == []
    assert replay.lost({event.seq + 1: told}) == [event.seq + 1]
    for name, value in {"number": 6, "hash": "0" * 64, "root": "0" * 64}.items():
        assert replay.lost({event.seq: told | {name: value}}) == [event.seq]


def test_a_difference_of_roots_that_says_too_little_or_too_much_is_found(imported: freehold.Run, demo: ModuleType) -> None:
    first = imported.info.events
    replay = demo.Replay(imported, first)

    with imported.publish("x") as staged:
        for files in (staged, replay.twin):
            files.rename("tree/inner", "tree/moved")
            files.chmod("tree/a", 0o600)
    changes = list(imported.diff(first))

    replay.compare_changes(changes)
    assert replay.wrong == []

    replay.compare_changes([change for change in changes if change.kind == "mode"])
    replay.compare_changes([*changes, type(changes[0])("tree/b", "changed", "tree/b", "tree/b")])
    said = [line.rpartition(": ")[2] for line in replay.wrong]
    assert sorted(said) == ["'tree/b'", "'tree/inner/c'", "'tree/moved/c'"]


def test_what_is_not_as_it_was_imported_is_told_from_what_changed_meanwhile(
    imported: freehold.Run, demo: ModuleType, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    (folder / "a").write_text("other")
    (folder / "inner" / "c").unlink()
    (folder / "new").symlink_to("a")

    def compare(since: float) -> tuple[list[str], list[str]]:
        replay = demo.Replay(imported, imported.info.events)
        replay.compare_with_source(folder, {"b"}, since)
        return [line.rpartition(": ")[2] for line in replay.wrong], replay.changed

    assert compare(time() + 60) == (["'tree/a'", "'tree/new'", "'tree/b'", "'tree/inner/c'"], [])
    assert compare(0) == ([], ["tree/a", "tree/new", "tree/b", "tree/inner/c"])


def found(lease: freehold.Run, demo: ModuleType, first: int, whole: int = 0) -> tuple[list[int], list[str]]:
    """Return which events are half there, and what is wrong besides."""
    replay = demo.Replay(lease, first)
    replay.follow(lease, {whole}, lambda: None)
    return replay.halves, replay.wrong
