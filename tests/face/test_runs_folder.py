"""The folder of runs is never taken into a run, never written to by a checkout, and left alone where it lies in its target."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from other import owns
from turns import settle

import freehold
from freehold import Files, Host, Refused, Run
from freehold.checkout import Replace
from freehold.schema.skipped import Reason


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path / "top" / "work" / "runs") as host:
        yield host


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    host.create("idle").close()
    with host.create("a") as run:
        run.publish("fill", fill)
        yield run


@pytest.fixture
def top(tmp_path: Path, run: Run) -> Path:
    (tmp_path / "top" / "mine").write_text("1")
    return tmp_path / "top"


def fill(files: Files) -> None:
    files.mkdir("work/runs/deep", parents=True)
    files.write_text("work/runs/a.sqlite", "no run")
    files.write_text("work/runs/deep/b", "2")
    files.write_text("work/c", "3")


def kept(host: Host) -> dict[str, object]:
    """Return which files there are and what is in them, but for what owners and caches write there by themselves."""
    settle(host)
    found = {path: path.stat() for path in host.root.rglob("*") if "stat-cache" not in path.name and not path.name.endswith("-shm")}
    return {str(path): (stat.st_ino, stat.st_mode, stat.st_size, stat.st_mtime_ns * path.is_file()) for path, stat in found.items()}


@pytest.mark.parametrize("through", ["itself", "a link"])
@pytest.mark.parametrize("replace", ["changed", "always"])
def test_a_checkout_around_it_leaves_it_alone(host: Host, run: Run, top: Path, replace: Replace, through: str) -> None:
    before = kept(host)
    target = top
    if through == "a link":
        (top.parent / "link").symlink_to(top.parent)
        target = top.parent / "link" / top.name

    done = run.checkout(target, replace=replace)

    assert done.left_alone == ("work/runs",)
    assert kept(host) == before
    assert (top / "work" / "c").read_text() == "3"
    assert (top / "mine").exists() is (replace == "changed")
    run.append("it is still there")


def test_an_empty_root_removes_all_around_it_and_not_it(host: Host, run: Run, top: Path) -> None:
    before = kept(host)

    done = run.checkout(top, at=0, replace="always")

    assert (done.left_alone, done.removed) == (("work/runs",), 1)
    assert (sorted(path.name for path in top.iterdir()), kept(host)) == (["work"], before)


def test_it_is_known_by_its_inode_where_it_was_moved(host: Host, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    with host.create("a") as run:
        run.publish("fill", fill)
    view = host.view("a")
    with freehold.open(target / "here") as other, other.create("x"):
        pass
    (tmp_path / "alias").symlink_to(target / "here")

    done = freehold.view(tmp_path / "alias" / "x.sqlite").checkout(target, replace="always")

    assert (done.left_alone, done.removed) == (("here",), 0)
    assert view.info.events == 2


@pytest.mark.parametrize("way", [".", "sub/..", "../alias"])
@pytest.mark.parametrize("replace", ["never", "changed", "always"])
def test_it_is_refused_as_a_target(host: Host, run: Run, way: str, replace: Replace) -> None:
    (host.root / "sub").mkdir()
    (host.root.parent / "alias").symlink_to(host.root)
    before = kept(host)

    with pytest.raises(Refused) as caught:
        run.checkout(host.root / way, replace=replace)

    assert caught.value.code == "runs_folder"
    assert kept(host) == before


def test_a_target_in_a_folder_beneath_it_harms_no_run(host: Host, run: Run) -> None:
    before = kept(host)

    run.checkout(host.root / "out")
    run.checkout(host.root / "out", replace="always")

    assert kept(host).items() >= before.items()
    run.verify()


def test_an_import_leaves_it_out_and_says_so(run: Run, top: Path) -> None:
    effect = run.import_tree(top, "taken")

    assert [(skipped.path, skipped.reason) for skipped in effect.skipped] == [("work/runs", Reason.RUNS_FOLDER)]
    assert [change.path for change in effect.changes] == ["taken/mine", "taken/work"]
    assert run.import_tree(top, "taken", ignore=["runs/"]).complete


def test_an_import_of_it_takes_what_is_not_ours(host: Host, run: Run) -> None:
    (host.root / "notes").write_text("mine")
    (host.root / "sub").mkdir()
    (host.root / "sub" / "x.sqlite").write_text("mine")
    (host.root / ".b.1-1.new").write_text("begun and never finished")
    os.link(host.root / "notes", host.root / "other.sqlite-wal")

    effect = run.import_tree(host.root, "taken")

    ours = {skipped.path for skipped in effect.skipped if skipped.reason in (Reason.RUNS_FOLDER, Reason.IN_USE)}
    assert ours >= {"a.sqlite", "a.sqlite-wal", "idle.sqlite", ".b.1-1.new", "other.sqlite-wal"}
    assert [change.path for change in effect.changes] == ["taken/notes", "taken/sub/x.sqlite"]


def test_a_run_that_another_process_owns_is_not_taken_either(host: Host, run: Run, top: Path) -> None:
    with owns(host.root, "other"):
        effect = run.import_tree(top, "taken")

    assert [skipped.path for skipped in effect.skipped] == ["work/runs"]
