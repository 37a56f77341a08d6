"""C42: nothing is read or written outside through a link or a name; links that stay inside work, also where they are changed in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from folder import snapshot
from published import contents, publishes

import freehold
from freehold import PathRefused, Run
from freehold.files import Files


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    before = snapshot(outside)
    yield outside
    assert snapshot(outside) == before


@pytest.fixture
def run(tmp_path: Path, outside: Path) -> Iterator[Run]:
    (tmp_path / "real").mkdir()
    (tmp_path / "runs").symlink_to("real")  # the folder of the runs may be a link itself
    with freehold.open(tmp_path / "runs", timeout=20) as host, host.create("r") as run:
        with run.publish("start") as files:
            files.mkdir("d/e", parents=True)
            files.write_text("d/f", "inside")
            files.symlink("inbox", "d")
            files.symlink("d/e/up", "../f")
            for name, target in (("outbox", str(outside)), ("above", "../outside"), ("round", "d/../../outside")):
                files.symlink(name, target)
        yield run


DEEDS: list[Callable[[Files, str], Any]] = [
    lambda files, path: files.write_text(f"{path}/new.txt", "x"),
    lambda files, path: files.open(f"{path}/new.txt", "x"),
    lambda files, path: files.open(path, "w"),
    lambda files, path: files.read_bytes(f"{path}/secret"),
    lambda files, path: files.open(f"{path}/secret"),
    lambda files, path: files.stat(path),
    lambda files, path: list(files.iterdir(path)),
    lambda files, path: list(files.walk(path)),
    lambda files, path: files.mkdir(f"{path}/x/y", parents=True),
    lambda files, path: files.mkdir(path, exist_ok=True),
    lambda files, path: files.symlink(f"{path}/x", "y"),
    lambda files, path: files.touch(f"{path}/secret"),
    lambda files, path: files.touch(path),
    lambda files, path: files.remove(f"{path}/secret"),
    lambda files, path: files.rmtree(f"{path}/x"),
    lambda files, path: files.rename("d", f"{path}/d"),
    lambda files, path: files.rename(f"{path}/secret", "mine"),
    lambda files, path: files.copy(f"{path}/secret", "mine"),
    lambda files, path: files.copy("d/f", f"{path}/f"),
    lambda files, path: files.copy(path, "mine"),
    lambda files, path: files.chmod(f"{path}/secret", 0o600),
]


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("path", ["outbox", "above", "round"])
def test_what_leads_out_is_refused_with_its_path(run: Run, deed: Callable[[Files, str], Any], path: str) -> None:
    before = contents(run.files)
    with pytest.raises(PathRefused, match=path) as caught:
        run.publish("lost", lambda files: deed(files, path))

    assert "leads out" in str(caught.value)
    assert contents(run.files) == before
    assert publishes(run)[-1][1]["failed"] == "PathRefused"


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "C:\\x", "a\\..\\..\\x", "con", "", ".."])
@pytest.mark.parametrize("deed", DEEDS[:2] + DEEDS[8:9])
def test_a_name_that_could_lead_out_is_refused(run: Run, deed: Callable[[Files, str], Any], name: str) -> None:
    before = contents(run.files)
    with pytest.raises(PathRefused):
        run.publish("lost", lambda files: deed(files, name))
    assert contents(run.files) == before


def test_links_that_stay_inside_work_and_none_is_followed_by_what_takes_the_name_itself(run: Run) -> None:
    with run.publish("inside") as files:
        files.write_text("inbox/new", "1")
        files.write_text("d/e/up", "2")
        assert (files.readlink("outbox")[-7:], files.exists("outbox"), files.is_symlink("outbox")) == ("outside", False, True)
        assert (list(files.glob("outbox/*")), list(files.glob("in*/f"))) == ([], ["inbox/f"])
        files.rename("outbox", "moved")
        files.remove("above")

    assert (run.files.read_text("d/new"), run.files.read_text("d/f")) == ("1", "2")
    assert {"moved", "round"} < contents(run.files).keys()
    assert "above" not in contents(run.files)


def test_a_link_that_is_swapped_in_between_is_followed_as_it_is_then(run: Run) -> None:
    with pytest.raises(PathRefused), run.publish("lost") as files:
        assert files.read_text("inbox/f") == "inside"
        files.remove("inbox")
        files.symlink("inbox", "../outside")
        files.write_text("inbox/f", "x")
    with pytest.raises(freehold.Conflict), run.publish("lost") as files:
        files.write_text("inbox/f", "x")
        run.publish("swap", lambda others: [others.remove("inbox"), others.symlink("inbox", "../outside")])  # type: ignore[func-returns-value]

    assert run.files.read_text("d/f") == "inside"
    run.verify()
