"""Changes come to a newer root if nothing they rest on has changed; else each path that has is named, and no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from desk import fill, listing, shelf, text, write

from freehold.schema.nodes import Directory
from freehold.schema.paths import parse
from freehold.schema.paths import text as shown
from freehold.schema.roots import EMPTY_TREE, tree_of
from freehold.storage.folder import Kept
from freehold.storage.merge import conflicts, replay
from freehold.storage.workspace import Workspace

Work = Callable[[Workspace], Any]
THINGS = ("a=1", "b=2", "d/f=3", "d/e/g=4", "empty/", "l>d")


def p(path: str) -> tuple[str, ...]:
    return parse(path)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    with shelf(tmp_path) as found:
        yield found


class Story:
    """A tree, what others have made of it, and what somebody did beside them."""

    def __init__(self, kept: Kept, theirs: Work, mine: Work) -> None:
        self.kept = kept
        start = Workspace(kept, EMPTY_TREE.hash)
        fill(start, *THINGS)
        self.before = tree_of(start.seal().data)
        other = Workspace(kept, self.before)
        theirs(other)
        self.now = tree_of(other.seal().data)
        self.mine = Workspace(kept, self.before)
        self.mine.watch()
        mine(self.mine)
        self.changed, self.touched = self.mine.still()

    def conflicts(self) -> list[str]:
        """Return the paths that stand in the way."""
        return sorted(shown(way) for way in conflicts(self.kept, self.before, self.now, self.touched))

    def merged(self) -> Workspace:
        """Return what becomes of it."""
        workspace = Workspace(self.kept, self.now)
        replay(workspace, self.changed)
        workspace.seal()
        return workspace


def all_of(*works: Work) -> Work:
    def work(workspace: Workspace) -> None:
        for each in works:
            each(workspace)

    return work


def remove(path: str) -> Work:
    return lambda it: it.remove(p(path))


def put(path: str, content: bytes = b"new") -> Work:
    return lambda it: write(it, path, content)


def look(path: str) -> Work:
    return lambda it: it.get(p(path))


def mkdir(path: str) -> Work:
    return lambda it: it.mkdir(p(path))


def rename(path: str, to: str) -> Work:
    return lambda it: it.rename(p(path), p(to))


def chmod(path: str, mode: int = 0o700) -> Work:
    return lambda it: it.chmod(p(path), mode)


def list_(path: str) -> Work:
    return lambda it: list(it.children(p(path)))


def copy(path: str, to: str) -> Work:
    return lambda it: it.copy(p(path), p(to))


@pytest.mark.parametrize(
    ("theirs", "mine", "paths"),
    [
        (put("a"), put("a", b"other"), ["a"]),
        (put("a"), look("a"), ["a"]),
        (put("a"), put("b"), []),
        (put("d/f"), look("d/e/g"), []),
        (chmod("a"), look("a"), ["a"]),
        (remove("a"), look("a"), ["a"]),
        (put("new"), put("new", b"other"), ["new"]),
        (put("new"), lambda it: it.lead(p("new")), ["new"]),
        (remove("a"), lambda it: it.lead(p("none")), []),
        (put("d/f"), look("l/f"), ["d/f"]),
        (all_of(remove("l"), lambda it: it.symlink(p("l"), "empty")), look("l/f"), ["l"]),
        (rename("d", "z"), look("d/f"), ["d/f"]),
        (rename("d", "z"), look("d/e"), ["d/e"]),
        # A listing is of names, and of what kind of thing has each.
        (put("d/new"), list_("d"), ["d"]),
        (remove("d/f"), list_("d"), ["d"]),
        (put("d/f"), list_("d"), []),
        (put("d/e/g"), list_("d"), []),
        (put("d/e/new"), list_("d"), []),
        (all_of(remove("d/f"), mkdir("d/f")), list_("d"), ["d"]),
        (put("new"), list_("."), ["."]),
        (put("empty/new"), lambda it: it.rmdir(p("empty")), ["empty"]),
        # What is moved, copied or removed whole rests on all beneath it.
        (put("d/e/g"), rename("d", "z"), ["d"]),
        (put("d/e/new"), copy("d", "z"), ["d"]),
        (put("d/e/g"), lambda it: it.rmtree(p("d")), ["d"]),
        (chmod("d/e/g"), rename("d/e", "z"), ["d/e"]),
        (put("a"), rename("d", "z"), []),
        (put("empty/x"), rename("d", "empty"), ["empty"]),
        # A directory by itself is there, with its mode.
        (put("d/new"), look("d"), []),
        (chmod("d"), look("d"), ["d"]),
        (chmod("d"), put("d/new"), []),
        # A new name needs its directory, and no other name that ignoring case would take for it.
        (lambda it: it.rmtree(p("d")), put("d/new"), ["d/new"]),
        (all_of(lambda it: it.rmtree(p("d")), lambda it: it.symlink(p("d"), "empty")), put("d/new"), ["d/new"]),
        (put("NEW"), put("new"), ["new"]),
        (put("d/NEW"), mkdir("d/new"), ["d/new"]),
        (put("NEW"), put("d/new"), []),
        (rename("a", "NEW"), rename("b", "new"), ["new"]),
        (put("Straße"), put("STRASSE"), ["STRASSE"]),
    ],
)
def test_the_paths_that_changed_since_they_were_looked_at_are_named_and_no_other(
    kept: Kept, theirs: Work, mine: Work, paths: list[str]
) -> None:
    assert Story(kept, theirs, mine).conflicts() == paths


@pytest.mark.parametrize(
    ("theirs", "mine"),
    [
        (put("a"), put("b")),
        (put("d/new"), put("d/f")),
        (put("d/new"), chmod("d")),
        (chmod("d"), put("d/new")),
        (put("a"), rename("d", "z")),
        (rename("d", "z"), put("a")),
        (put("d/e/new"), put("d/e/other")),
        (mkdir("x"), all_of(mkdir("y"), mkdir("y/z"), put("y/z/f"))),
        (remove("a"), all_of(rename("d", "z"), put("z/e/g"), rename("z/e", "q"))),
        (put("d/x"), lambda it: it.rmdir(p("empty"))),
        (put("b"), all_of(copy("d", "z"), put("z/f"), put("d/f", b"other"))),
        (put("d/e/x"), all_of(rename("d/f", "f"), rename("f", "d/f"))),
        (put("b"), all_of(remove("a"), put("A"))),
    ],
)
def test_disjoint_changes_come_to_the_same_in_whatever_order_they_are_made(kept: Kept, theirs: Work, mine: Work) -> None:
    story = Story(kept, theirs, mine)
    assert story.conflicts() == []
    one_after_the_other = Workspace(kept, story.now)
    mine(one_after_the_other)

    assert story.merged().seal() == one_after_the_other.seal()
    back = Story(kept, mine, theirs)
    assert (back.conflicts(), back.merged().seal()) == ([], one_after_the_other.seal())


def test_a_mode_that_others_have_set_stays(kept: Kept) -> None:
    story = Story(kept, chmod("d", 0o700), all_of(chmod("d/e", 0o711), put("d/new")))
    merged = story.merged()

    found = [merged.get(p(path)) for path in ("d", "d/e")]
    assert [entry.mode for entry in found if isinstance(entry, Directory)] == [0o700, 0o711]


def test_changes_stay_apart_from_what_is_done_after_they_were_taken(kept: Kept) -> None:
    story = Story(kept, put("a"), put("d/e/new", b"first"))
    write(story.mine, "d/e/new", b"second")
    write(story.mine, "late", b"")

    merged = story.merged()
    assert text(merged, "d/e/new") == "first"
    assert "late=" not in listing(merged)
