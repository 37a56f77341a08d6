"""A folder that is copied into itself n times has 2^n entries in a few nodes: what looks at nodes is quick, what lists them bounded."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

import freehold
from freehold import Refused, Run
from freehold.files import Files
from freehold.listing import listing
from freehold.schema.changes import Change
from freehold.storage import difference

TIMES = 40


@pytest.fixture(autouse=True)
def _few_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(difference, "CHANGES_TOLD_MAX", 1_000)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with freehold.open(tmp_path / "runs", timeout=20) as host, host.create("r") as run:
        with run.publish("begin") as files:
            files.mkdir("a")
            files.write_text("a/x", "1")
        yield run


def double(files: Files) -> None:
    files.mkdir("new")
    files.rename("a", "new/a")
    files.copy("new/a", "new/b")
    files.rename("new", "a")


def grown(run: Run) -> freehold.Effect[None]:
    def grow(files: Files) -> None:
        for _ in range(TIMES):
            double(files)

    return run.publish("grow", grow)


def test_it_is_published_checked_compared_and_looked_back_at(run: Run) -> None:
    effect = grown(run)
    assert effect.changes == [Change("a", "changed", "a", "a")]
    run.verify()

    deep = "/".join(["a"] * TIMES) + "/b/x"
    later = run.publish("one", lambda files: files.write_text(deep, "2"))
    assert later.changes == run.diff(effect) == [Change(deep, "changed", deep, deep)]
    assert [event.name for event in run.history(path=deep)] == ["grow", "one"]
    assert [event.name for event in run.history(path="a")] == ["begin", "grow", "one"]
    again = run.publish("more", double)
    assert again.changes == [Change("a", "changed", "a", "a")]
    assert run.publish("gone", lambda files: files.rmtree("a")).changes == [Change("a", "removed", "a", None)]
    assert run.restore(effect, "a").changes == [Change("a", "added", None, "a")]
    run.verify()


def test_it_grows_as_a_block_too_and_copy_by_copy_of_what_is_open(run: Run) -> None:
    with run.publish("grow") as files:
        for number in range(TIMES):
            files.copy("a", f"a/{number}")
            files.write_text(f"a/{number}/y", "1")
    assert run.files.exists("/".join(["a", *map(str, reversed(range(TIMES))), "x"]))
    run.verify()


def test_a_walk_and_a_pattern_come_step_by_step_in_one_root(run: Run) -> None:
    grown(run)
    walked, found = run.files.walk(), run.files.glob("**/x")
    run.publish("gone", lambda files: files.rmtree("a"))

    assert [path for path, _, _ in islice(walked, 1_500)][:3] == [".", "a", "a/a"]
    assert len(list(islice(found, 700))) == 700


def test_a_listing_and_a_checkout_say_that_it_is_too_much_before_they_begin(tmp_path: Path, run: Run) -> None:
    grown(run)
    for call in (
        lambda: listing(run.files, ".", recursive=True),
        lambda: run.checkout(tmp_path / "new"),
        lambda: run.checkout(tmp_path / "runs", replace="always"),
        run.checkout,
    ):
        with pytest.raises(Refused) as caught:
            call()
        assert caught.value.code == "too_many_entries"
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
