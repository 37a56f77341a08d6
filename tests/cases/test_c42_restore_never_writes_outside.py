"""A link in a tree or in the way of one lets nothing be written or read outside of the folder."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest
from folder import snapshot
from trees import Shelf, folder, link, taken, tree

from freehold.schema.errors import PathRefused
from freehold.storage.checkout import checkout


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    before = snapshot(outside)
    yield outside
    assert snapshot(outside) == before


def test_a_folder_with_a_link_to_outside_is_read_without_what_is_there(tmp_path: Path, outside: Path) -> None:
    shelf = Shelf()
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "outbox").symlink_to(outside)
    (tmp_path / "real" / "inside").symlink_to("x")
    (tmp_path / "real" / "x").write_bytes(b"x")
    (tmp_path / "workspace").symlink_to("real")  # the workspace itself may be a link
    entries, report = taken(tmp_path / "workspace", shelf)

    assert entries == [link("inside", "x"), link("outbox", str(outside)), shelf.file("x", b"x")]
    assert report.complete
    checkout(str(tmp_path / "restored"), entries, shelf.read)
    assert (tmp_path / "restored" / "inside").read_bytes() == b"x"


@pytest.mark.parametrize("replace", ["never", "changed", "always"])
def test_a_tree_that_holds_a_link_and_a_file_beneath_it_is_refused(tmp_path: Path, outside: Path, replace: str) -> None:
    shelf = Shelf()
    for entries in ([link("outbox", str(outside)), shelf.file("outbox/x")], [link("outbox", str(outside)), folder("outbox")]):
        with pytest.raises(PathRefused, match="outbox"):
            checkout(str(tmp_path / "target"), entries, shelf.read, replace=replace)  # type: ignore[arg-type]
    assert not (tmp_path / "target").exists()


def test_a_link_that_stands_in_the_way_is_refused_with_its_path(tmp_path: Path, outside: Path) -> None:
    shelf, target = Shelf(), tmp_path / "target"
    target.mkdir()
    (target / "outbox").symlink_to(outside)
    entries = [folder("outbox"), shelf.file("outbox/new.txt"), shelf.file("outbox/secret")]

    with pytest.raises(OSError, match="outbox") as raised:
        checkout(str(target), entries, shelf.read, replace="changed")
    assert raised.value.errno == errno.ELOOP

    checkout(str(target), entries, shelf.read, replace="always")
    assert tree(target).keys() == {"outbox", "outbox/new.txt", "outbox/secret"}


@pytest.mark.parametrize("name", ["..", "/etc/x", "a/../../x", "", ".", "a/b", "a\0b"])
def test_a_name_that_is_more_than_a_name_is_refused(tmp_path: Path, outside: Path, name: str) -> None:
    shelf = Shelf()
    with pytest.raises(PathRefused):
        checkout(str(tmp_path / "target"), [shelf.file("x")._replace(parts=(name,))], shelf.read)
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]


@pytest.mark.parametrize("name", ["C:\\x", "a\\..\\..\\x", "con"])
def test_a_name_that_means_something_elsewhere_is_only_a_name_here(tmp_path: Path, outside: Path, name: str) -> None:
    shelf = Shelf()
    checkout(str(tmp_path / "target"), [shelf.file("x")._replace(parts=(name,))], shelf.read)
    assert list(tree(tmp_path / "target")) == [name]
