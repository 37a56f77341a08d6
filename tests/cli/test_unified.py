"""A unified diff leads from one content to the other, whatever the text; of what is too large or no text there is none."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turns import settle

import freehold
from freehold import Run
from freehold.cli.unified import unified
from freehold.files import Files
from freehold.schema.limits import TEXT_DIFF_BYTES_MAX, TEXT_DIFF_LINES_MAX

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "é", "\r", "\x0c", "\u2028", "\t x"]).map(lambda line: line + "\n")).map("".join)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    with freehold.open(tmp_path_factory.mktemp("runs")) as host, host.create("a") as run:
        settle(host)
        yield run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder where `git apply` changes files."""
    return tmp_path


def texts(run: Run, old: str | bytes | None, new: str | bytes | None) -> list[str | None]:
    """Return what is said of every change from the one content of a file to the other."""

    def put(files: Files, content: str | bytes | None) -> None:
        if isinstance(content, str):
            content = content.encode()
        if content is not None:
            files.write_bytes("file", content)
        elif files.exists("file"):
            files.remove("file")

    ends = []
    for content in (old, new):
        run.publish("put", lambda files, content=content: put(files, content))  # type: ignore[misc]
        ends.append(run.snapshot())
    return [unified(ends[0], ends[1], change) for change in run.diff(ends[0].root, ends[1].root)]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(TEXTS, TEXTS, st.sampled_from(["", "end"]), st.sampled_from(["", "end"]))
def test_another_program_is_led_from_the_one_content_to_the_other(
    run: Run, folder: Path, old: str, new: str, old_end: str, new_end: str
) -> None:
    before, after = (old + old_end).encode(), (new + new_end).encode()
    for text in texts(run, before, after):
        assert text is not None
        (folder / "file").write_bytes(before)
        subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], input=text.encode(), cwd=folder, check=True)
        assert (folder / "file").read_bytes() == after


def test_a_file_that_came_or_went_is_all_its_lines(run: Run) -> None:
    assert texts(run, None, "a\nb") == ["--- /dev/null\n+++ b/file\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n"]
    assert texts(run, "a\n", None) == ["--- a/file\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"]
    assert texts(run, None, "") == [""]


@pytest.mark.parametrize(
    "content",
    [b"a\x00b", b"\xff", b"x" * (TEXT_DIFF_BYTES_MAX + 1), b"\n" * TEXT_DIFF_LINES_MAX],
    ids=["NUL", "no UTF-8", "too large", "too many lines"],
)
def test_what_is_no_text_or_too_large_has_none(run: Run, content: bytes) -> None:
    assert texts(run, "a\n", content) == texts(run, content, "a\n") == texts(run, None, content) == [None]


def test_what_is_just_not_too_large_has_one(run: Run) -> None:
    assert texts(run, "a\n", b"x" * TEXT_DIFF_BYTES_MAX) != [None]
    assert texts(run, "a\n", b"\n" * (TEXT_DIFF_LINES_MAX - 1)) != [None]


def test_links_renames_and_modes_have_none(run: Run) -> None:
    def before(files: Files) -> None:
        files.write_text("old", "moved")
        files.write_text("run", "text\n")
        files.symlink("link", "old")

    def after(files: Files) -> None:
        files.rename("old", "new")
        files.chmod("run", 0o755)
        files.remove("link")
        files.symlink("link", "new")

    run.publish("before", before)
    start = run.snapshot()
    run.publish("after", after)

    changes = run.diff(start.root)
    assert [change.kind for change in changes] == ["changed", "renamed", "mode"]
    assert [unified(start, run.snapshot(), change) for change in changes] == [None, None, None]
