"""Every way to change a workspace does what POSIX has it do, and what it refuses leaves everything as it was."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from desk import fill, listing, opened, shelf, text, write
from hypothesis import given
from hypothesis import strategies as st

from freehold import PathRefused
from freehold.schema.limits import LINK_TARGET_BYTES_MAX, PATH_DEPTH_MAX
from freehold.schema.nodes import Directory, File
from freehold.schema.paths import parse
from freehold.schema.roots import EMPTY_TREE, tree_of
from freehold.storage.content import EMPTY
from freehold.storage.folder import Folder, Kept
from freehold.storage.sight import Sight
from freehold.storage.workspace import Workspace


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    with shelf(tmp_path) as found:
        yield found


@pytest.fixture
def workspace(kept: Kept) -> Workspace:
    return Workspace(kept, EMPTY_TREE.hash)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with shelf(tmp_path_factory.mktemp("shared")) as found:
        yield found


def p(path: str) -> tuple[str, ...]:
    return parse(path)


THINGS = ("f=1", "d/g=2", "d/e/", "empty/", "link>d", "to f>f", "dangling>none", "out>../x")


@pytest.mark.parametrize(
    ("work", "number"),
    [
        (lambda it: it.set_content(p("d"), EMPTY), errno.EISDIR),
        (lambda it: it.set_content(p("link"), EMPTY), errno.EISDIR),
        (lambda it: it.set_content(p("none/x"), EMPTY), errno.ENOENT),
        (lambda it: it.set_content(p("f/x"), EMPTY), errno.ENOTDIR),
        (lambda it: it.create(p("f")), errno.EEXIST),
        (lambda it: it.create(p("dangling")), errno.EEXIST),
        (lambda it: opened(it, "none"), errno.ENOENT),
        (lambda it: opened(it, "none", "r+b"), errno.ENOENT),
        (lambda it: opened(it, "d"), errno.EISDIR),
        (lambda it: opened(it, "d", "wb"), errno.EISDIR),
        (lambda it: opened(it, "f", "xb"), errno.EEXIST),
        (lambda it: opened(it, "dangling", "xb"), errno.EEXIST),
        (lambda it: it.mkdir(p("f")), errno.EEXIST),
        (lambda it: it.mkdir(p("d")), errno.EEXIST),
        (lambda it: it.mkdir(p("f"), exist_ok=True), errno.EEXIST),
        (lambda it: it.mkdir(p("dangling"), exist_ok=True), errno.EEXIST),
        (lambda it: it.mkdir(p("none/x")), errno.ENOENT),
        (lambda it: it.mkdir(p("f/x"), parents=True), errno.ENOTDIR),
        (lambda it: it.mkdir(p("x"), 0o1777), errno.EINVAL),
        (lambda it: it.mkdir(()), errno.EEXIST),
        (lambda it: it.symlink(p("f"), "d"), errno.EEXIST),
        (lambda it: it.symlink(p("dangling"), "d"), errno.EEXIST),
        (lambda it: it.remove(p("d")), errno.EISDIR),
        (lambda it: it.remove(p("none")), errno.ENOENT),
        (lambda it: it.remove(()), errno.EBUSY),
        (lambda it: it.rmdir(p("d")), errno.ENOTEMPTY),
        (lambda it: it.rmdir(p("f")), errno.ENOTDIR),
        (lambda it: it.rmdir(p("link")), errno.ENOTDIR),
        (lambda it: it.rmtree(p("f")), errno.ENOTDIR),
        (lambda it: it.rmtree(p("link")), errno.ENOTDIR),
        (lambda it: it.rmtree(()), errno.EBUSY),
        (lambda it: it.rename(p("none"), p("x")), errno.ENOENT),
        (lambda it: it.rename(p("d"), p("d/e/x")), errno.EINVAL),
        (lambda it: it.rename(p("d/g"), p("d")), errno.ENOTEMPTY),
        (lambda it: it.rename(p("empty"), p("d")), errno.ENOTEMPTY),
        (lambda it: it.rename(p("empty"), p("f")), errno.ENOTDIR),
        (lambda it: it.rename(p("empty"), p("link")), errno.ENOTDIR),
        (lambda it: it.rename(p("f"), p("empty")), errno.EISDIR),
        (lambda it: it.rename(p("f"), p("none/x")), errno.ENOENT),
        (lambda it: it.rename(p("none"), p("f/x")), errno.ENOTDIR),
        (lambda it: it.rename((), p("x")), errno.EBUSY),
        (lambda it: it.rename(p("f"), ()), errno.EBUSY),
        (lambda it: it.copy(p("none"), p("x")), errno.ENOENT),
        (lambda it: it.copy(p("d"), p("empty")), errno.EEXIST),
        (lambda it: it.copy(p("d"), p("dangling")), errno.EEXIST),
        (lambda it: it.copy(p("f"), p("d")), errno.EISDIR),
        (lambda it: it.chmod(p("none"), 0o600), errno.ENOENT),
        (lambda it: it.chmod(p("f"), 0o4755), errno.EINVAL),
        (lambda it: it.chmod(p("f"), -1), errno.EINVAL),
        (lambda it: it.chmod(p("f"), True), errno.EINVAL),
        (lambda it: it.chmod((), 0o700), errno.EBUSY),
    ],
)
def test_what_posix_refuses_is_refused_and_changes_nothing(workspace: Workspace, work: Callable[[Workspace], Any], number: int) -> None:
    fill(workspace, *THINGS)
    before, root = listing(workspace), workspace.root().hash

    with pytest.raises(OSError, match=r"\[Errno") as caught:
        work(workspace)

    assert caught.value.errno == number
    assert (listing(workspace), workspace.root().hash) == (before, root)


@pytest.mark.parametrize(
    ("work", "left"),
    [
        (lambda it: write(it, "to f", b"3"), {"-f=1", "f=3"}),
        (lambda it: write(it, "dangling", b"3"), {"none=3"}),
        (lambda it: write(it, "link/new", b"3"), {"d/new=3"}),
        (lambda it: it.mkdir(p("x/y/z"), parents=True), {"x/y/z/"}),
        (lambda it: it.mkdir(p("link"), exist_ok=True), set()),
        (lambda it: it.mkdir((), exist_ok=True), set()),
        (lambda it: it.remove(p("link")), {"-link>d"}),
        (lambda it: it.rmdir(p("empty")), {"-empty/"}),
        (lambda it: it.rmtree(p("d")), {"-d/g=2", "-d/e/"}),
        (lambda it: it.rename(p("f"), p("f")), set()),
        (lambda it: it.rename(p("f"), p("d/g")), {"-f=1", "-d/g=2", "d/g=1"}),
        (lambda it: it.rename(p("f"), p("link")), {"-f=1", "-link>d", "link=1"}),
        (lambda it: it.rename(p("link"), p("f")), {"-f=1", "-link>d", "f>d"}),
        (lambda it: it.rename(p("d"), p("empty")), {"-d/g=2", "-d/e/", "-empty/", "empty/g=2", "empty/e/"}),
        (lambda it: it.copy(p("d"), p("d/e/again")), {"-d/e/", "d/e/again/g=2", "d/e/again/e/"}),
        (lambda it: it.copy(p("to f"), p("dangling")), {"none=1"}),
        (lambda it: it.copy(p("f"), p("f")), set()),
    ],
)
def test_what_posix_does_is_done_and_nothing_else(workspace: Workspace, work: Callable[[Workspace], Any], left: set[str]) -> None:
    fill(workspace, *THINGS)
    before = set(listing(workspace))
    expected = before - {thing[1:] for thing in left if thing[0] == "-"} | {thing for thing in left if thing[0] != "-"}

    work(workspace)

    assert set(listing(workspace)) == expected
    assert set(listing(Sight(workspace.kept, tree_of(workspace.seal().data)))) == expected


def test_permissions_are_of_files_and_directories_and_go_with_a_copy(workspace: Workspace) -> None:
    fill(workspace, "f=1", "d/g=2", "l>f")
    workspace.chmod(p("l"), 0o600)
    workspace.chmod(p("d"), 0o700)
    workspace.copy(p("f"), p("d/g"))
    workspace.copy(p("d"), p("e"))
    write(workspace, "f", b"other")

    found = [workspace.get(p(path)) for path in ("f", "d", "d/g", "e")]
    assert [entry.mode for entry in found if isinstance(entry, File | Directory | Folder)] == [0o600, 0o700, 0o600, 0o700]


@pytest.mark.parametrize("new", ["README", "ReadMe", "Straße", "STRASSE"])
@pytest.mark.parametrize(
    "make",
    [
        lambda it, new: it.set_content((new,), EMPTY),
        lambda it, new: it.create((new,)),
        lambda it, new: it.mkdir((new,)),
        lambda it, new: it.symlink((new,), "x"),
        lambda it, new: it.rename(("other",), (new,)),
        lambda it, new: it.copy(("other",), (new,)),
        lambda it, new: it.copy(("d",), (new,)),
        lambda it, new: opened(it, new, "wb"),
    ],
)
def test_a_name_that_folds_to_one_that_is_there_is_refused(workspace: Workspace, make: Callable[..., Any], new: str) -> None:
    fill(workspace, "readme=1", "strasse=2", "other=3", "d/")
    before = listing(workspace)

    with pytest.raises(PathRefused, match="ignores case"):
        make(workspace, new)

    assert listing(workspace) == before


def test_a_rename_of_case_only_is_possible_and_gives_the_old_name_free(workspace: Workspace) -> None:
    fill(workspace, "readme=1", "d/x=2")
    workspace.rename(p("readme"), p("README"))
    workspace.rename(p("d"), p("D"))

    assert listing(workspace) == ["D/x=2", "README=1"]
    with pytest.raises(PathRefused):
        write(workspace, "readme", b"")
    workspace.rename(p("README"), p("readme"))
    workspace.remove(p("readme"))
    write(workspace, "ReadMe", b"3")
    assert listing(workspace) == ["D/x=2", "ReadMe=3"]


@pytest.mark.parametrize("target", ["", "x" * (LINK_TARGET_BYTES_MAX + 1), "é" * (LINK_TARGET_BYTES_MAX // 2 + 1), "a\0b", "\udc80"])
def test_a_link_that_cannot_be_held_is_refused(workspace: Workspace, target: str) -> None:
    with pytest.raises(PathRefused, match="what a link says"):
        workspace.symlink(p("l"), target)

    assert listing(workspace) == []


def test_a_path_that_a_link_makes_too_deep_is_refused_at_once(workspace: Workspace) -> None:
    way = ("d",) * (PATH_DEPTH_MAX - 1)
    workspace.mkdir(way, parents=True)
    workspace.symlink(("l",), "/".join(way))
    write(workspace, "l/last", b"1")

    workspace.mkdir(("l", "x"))
    with pytest.raises(PathRefused, match="at most 256"):
        workspace.mkdir(("l", "x", "y"))
    workspace.rmdir(("l", "x"))
    assert workspace.seal() is not None


def test_an_open_file_sees_what_is_written_over_it(workspace: Workspace) -> None:
    fill(workspace, "f=old", "g=copied")
    ways: list[tuple[Callable[[], object], bytes]] = [
        (lambda: write(workspace, "f", b"new"), b"new"),
        (lambda: workspace.copy(p("g"), p("f")), b"copied"),
    ]
    for write_over, content in ways:
        with opened(workspace, "f", "r+b") as file:
            file.write(b"lost")
            write_over()
            file.seek(0)
            assert file.read() == content
            file.write(b"!")

        assert text(workspace, "f") == content.decode() + "!"


def test_an_open_file_that_was_removed_or_covered_does_not_come_back(workspace: Workspace) -> None:
    fill(workspace, "d/f=1", "g=2", "h=3", "k/")
    files = [opened(workspace, path, "r+b") for path in ("d/f", "g", "h")]
    new = opened(workspace, "k/new", "wb")
    workspace.rmtree(p("d"))
    workspace.remove(p("g"))
    workspace.rename(p("h"), p("i"))
    workspace.rmdir(p("k"))
    for file in (*files, new):
        file.write(b"!")
        file.close()

    assert listing(workspace) == ["i=!"]


@pytest.mark.parametrize("come", ["new/", "new>x"])
def test_a_new_file_does_not_replace_what_took_its_name_before_its_close(workspace: Workspace, come: str) -> None:
    file = opened(workspace, "new", "wb")
    fill(workspace, come)

    with pytest.raises(FileExistsError):
        file.close()

    assert listing(workspace) == [come]


def test_a_new_file_whose_twin_came_before_its_close_is_refused(workspace: Workspace) -> None:
    file = opened(workspace, "new", "wb")
    fill(workspace, "NEW=1")

    with pytest.raises(PathRefused):
        file.close()

    assert listing(workspace) == ["NEW=1"]


def test_a_file_that_is_closed_after_the_end_keeps_nothing(workspace: Workspace) -> None:
    fill(workspace, "f=1")
    file = opened(workspace, "f", "wb")
    file.write(b"late")
    workspace.end()

    with pytest.raises(OSError, match="f") as caught:
        file.close()

    assert caught.value.errno == errno.ESTALE
    assert listing(workspace) == ["f=1"]


def test_handles_are_not_over_the_nodes_that_go_on_to_serve_others(kept: Kept, tmp_path: Path) -> None:
    workspace = Workspace(kept, EMPTY_TREE.hash)
    file = opened(workspace, "f", "wb")
    file.write(bytes(1000))
    (tmp_path / "next").mkdir()
    with shelf(tmp_path / "next") as other:
        count = other.objects.count()  # type: ignore[attr-defined]
        kept.serving(other.objects)
        file.close()

        assert other.objects.count() == count  # type: ignore[attr-defined]


def test_asking_for_the_root_leaves_the_changes_of_a_watched_workspace(workspace: Workspace) -> None:
    fill(workspace, "d/f=1")
    workspace.seal()
    workspace.watch()
    fill(workspace, "d/g=2", "h=3")

    root = workspace.root()
    changed, _ = workspace.still()

    assert set(changed.changes) == {"d", "h"}
    assert workspace.seal() == root


edits = st.lists(
    st.tuples(st.sampled_from(["a", "b", "d/a", "d/b", "d/e/a"]), st.one_of(st.none(), st.sampled_from([b"", b"1", b"x" * 200]))),
    max_size=8,
)


@given(edits, st.randoms(use_true_random=False))
def test_any_order_of_the_same_edits_gives_the_same_root(shared: Kept, todo: list[tuple[str, bytes | None]], dice: Any) -> None:
    last = dict(todo)  # of one path, the last edit counts
    roots = set()
    for _ in range(3):
        order = list(last.items())
        dice.shuffle(order)
        workspace = Workspace(shared, EMPTY_TREE.hash)
        fill(workspace, "d/e/", "a=before", "d/a=before")
        for path, content in order:
            if content is not None:
                write(workspace, path, content)
            elif workspace.lead(p(path))[1] is not None:
                workspace.remove(p(path))
            if dice.random() < 0.3:
                workspace.seal()
        roots.add(workspace.seal().hash)

    assert len(roots) == 1


def test_the_same_bytes_created_again_give_the_old_root(workspace: Workspace) -> None:
    fill(workspace, *THINGS)
    before = workspace.seal()
    for path in ("d", "empty"):
        workspace.rmtree(p(path))
    for path in ("f", "link", "to f", "dangling", "out"):
        workspace.remove(p(path))
    assert workspace.seal().data != before.data

    fill(workspace, *reversed(THINGS))

    assert workspace.seal() == before


@pytest.mark.parametrize("deed", ["rename", "copy"])
def test_a_directory_is_not_put_where_what_is_in_it_could_not_be_named(kept: Kept, deed: str) -> None:
    workspace = Workspace(kept, EMPTY_TREE.hash)
    long = tuple("x" * 250 for _ in range(15))  # beneath its first name stand 14 x 251 bytes
    workspace.mkdir(long, parents=True)
    workspace.mkdir(("y" * 250, "z" * 250), parents=True)
    before = workspace.root()

    with pytest.raises(PathRefused):
        getattr(workspace, deed)(long[:1], ("y" * 250, "z" * 250, "w" * 81))

    assert workspace.root() == before
    getattr(workspace, deed)(long[:1], ("y" * 250, "z" * 250, "w" * 80))
    assert workspace.at(("y" * 250, "z" * 250, "w" * 80, *long[1:])) is not None


@pytest.mark.parametrize("deed", ["rename", "copy"])
def test_a_directory_is_not_put_too_deep(kept: Kept, deed: str) -> None:
    workspace = Workspace(kept, EMPTY_TREE.hash)
    workspace.mkdir(tuple("d" * 200), parents=True)
    workspace.mkdir(tuple("e" * 57), parents=True)
    before = workspace.root()

    with pytest.raises(PathRefused):
        getattr(workspace, deed)(("d",), (*"e" * 57, "f"))

    assert workspace.root() == before
    getattr(workspace, deed)(("d",), (*"e" * 56, "f"))
