"""A view: pages of the journal in both directions, of one name, beyond a moment; and what it refuses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from folder import snapshot
from other import owns, reads
from runfile import forge, new_run

import freehold
from freehold import Damaged, Host, Refused, Run
from freehold.schema.limits import HISTORY_PAGE_BYTES, HISTORY_PAGE_EVENTS


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a closed run with many events, few of which are called rare."""
    root = tmp_path_factory.mktemp("long")
    with freehold.open(root) as host, host.create("a") as run:
        for part in range(25):
            run.transact(lambda tx, part=part: [tx.append("rare" if number == 7 and part % 12 == 0 else "x") for number in range(1000)])  # type: ignore[misc]
    return root / "a.sqlite"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path, timeout=20) as host:
        yield host


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a") as run:
        yield run


def seqs(events: Iterator[freehold.Event]) -> list[int]:
    return [event.seq for event in events]


def test_a_long_journal_is_read_whole_in_both_directions(long: Path) -> None:
    view = freehold.view(long)
    assert view.info.events == 25_001
    assert seqs(view.history()) == list(range(1, 25_002))
    assert seqs(view.history(reverse=True)) == list(range(25_001, 0, -1))


def test_a_rare_name_is_found_over_more_rows_than_one_look_takes(long: Path) -> None:
    view = freehold.view(long)
    rare = [9, 12_009, 24_009]
    assert seqs(view.history(name="rare")) == rare
    assert seqs(view.history(name="rare", reverse=True)) == rare[::-1]
    assert seqs(view.history(name="rare", after=9)) == rare[1:]
    assert seqs(view.history(name="rare", after=9, reverse=True)) == [24_009, 12_009]
    assert seqs(view.history(name="nobody")) == seqs(view.history(name="nobody", reverse=True)) == []


@pytest.mark.parametrize("count", [HISTORY_PAGE_EVENTS - 2, HISTORY_PAGE_EVENTS - 1, HISTORY_PAGE_EVENTS, 2 * HISTORY_PAGE_EVENTS])
def test_a_page_ends_where_it_should(run: Run, count: int) -> None:
    run.transact(lambda tx: [tx.append("x" if number % 2 else "y") for number in range(count)])
    everything = list(range(1, count + 2))
    assert seqs(run.history()) == everything
    assert seqs(run.history(reverse=True)) == everything[::-1]
    assert seqs(run.history(name="x")) == [seq for seq in everything[1:] if seq % 2]
    for after in (0, 1, count // 2, count, count + 1):
        assert seqs(run.history(after=after)) == everything[after:]
        assert seqs(run.history(after=after, reverse=True)) == everything[after:][::-1]


def test_a_page_is_bounded_in_bytes(run: Run) -> None:
    size = HISTORY_PAGE_BYTES // 3
    for number in range(8):
        run.append("x", f"{number}" * size)
    assert [event.data[0] for event in run.history(after=1)] == list("01234567")
    assert [event.data[0] for event in run.history(after=1, reverse=True)] == list("76543210")


def test_history_goes_on_where_events_come_meanwhile(run: Run) -> None:
    run.append("one")
    events = run.history()
    assert next(events).seq == 1
    for _ in range(HISTORY_PAGE_EVENTS):
        run.append("x")
    assert seqs(events)[0] == 2


def test_looking_at_a_run_that_nobody_owns_changes_nothing(long: Path) -> None:
    before = snapshot(long.parent)
    view = freehold.view(long)
    view.verify()
    assert view.info.status == "created"
    assert seqs(view.history(name="rare", after=view.info.created)) == [9, 12_009, 24_009]
    assert snapshot(long.parent) == before


def test_a_view_and_a_lease_show_the_same(host: Host, run: Run, tmp_path: Path) -> None:
    run.append("x", {"a": [1]})
    for view in (host.view("a"), freehold.view(tmp_path / "a.sqlite"), freehold.view(str(tmp_path / "a.sqlite"))):
        assert view.info == run.info
        assert list(view.history()) == list(run.history())
        assert (view.id, view.path) == ("a", tmp_path / "a.sqlite")


def test_a_view_of_a_run_in_another_process_reads_beside_it(tmp_path: Path) -> None:
    with owns(tmp_path, "a", "x", "y") as process:
        view = freehold.view(tmp_path / "a.sqlite")
        assert [event.name for event in view.history(after=1)] == ["x", "y"]
        view.verify()
        assert process.poll() is None


def test_a_view_says_whether_its_run_is_there(host: Host, run: Run, tmp_path: Path) -> None:
    assert run.exists
    assert host.view("a").exists
    assert not host.view("b").exists
    assert not freehold.view(tmp_path / "none" / "a.sqlite").exists
    (tmp_path / "c.sqlite").write_bytes(b"no run at all")
    with pytest.raises(Refused) as caught:
        _ = host.view("c").exists
    assert caught.value.code == "not_a_run"


def test_verify_tells_how_far_it_has_come(long: Path) -> None:
    told: list[tuple[int, int]] = []
    freehold.view(long).verify(lambda done, everything: told.append((done, everything)))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1] > 25_000


def test_what_a_progress_function_raises_comes_back_as_itself(run: Run) -> None:
    error = ZeroDivisionError()

    def progress(_done: int, _all: int) -> None:
        raise error

    with pytest.raises(ZeroDivisionError) as caught:
        run.verify(progress)
    assert caught.value is error
    run.verify()


def test_verify_says_which_rule_is_broken_and_leaves_the_file(tmp_path: Path) -> None:
    path = new_run(tmp_path)
    forge(path, "UPDATE event SET recorded_at = recorded_at + 1")
    before = snapshot(tmp_path)
    with pytest.raises(Damaged) as caught:
        freehold.view(path.file).verify()
    assert caught.value.details["rule"]
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (1, "bad_root"),
        (None, "bad_root"),
        (b"a.sqlite", "bad_root"),
        ("", "bad_root"),
        ("a\x00.sqlite", "bad_root"),
        ("a.txt", "bad_run_id"),
        ("-a.sqlite", "bad_run_id"),
        (".sqlite", "bad_run_id"),
    ],
    ids=repr,
)
def test_what_cannot_be_a_run_file_is_refused(file: Any, expected: str) -> None:
    with pytest.raises(Refused) as caught:
        freehold.view(file)
    assert caught.value.code == expected


@pytest.mark.parametrize("name", ["", "x" * 257, 1, b"x", "a\n", ["x"]], ids=repr)
def test_a_wrong_name_is_refused(run: Run, name: Any) -> None:
    with pytest.raises(Refused) as caught:
        run.history(name=name)
    assert caught.value.code == "bad_name"


@pytest.mark.parametrize("progress", [1, "x", [print]], ids=lambda wrong: type(wrong).__name__)
def test_a_wrong_progress_is_refused_before_anything_is_read(run: Run, progress: Any) -> None:
    with pytest.raises(Refused) as caught:
        run.verify(progress)
    assert caught.value.code == "bad_option"


def test_a_view_is_closed_like_a_lease_and_holds_nothing(host: Host, run: Run) -> None:
    run.close()
    with host.view("a") as view:
        assert view.info.id == "a"
    view.close()
    assert repr(view) == "<RunView a>"
    host.delete("a")


def test_a_view_and_a_lease_show_their_id_alone(host: Host, run: Run) -> None:
    run.append("canary", "canary")
    assert (repr(host.view(run.id)), repr(run)) == (f"<RunView {run.id}>", f"<Run {run.id}>")


def test_whoever_owns_the_run_is_named_this_process_too_and_nobody_where_nobody_does(host: Host, tmp_path: Path) -> None:
    view, beside = host.view("a"), freehold.view(tmp_path / "a.sqlite")
    assert (view.owner, beside.owner) == (None, None)  # it is not there
    before = datetime.now(UTC)
    with host.create("a") as run:
        held = run.owner
        assert held is not None
        assert (held.pid, held.hostname, view.owner, beside.owner) == (os.getpid(), os.uname().nodename, held, held)
        assert timedelta(seconds=-1) < held.since - before < timedelta(seconds=30)
        assert run.transact(lambda _tx: view.owner) == held  # whatever it is at
    host.close()
    assert (view.owner, beside.owner) == (None, None)
    with owns(tmp_path, "a") as process:
        other = beside.owner
        assert other is not None
        assert (other.pid, other.since > held.since) == (process.pid, True)
        process.kill()
        process.wait()
        assert beside.owner is None  # what it has signed is still there, its lock is not


def test_whoever_owns_a_run_is_asked_of_the_file_and_changes_nothing(tmp_path: Path) -> None:
    new_run(tmp_path)
    before = snapshot(tmp_path)
    assert [freehold.view(file).owner for file in tmp_path.iterdir()] == [None]
    assert snapshot(tmp_path) == before


def test_of_a_file_that_is_no_run_nobody_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.sqlite").write_text("not a run")
    with pytest.raises(Refused) as caught:
        _ = freehold.view(tmp_path / "a.sqlite").owner
    assert caught.value.code == "not_a_run"


def test_a_reader_is_no_owner(tmp_path: Path) -> None:
    path = new_run(tmp_path)
    with reads(Path(path.file)):
        assert freehold.view(path.file).owner is None
