"""A process that has no file descriptor left is told so in our own words, nothing is half done, and it works again with some."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from descriptors import few
from folder import run_files, snapshot
from runfile import new_run

import freehold
from freehold import Error, Host, Unavailable

CALLS: dict[str, Callable[[Host], Any]] = {
    "create": lambda host: host.create("new").close(),
    "ensure a new one": lambda host: host.ensure("new").close(),
    "ensure": lambda host: host.ensure("a", props={"colour": "blue"}, project="paint").close(),
    "open": lambda host: host.open("a").close(),
    "info": lambda host: host.view("a").info,
    "history": lambda host: list(host.view("a").history()),
    "verify": lambda host: host.view("a").verify(),
    "files": lambda host: host.files(),
    "runs": lambda host: list(host.runs()),
    "delete": lambda host: host.delete("a"),
    "another host": lambda host: freehold.open(host.root / "another").close(),
}


@pytest.mark.parametrize("name", CALLS)
def test_without_a_descriptor_nothing_is_done(tmp_path: Path, name: str) -> None:
    new_run(tmp_path, "a")
    with freehold.open(tmp_path) as host:
        before = snapshot(tmp_path)
        with few(0), pytest.raises(Unavailable) as caught:
            CALLS[name](host)
        assert (caught.value.code, caught.value.executed) == ("no_descriptors", "no")
        assert snapshot(tmp_path) == before
        CALLS[name](host)


@pytest.mark.parametrize("left", range(1, 12))
@pytest.mark.parametrize("name", CALLS)
def test_with_few_descriptors_what_is_raised_is_ours_and_true(tmp_path: Path, name: str, left: int) -> None:
    new_run(tmp_path, "a")
    executed = "yes"
    with freehold.open(tmp_path) as host:
        try:
            with few(left):
                CALLS[name](host)
        except Error as error:
            executed = error.executed
        if name in ("create", "ensure a new one"):
            assert (tmp_path / "new.sqlite").exists() == (executed == "yes")
        if name == "delete":
            assert (tmp_path / "a.sqlite").exists() == (executed == "no")
        else:
            host.open("a").close()
        for info in host.runs():
            assert info.error is None
            host.view(info.id).verify()
    assert [name for name in run_files(tmp_path) if name.startswith(".")] == []
