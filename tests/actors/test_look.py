"""Looking at a run: through its owner, beside another process's owner, or at the file alone; and nothing changes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from folder import run_files, snapshot
from other import owns
from runfile import forge_and_die, new_run
from turns import Busy, names, senders, until, waiting

import freehold
from freehold import Damaged, DeadlineExceeded, Error, Host, LeaseLost, MailboxFull, OwnedElsewhere, Run, RunNotFound, RunView, Unavailable
from freehold.actors.look import _patiently
from freehold.schema.messages import Message, ReadRun
from freehold.storage.events import read_run
from freehold.storage.pin import pin
from freehold.storage.reader import beside
from freehold.storage.reads import READS


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path, timeout=20) as host:
        yield host


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.actors.look.OPENER_WAIT_S", 20.0)


def everything(view: RunView) -> tuple[object, ...]:
    """Return all that a view tells."""
    view.verify()
    return view.info, list(view.history()), list(view.history(reverse=True)), list(view.history(name="x", after=1))


def test_looking_at_a_file_that_nobody_owns_changes_nothing(tmp_path: Path) -> None:
    path = new_run(tmp_path)
    before = snapshot(tmp_path)
    assert everything(freehold.view(path.file))[1:] == everything(freehold.view(path.file))[1:]
    assert snapshot(tmp_path) == before


def test_looking_at_a_file_whose_owner_was_killed_changes_nothing(tmp_path: Path) -> None:
    path = new_run(tmp_path)
    forge_and_die(path, "UPDATE run SET updated_at = updated_at + 1")
    assert Path(path.sibling("-wal")).stat().st_size
    before = snapshot(tmp_path)
    everything(freehold.view(path.file))
    assert snapshot(tmp_path) == before


def test_a_view_of_a_run_that_is_owned_here_asks_its_owner(host: Host) -> None:
    with host.create("a") as run:
        run.append("x", [1])
        view = host.view("a")
        assert everything(view) == everything(run)
        with senders() as go, Busy(run):
            looking = go(lambda: view.info)
            waiting(run, 1)
            assert not looking.done()
        assert run.info.epoch == 1


def test_whoever_looks_at_an_owner_that_does_not_answer_is_told_so_in_time(host: Host) -> None:
    with host.create("a") as run, Busy(run):
        with pytest.raises(DeadlineExceeded), freehold.fail_after(0.05):
            _ = host.view("a").info
        host.view("a").verify()  # it has a connection of its own


def test_a_view_sees_what_an_owner_in_another_process_has_committed(tmp_path: Path) -> None:
    with owns(tmp_path, "a", "x", "y"):
        view = freehold.view(tmp_path / "a.sqlite")
        assert names(view) == ["x", "y"]
        assert view.info.epoch == 1
        everything(view)
        names_now = set(run_files(tmp_path))
    assert names_now == {"a.sqlite", "a.sqlite-wal", "a.sqlite-shm"}
    assert everything(view)[1:] == everything(freehold.view(tmp_path / "a.sqlite"))[1:]


@pytest.mark.usefixtures("patient")
def test_looking_does_not_disturb_who_opens_and_closes_meanwhile(host: Host) -> None:
    host.create("a").close()
    host.close()
    view = freehold.view(host.root / "a.sqlite")
    with senders(4) as go:
        looking = [go(everything, view) for _ in range(60)]
        for _ in range(5):
            with freehold.open(host.root) as again, open_beside_readers(again) as run:
                run.append("x")
        for look in looking:
            look.result()
    assert names(view) == ["x"] * 5


def test_whoever_reads_beside_an_owner_that_goes_meanwhile_leaves_the_file_whole(host: Host) -> None:
    with host.create("a") as run:
        run.append("x")
    with beside(run._path) as db:
        assert read_run(db).id == "a"
        host.close()
    assert names(freehold.view(run.path)) == ["x"]
    freehold.view(run.path).verify()


def open_beside_readers(host: Host) -> Run:
    """Return the run as soon as no reader takes longer than an opener waits."""
    opened: list[Run] = []

    def try_once() -> bool:
        try:
            opened.append(host.open("a"))
        except OwnedElsewhere as error:
            if not error.details["shared"]:
                raise
        return bool(opened)

    until(try_once)
    return opened[0]


@pytest.mark.usefixtures("patient")
def test_an_owner_is_not_kept_out_by_readers_who_follow_each_other(tmp_path: Path) -> None:
    new_run(tmp_path)
    view = freehold.view(tmp_path / "a.sqlite")
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            _ = view.info

    with senders(4) as go:
        looking = [go(look) for _ in range(4)]
        try:
            for _ in range(5):
                with freehold.open(tmp_path) as host, open_beside_readers(host) as run:
                    run.append("x")
        finally:
            stop.set()
        for done in looking:
            done.result()
    assert names(view) == ["x"] * 5


def test_a_run_that_is_not_there_has_an_empty_journal_and_nothing_is_created(host: Host, tmp_path: Path) -> None:
    for view in (host.view("a"), freehold.view(tmp_path / "none" / "b.sqlite")):
        assert list(view.history()) == list(view.history(after=5, reverse=True)) == []
        with pytest.raises(RunNotFound):
            _ = view.info
        with pytest.raises(RunNotFound):
            view.verify()
    assert list(tmp_path.iterdir()) == []


def test_what_sqlite_says_of_a_file_is_told_in_our_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def corrupt(*_: object) -> None:
        error = apsw.CorruptError("a stored value")
        error.extendedresult = apsw.SQLITE_CORRUPT  # type: ignore[attr-defined] # as apsw sets it
        raise error

    view = freehold.view(new_run(tmp_path).file)
    kind: type[Message] = ReadRun
    monkeypatch.setitem(READS, kind, corrupt)
    with pytest.raises(Damaged) as caught:
        _ = view.info
    assert "a stored value" not in str(caught.value)


def test_whoever_looks_while_the_file_changes_hands_in_this_process_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = new_run(tmp_path)
    held = pin(path, exclusive=True)  # as its owner has it before it is known as one
    monkeypatch.setattr("freehold.actors.look.pause", held.close)
    assert freehold.view(path.file).info.events == 1


@pytest.mark.parametrize(
    "passing",
    [LeaseLost("lost"), *(Unavailable("in a moment", code=code) for code in ("stopping", "database_busy", "changed_while_reading"))],
    ids=lambda error: error.code,
)
def test_what_passes_by_itself_is_waited_for_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passing: Error) -> None:
    pauses: list[int] = []
    monkeypatch.setattr("freehold.actors.look.pause", lambda: pauses.append(1))
    answers = [passing]

    def once() -> str:
        if answers:
            raise answers.pop()
        return "seen"

    assert _patiently(new_run(tmp_path), once) == "seen"
    assert len(pauses) == 1
    answers.append(MailboxFull("full"))
    with pytest.raises(MailboxFull):
        _patiently(new_run(tmp_path, "b"), once)
    assert len(pauses) == 1


def test_nobody_looks_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.actors.look.OPENER_WAIT_S", 0.0)
    monkeypatch.setattr("freehold.actors.look.pause", lambda: pytest.fail("its time was up"))

    def once() -> None:
        raise Unavailable("in a moment", code="stopping")

    with pytest.raises(Unavailable):
        _patiently(new_run(tmp_path), once)
