"""What a file of ours looks like: a promise first, one noun, a name that says which, and no word of where it was written."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from house import ROOT, Source, everything, layered, tracked

LINES_MAX = 400
VAGUE = frozenset({"manager", "handler", "helper", "util", "service", "data"})
"""Names for files that have no noun."""

MACHINE = re.compile(r"(?<![\w.>})*~])/(?:work|root|Users)/|\.\./shared\b|/tmp/(?:brief|bash_jobs)\b")
"""Paths that only make sense on the machine where somebody wrote them."""


def vague_words(path: str) -> set[str]:
    """Return the words in *path* that could name anything; plurals too."""
    words = re.split(r"[^a-z0-9]+", path.lower())
    return {word for word in words if word in VAGUE or word.removesuffix("s") in VAGUE}


def machine_paths(text: str) -> list[str]:
    """Return the lines of *text* that name a path of somebody's machine."""
    return [line.strip() for line in text.splitlines() if MACHINE.search(line)]


def text_of(path: str) -> str:
    """Return a file's text; what is not text has none."""
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def promise(source: Source) -> str:
    """Return the module docstring, or nothing."""
    return (ast.get_docstring(source.tree) or "").strip()


def is_long(source: Source) -> bool:
    """Return whether the file is past the limit."""
    return len(source.text.splitlines()) > LINES_MAX


@pytest.mark.parametrize("source", everything(), ids=str)
def test_every_file_begins_with_what_it_promises(source: Source) -> None:
    assert promise(source)


@pytest.mark.parametrize("source", layered(), ids=str)
def test_no_file_is_past_400_lines(source: Source) -> None:
    assert not is_long(source)


def test_no_file_is_named_after_nothing() -> None:
    assert {path: words for path in tracked() if (words := vague_words(path))} == {}


def test_no_file_names_a_path_of_the_machine_it_was_written_on() -> None:
    assert {path: lines for path in tracked() if (lines := machine_paths(text_of(path)))} == {}


def test_a_file_without_a_promise_is_found() -> None:
    assert not promise(Source("storage/x.py", "import os\n"))


def test_a_file_of_401_lines_is_found() -> None:
    assert is_long(Source("storage/x.py", "x = 1\n" * 401))
    assert not is_long(Source("storage/x.py", "x = 1\n" * 400))


@pytest.mark.parametrize("path", ["storage/run_manager.py", "actors/utils.py", "schema/services/x.py", "tests/helpers.py", "data.sql"])
def test_a_vague_name_is_found(path: str) -> None:
    assert vague_words(path)


@pytest.mark.parametrize("path", ["storage/database.py", "schema/metadata.py", "README.md"])
def test_a_noun_is_not_vague(path: str) -> None:
    assert not vague_words(path)


@pytest.mark.parametrize("folder", ["work", "root", "Users"])
def test_a_path_of_somebody_s_machine_is_found(folder: str, tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text(f"fine\nsee /{folder}/notes.md\n", encoding="utf-8")

    assert machine_paths(note.read_text(encoding="utf-8")) == [f"see /{folder}/notes.md"]


@pytest.mark.parametrize("text", ["<root>/work/x", "freehold/root/x", "https://example.org/work/", "~/work/x", "`freehold/root` 00"])
def test_a_path_below_something_is_not(text: str) -> None:
    assert machine_paths(text) == []
