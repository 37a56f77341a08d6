"""The history of a path: the events after which something else stands there, whoever is asked and in whatever direction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import freehold
from freehold import PathRefused, Refused, Run
from freehold.files import Files
from freehold.schema.limits import HISTORY_PAGE_EVENTS


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with freehold.open(tmp_path) as host, host.create("a") as run:
        yield run


def first(files: Files) -> None:
    files.mkdir("src/deep", parents=True)
    files.write_text("src/deep/a.py", "one")
    files.write_text("src/b.py", "b")


def fail(files: Files) -> None:
    files.write_text("src/deep/a.py", "three")
    files.remove("gone")


def copy_back(files: Files) -> None:
    files.mkdir("src/deep")
    files.copy("lib/a.py", "src/deep/a.py")


def link(files: Files) -> None:
    files.write_text("a", "1")
    files.symlink("b", "a")


def names(run: Run, path: str, *, name: str | None = None, after: int | None = None, reverse: bool = False) -> list[str | None]:
    """Return the names of the events, after the run was asked as its owner and as a view and has said the same."""
    by_owner = list(run.history(path=path, name=name, after=after, reverse=reverse))
    by_view = list(freehold.view(run.path).history(path=path, name=name, after=after, reverse=reverse))
    by_turn = run.transact(lambda tx: list(tx.history(path=path, name=name, after=after, reverse=reverse)))
    assert by_owner == by_view == by_turn
    return [event.name for event in by_owner]


@pytest.fixture
def edited(run: Run) -> Run:
    """Return a run whose files have a history: event 2 is `first`, 3 `other`, and so on."""
    run.publish("first", first)
    run.publish("other", lambda files: files.write_text("src/b.py", "bb"))
    run.append("note")
    run.publish("change", lambda files: files.write_text("src/deep/a.py", "two"))
    run.publish("same", lambda files: files.write_text("src/deep/a.py", "two"))
    with pytest.raises(FileNotFoundError):
        run.publish("failed", fail)
    run.publish("mode", lambda files: files.chmod("src/deep/a.py", 0o755))
    run.publish("move", lambda files: files.rename("src/deep", "lib"))
    run.publish("back", copy_back)
    run.publish("removal", lambda files: files.rmtree("src"))
    return run


def test_a_path_is_found_where_something_else_stands_there_than_before(edited: Run) -> None:
    assert names(edited, "src/deep/a.py") == ["first", "change", "mode", "move", "back", "removal"]
    assert names(edited, "src/b.py") == ["first", "other", "removal"]
    assert names(edited, "nowhere") == names(edited, "src/b.py/c") == []


def test_a_directory_is_found_with_all_that_is_beneath_it(edited: Run) -> None:
    assert names(edited, "src") == ["first", "other", "change", "mode", "move", "back", "removal"]
    assert names(edited, ".") == names(edited, "src")
    assert names(edited, "src//deep/") == ["first", "change", "mode", "move", "back", "removal"]


def test_what_was_renamed_is_found_under_both_paths(edited: Run) -> None:
    assert names(edited, "lib") == names(edited, "lib/a.py") == ["move"]
    assert "move" in names(edited, "src/deep")


def test_it_goes_with_a_name_beyond_a_moment_and_in_reverse(edited: Run) -> None:
    assert names(edited, "src/b.py", reverse=True) == ["removal", "other", "first"]
    assert names(edited, "src/b.py", after=2) == ["other", "removal"]
    assert names(edited, "src/b.py", after=3, reverse=True) == ["removal"]
    assert names(edited, "src/b.py", name="other") == names(edited, "src/b.py", name="other", reverse=True) == ["other"]
    assert names(edited, "src/b.py", name="change") == []


def test_an_event_at_the_edge_of_a_page_is_compared_with_the_one_before_the_page(run: Run) -> None:
    run.transact(lambda tx: [tx.append("note") for _ in range(HISTORY_PAGE_EVENTS - 2)])
    run.publish("before", lambda files: files.write_text("a", "1"))
    run.publish("behind", lambda files: files.write_text("a", "2"))
    run.transact(lambda tx: [tx.append("note") for _ in range(HISTORY_PAGE_EVENTS)])
    run.append("last")

    assert names(run, "a") == ["before", "behind"]
    assert names(run, "a", reverse=True) == ["behind", "before"]
    assert names(run, "a", after=HISTORY_PAGE_EVENTS) == ["behind"]


def test_a_link_is_found_itself_and_not_what_it_leads_to(run: Run) -> None:
    run.publish("link", link)
    run.publish("change", lambda files: files.write_text("b", "2"))

    assert names(run, "b") == ["link"]
    assert names(run, "a") == ["link", "change"]


def test_a_transaction_finds_its_own_events(run: Run) -> None:
    def work(tx: freehold.Transaction) -> list[str | None]:
        tx.files.write_text("a", "1")
        tx.append("with the file")
        tx.append("without")
        return [event.name for event in tx.history(path="a")]

    assert run.transact(work) == ["with the file"]


def test_a_path_that_no_workspace_has_is_refused_at_once(run: Run) -> None:
    for path in ("", "/a", "../a", "a\0"):
        with pytest.raises(PathRefused):
            run.history(path=path)
    with pytest.raises(Refused):
        run.history(path="a", after=-1)


def test_a_run_that_is_not_there_has_no_history_of_files(tmp_path: Path) -> None:
    assert list(freehold.view(tmp_path / "none.sqlite").history(path="a")) == []
