"""C3: every spelling of one run file reaches the same owner; what cannot is refused, and never a second connection."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from leaks import open_run_files
from turns import settle

import freehold
from freehold import Host, Refused, Run, RunExists


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    root = tmp_path / "r"
    root.mkdir()
    (tmp_path / "link").symlink_to(root)
    with freehold.open(tmp_path / "link", timeout=20) as host:
        yield host


def test_links_to_the_folder_and_to_the_file_reach_one_owner(host: Host, tmp_path: Path) -> None:
    with host.create("a") as run:
        (tmp_path / "r" / "alias.sqlite").symlink_to("a.sqlite")
        (tmp_path / "r" / "chain.sqlite").symlink_to("alias.sqlite")
        settle(host)
        before = open_run_files()
        for spelling in ("a", "alias", "chain"):
            with host.open(spelling) as other:
                assert other._ref is run._ref
                assert (other.id, other.path) == ("a", run.path)
                other.append(spelling)
        assert open_run_files() == before
        assert [event.name for event in run.history(after=1)] == ["a", "alias", "chain"]
        assert run.info.epoch == 1


def test_a_view_by_every_spelling_asks_the_one_owner(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with host.create("a") as run:
        run.append("x")
        (tmp_path / "alias.sqlite").symlink_to(run.path)
        settle(host)
        before = open_run_files()
        for file in ("r/a.sqlite", "./r/../r/a.sqlite", "link/a.sqlite", "alias.sqlite", tmp_path / "r" / "a.sqlite"):
            view = freehold.view(file)
            assert [event.name for event in view.history(name="x")] == ["x"]
            assert view.path == run.path
        assert open_run_files() == before
        freehold.view("alias.sqlite").verify()
        assert run.append("y").seq == 3


def test_a_hard_link_is_refused_before_and_while_the_run_is_owned(host: Host, tmp_path: Path) -> None:
    host.create("a").close()
    hard = tmp_path / "r" / "hard.sqlite"

    def refused(run_id: str) -> str:
        with pytest.raises(Refused) as caught:
            host.open(run_id)
        return caught.value.code

    with host.open("a") as run:
        os.link(run.path, hard)
        assert refused("hard") == "hard_link"
        assert run.append("x").seq == 2
    host.close()
    with freehold.open(tmp_path / "r") as again:
        for run_id in ("a", "hard"):
            with pytest.raises(Refused) as caught:
                again.open(run_id)
            assert caught.value.code == "hard_link"
        hard.unlink()
        with again.open("a") as run:
            assert run.append("y").seq == 3


def test_a_run_that_does_not_exist_yet_is_created_once_under_all_its_spellings(host: Host, tmp_path: Path) -> None:
    (tmp_path / "r" / "alias.sqlite").symlink_to("a.sqlite")
    with host.create("alias") as run:
        assert (run.id, run.path.name) == ("a", "a.sqlite")
        for spelling in ("a", "alias"):
            with pytest.raises(RunExists):
                host.create(spelling)
            with host.ensure(spelling) as other:
                assert other._ref is run._ref
    assert [info.id for info in host.runs()] == ["a"]


def test_closing_one_spelling_leaves_the_others_working(host: Host, tmp_path: Path) -> None:
    (tmp_path / "r" / "alias.sqlite").symlink_to("a.sqlite")
    one: Run = host.create("a")
    two = host.open("alias")
    one.close()
    assert two.append("x").seq == 2
    two.close()
    host.delete("alias")
    assert not (tmp_path / "r" / "a.sqlite").exists()
