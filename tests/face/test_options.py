"""Another face of a lease: another timeout, and answers that do not wait for the disk but say so."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faulty import Disk, put_on
from turns import Busy, names, store, until, waiting

import freehold
from freehold import DeadlineExceeded, Host, LeaseClosed, Refused, Run
from freehold import operations as op


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def host(tmp_path: Path, disk: Disk) -> Iterator[Host]:
    with freehold.open(tmp_path, timeout=30) as host:
        put_on(disk, host)
        yield host


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a") as run:
        yield run


def block(run: Run) -> Any:
    with run.publish("block") as files:
        files.write_text("block", "1")
    return files.effect


def spanning(run: Run) -> Any:
    with run.transaction() as tx:
        return tx.append("spanning")


WRITES: dict[str, Callable[[Run], Any]] = {
    "append": lambda run: run.append("x"),
    "append once": lambda run: run.append("x", request_id="r"),
    "append long": lambda run: run.append("x", "long" * 5_000),
    "transact": lambda run: run.transact(lambda tx: tx.append("x")),
    "apply": lambda run: run.apply([op.touch("applied"), op.append("x")])[1],
    "publish": lambda run: run.publish("x", lambda files: files.touch("published")),
    "block": block,
    "transaction": spanning,
}


@pytest.mark.parametrize("name", WRITES)
def test_what_does_not_wait_for_the_disk_says_so_and_syncs_nothing(run: Run, disk: Disk, name: str) -> None:
    run.append("first")
    before = disk.syncs
    event = WRITES[name](run.options(durable=False))

    assert (event.durable, disk.syncs) == (False, before)
    assert list(run.history())[-1] == event


@pytest.mark.parametrize("name", WRITES)
def test_what_waits_for_the_disk_says_so_and_takes_all_before_it_there(host: Host, run: Run, disk: Disk, name: str) -> None:
    run.options(durable=False).append("early")
    before = disk.syncs
    event = WRITES[name](run)

    assert event.durable is True
    assert disk.syncs > before
    assert not store(host, run).transaction.awaits_sync


def test_an_event_that_was_read_does_not_say(run: Run) -> None:
    run.append("x")

    assert [event.durable for event in run.history()] == [None, None]


def test_a_repeated_request_waits_for_what_was_answered_before_the_disk_had_it(run: Run, disk: Disk) -> None:
    ways: list[Callable[[Run], Any]] = [
        lambda face: face.append("x", request_id="r"),
        lambda face: face.transact(lambda tx: tx.append("y"), request_id="s"),
        lambda face: face.publish("z", lambda files: files.touch("f"), request_id="t"),
        lambda face: face.apply([op.append("w")], request_id="u")[0],
    ]
    for again in ways:
        early = again(run.options(durable=False))
        before = disk.syncs
        later = again(run)

        assert (early.durable, later.durable, later) == (False, True, early)
        assert disk.syncs == before + 1
        assert (again(run).durable, disk.syncs) == (True, before + 1)


def test_one_turn_that_waits_makes_the_whole_batch_wait(run: Run, disk: Disk) -> None:
    events: dict[str, Any] = {}

    def send(name: str, face: Run) -> None:
        events[name] = face.append(name)

    early, before = run.options(durable=False), run.info.txn
    with Busy(early):  # whoever waits for the disk does not join it: all three come to the next one
        senders = [threading.Thread(target=send, args=each) for each in (("a", run), ("b", early), ("c", early))]
        for number, sender in enumerate(senders):
            sender.start()
            waiting(run, number + 1)
    for sender in senders:
        sender.join()

    assert {name: event.durable for name, event in events.items()} == {"a": True, "b": True, "c": True}
    assert run.info.txn == before + 1


def test_one_that_waits_does_not_join_those_that_do_not(host: Host, run: Run, disk: Disk) -> None:
    early = run.options(durable=False)
    inside, go = threading.Event(), threading.Event()
    events: dict[str, Any] = {}

    def hold(tx: freehold.Transaction) -> Any:
        inside.set()
        assert go.wait(30)
        return tx.append("early")

    def send(name: str, call: Callable[[], Any]) -> threading.Thread:
        sender = threading.Thread(target=lambda: events.update({name: call()}))
        sender.start()
        return sender

    first = send("early", lambda: early.transact(hold))
    assert inside.wait(30)
    second = send("waits", lambda: run.append("waits"))
    waiting(run, 1)
    go.set()
    first.join()
    second.join()

    assert {name: event.durable for name, event in events.items()} == {"early": False, "waits": True}
    assert names(run) == ["early", "waits"]


def test_nothing_is_lost_with_its_process_and_the_close_makes_all_of_it_durable(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as host, host.create("a") as run:
        run.options(durable=False).append("early")
    with freehold.open(tmp_path) as host, host.open("a") as run:
        assert names(run) == ["early"]
        run.verify()


def test_the_timeout_of_a_face_bounds_its_calls_and_no_others(run: Run) -> None:
    hasty = run.options(timeout=0.05)
    with Busy(run):
        with pytest.raises(DeadlineExceeded) as caught:
            hasty.append("lost")
        assert caught.value.executed == "no"
        with pytest.raises(DeadlineExceeded), hasty.transaction():
            raise AssertionError("it began")
        sender = threading.Thread(target=run.append, args=("kept",))
        sender.start()
    sender.join()
    hasty.append("in time")

    assert names(run) == ["kept", "in time"]


def test_the_options_are_those_given_and_none_of_another_face(run: Run) -> None:
    early = run.options(timeout=5, durable=False)

    assert (early._timeout, early._durable) == (5.0, False)
    assert (early.options(timeout=7)._timeout, early.options(timeout=7)._durable) == (7.0, True)
    assert (run._timeout, run._durable) == (None, True)


@pytest.mark.parametrize("wrong", [{"durable": 1}, {"durable": None}, {"timeout": -1}, {"timeout": "x"}])
def test_a_wrong_option_is_refused(run: Run, wrong: dict[str, Any]) -> None:
    with pytest.raises(Refused) as caught:
        run.options(**wrong)

    assert caught.value.code == "bad_option"


def test_closing_either_face_closes_the_lease(host: Host, run: Run) -> None:
    for close in (0, 1):
        faces = [lease := host.open("a"), lease.options(durable=False)]
        faces[close].close()
        for face in faces:
            with pytest.raises(LeaseClosed):
                face.append("lost")
    assert names(run) == []


def test_a_lease_lives_as_long_as_any_face_of_it_and_is_given_back_with_the_last(host: Host, run: Run) -> None:
    faces = [host.open("a").options(durable=False)]
    gc.collect()
    assert faces[0].append("kept").durable is False
    with pytest.warns(ResourceWarning, match="a lease on a was never closed"):
        faces.clear()

    run.append("on")
    until(lambda: "1 lease" in str(host.tree()) and "2 leases" not in str(host.tree()))


def test_a_face_that_is_dropped_leaves_its_lease_open(run: Run) -> None:
    faces = [run.options(durable=False)]
    faces.clear()
    gc.collect()

    run.append("on")
    assert names(run) == ["on"]
