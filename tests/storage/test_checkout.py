"""A checkout into a new or empty folder is there whole or not at all, and what is scanned of it is what was written."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from folder import descriptors, snapshot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nobody import as_nobody, needs_another_user, nobodys_folder
from trees import Shelf, as_tree, folder, link, names, plant, stagings, taken, tree

from freehold.schema.errors import Damaged, PathRefused
from freehold.schema.limits import SYNC_EACH_ENTRIES_MAX
from freehold.storage.checkout import Replace, checkout
from freehold.storage.entries import Out
from freehold.storage.inplace import CheckedOut


@pytest.fixture(autouse=True)
def _no_descriptors_left() -> Iterator[None]:
    before = descriptors()
    yield
    assert descriptors() == before


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def small(shelf: Shelf) -> list[Out]:
    """Return a tree with one of everything."""
    return [
        folder("a", 0o555),
        folder("a/empty", 0o700),
        shelf.file("a/script", b"#!/bin/sh\n", 0o755),
        link("a/up", "../.."),
        shelf.file("b", os.urandom(100_000), 0o400),
        link("dangling", "/nowhere"),
        shelf.file("e", b"", 0),
    ]


@pytest.mark.parametrize("replace", ["never", "changed", "always"])
@pytest.mark.parametrize("exists", [False, True])
def test_a_new_or_empty_folder_holds_exactly_the_entries(tmp_path: Path, shelf: Shelf, replace: Replace, exists: bool) -> None:
    if exists:
        (tmp_path / "target").mkdir()
        (tmp_path / "target").chmod(0o710)
    entries = small(shelf)

    assert checkout(str(tmp_path / "target"), entries, shelf.read, replace=replace) == CheckedOut(len(entries))
    assert tree(tmp_path / "target") == as_tree(entries, shelf)
    assert names(tmp_path) == ["target"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "target").stat().st_mode) == (0o710 if exists else 0o777 & ~umask)


@pytest.mark.parametrize("replace", ["never", "changed", "always"])
@pytest.mark.parametrize("slash", ["", "/", "//"])
def test_a_target_that_is_a_link_is_refused_wherever_it_leads(tmp_path: Path, shelf: Shelf, replace: Replace, slash: str) -> None:
    for name, inner in (("empty", None), ("full", "mine")):
        (tmp_path / name).mkdir()
        if inner is not None:
            (tmp_path / name / inner).touch()
    for name, target in (("a", "empty"), ("b", "full"), ("c", "full/new"), ("d", "a"), ("e", "e"), ("f", "full/mine")):
        (tmp_path / name).symlink_to(target)
    before = snapshot(tmp_path)
    for name in "abcdef":
        with pytest.raises(OSError, match="real folder") as raised:
            checkout(f"{tmp_path}/{name}{slash}", small(shelf), shelf.read, replace=replace)
        assert (raised.value.errno, raised.value.filename) == (errno.ELOOP, f"{tmp_path}/{name}{slash}")
    assert snapshot(tmp_path) == before


def test_a_link_on_the_way_is_followed_and_the_current_folder_stays_where_it_is(
    tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real" / "here").mkdir(parents=True)
    (tmp_path / "way").symlink_to("real")
    monkeypatch.chdir(tmp_path / "way" / "here")
    for target in (f"{tmp_path}/way/new/", "../other", ".", "inner"):
        checkout(target, [shelf.file("x")], shelf.read, replace="changed")

    assert names(tmp_path / "real") == ["here", "new", "other"]
    assert names(tmp_path / "real" / "here") == ["inner", "x"]


def test_a_target_that_holds_something_is_refused_and_left_as_it_is(tmp_path: Path, shelf: Shelf) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "mine").write_bytes(b"important")
    (tmp_path / "file").touch()
    before = snapshot(tmp_path)
    cases: list[tuple[str, Replace, type[OSError]]] = [
        ("target", "never", FileExistsError),
        ("file", "never", FileExistsError),
        ("file", "changed", NotADirectoryError),
        ("none/target", "never", FileNotFoundError),
        ("file/target", "never", NotADirectoryError),
    ]
    for name, replace, error in cases:
        with pytest.raises(error):
            checkout(str(tmp_path / name), small(shelf), shelf.read, replace=replace)

    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("exists", [False, True])
def test_entries_that_are_no_tree_are_refused_before_anything_is_written(tmp_path: Path, shelf: Shelf, exists: bool) -> None:
    if exists:
        (tmp_path / "target").mkdir()
        (tmp_path / "target" / "mine").touch()
    before = snapshot(tmp_path)
    for entries in ([link("a", "/tmp"), shelf.file("a/x")], [shelf.file("a"), shelf.file("a")], [shelf.file("..")]):
        with pytest.raises(PathRefused):
            checkout(str(tmp_path / "target"), entries, shelf.read, replace="always")

    assert snapshot(tmp_path) == before
    assert shelf.reads == 0


@pytest.mark.parametrize("exists", [False, True])
def test_names_that_the_target_takes_for_one_are_refused_before_anything_is_written(tmp_path: Path, shelf: Shelf, exists: bool) -> None:
    (tmp_path / "outside").mkdir()
    if exists:
        (tmp_path / "target").mkdir()
        (tmp_path / "target" / "mine").touch()
    before = tree(tmp_path)
    entries = [link("A", str(tmp_path / "outside")), folder("a"), shelf.file("a/x"), shelf.file("xt_DSCP.h"), shelf.file("xt_dscp.h")]

    def same(fd: int, first: str, second: str) -> bool:
        return first.casefold() == second.casefold()

    def read(out: Out) -> Iterator[bytes]:
        raise AssertionError(out)

    with pytest.raises(PathRefused, match="one name"):
        checkout(str(tmp_path / "target"), entries, read, replace="changed", same=same)
    assert tree(tmp_path) == before

    checkout(str(tmp_path / "target"), entries, shelf.read, replace="changed")
    assert tree(tmp_path / "target").keys() >= {"A", "a", "a/x", "xt_DSCP.h", "xt_dscp.h"}
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("number", range(3))
def test_a_failure_in_the_middle_leaves_the_target_as_it_was(tmp_path: Path, shelf: Shelf, number: int, exists: bool) -> None:
    if exists:
        (tmp_path / "target").mkdir()
    before = tree(tmp_path)
    entries = small(shelf)
    files = [out for out in entries if out.kind == "file"]

    def read(out: Out) -> Iterator[bytes]:
        yield from shelf.read(out)
        if out == files[number]:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        checkout(str(tmp_path / "target"), entries, read)
    with pytest.raises(Damaged):
        checkout(str(tmp_path / "target"), [out._replace(size=out.size + 1) if out.kind == "file" else out for out in entries], shelf.read)
    assert tree(tmp_path) == before


def test_of_two_that_make_the_same_folder_the_second_is_refused(tmp_path: Path, shelf: Shelf) -> None:
    target = str(tmp_path / "target")

    def read(out: Out) -> Iterator[bytes]:
        checkout(target, [shelf.file("mine")], shelf.read)
        yield from shelf.read(out)

    for exists in (False, True):
        if exists:
            (tmp_path / "target").mkdir()
        with pytest.raises(OSError, match=r"exists|not empty") as raised:
            checkout(target, [shelf.file("x")], read)
        assert raised.value.errno in (errno.EEXIST, errno.ENOTEMPTY)
        assert tree(tmp_path).keys() == {"target", "target/mine"}
        (tmp_path / "target" / "mine").unlink()
        (tmp_path / "target").rmdir()


def test_links_that_were_planted_in_the_staging_folder_are_not_written_through(tmp_path: Path, shelf: Shelf) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_bytes(b"important")
    before = snapshot(outside)
    entries = [folder("d"), shelf.file("d/a"), shelf.file("d/victim"), folder("e"), shelf.file("e/victim")]

    def read(out: Out) -> Iterator[bytes]:
        if out.parts == ("d", "a"):
            (staging,) = tmp_path.glob(".freehold-*")
            (staging / "tree" / "d").rename(tmp_path / "moved")
            (staging / "tree" / "d").symlink_to(outside)
        yield from shelf.read(out)

    with pytest.raises(OSError, match="d") as raised:
        checkout(str(tmp_path / "target"), entries, read)
    assert raised.value.errno == errno.ELOOP
    assert snapshot(outside) == before
    assert not (tmp_path / "target").exists()
    assert stagings(tmp_path) == []


KILLED = """
import sys
sys.path.insert(0, sys.argv[1])
from trees import *
from freehold.storage.checkout import Replace, checkout
shelf = Shelf()
entries = [folder("d"), *(shelf.file(f"d/{number:03}", bytes([number]) * 1000) for number in range(100))]
def read(out):
    if out.parts[-1] == "050":
        print("ready", flush=True)
        sys.stdin.readline()
    yield from shelf.read(out)
checkout(sys.argv[2], entries, read, replace="always")
"""


@pytest.mark.parametrize("exists", [False, True])
def test_one_that_is_killed_leaves_whole_files_only_and_the_next_one_sweeps(tmp_path: Path, shelf: Shelf, exists: bool) -> None:
    target = tmp_path / "target"
    old = [folder("d"), shelf.file("d/001", b"old"), shelf.file("mine", b"mine")]
    if exists:
        plant(target, old, shelf)
    before = tree(target)
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parents[1] / "kit"), str(target)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    beside = target if exists else tmp_path
    (living,) = stagings(beside)
    if exists:
        with pytest.raises(BlockingIOError):
            checkout(str(target), old, shelf.read, replace="always")
    else:
        checkout(str(tmp_path / "another"), old, shelf.read)
    assert stagings(beside) == [living]

    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert stagings(beside) == [living]
    assert {path: what for path, what in tree(target).items() if not path.startswith(".freehold-")} == before

    checkout(str(target), old, shelf.read, replace="always")
    assert tree(target) == as_tree(old, shelf)
    assert stagings(beside) == []


@needs_another_user
def test_somebody_who_is_not_root_gets_folders_that_he_may_not_change() -> None:
    program = """
entries = [folder("a", 0o555), folder("a/b", 0), shelf.file("a/b/x", b"deep"), shelf.file("a/c"), link("a/l", "x")]
for replace in ("never", "always"):
    checkout(str(top / "target"), entries, shelf.read, replace=replace) if replace == "never" else None
os.chmod(top / "target" / "a" / "b", 0o700)
print(tree(top / "target") == as_tree(entries, shelf) | {"a/b": ("directory", 0o700, b"")})
def read(out):
    yield from shelf.read(out)
    raise ZeroDivisionError
try:
    checkout(str(top / "failed"), [folder("a", 0o555), folder("a/b", 0), shelf.file("c")], read)
except ZeroDivisionError:
    print(os.listdir(top))
"""
    with nobodys_folder() as top:
        assert as_nobody(top, program) == "True\n['target']\n"


@needs_another_user
def test_an_empty_folder_keeps_its_owner(tmp_path: Path, shelf: Shelf) -> None:
    (tmp_path / "target").mkdir()
    os.chown(tmp_path / "target", 65534, 65534)
    checkout(str(tmp_path / "target"), [shelf.file("x")], shelf.read)

    assert ((tmp_path / "target").stat().st_uid, (tmp_path / "target").stat().st_gid) == (65534, 65534)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_an_empty_folder_that_is_a_mount_is_filled_in_place(tmp_path: Path, shelf: Shelf) -> None:
    (tmp_path / "target").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", tmp_path / "target"], check=False, capture_output=True).returncode:
        pytest.skip("this machine does not let its root mount")
    try:
        entries = small(shelf)
        checkout(str(tmp_path / "target"), entries, shelf.read)
        assert tree(tmp_path / "target") == as_tree(entries, shelf)
    finally:
        subprocess.run(["umount", tmp_path / "target"], check=True)


def test_twenty_thousand_files_in_one_folder(quick: Path, shelf: Shelf) -> None:
    entries = [folder("d"), *(shelf.file(f"d/{number:05}", b"%d" % number) for number in range(20_000))]
    checkout(str(quick / "target"), entries, shelf.read)
    assert taken(quick / "target", shelf)[0] == entries

    half = entries[:10_001]
    assert checkout(str(quick / "target"), half, shelf.read, replace="always") == CheckedOut(0, 10_001, 10_000)
    assert taken(quick / "target", shelf)[0] == half


NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=6).filter(
    lambda name: name not in {".", ".."}
)
MODES = st.integers(0, 0o777)


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[Out], Shelf]:
    """Draw a tree of at most four levels."""
    shelf = Shelf()
    entries: list[Out] = []

    def fill(parts: tuple[str, ...], depth: int) -> None:
        for name in sorted(draw(st.sets(NAMES, max_size=4))):
            path = (*parts, name)
            kind = draw(st.sampled_from(["file", "file", "link", *["directory"] * (depth < 4)]))
            if kind == "file":
                content = draw(st.binary(max_size=300))
                entries.append(Out(path, "file", draw(MODES), len(content), "", shelf.put(content)))
            elif kind == "link":
                entries.append(Out(path, "link", 0o777, 0, draw(NAMES)))
            else:
                # Who is not root cannot scan what he may not read or enter.
                entries.append(Out(path, "directory", draw(MODES) | (0 if os.geteuid() == 0 else 0o700)))
                fill(path, depth + 1)

    fill((), 1)
    return entries, shelf


QUIET = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.mark.skipif(os.geteuid() != 0, reason="a file of mode 0 can only be read back by root")
@QUIET
@given(trees(), trees())
def test_what_is_checked_out_is_scanned_as_it_was_and_nothing_outside_changes(
    quick: Path, one: tuple[list[Out], Shelf], other: tuple[list[Out], Shelf]
) -> None:
    with tempfile.TemporaryDirectory(dir=quick) as top:
        outside, target = Path(top) / "outside", Path(top) / "target"
        plant(outside, [folder("d"), Shelf().file("x", b"")], _with_empty())
        before = snapshot(outside)
        shelf = Shelf()
        shelf.bytes = one[1].bytes | other[1].bytes

        checkout(str(target), one[0], shelf.read)
        scanned, report = taken(target, shelf)
        assert (scanned, report.complete) == (one[0], True)

        checkout(str(target) + "2", scanned, shelf.read)
        assert taken(Path(f"{target}2"), shelf)[0] == one[0]

        checkout(str(target), other[0], shelf.read, replace="always")
        assert taken(target, shelf)[0] == other[0]
        done = checkout(str(target), other[0], shelf.read, replace="always")
        assert (done.written, done.removed) == (0, 0)
        assert snapshot(outside) == before
        assert names(Path(top)) == ["outside", "target", "target2"]


def _with_empty() -> Shelf:
    shelf = Shelf()
    shelf.put(b"")
    return shelf


def test_few_and_many_entries_are_made_durable(tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr("os.fsync", lambda fd: synced.append("one"))
    monkeypatch.setattr("freehold.storage.platform.sync_filesystem", lambda fd: synced.append("all"))
    for count in (2, SYNC_EACH_ENTRIES_MAX + 1):
        synced.clear()
        checkout(str(tmp_path / str(count)), [shelf.file(f"{number:03}") for number in range(count)], shelf.read)
        # Each file, the folder that holds them, and the folder that holds that.
        assert synced == (["one"] * (count + 2) if count == 2 else ["all", "one"])
