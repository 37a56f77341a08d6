"""What a path leads to: links are followed inside the workspace, at most 40 of them, and never out of it."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from desk import fill, listing, shelf

from freehold import PathRefused
from freehold.schema.paths import Parts, parse
from freehold.schema.roots import EMPTY_TREE
from freehold.storage.sight import Touch
from freehold.storage.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with shelf(tmp_path) as kept:
        yield Workspace(kept, EMPTY_TREE.hash)


@pytest.fixture(params=["as it was changed", "from its tree"])
def filled(workspace: Workspace, request: pytest.FixtureRequest) -> Callable[..., Workspace]:
    """Return a function that fills a workspace, which is then read as it is or as it was sealed."""

    def fill_(*things: str) -> Workspace:
        fill(workspace, *things)
        if request.param == "from its tree":
            workspace.seal()
        return workspace

    return fill_


@pytest.mark.parametrize(
    ("path", "way"),
    [
        ("l", "d/e"),
        ("l/f", "d/e/f"),
        ("d/up/x", "x"),
        ("d/up/d/e/f", "d/e/f"),
        ("l2/f", "d/e/f"),
        ("slash/f", "d/e/f"),
        ("d/here/e/f", "d/e/f"),
        ("round", "d"),
        ("d/e/new", "d/e/new"),
        ("dangling", "d/none"),
    ],
)
def test_a_way_is_free_of_links(filled: Callable[..., Workspace], path: str, way: str) -> None:
    workspace = filled("d/e/f=1", "x=2", "l>d/e", "l2>l", "d/up>..", "d/here>.", "slash>d//./e/", "round>d/e/../e/..", "dangling>d/none")

    assert workspace.lead(parse(path))[0] == parse(way)


def test_the_last_name_is_not_followed_unless_asked_to(filled: Callable[..., Workspace]) -> None:
    workspace = filled("d/f=1", "l>d", "m>l")

    assert workspace.lead(("l",), follow=False)[0] == ("l",)
    assert workspace.lead(("m", "f"), follow=False)[0] == ("d", "f")
    assert workspace.readlink(("m",)) == "l"


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("none", errno.ENOENT),
        ("none/x", errno.ENOENT),
        ("f/x", errno.ENOTDIR),
        ("f/x/y", errno.ENOTDIR),
        ("slashed", errno.ENOTDIR),
        ("dotted", errno.ENOTDIR),
        ("over", errno.ENOTDIR),
        ("dangling", errno.ENOENT),
        ("self", errno.ELOOP),
        ("self/x", errno.ELOOP),
        ("one", errno.ELOOP),
    ],
)
def test_a_way_that_leads_nowhere_fails_as_posix_has_it(filled: Callable[..., Workspace], path: str, number: int) -> None:
    workspace = filled("f=1", "slashed>f/", "dotted>f/.", "over>f/..", "dangling>none", "self>self", "one>two", "two>one")

    with pytest.raises(OSError, match=path) as caught:
        workspace.get(parse(path))
    assert (caught.value.errno, caught.value.filename) == (number, path)


@pytest.mark.parametrize("hops", [40, 41])
def test_forty_links_are_followed_and_one_more_is_too_many(filled: Callable[..., Workspace], hops: int) -> None:
    workspace = filled("l0=end", *(f"l{number}>l{number - 1}" for number in range(1, hops + 1)))

    if hops == 40:
        assert workspace.lead((f"l{hops}",))[0] == ("l0",)
    else:
        with pytest.raises(OSError, match="l41") as caught:
            workspace.lead((f"l{hops}",))
        assert caught.value.errno == errno.ELOOP


@pytest.mark.parametrize("target", ["/", "/etc/passwd", "..", "../x", "d/../../x", "d/e/../../.."])
@pytest.mark.parametrize("path", ["l", "l/x", "m"])
def test_a_link_that_leads_out_is_refused(filled: Callable[..., Workspace], target: str, path: str) -> None:
    workspace = filled("d/e/f=1", f"l>{target}", "m>l")
    before = listing(workspace)

    with pytest.raises(PathRefused, match="leads out") as caught:
        workspace.lead(parse(path))
    assert caught.value.code == "bad_path"
    assert listing(workspace) == before
    assert workspace.readlink(("l",)) == target


def test_what_is_no_directory_has_no_children_and_what_is_no_file_no_content(filled: Callable[..., Workspace]) -> None:
    workspace = filled("f=1", "d/", "l>f", "k>d")

    for path, call, kind in (
        (("f",), workspace.children, NotADirectoryError),
        (("l",), workspace.children, NotADirectoryError),
        (("none",), workspace.children, FileNotFoundError),
        (("d",), workspace.content, IsADirectoryError),
        (("k",), workspace.content, IsADirectoryError),
        (("none",), workspace.content, FileNotFoundError),
        ((), workspace.content, IsADirectoryError),
    ):
        with pytest.raises(kind):
            call(path)
    for parts in (("f",), ("d",)):
        with pytest.raises(OSError, match="Invalid argument") as caught:
            workspace.readlink(parts)
        assert caught.value.errno == errno.EINVAL
    assert list(workspace.children(("k",))) == []


def test_what_changes_while_a_directory_is_looked_through_does_not_show(filled: Callable[..., Workspace]) -> None:
    workspace = filled("a=1", "b=2", "c=3")
    seen = []

    for name, _ in workspace.children(()):
        seen.append(name)
        if name == "a":
            workspace.remove(("c",))
            fill(workspace, "b=other", "bb=4")

    assert seen == ["a", "b", "c"]


E, L, N = Touch.ENTRY, Touch.LISTING, Touch.NAME


@pytest.mark.parametrize(
    ("look", "touched"),
    [
        (lambda it: it.lead(("d", "f")), {"d/f": E}),
        (lambda it: it.lead(("l", "f")), {"l": E, "d/f": E}),
        (lambda it: it.lead(("up",)), {"up": E, "d": E, "x": E}),
        (lambda it: list(it.children(("d",))), {"d": E | L}),
        (lambda it: it.lead(("none",)), {"none": E}),
        (lambda it: it.set_content(("d", "new"), it.content(("d", "f"))), {"d/f": E, "d/new": E | N}),
        (lambda it: it.rename(("d",), ("e",)), {"d": E | Touch.WHOLE, "e": E | N}),
        (lambda it: it.copy(("d",), ("e",)), {"d": E | Touch.WHOLE, "e": E | N}),
        (lambda it: it.rmtree(("d",)), {"d": E | Touch.WHOLE}),
    ],
)
def test_what_was_looked_at_is_noted(
    filled: Callable[..., Workspace], look: Callable[[Workspace], object], touched: dict[str, Touch]
) -> None:
    workspace = filled("d/f=1", "l>d", "up>d/../x", "x=2")
    assert workspace.touched is None
    workspace.watch()

    look(workspace)

    noted: dict[Parts, Touch] | None = workspace.touched
    assert noted == {parse(path): touch for path, touch in touched.items()}


@pytest.mark.parametrize("path", ["none/x", "x/y"])
def test_what_a_way_ended_at_is_noted_too(workspace: Workspace, path: str) -> None:
    fill(workspace, "x=1")
    workspace.watch()

    with pytest.raises(OSError, match=path):
        workspace.lead(parse(path))

    assert workspace.touched == {parse(path)[:1]: E}
