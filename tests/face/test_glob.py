"""A pattern finds what pathlib's glob finds in a real folder with the same things in it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from desk import fill, shelf
from hypothesis import given
from hypothesis import strategies as st

from freehold import PathRefused
from freehold.glob import Pattern
from freehold.portion import portion
from freehold.schema.roots import EMPTY_TREE
from freehold.storage.workspace import Workspace

THINGS = (
    *("a.txt=1", "b.txt=2", ".hidden=3", "d/a.txt=4", "d/e/a.txt=5", "d/e/f/", "d/[x]=6", "empty/", "A/B=7", "é/ü=8"),
    *("link>d", "to file>a.txt", "dangling>none", "d/up>..", "loop>loop"),
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with shelf(tmp_path_factory.mktemp("kept")) as kept:
        workspace = Workspace(kept, EMPTY_TREE.hash)
        fill(workspace, *THINGS)
        yield workspace


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("real") / "top"
    for thing in THINGS:
        path, sign, rest = thing.partition(">" if ">" in thing else "=")
        file = top / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not sign:
            file.mkdir()
        elif sign == ">":
            file.symlink_to(rest)
        else:
            file.write_text(rest)
    return top


def matching(workspace: Workspace, pattern: str) -> list[str]:
    wanted = Pattern(pattern)
    return portion(wanted.step, workspace, (wanted.start, None), 10_000)[0]


def in_folder(top: Path, pattern: str) -> list[str]:
    return sorted(str(found.relative_to(top)) for found in top.glob(pattern))


PATTERNS = (
    *(
        "*",
        "*.txt",
        "?.txt",
        "[ab].txt",
        "[!a].txt",
        ".*",
        "d/*",
        "d/*/*",
        "*/*.txt",
        "link/*",
        "link/e/*",
        "*/e/*",
        "d/up/*",
        "link/up/b*",
    ),
    *(
        "**/*",
        "**/*.txt",
        "**/a.txt",
        "d/**/*",
        "link/**/*",
        "**/e/**/*",
        "**/**/a.txt",
        "*/",
        "*/*/",
        "d//e/./*",
        "é/?",
        "none/*",
        "A/[B]",
    ),
    *("d/[[]x]", "a.txt/*", "to file/*", "loop/*", "dangling/*", "**/up/*.txt", "*/**/f"),
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_finds_what_pathlib_finds(workspace: Workspace, real: Path, pattern: str) -> None:
    found = matching(workspace, pattern)

    assert sorted(found) == in_folder(real, pattern)
    assert found == sorted(found, key=lambda path: path.split("/"))


@pytest.mark.parametrize("pattern", ["**", "**/", "d/**", "d/**/**", "link/**", "*/**", "a.txt/**"])
def test_at_its_end_any_directories_finds_directories_alone_on_every_python(workspace: Workspace, real: Path, pattern: str) -> None:
    expected = {
        "**": [".", "A", "d", "d/e", "d/e/f", "empty", "é"],
        "d/**": ["d", "d/e", "d/e/f"],
        "link/**": ["link", "link/e", "link/e/f"],
        "*/**": ["A", "d", "d/e", "d/e/f", "empty", "link", "link/e", "link/e/f", "é"],
        "a.txt/**": [],
    }
    assert matching(workspace, pattern) == expected[pattern.removesuffix("/").replace("**/**", "**")]


@given(st.lists(st.sampled_from(["*", "**", "d", "e", "a*", "?", "link", "*.txt", "[a-e]*"]), min_size=1, max_size=4).map("/".join))
def test_any_pattern_finds_what_pathlib_finds(workspace: Workspace, real: Path, pattern: str) -> None:
    if pattern.endswith("**") and sys.version_info >= (3, 13):
        pattern += "/"  # there `**` at the end finds files too; here, as before, directories alone
    assert sorted(matching(workspace, pattern)) == in_folder(real, pattern)


def test_a_link_that_leads_out_is_found_and_not_followed(workspace: Workspace) -> None:
    fill(workspace, "out>../..")
    try:
        assert matching(workspace, "ou*") == ["out"]
        assert matching(workspace, "out/*") == matching(workspace, "ou*/") == []
    finally:
        workspace.remove(("out",))


@pytest.mark.parametrize("pattern", ["", "/", "/a", "..", "../*", "a/../b", None, b"*"])
def test_what_is_no_pattern_of_a_relative_path_is_refused(workspace: Workspace, pattern: str) -> None:
    with pytest.raises(PathRefused) as caught:
        matching(workspace, pattern)
    assert caught.value.code == "bad_path"


def test_many_steps_for_any_directories_cost_no_more_than_one(tmp_path: Path) -> None:
    with shelf(tmp_path) as kept:
        workspace = Workspace(kept, EMPTY_TREE.hash)
        workspace.mkdir(("d",) * 60, parents=True)
        fill(workspace, "/".join(("d",) * 60) + "/end=1")

        assert len(matching(workspace, "/".join(("**",) * 40) + "/end")) == 1
