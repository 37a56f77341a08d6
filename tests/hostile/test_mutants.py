"""A run file that was changed at random is refused with an error of ours, or it is right; and whoever looks changes nothing.

What `verify` says is compared with what the run said before: the same journal, or the beginning of it where its end was cut
off; else it must say that the file is damaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from folder import snapshot
from mutant import Files, mutant, rich
from power import scratch
from ways import LOOKS, OWNS, files_of, read, told

import freehold

Recorder = Callable[[str, object], None]
"""pytest's own: what it is given stands in its report."""

TOGETHER = 20
"""How many one test looks at."""


def judged(root: Path, files: Files) -> str:
    """Look at a mutant in every way, and own it if it lets itself be owned; return in a word what it was."""
    file = files.write(root)
    before = snapshot(root)
    with freehold.open(root) as host:
        found = {way: told(lambda call=call: call(host, "a")) for way, call in LOOKS.items()}  # type: ignore[misc]
        assert snapshot(root) == before
        for way in ("info", "history", "verify"):
            assert found[way] == found[f"view(file).{way}"]
        assert found["runs"] == found["info"]
        if found["info"] != "ok":
            assert set(found.values()) == {found["info"]}
            owned = {way: told(lambda call=call: call(host, "a")) for way, call in OWNS.items()}  # type: ignore[misc]
            assert owned == {"open": found["info"], "ensure": found["info"], "create": "run_exists"}
            assert snapshot(root) == before
            return f"refused {found['info']}"
        journal = None
        if found["verify"] == "ok":
            assert found["history"] == found["history in reverse"] == "ok"
            journal = read(freehold.view(file))
            check_right(journal, freehold.view(file).info, files)
            if len(journal) == len(rich().journal):
                assert found["files"] == "ok"
                assert files_of(freehold.view(file).files) == rich().held
        check_owned(host, journal)
        if journal is None:
            return f"found by verify: {found['verify']}"
    return "right" if len(journal) == len(rich().journal) else "right, an earlier state"


def check_right(journal: list[tuple[Any, ...]], info: freehold.RunInfo, files: Files) -> None:
    """Show that what was verified is what was written."""
    original, said = rich().journal, rich().info
    assert journal == original[: len(journal)]
    assert len(journal) == len(original) or files.may_be_shorter
    assert (info.id, info.props, info.project, info.created) == (said.id, said.props, said.project, said.created)
    assert info.events == len(journal)
    if len(journal) == len(original):
        assert (info.status, info.stop_event, info.stop_code) == (said.status, said.stop_event, said.stop_code)


def check_owned(host: freehold.Host, journal: list[tuple[Any, ...]] | None) -> None:
    """Own it, write into it, and show that it is as right as before."""

    def use() -> None:
        with host.open("a") as run:
            run.append("more", request_id="more")
            run.transact(lambda tx: tx.append("and more"))

    opened = told(use)
    if journal is None:
        assert opened in ("ok", "storage_failed", "lease_lost") or opened.startswith(("damaged", "malformed_record")), opened
        return
    assert opened == "ok"
    assert told(lambda: host.view("a").verify()) == "ok"
    assert read(host.view("a"))[: len(journal)] == journal
    assert len(read(host.view("a"))) == len(journal) + 2


def look_at(numbers: range, seed: int) -> Counter[str]:
    """Judge one mutant after another; a failure names the one that it was."""
    found: Counter[str] = Counter()
    for number in numbers:
        files = mutant(Random(f"{seed}/{number}"))
        try:
            with scratch() as root:
                found[judged(root, files)] += 1
        except BaseException as error:
            error.add_note(f"mutant {number}: {files.notes}")
            raise
    return found


@pytest.mark.parametrize("start", range(0, 200, TOGETHER))
def test_a_mutant_is_refused_or_right(start: int, seed: int, record_property: Recorder) -> None:
    found = look_at(range(start, start + TOGETHER), seed)
    record_property("found", dict(found))
    assert found.total() == TOGETHER


@pytest.mark.prove
@pytest.mark.parametrize("start", range(200, 5000, 5 * TOGETHER))
def test_every_mutant_is_refused_or_right(start: int, seed: int, record_property: Recorder) -> None:
    found = look_at(range(start, start + 5 * TOGETHER), seed)
    record_property("found", dict(found))
    assert found.total() == 5 * TOGETHER


def test_a_run_that_nobody_changed_is_right() -> None:
    for files in (rich().closed, rich().dead):
        with scratch() as root:
            assert judged(root, files.copy()) == "right"
