"""Changes come to a newer root if nothing they rest on has changed; else each path that has is named, and no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from desk import fill, listing, shelf, text, write

from freehold.schema.errors import PathRefused
from freehold.schema.nodes import Directory, File, Link
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


def all_of(*works: Work, told: list[Any] | None = None) -> Work:
    answers = [] if told is None else told

    def work(workspace: Workspace) -> None:
        for each in works:
            answers.append(each(workspace))

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


def read(path: str) -> Work:
    return lambda it: it.content(p(path))


def entry(path: str) -> Work:
    def work(it: Workspace) -> Any:
        found = it.get(p(path), follow=False)
        return found if isinstance(found, File | Link) else found.mode

    return work


def names(path: str) -> Work:
    return lambda it: [(name, type(each)) for name, each in it.children(p(path))]


def make_all(path: str) -> Work:
    return lambda it: it.mkdir(p(path), parents=True, exist_ok=True)


def remove_all(path: str) -> Work:
    return lambda it: it.rmtree(p(path))


def link(path: str) -> Work:
    return lambda it: it.symlink(p(path), "b")


DEEP = ("x",) * 254
"""A directory in which an empty one has room, and one that holds others has none."""


def instead(path: str, target: str) -> Work:
    def work(it: Workspace) -> None:
        it.rmtree(p(path))
        it.symlink(p(path), target)

    return work


def exists(path: str) -> Work:
    def work(it: Workspace) -> bool:
        try:
            return it.lead(p(path))[1] is not None
        except OSError:
            return False

    return work


def refused(work: Work) -> Work:
    """Return *work* as one who goes on after a refusal, and tells which."""

    def told(it: Workspace) -> Any:
        try:
            return work(it)
        except (OSError, PathRefused) as error:
            return type(error), getattr(error, "errno", None)

    return told


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
        # Where nothing was, a link or a file on the way counts: a path would lead on from there, or not so far.
        (instead("empty", "d"), exists("empty/f"), ["empty/f"]),
        (all_of(remove("l"), mkdir("l")), exists("l/none"), ["l"]),
        (all_of(lambda it: it.rmdir(p("empty")), put("empty")), exists("empty/f/x"), ["empty/f"]),
        (lambda it: it.rmdir(p("empty")), exists("empty/f"), []),
        (lambda it: it.rmtree(p("d")), exists("d/none/x"), []),
        # A name that was refused for its twin's sake rests on the twin, the identity of a root on everything.
        (remove("a"), refused(put("A")), ["a"]),
        (remove("b"), refused(put("A")), []),
        (put("d/e/new"), lambda it: it.root(), ["."]),
        (remove_all("d/e"), all_of(make_all(shown(DEEP)), refused(copy("d", shown((*DEEP, "z"))))), ["d"]),
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


THEIRS: dict[str, Work] = {
    "a is written": put("a"),
    "a is removed": remove("a"),
    "a is a link to b": all_of(remove("a"), lambda it: it.symlink(p("a"), "b")),
    "a is a link to d": all_of(remove("a"), lambda it: it.symlink(p("a"), "d")),
    "a is a directory": all_of(remove("a"), mkdir("a")),
    "d/f is removed": remove("d/f"),
    "d/e/g is written": put("d/e/g"),
    "d/e/new is made": put("d/e/new"),
    "d is moved": rename("d", "z"),
    "d is a link to empty": instead("d", "empty"),
    "empty is a link to d": instead("empty", "d"),
    "empty is a file": all_of(lambda it: it.rmdir(p("empty")), put("empty")),
    "empty is removed": lambda it: it.rmdir(p("empty")),
    "empty is filled": put("empty/f"),
    "l leads to empty": all_of(remove("l"), lambda it: it.symlink(p("l"), "empty")),
    "l is removed": remove("l"),
    "l is a directory": all_of(remove("l"), mkdir("l")),
    "d/e has another mode": chmod("d/e"),
    "A is in place of a": rename("a", "A"),
    "D is in place of d": rename("d", "D"),
    "new is made": put("new"),
    "none is a directory": mkdir("none"),
}
_PATHS = ("a", "a/x", "b", "d", "d/f", "d/f/x", "d/e", "d/e/g", "empty", "empty/f", "l", "l/f", "l/none", "none", "none/x", "A", "D/f")
_DEEDS: dict[str, Callable[[str], Work]] = {
    "exists": exists,
    "read": read,
    "entry": entry,
    "list": names,
    "write": put,
    "make": mkdir,
    "make all": make_all,
    "remove": remove,
    "remove all": remove_all,
    "move here": partial(rename, "d"),
    "move away": partial(rename, to="q"),
    "copy": partial(copy, to="q"),
    "copy here": partial(copy, "d/e"),
    "mode": chmod,
    "link": link,
}
MINE: dict[str, Work] = {
    "identity": lambda it: it.root().hash,
    **{f"{what} {path}": refused(deed(path)) for path in _PATHS for what, deed in _DEEDS.items()},
}


@pytest.mark.parametrize("theirs", THEIRS)
def test_what_does_not_conflict_has_the_outcome_that_it_would_have_had_after_the_others(kept: Kept, theirs: str) -> None:
    merged = 0
    for mine, work in MINE.items():
        answers: list[Any] = []
        story = Story(kept, THEIRS[theirs], all_of(work, told=answers))
        if story.conflicts():
            continue
        after = Workspace(kept, story.now)
        answers.append(work(after))
        assert (answers[0], story.merged().seal()) == (answers[1], after.seal()), mine
        merged += 1
    assert merged > 30


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
