"""What is stored is in no message, detail, repr, traceback or log line of ours, whatever goes wrong."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faulty import EIO, FULL, Disk, put_on
from other import write
from runfile import forge
from turns import Busy, owner, senders, store, waiting

import freehold
from freehold import Error, Host, Run

CANARY = "canary 1f6a"
"""A short plain word would be shown where it is a key of a value, in the path to what was refused."""
LONG = CANARY + "x" * 10_000


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def host(tmp_path: Path, disk: Disk, caplog: pytest.LogCaptureFixture) -> Iterator[Host]:
    with caplog.at_level(logging.DEBUG):
        with freehold.open(tmp_path, timeout=20, secrets={"word": f"{CANARY}-secret"}) as host:
            put_on(disk, host)
            yield host
        assert "canary" not in caplog.text


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a", props={CANARY: CANARY}, project=CANARY) as run:
        run.append(CANARY, {CANARY: CANARY}, request_id=CANARY)
        run.append(CANARY, LONG)
        yield run


def silent(call: Callable[[], object]) -> Error:
    """Return the error that *call* raises, after all that it shows was looked through."""
    with pytest.raises(Error) as caught:
        call()
    error = caught.value
    # Our own frames show lines of code, never what they worked on.
    text = "".join(traceback.format_exception(error, chain=True))
    shown = text.replace(f'"{CANARY}"', "")
    for place in (str(error), repr(error), repr(error.details), repr(error.record()), repr(error.args), shown):
        assert CANARY not in place
    cause: BaseException | None = error
    while cause is not None:
        assert CANARY not in str(cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return error


def test_refusals_show_nothing(host: Host, run: Run) -> None:
    other = host.create("b")
    foreign = other.append(CANARY)
    run.transact(lambda _tx: CANARY, request_id="done")
    run.once("same", len, CANARY)
    with pytest.raises(KeyboardInterrupt):
        run.options(unknown="park").once("left", interrupted, CANARY)
    wrong: list[Callable[[], object]] = [
        lambda: run.append(CANARY + "\n"),
        lambda: run.append(CANARY, {CANARY: [object()]}),
        lambda: run.append(CANARY, {(CANARY,): 1}),
        lambda: run.append(CANARY, CANARY + "\ud800"),
        lambda: run.append(CANARY, "other", request_id=CANARY),
        lambda: run.append("x", request_id=CANARY + "\x00"),
        lambda: run.append("x", f"{CANARY}-secret"),
        lambda: run.append(f"{CANARY}-secret"),
        lambda: run.append("x", request_id="done"),
        lambda: run.transact(lambda _tx: {CANARY: object()}, request_id="reply"),
        lambda: run.transact(lambda _tx: foreign, request_id="reply"),
        lambda: run.transact(lambda tx: tx.settle(CANARY)),
        lambda: run.transact(lambda tx: (tx.begin_execution(), tx.settle("failed", event=foreign))),
        lambda: run.once("same", len, LONG),
        lambda: run.once("left", interrupted, CANARY),
        lambda: run.once("kept", lambda: {CANARY: [object()]}),
        lambda: run.once("kept", lambda: {CANARY: [object()]}),
        lambda: run.once("secret", lambda: {CANARY: f"{CANARY}-secret"}),
        lambda: run.once("large", lambda: CANARY * 10_000_000),
        lambda: run.once(CANARY + "\n", len, CANARY),
        lambda: run.once(f"{CANARY}-secret", len, CANARY),
        lambda: run.history(after=CANARY),
        lambda: run.history(name=CANARY + "\n"),
        lambda: host.create("a", props={CANARY: CANARY}),
        lambda: host.ensure("a", props={CANARY: "other"}, project="other"),
        lambda: host.create("c", props={CANARY: object()}),
        lambda: host.create(CANARY + "/"),
        lambda: host.view(f"{CANARY}!"),
        lambda: list(host.runs(status=CANARY)),
        lambda: freehold.open(host.root, secrets={"x": CANARY, CANARY: CANARY}),
    ]
    for call in wrong:
        silent(call)
    other.close()


def interrupted(_: object) -> None:
    raise KeyboardInterrupt


def test_failures_of_the_disk_show_nothing(host: Host, run: Run, disk: Disk) -> None:
    disk.arm("sync", code=EIO)
    assert silent(lambda: run.append(CANARY, CANARY)).code == "storage_failed"
    disk.heal()
    write(run.path, f"UPDATE run SET project = '{CANARY} again'")
    assert silent(lambda: run.append(CANARY, CANARY)).details["fence"] == "foreign_writer"
    assert run.info.epoch == 3  # the owner is there again
    db = store(host, run).db
    db.pragma("max_page_count", db.pragma("page_count"))
    assert silent(lambda: [run.append(CANARY, CANARY * 200) for _ in range(5)]).details["sqlite_extended_code"] == FULL


def test_constraints_and_faults_of_ours_show_nothing(host: Host, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from freehold.schema.messages import Append

    def broken(*_: Any) -> None:
        raise TypeError(CANARY)

    assert silent(lambda: run._ref.call(Append("", f'"{CANARY}"'), run._lease)).code == "storage_failed"
    assert silent(lambda: run._ref.call(Append(CANARY, CANARY), run._lease)).code == "storage_failed"
    monkeypatch.setattr(type(store(host, run)), "commit", broken)
    assert silent(lambda: run.append(CANARY)).code == "crashed"


def test_an_exception_of_the_users_own_is_theirs_and_is_not_logged(run: Run) -> None:
    def work(tx: freehold.Transaction) -> None:
        tx.append("lost")
        raise ValueError(CANARY)

    with pytest.raises(ValueError, match=CANARY):
        run.transact(work)


def test_damage_shows_nothing(host: Host, run: Run) -> None:
    path = run._path
    host.close()
    forge(path, f"UPDATE event SET record = '\"{CANARY}' || char(10) || '\"' WHERE seq = 2", f"UPDATE run SET id = '{CANARY}'")
    view = freehold.view(path.file)
    silent(view.verify)
    silent(lambda: view.info)
    with freehold.open(host.root) as again:
        silent(lambda: again.open("a"))
        infos = list(again.runs())
        assert all("canary" not in repr(info) for info in infos)
        assert all("canary" not in repr(info.error.record()) for info in infos if info.error is not None)


def test_nothing_that_is_held_shows_a_value_in_its_repr(host: Host, run: Run) -> None:
    event = run.append(CANARY, CANARY)
    things: list[object] = [host, run, host.view("a"), event, run.info, host.tree(), str(host.tree()), run._ref, run._secrets]
    things += [owner(host, run)._store.recognised.last_seq, run._lease, host.tree().record()]
    with senders() as go:
        with Busy(run):
            calls = [go(run.append, CANARY, CANARY), go(run.transact, lambda tx: tx.append(CANARY), request_id="x")]
            waiting(run, 2)
            things += [[repr(envelope), repr(envelope.message)] for lane in run._ref.mailbox._lanes for envelope in lane]
        for call in calls:
            call.result()
    with run.transaction() as tx:
        things.append(tx)
        things.append(tx.append(CANARY))
    for thing in things:
        assert CANARY not in repr(thing)
        assert CANARY not in str(thing)
