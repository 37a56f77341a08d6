"""Files are read at one moment: the root that is current at each call, or that of a moment for good; a run that is not there has none."""

# mypy: disable-error-code="func-returns-value"
# A lambda that does several things is a tuple of what they return.
from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from other import owns
from published import contents

import freehold
from freehold import Host, Refused, Run
from freehold.schema.roots import EMPTY_ROOT, root_text


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path, timeout=20) as host:
        yield host


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a") as run:
        yield run


def test_the_files_of_a_run_are_those_of_now_and_a_snapshot_stays(run: Run) -> None:
    files, before = run.files, run.snapshot()
    first = run.publish("one", lambda files: files.write_text("f", "1"))
    middle = run.snapshot()
    second = run.publish("two", lambda files: files.write_text("f", "2"))

    assert [contents(each) for each in (files, before, middle)] == [{"f": b"2"}, {}, {"f": b"1"}]
    assert [each.root for each in (files, before, middle)] == [second.root, root_text(EMPTY_ROOT.hash), first.root]


def test_every_name_of_a_moment_leads_to_its_files(run: Run) -> None:
    effect = run.publish("one", lambda files: files.write_text("f", "1"))
    later = run.append("note")
    run.publish("two", lambda files: files.write_text("f", "2"))

    for at in (effect, later, effect.seq, str(effect.seq), effect.id, effect.root, effect.root[:8], effect.root.upper()):
        assert contents(run.snapshot(at)) == {"f": b"1"}, at
    for before in (effect, effect.seq, effect.id):
        assert contents(run.snapshot(before=before)) == {}
    assert contents(run.snapshot(0)) == contents(run.snapshot(1)) == {}
    assert contents(run.snapshot(datetime(9999, 1, 1, tzinfo=UTC))) == {"f": b"2"}
    for wrong in ("f" * 64, "zz", -1):
        with pytest.raises(Refused) as caught:
            run.snapshot(wrong)
        assert caught.value.code == "bad_position"


@pytest.mark.parametrize("beyond", [5, "5", 2**62, 2**70])
def test_beyond_the_last_event_there_is_no_moment_yet(run: Run, beyond: int | str) -> None:
    run.publish("one", lambda files: files.write_text("f", "1"))
    run.append("note")
    run.append("note")

    for look in (
        lambda: run.snapshot(beyond),
        lambda: run.snapshot(before=beyond),
        lambda: run.diff(1, beyond),
        lambda: run.diff(beyond),
        lambda: run.restore(beyond),
        lambda: run.checkout(at=beyond),
    ):
        with pytest.raises(Refused) as caught:
            look()
        assert (caught.value.code, str(caught.value)) == ("bad_position", "the last event of this run is 4; nothing was changed")
    assert run.info.events == 4
    assert contents(run.snapshot(before=4)) == contents(run.snapshot(4)) == {"f": b"1"}


def test_files_are_read_whoever_owns_the_run(tmp_path: Path) -> None:
    with freehold.open(tmp_path, timeout=20) as host, host.create("a") as run:
        run.publish("one", lambda files: files.write_bytes("f", bytes(300_000)))
        here = contents(run.files)
        assert contents(host.view("a").files) == here
    view = freehold.view(tmp_path / "a.sqlite")
    assert contents(view.files) == here  # nobody
    with owns(tmp_path, "a"):
        assert contents(view.files) == contents(view.snapshot(2)) == here  # another process
        with view.files.open("f", "rb") as file:
            assert len(file.read()) == 300_000


def test_a_run_that_is_not_there_has_no_files_and_is_not_made(tmp_path: Path) -> None:
    view = freehold.view(tmp_path / "runs" / "none.sqlite")

    for files in (view.files, view.snapshot()):
        assert (contents(files), files.root) == ({}, root_text(EMPTY_ROOT.hash))
        assert list(files.glob("**/*")) == []
        with pytest.raises(FileNotFoundError):
            files.read_bytes("f")
    assert list(tmp_path.iterdir()) == []


def test_one_look_is_at_one_root_while_others_publish(run: Run) -> None:
    def flip(number: int) -> None:
        run.publish("flip", lambda files: [files.write_text(f"d{at}/f", str(number)) for at in range(20)])

    run.publish("one", lambda files: [files.mkdir(f"d{at}") for at in range(20)])
    flip(0)
    seen = []

    def look_while_it_changes() -> None:
        for number in range(1, 6):
            before = run.snapshot()
            flip(number)
            seen.append({before.read_text(f"d{at}/f") for at in range(20)})

    look_while_it_changes()
    assert seen == [{str(number)} for number in range(5)]


@pytest.mark.parametrize("digits", [8, 12, 64])
def test_nothing_is_before_or_after_a_root(run: Run, tmp_path: Path, digits: int) -> None:
    effect = run.publish("p", lambda files: files.write_text("f", "1"))
    root = effect.root[:digits]
    for look in (
        lambda: run.snapshot(before=root),
        lambda: run.checkout(tmp_path / "out", before=root),
        lambda: list(run.history(after=root)),
    ):
        with pytest.raises(Refused, match="name an event") as caught:
            look()
        assert caught.value.code == "bad_position"
    assert contents(run.snapshot(root)) == {"f": b"1"}
    assert not (tmp_path / "out").exists()
