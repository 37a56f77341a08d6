"""files lists and cat writes what a run's files are, now or at any moment, and neither changes a byte of the folder."""

from __future__ import annotations

import os
import subprocess
from base64 import b64decode
from pathlib import Path

import pytest
from folder import snapshot
from program import COMMAND, Call, environment
from runfile import Owner

import freehold
from freehold.files import Files
from freehold.schema.limits import PORTION_BYTES
from freehold.storage.path import resolve_file

LARGE = os.urandom(PORTION_BYTES + 1) + bytes(PORTION_BYTES)


def change(root: Path) -> None:
    """Publish, as event 3, another content, and one file less."""

    def second(files: Files) -> None:
        files.write_text("docs/guide.md", "other")
        files.remove("run.sh")

    with freehold.open(root) as host, host.open("a") as run:
        run.publish("second", second)


def binary(*words: str, **more: str) -> bytes:
    """Return what the program writes to a pipe, byte for byte."""
    return subprocess.run([*COMMAND, *words], stdout=subprocess.PIPE, env=environment(**more), check=True, timeout=50).stdout


def test_files_prints_mode_size_and_path_a_line(call: Call, filled: freehold.RunView) -> None:
    assert call("files", "a") == (
        0,
        "drwxr-xr-x             -  docs\nlrwxrwxrwx             4  link -> docs\n-rwxr-xr-x             5  run.sh\n",
        "",
    )


def paths(out: str) -> list[str]:
    """Return the third column."""
    return [line.split(maxsplit=2)[2] for line in out.splitlines()]


def test_files_lists_a_directory_its_content_or_the_thing_itself(call: Call, filled: freehold.RunView) -> None:
    assert paths(call("files", "a", "docs").out) == ["docs/deep", "docs/guide.md"]
    assert paths(call("files", "a", "-R").out) == ["docs", "docs/deep", "docs/deep/all.bin", "docs/guide.md", "link -> docs", "run.sh"]
    assert paths(call("files", "a", "./docs//deep/").out) == ["docs/deep/all.bin"]
    assert paths(call("files", "a", "run.sh").out) == ["run.sh"]


def test_a_link_is_followed_only_if_it_is_the_path_and_leads_to_a_directory(call: Call, root: Path, filled: freehold.RunView) -> None:
    def links(files: Files) -> None:
        for name, target in {"file": "run.sh", "nowhere": "gone", "out": "../x", "loop": "loop"}.items():
            files.symlink(name, target)

    with freehold.open(root) as host, host.open("a") as run:
        run.publish("links", links)

    assert paths(call("files", "a", "link", "--recursive").out) == ["link/deep", "link/deep/all.bin", "link/guide.md"]
    assert [paths(call("files", "a", name).out) for name in ("file", "nowhere", "out", "loop")] == [
        ["file -> run.sh"],
        ["nowhere -> gone"],
        ["out -> ../x"],
        ["loop -> loop"],
    ]


def test_files_are_those_of_a_moment(call: Call, root: Path, filled: freehold.RunView) -> None:
    old = filled.files.root
    change(root)

    assert "run.sh" not in call("files", "a").out
    for moment in (["--at", "2"], ["--at", old], ["--at", old[:8]], ["--before", "3"]):
        assert "run.sh" in call("files", "a", *moment).out
    assert call("files", "a", "--at", "1") == call("files", "a", "--at", "0") == (0, "", "")


def test_files_is_one_document(call: Call, filled: freehold.RunView) -> None:
    assert call("files", "a", "--json").document == {
        "run": "a",
        "root": filled.files.root,
        "files": [
            {"path": "docs", "type": "directory", "mode": "0755", "size": None, "target": None},
            {"path": "link", "type": "link", "mode": "0777", "size": 4, "target": "docs"},
            {"path": "run.sh", "type": "file", "mode": "0755", "size": 5, "target": None},
        ],
        "exit_code": 0,
    }
    assert call("files", "a", "--at", "0", "--json").document["files"] == []


def test_what_a_link_says_is_printed_without_its_control_characters(call: Call, root: Path, filled: freehold.RunView) -> None:
    with freehold.open(root) as host, host.open("a") as run:
        run.publish("link", lambda files: files.symlink("odd", "\x1b[31m\n\u202e"))

    out = call("files", "a", "odd").out

    assert out.endswith("odd -> \\u001b[31m\\n\\u202e\n")
    assert call("files", "a", "odd", "--json").document["files"][0]["target"] == "\x1b[31m\n\u202e"


def test_cat_writes_a_file_as_it_is_or_was(call: Call, root: Path, filled: freehold.RunView) -> None:
    change(root)

    assert call("cat", "a", "docs/guide.md") == (0, "other", "")
    assert call("cat", "a", "link/guide.md", "--at", "2") == (0, "one\ntwo\nthree\n", "")
    assert call("cat", "a", "docs/guide.md", "--before", "3").out == "one\ntwo\nthree\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_cat_writes_every_byte_unchanged_also_of_a_large_file(root: Path, filled: freehold.RunView, unbuffered: str) -> None:
    with freehold.open(root) as host, host.open("a") as run:
        run.publish("large", lambda files: files.write_bytes("large", LARGE))

    assert binary("--root", str(root), "cat", "a", "docs/deep/all.bin", PYTHONUNBUFFERED=unbuffered) == bytes(range(256))
    assert binary("--root", str(root), "cat", "a", "large", PYTHONUNBUFFERED=unbuffered) == LARGE


def test_cat_as_a_document_is_text_or_else_base64(call: Call, filled: freehold.RunView) -> None:
    assert call("cat", "a", "run.sh", "--json").document == {
        "path": "run.sh",
        "size": 5,
        "mode": "0755",
        "text": "true\n",
        "exit_code": 0,
    }
    document = call("cat", "a", "docs/deep/all.bin", "--json").document
    assert b64decode(document.pop("base64")) == bytes(range(256))
    assert document == {"path": "docs/deep/all.bin", "size": 256, "mode": "0644", "exit_code": 0}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["cat", "a", "gone"], "gone: No such file or directory"),
        (["cat", "a", "docs"], "docs: Is a directory"),
        (["cat", "a", "run.sh/x"], "run.sh/x: Not a directory"),
        (["files", "a", "gone"], "gone: No such file or directory"),
        (["cat", "a", "run.sh", "--before", "2"], "run.sh: No such file or directory"),
        (["cat", "a", "\x1b[31m"], "'\\x1b[31m': a path in a workspace has no backslash"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_what_is_not_there_is_said_in_one_line(call: Call, filled: freehold.RunView, words: list[str], line: str) -> None:
    ended = call(*words)

    assert (ended.code, ended.out) == (4, "")
    assert ended.err.startswith(f"freehold: {line}")
    assert ended.err.count("\n") == 1


def test_what_is_not_there_is_a_document_too(call: Call, filled: freehold.RunView) -> None:
    assert call("cat", "a", "gone", "--json").document == {
        "error": "FileNotFoundError",
        "code": "ENOENT",
        "message": "gone: No such file or directory",
        "retryable": False,
        "executed": "no",
        "details": {"errno": "ENOENT", "path": "gone"},
        "exit_code": 4,
    }


def test_at_and_before_together_are_refused(call: Call, filled: freehold.RunView) -> None:
    for command in (["cat", "a", "run.sh"], ["files", "a"]):
        ended = call(*command, "--at", "2", "--before", "2")
        assert ended.code == 4
        assert "[bad_position]" in ended.err


READING = [["files", "a", "-R"], ["files", "a", "--json"], ["cat", "a", "run.sh"], ["diff", "a", "1", "--text"], ["history", "a", "docs"]]


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_reading_changes_nothing_in_the_folder(call: Call, root: Path, filled: freehold.RunView, words: list[str]) -> None:
    before = snapshot(root)

    assert call(*words).code == 0

    assert snapshot(root) == before


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_reading_works_beside_an_owner_elsewhere(call: Call, root: Path, filled: freehold.RunView, words: list[str]) -> None:
    alone = call(*words)

    with Owner(resolve_file(root / "a.sqlite"), "SELECT * FROM run"):
        assert call(*words) == alone
