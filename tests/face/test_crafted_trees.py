"""A tree that is deeper than a path may be, and says that it is not, is damage to whoever reads it, and no end of the stack."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from crafted import beneath, crafted

import freehold
from freehold import Damaged, RunView

READS: dict[str, Callable[[RunView], object]] = {
    "walk": lambda view: list(view.files.walk()),
    "glob": lambda view: list(view.files.glob("**")),
    "glob of names": lambda view: list(view.files.glob("**/d/**/x")),
    "checkout": lambda view: view.checkout().close(),
    "verify": lambda view: view.verify(),
}


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return crafted(tmp_path_factory.mktemp("runs"), lambda put: beneath(["d"] * 1500 + ["x"], put, (255, 0, 255)))


@pytest.mark.parametrize("read", READS)
def test_whoever_reads_a_tree_that_is_too_deep_says_that_it_is_damaged(deep: Path, read: str) -> None:
    with pytest.raises(Damaged) as caught:
        READS[read](freehold.view(deep))
    assert caught.value.details["rule"] == "tree"


def test_whoever_moves_one_says_so_too(deep: Path) -> None:
    with freehold.open(deep.parent) as host, host.open("a") as run:
        before = run.files.root
        with pytest.raises(Damaged):
            run.publish("move", lambda files: files.rename("d", "e"))
        assert run.files.root == before
