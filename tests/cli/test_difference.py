"""diff prints one line a change, between any two moments, and with --text the lines that are different."""

from __future__ import annotations

from pathlib import Path

import pytest
from program import Call

import freehold
from freehold.files import Files
from freehold.storage import difference


def second(files: Files) -> None:
    files.write_text("docs/guide.md", "one\n2\nthree\n")
    files.write_bytes("docs/deep/new.bin", b"\x00")
    files.rename("docs/deep/all.bin", "all.bin")
    files.chmod("run.sh", 0o644)
    files.remove("link")


@pytest.fixture
def edited(root: Path, filled: freehold.RunView) -> freehold.RunView:
    """Publish a change of every kind as event 3, and a last one as event 4."""
    with freehold.open(root) as host, host.open("a") as run:
        run.publish("second", second)
        run.publish("third", lambda files: files.write_text("last", "\n"))
    return filled


LINES = ["R  docs/deep/all.bin -> all.bin", "A  docs/deep/new.bin", "M  docs/guide.md", "D  link", "T  run.sh"]
TEXT = """\
M  docs/guide.md
--- a/docs/guide.md
+++ b/docs/guide.md
@@ -1,3 +1,3 @@
 one
-two
+2
 three
"""


def test_diff_prints_a_line_a_change(call: Call, edited: freehold.RunView) -> None:
    assert call("diff", "a", "2", "3") == (0, "".join(line + "\n" for line in LINES), "")


def test_without_b_it_is_now_and_without_a_difference_nothing(call: Call, edited: freehold.RunView) -> None:
    assert call("diff", "a", "3") == call("diff", "a", "3", "now") == (0, "A  last\n", "")
    assert call("diff", "a", "4") == call("diff", "a", "0", "1") == (0, "", "")
    assert call("diff", "a", "4", "3").out == "D  last\n"
    assert call("diff", "a", edited.snapshot(3).root[:10], next(edited.history(name="third")).id).out == "A  last\n"


def test_a_path_is_all_beneath_it_on_either_side(call: Call, edited: freehold.RunView) -> None:
    assert call("diff", "a", "2", "3", "docs/deep").out.splitlines() == LINES[:2]
    assert call("diff", "a", "2", "now", "all.bin").out.splitlines() == LINES[:1]
    assert call("diff", "a", "2", "now", "./docs/").out.splitlines() == LINES[:3]
    assert call("diff", "a", "2", "now", "doc").out == call("diff", "a", "2", "now", "docs/guide.md/x").out == ""


def test_the_lines_of_text_files_follow_their_change_and_all_else_is_only_named(call: Call, edited: freehold.RunView) -> None:
    out = call("diff", "a", "2", "3", "--text").out

    assert out == "".join(line + "\n" if line != LINES[2] else TEXT for line in LINES)


def test_diff_is_one_document(call: Call, edited: freehold.RunView) -> None:
    document = call("diff", "a", "2", "3", "--json").document

    assert document["changes"][0] == {"path": "all.bin", "kind": "renamed", "before": "docs/deep/all.bin", "after": "all.bin"}
    assert [change["kind"] for change in document.pop("changes")] == ["renamed", "added", "changed", "removed", "mode"]
    assert document == {"run": "a", "from": edited.snapshot(2).root, "to": edited.snapshot(3).root, "exit_code": 0}
    texts = [change["text"] for change in call("diff", "a", "2", "3", "--json", "--text").document["changes"]]
    assert texts == [None, None, TEXT.partition("\n")[2], None, None]


@pytest.mark.parametrize("words", [["yesterday"], ["2", "f" * 64], ["2", "3", "../x"], ["2", "3", ""]], ids=" ".join)
def test_what_is_no_moment_or_no_path_is_refused(call: Call, edited: freehold.RunView, words: list[str]) -> None:
    ended = call("diff", "a", *words)

    assert (ended.code, ended.out) == (4, "")
    assert ended.err.count("freehold: ") == 1


def test_a_directory_that_is_told_as_a_whole_speaks_for_a_path_in_it(
    call: Call, edited: freehold.RunView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(difference, "CHANGES_TOLD_MAX", 1)
    lines = ["A  all.bin", "M  docs", "D  link", "M  run.sh"]

    assert call("diff", "a", "2", "3", "--text").out.splitlines() == lines
    assert call("diff", "a", "2", "3", "docs/guide.md").out.splitlines() == lines[1:2]
    assert call("diff", "a", "2", "3", "run.sh/x").out == ""
