"""import, checkout and restore: what they do is said, what they cannot do too, and a refusal changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from folder import snapshot
from program import Call, run_program

import freehold


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a real folder to import."""
    folder = tmp_path / "real"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.txt").write_text("a")
    (folder / "sub" / "a.o").write_text("o")
    (folder / "tool").write_text("t")
    (folder / "tool").chmod(0o755)
    return folder


def test_import_takes_a_folder_in_and_says_what_came(call: Call, filled: freehold.RunView, folder: Path) -> None:
    assert call("import", "a", str(folder), "--into", "src/new", "--ignore", "*.o") == (0, "A  src/new/sub/a.txt\nA  src/new/tool\n", "")
    assert call("import", "a", str(folder), "--into", "src/new", "--ignore", "*.txt", "--ignore", "*.o") == (
        0,
        "",
        "nothing is different now\n",
    )

    assert filled.files.read_text("src/new/sub/a.txt") == "a"
    assert filled.files.exists("run.sh")
    assert [event.name for event in filled.history(after=2)] == ["import", "import"]


def test_what_a_run_cannot_hold_is_told(call: Call, filled: freehold.RunView, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "odd\x1b").touch()
    os.link(folder / "tool", folder / "twin")

    ended = call("import", "a", str(folder))
    again = call("import", "a", str(folder), "--json")

    assert (ended.code, again.code, again.code_in_document) == (7, 7, 7)
    assert ended.out == "A  sub/a.o\nA  sub/a.txt\nA  tool\nA  twin\n"
    lines = ended.err.splitlines()
    assert lines[0].startswith("not taken: odd\\u001b: unportable (")
    assert lines[1:] == ["not taken: pipe: fifo", "not taken whole: tool: hard_link", "not taken whole: twin: hard_link"]
    assert [(path["path"], path["reason"], path["held"]) for path in again.document["skipped"]] == [
        ("odd\x1b", "unportable", False),
        ("pipe", "fifo", False),
        ("tool", "hard_link", True),
        ("twin", "hard_link", True),
    ]
    assert call("history", "a", "--after", "2").out.splitlines()[0].endswith("import  4 changes, 4 not taken as they were")
    assert call("import", "a", str(folder), "--ignore", "pipe", "--ignore", "odd*", "--ignore", "t*").code == 0


def test_checkout_writes_the_files_as_they_are_or_were(call: Call, filled: freehold.RunView, tmp_path: Path) -> None:
    old = filled.files.root
    call("rm", "a", "docs", "-r")
    now, before = tmp_path / "now", tmp_path / "before"

    assert call("checkout", "a", str(now)) == (0, f"{filled.files.root}  {now}\n", "2 written, 0 kept, 0 removed\n")
    assert call("checkout", "a", str(before), "--before", "3").out == f"{old}  {before}\n"

    assert sorted(path.name for path in now.iterdir()) == ["link", "run.sh"]
    assert os.access(now / "run.sh", os.X_OK)
    assert (before / "docs" / "deep" / "all.bin").read_bytes() == bytes(range(256))


def test_checkout_replaces_what_it_is_told_to(call: Call, filled: freehold.RunView, tmp_path: Path) -> None:
    work = tmp_path / "work"
    call("checkout", "a", str(work))
    (work / "run.sh").write_text("mine")
    (work / "extra").touch()
    (work / "kept.o").touch()
    before = snapshot(work)

    refused = call("checkout", "a", str(work))
    assert (refused.code, refused.err) == (4, f"freehold: {work}: File exists\n")
    assert snapshot(work) == before

    changed = call("checkout", "a", str(work), "--replace", "changed", "--json").document
    assert (changed["written"], changed["removed"]) == (1, 0)
    assert (work / "run.sh").read_text() == "true\n"
    assert (work / "extra").exists()
    always = call("checkout", "a", str(work), "--replace", "always", "--ignore", "*.o", "--json").document
    assert always == {
        "run": "a",
        "path": str(work),
        "root": filled.files.root,
        "written": 0,
        "kept": always["kept"],
        "removed": 1,
        "left_alone": ["kept.o"],
        "exit_code": 0,
    }
    assert not (work / "extra").exists()


def test_restore_brings_a_path_or_everything_back(call: Call, filled: freehold.RunView) -> None:
    old = filled.files.root
    call("rm", "a", "docs", "-r")
    call("rm", "a", "run.sh")

    assert call("restore", "a", "2", "docs/none") == (4, "", "freehold: docs/none: No such file or directory\n")
    assert call("restore", "a", "2", "docs").out == "A  docs/deep/all.bin\nA  docs/guide.md\n"
    assert call("restore", "a", old[:12]).out == "A  run.sh\n"

    assert filled.files.root == old
    assert call("restore", "a", "2", "--json").document["changes"] == []
    assert [event.name for event in filled.history(reverse=True)][:2] == ["restore", "restore"]


@pytest.mark.parametrize(
    "words",
    [
        ["import", "a", "{tmp}/gone"],
        ["import", "a", "/dev/null"],
        ["import", "a", "{tmp}", "--into", "../x"],
        ["import", "b", "{tmp}"],
        ["checkout", "b", "{tmp}/new"],
        ["checkout", "a", "{tmp}/new", "--at", "2", "--before", "2"],
        ["checkout", "a", "{tmp}/new", "--at", "yesterday"],
        ["restore", "b", "1"],
        ["restore", "a", "2", "/x"],
    ],
    ids=" ".join,
)
def test_what_is_wrong_before_the_run_is_touched_leaves_everything_untouched(
    call: Call, root: Path, tmp_path: Path, filled: freehold.RunView, words: list[str]
) -> None:
    real = tmp_path / "real"
    real.mkdir()
    before = snapshot(tmp_path)

    ended = call(*(word.format(tmp=real) for word in words))

    assert ended.code == 4
    assert ended.err.startswith("freehold: ")
    assert ended.err.count("freehold: ") == 1
    assert "Traceback" not in ended.err
    assert snapshot(tmp_path) == before


def test_a_folder_that_cannot_be_made_is_said_to_be_so(call: Call, filled: freehold.RunView, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for target, why in (("no/new", "No such file or directory"), ("file", "File exists")):
        ended = call("checkout", "a", str(tmp_path / target))
        assert (ended.code, ended.out) == (4, "")
        assert ended.err.endswith(f": {why}\n")
    assert not (tmp_path / "no").exists()
    filled.verify()


def test_no_moment_to_restore_is_refused_and_changes_no_file(call: Call, filled: freehold.RunView) -> None:
    ended = call("restore", "a", "yesterday")

    assert ended.code == 4
    assert "[bad_position]" in ended.err
    assert filled.info.events == 2


def test_whoever_owns_the_run_in_another_process_takes_a_folder_in_and_puts_files_back(
    root: Path, filled: freehold.RunView, folder: Path, tmp_path: Path
) -> None:
    with freehold.open(root) as host, host.open("a"):
        for words in (["import", "a", str(folder)], ["restore", "a", "2"], ["checkout", "a", str(tmp_path / "new")]):
            assert run_program("--root", str(root), *words).code == 0
    assert (tmp_path / "new" / "run.sh").exists()
    assert [event.name for event in filled.history(after=2)] == ["import", "restore"]
    filled.verify()


def test_a_folder_that_another_checkout_writes_to_is_exit_6(call: Call, filled: freehold.RunView, tmp_path: Path) -> None:
    import fcntl

    work = tmp_path / "work"
    call("checkout", "a", str(work))
    held = os.open(work, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        ended = call("checkout", "a", str(work), "--replace", "changed", "--json")
    finally:
        os.close(held)

    assert (ended.code, ended.document["retryable"]) == (6, True)
    assert ended.err == f"freehold: {work}: another checkout writes to this folder\n"
