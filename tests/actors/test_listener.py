"""Other processes come in through a socket, one thread each; whatever they do harms neither the host nor the others."""

from __future__ import annotations

import logging
import os
import random
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from caller import PATIENCE_S, Caller, code_in, names_of_sockets, read_frame, request, wire
from folder import run_files
from leaks import freehold_threads
from nobody import NOBODY, needs_another_user
from turns import Busy, names, owner, run_nodes, senders, until, waiting

import freehold
from freehold import Damaged, DeadlineExceeded, Host, Refused, Run, Unavailable
from freehold.actors import connection, listener
from freehold.actors.deadline import monotonic
from freehold.actors.listener import Broke
from freehold.actors.registrar import REGISTRAR
from freehold.actors.runs import LISTENER
from freehold.schema import operations
from freehold.schema.changes import Change
from freehold.schema.limits import CONNECTIONS_MAX, REQUEST_FRAME_BYTES_MAX
from freehold.schema.messages import (
    Append,
    Apply,
    FindTime,
    KeepObjects,
    Message,
    PublishOn,
    ReadChanges,
    ReadEvent,
    ReadPage,
    ReadRun,
    ShowTree,
    WaitBeyond,
)
from freehold.schema.repeated import Repeated
from freehold.schema.roots import EMPTY_ROOT, EMPTY_TREE, make_root
from freehold.schema.wire import Request, encode_hello, encode_request, frame
from freehold.storage import platform


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def host(root: Path) -> Iterator[Host]:
    with freehold.open(root, timeout=60, secrets={"pass": "hunter22"}) as host:
        yield host


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a") as run:
        yield run


def leases(host: Host) -> str | None:
    return run_nodes(host)[0].doing


def guests(host: Host) -> str | None:
    return next(node.doing for node in host.tree().children if node.name == LISTENER)


# What is asked is done


def test_a_host_that_owns_nothing_has_no_socket_and_no_thread_for_it(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as host:
        with pytest.raises(freehold.RunNotFound):
            host.open("a")
        assert list(tmp_path.iterdir()) == []
        assert host.tree().children == ()


def test_the_first_run_makes_it_and_the_hosts_end_takes_it_away(root: Path) -> None:
    with freehold.open(root) as host:
        host.create("a").close()
        (name,) = names_of_sockets(root)
        assert (root / name).lstat().st_mode & 0o777 == 0o600
        with host.create("b"), host.open("a"):
            assert names_of_sockets(root) == [name]
    assert run_files(root) == ["a.sqlite", "b.sqlite"]
    assert names_of_sockets(root) == []


def test_what_is_asked_over_it_is_done_as_a_lease_does_it(host: Host, root: Path, run: Run) -> None:
    with Caller(root) as caller:
        written = caller.ask(Append("x", '{"a":1}'))
        assert (written.seq, written.record) == (2, '{"a":1}')
        assert caller.ask(ReadEvent(2)).hash == written.hash
        rows, at = caller.ask(ReadPage(0))
        assert ([row.seq for row in rows], at) == ([1, 2], None)
        row, events = caller.ask(ReadRun())
        assert (row.id, events) == ("a", 2)
    assert [(event.name, event.data) for event in run.history(after=1)] == [("x", {"a": 1})]


def test_a_request_id_is_answered_with_its_event_whoever_asks(root: Path, run: Run) -> None:
    event = run.append("x", {"b": 1, "a": 2}, request_id="r")
    with Caller(root) as caller:
        assert caller.ask(Append("x", '{"b":1,"a":2}', "r", bytes(32))).seq == event.seq
        with pytest.raises(Refused) as caught:
            caller.ask(Append("x", "7", "r", bytes(32)))
        assert caught.value.code == "request_conflict"
    assert names(run) == ["x"]


def test_what_a_lease_would_not_have_sent_is_refused_and_the_connection_goes_on(root: Path, run: Run) -> None:
    publish = PublishOn("n", '{"changes":1}', EMPTY_ROOT.hash, make_root(bytes(32), 1, 1, 1).data)
    apply = Apply((operations.Mkdir("CON"),))
    forged = (publish, WaitBeyond(-1), ReadChanges(b"", b""))
    more: list[tuple[Message, str]] = [(apply, "bad_path"), *((each, "malformed_frame") for each in forged)]
    wrong = [*more, (Append("", "1"), "bad_name"), (Append("n", '"hunter22"'), "secret_refused"), (Append("n", "{"), "malformed_frame")]
    with Caller(root) as caller:
        for message, code in [*wrong, (KeepObjects(()), "malformed_frame")]:
            with pytest.raises(Refused) as caught:
                caller.ask(message)
            assert (caught.value.code, caught.value.executed) == (code, "no")
            assert "hunter22" not in str(caught.value.record())
        assert caller.ask(Append("n", "1")).seq == 2
    assert names(run) == ["n"]


def test_a_transaction_as_data_is_carried_out_for_whoever_asks(root: Path, run: Run) -> None:
    steps = (operations.BeginExecution(), operations.Append("x", '"1"'), operations.Mkdir("d"), operations.Settle("suspended", result=1))
    with Caller(root) as caller:
        first, written, third, settled = caller.ask(Apply(steps, "r", bytes(32)))
        assert (first, written.name, third, settled.kind) == (1, "x", None, "settled")
        again = caller.ask(Apply(steps, "r"))
        assert (type(again), again.durable) == (Repeated, True)
        with pytest.raises(Refused) as caught:
            caller.ask(Apply((*steps[:2], operations.Mkdir("d"))))
        assert (caught.value.code, caught.value.details["errno"], caught.value.details["operation"]) == ("file_error", 17, 2)
    assert run.apply(steps, request_id="r")[1] == next(run.history(name="x"))
    assert (names(run), run.info.status) == (["x"], "suspended")
    run.verify()


def test_changes_are_told_and_none_where_they_would_take_long(root: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = (bytes.fromhex(each) for each in (run.files.root, run.publish("p", lambda files: files.write_text("a", "1")).root))
    with Caller(root) as caller:
        assert caller.ask(ReadChanges(before, after)) == [Change("a", "added", None, "a")]
        with pytest.raises(Damaged):
            caller.ask(ReadChanges(bytes(32), after))
        monkeypatch.setattr("freehold.storage.difference.COMPARED_NODES_MAX", 1)
        assert caller.ask(ReadChanges(before, after)) is None
    run.verify()


def test_a_picture_of_the_host_is_had_while_a_run_is_stuck(host: Host, root: Path, run: Run) -> None:
    with Caller(root) as caller, Busy(run):
        seen = caller.ask(ShowTree())
    assert {child["name"] for child in seen["children"]} == {"a", LISTENER, REGISTRAR}
    assert ["transact for" in child["doing"] for child in seen["children"] if child["name"] == "a"] == [True]
    assert seen["name"] == host.tree().name


def test_a_run_that_is_not_owned_there_is_said_not_to_be(host: Host, root: Path, run: Run) -> None:
    host.create("b").close()
    inode = platform.inode_of(run.path.stat())
    with Caller(root) as caller:
        for message in (
            Request(ReadRun(), "nobody", inode, 5.0),
            Request(ReadRun(), "b", inode, 5.0),
            Request(ReadRun(), "a", (1, 2), 5.0),
        ):
            with pytest.raises(Unavailable) as caught:
                caller.line.ask(encode_request(message), ReadRun(), 2**40)
            assert (caught.value.code, caught.value.retryable, caught.value.executed) == ("not_owner", True, "no")
        assert caller.ask(ReadRun())[1] == 1


def test_a_run_of_another_host_of_this_process_is_not_this_hosts(host: Host, root: Path, run: Run, tmp_path: Path) -> None:
    with freehold.open(tmp_path / "others") as other, other.create("a") as elsewhere, Caller(root) as caller:
        message = Request(ReadRun(), "a", platform.inode_of(elsewhere.path.stat()), 5.0)
        with pytest.raises(Unavailable, match="not owned there"):
            caller.line.ask(encode_request(message), ReadRun(), 2**40)


def test_the_run_is_given_back_in_its_time_although_somebody_only_looked(root: Path) -> None:
    with freehold.open(root, idle_timeout=0.1) as host:
        host.create("a").close()
        with Caller(root) as caller:
            until(lambda: not run_nodes(host))
            with pytest.raises(Unavailable) as caught:
                caller.ask(ReadRun())
            assert caught.value.code == "not_owner"


# Leases


def test_a_connection_has_one_lease_a_run_that_keeps_nobody_from_giving_it_back(host: Host, root: Path, run: Run) -> None:
    with Caller(root) as caller:
        caller.ask(ReadRun())
        assert leases(host) == "epoch 1, 1 lease"
        for _ in range(3):
            caller.ask(Append("x", "1"))
        assert leases(host) == "epoch 1, 2 leases"
        with pytest.raises(Refused, match="1 leases on a") as caught:
            host.delete("a")
        assert caught.value.code == "run_in_use"
    until(lambda: leases(host) == "epoch 1, 1 lease")
    with Caller(root) as caller:
        caller.ask(Append("x", "1"))
        request_ = request(root, Append("x", "1"))
        run.close()
        host.delete("a")
        with pytest.raises(Unavailable) as told:
            caller.line.ask(request_, Append("x", "1"), monotonic() + PATIENCE_S)
        assert (told.value.code, told.value.executed) == ("not_owner", "no")


def test_what_its_asker_has_given_up_does_not_run_after_what_he_asked_next(host: Host, root: Path, run: Run) -> None:
    for number in range(20):
        gone, caller = Caller(root), Caller(root)
        gone.ask(Append("first", "1"))
        with senders() as go, Busy(run) as busy:
            go(gone.ask, Append("gone", str(number)))
            waiting(run, 1)
            gone.line._end.shutdown(socket.SHUT_RDWR)
            after = go(caller.ask, Append("after", str(number)))
            busy.release()
            assert after.result().name == "after"
        caller.line.close()
    assert names(run) == ["first", "after"] * 20


def test_what_nobody_waits_for_any_more_is_abandoned(host: Host, root: Path, run: Run) -> None:
    with Caller(root) as caller, Caller(root) as gone, senders() as go:
        caller.ask(Append("first", "1"))
        with Busy(run):
            stays = go(caller.ask, Append("stays", "1"))
            leaves = go(gone.ask, Append("leaves", "1"))
            waiting(run, 2)
            gone.line._end.shutdown(socket.SHUT_RDWR)
            until(lambda: guests(host) is not None and "1 connection" in str(guests(host)))
        assert stays.result().name == "stays"
        assert isinstance(leaves.exception(), Unavailable)
    assert names(run) == ["first", "stays"]
    until(lambda: leases(host) == "epoch 1, 1 lease")


def test_what_waits_for_its_turn_is_abandoned_when_its_asker_hangs_up(host: Host, root: Path, run: Run) -> None:
    with Caller(root) as gone, senders() as go:
        gone.ask(Append("first", "1"))
        with Busy(run):
            leaves = go(gone.ask, Append("leaves", "1"))
            waiting(run, 1)
            gone.line._end.shutdown(socket.SHUT_RDWR)
            until(lambda: "0 connections" in str(guests(host)))
        assert leaves.exception() is not None
    assert names(run) == ["first"]


def test_the_time_that_is_left_travels_with_a_request(host: Host, root: Path, run: Run) -> None:
    with Caller(root) as caller, Busy(run):
        with pytest.raises(DeadlineExceeded) as caught:
            caller.ask(Append("late", "1"), timeout=0.3)
        assert caught.value.executed == "no"  # the owner knows that it was not taken up
    assert names(run) == []


# Waiting for what comes


def test_whoever_waits_is_told_of_the_next_event_and_holds_no_lease(host: Host, root: Path, run: Run) -> None:
    with Caller(root) as caller, Caller(root) as other, senders() as go:
        waits, waits_too = go(caller.ask, WaitBeyond(1)), go(other.ask, WaitBeyond(2))
        until(lambda: waiters_of(host, run) == 2)
        assert leases(host) == "epoch 1, 1 lease"
        run.append("x")
        assert waits.result() == 2
        run.append("y")
        assert waits_too.result() == 3
        assert caller.ask(WaitBeyond(2)) == 3
        assert caller.ask(WaitBeyond(3), timeout=0.2) is None


def test_whoever_hangs_up_waits_no_longer(host: Host, root: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.actors.waiting.WAIT_BEYOND_S", 600.0)
    with Caller(root) as gone, Caller(root) as stays, senders() as go:
        leaves, waits = go(gone.ask, WaitBeyond(1), timeout=600.0), go(stays.ask, WaitBeyond(1), timeout=600.0)
        until(lambda: waiters_of(host, run) == 2)
        gone.line._end.shutdown(socket.SHUT_RDWR)
        until(lambda: waiters_of(host, run) == 1)
        assert isinstance(leaves.exception(), Unavailable)
        run.append("x")
        assert waits.result() == 2
        assert waiters_of(host, run) == 0


def waiters_of(host: Host, run: Run) -> int:
    return len(owner(host, run)._waiters._waiting)


# Whoever keeps to no rule


def test_whoever_says_nothing_is_shown_out(host: Host, root: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HELLO_S", 0.1)
    with wire(root, greet=False) as end:
        assert read_frame(end) == b""
    assert run.append("x").seq == 2


def test_half_a_frame_is_not_waited_for_and_holds_up_nobody(host: Host, root: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FRAME_S", 1.0)
    whole = request(root, Append("half", "1"))
    with wire(root) as one, wire(root) as two, Caller(root) as caller:
        one.sendall(whole[:2])
        two.sendall(whole[:-1])
        assert caller.ask(Append("whole", "1")).seq == 2
        for end in (one, two):
            assert code_in(read_frame(end)) == "stopping"
            assert read_frame(end) == b""
    assert names(run) == ["whole"]


def test_a_connection_that_is_unused_for_long_is_ended_and_says_so(
    host: Host, root: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECTION_IDLE_S", 0.1)
    with wire(root) as end:
        assert code_in(read_frame(end)) == "stopping"
        assert read_frame(end) == b""


@pytest.mark.parametrize(
    "first", [b"GET / HTTP/1.1\r\n\r\n", frame(b"\x80"), frame(msgspec.msgpack.encode({"type": "hello", "protocol": 9}))]
)
def test_whoever_does_not_greet_as_we_do_is_refused(host: Host, root: Path, run: Run, first: bytes) -> None:
    with wire(root, greet=False) as end:
        end.sendall(first)
        assert code_in(read_frame(end)) in ("frame_too_large", "malformed_frame", "other_protocol")
        assert read_frame(end) == b""
    assert run.append("x").seq == 2


def test_a_frame_that_is_too_large_is_refused_before_it_is_read(host: Host, root: Path, run: Run) -> None:
    with wire(root) as end:
        end.sendall(struct.pack(">I", REQUEST_FRAME_BYTES_MAX + 1))
        assert code_in(read_frame(end)) == "frame_too_large"
        assert read_frame(end) == b""


def test_a_request_that_cannot_be_understood_is_refused_and_nothing_more_is_heard(host: Host, root: Path, run: Run) -> None:
    with wire(root) as end:
        end.sendall(frame(b"\x80") + request(root, Append("x", "1")))
        assert code_in(read_frame(end)) == "malformed_frame"
        assert read_frame(end) == b""
    assert names(run) == []


def test_an_answer_that_is_too_large_is_refused_and_the_connection_goes_on(root: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.schema.wire.REPLY_FRAME_BYTES_MAX", 2000)
    monkeypatch.setattr("freehold.schema.wire.frame.__defaults__", (2000,))
    run.append("long", "x" * 3000)
    with Caller(root) as caller:
        with pytest.raises(Refused) as caught:
            caller.ask(ReadEvent(2))
        assert caught.value.code == "frame_too_large"
        assert caller.ask(ReadRun())[1] == 2


@pytest.mark.parametrize("rounds", [500, pytest.param(20_000, marks=pytest.mark.prove)])
def test_whatever_bytes_come_in_the_host_lives_on(host: Host, root: Path, run: Run, seed: int, rounds: int) -> None:
    dice = random.Random(seed)
    good = [
        request(root, message)
        for message in (
            Append("x", '{"a":[1,2]}', "r", bytes(32)),
            ReadPage(0),
            FindTime(5),
            KeepObjects((), ahead=True),
            Apply((operations.Append("x", "1"), operations.WriteBytes("p", b"x")), "q", bytes(32)),
            PublishOn("x", '{"changes":1}', EMPTY_ROOT.hash, make_root(EMPTY_TREE.hash, 1, 1, 1).data, "p"),
            PublishOn("x", '{"failed":"X","errno":null,"path":"a"}', None, None),
            WaitBeyond(0),
            ReadChanges(EMPTY_ROOT.hash, EMPTY_ROOT.hash),
            ShowTree(),
            ReadRun(),
        )
    ]
    threads = freehold_threads()
    for _ in range(rounds):
        raw = bytearray(encode_hello() + dice.choice(good) if dice.random() < 0.9 else dice.randbytes(dice.randrange(200)))
        for _ in range(dice.randrange(1, 4)):
            if raw:
                raw[dice.randrange(len(raw))] = dice.randrange(256)
        if dice.random() < 0.3:
            del raw[dice.randrange(len(raw) + 1) :]
        with wire(root, greet=False) as end, suppress(ConnectionError):  # it hangs up on whoever goes on after an error
            end.sendall(raw)
            end.shutdown(socket.SHUT_WR)
            while read_frame(end):
                continue
    assert run.append("still").name == "still"
    with Caller(root) as caller:
        assert caller.ask(ReadRun())[0].epoch == 1
    run.verify()
    until(lambda: len(freehold_threads()) <= len(threads))
    assert [node.restarts for node in host.tree().children] == [0, 0, 0]


@needs_another_user
def test_another_user_is_not_heard_even_where_the_socket_would_let_him_in(host: Host, root: Path, run: Run) -> None:
    (name,) = names_of_sockets(root)
    (root / name).chmod(0o666)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # nothing of ours is used here but the socket
        said = b"?"
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.fchdir(folder)
            with socket.socket(socket.AF_UNIX) as end:
                end.connect(name)
                end.settimeout(10)
                end.sendall(encode_hello())
                said = end.recv(100) or b"nothing"
        except ConnectionError:
            said = b"nothing"
        finally:
            os.write(writing, said)
            os._exit(0)
    os.close(writing)
    os.close(folder)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b"nothing"
    os.close(reading)
    assert run.append("x").seq == 2


# Many at once


def test_so_many_are_served_at_once_and_one_more_is_told_to_come_later(host: Host, root: Path, run: Run) -> None:
    callers = [Caller(root) for _ in range(CONNECTIONS_MAX)]
    with pytest.raises(Unavailable) as caught:
        Caller(root)
    assert (caught.value.code, caught.value.details["connections_max"]) == ("too_many_connections", CONNECTIONS_MAX)
    with senders(CONNECTIONS_MAX) as go:
        calls = [go(caller.ask, Append("x", str(number))) for number, caller in enumerate(callers)]
        seqs = {call.result().seq for call in calls}
    assert seqs == set(range(2, CONNECTIONS_MAX + 2))
    callers.pop().line.close()
    until(lambda: f"{CONNECTIONS_MAX - 1} connections" in str(guests(host)))
    with Caller(root) as late:
        assert late.ask(Append("x", "1")).seq == CONNECTIONS_MAX + 2
    for caller in callers:
        caller.line.close()


def test_whoever_has_no_thread_to_be_served_by_is_told_to_come_later(
    host: Host, root: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = threading.Thread.start

    def start(self: threading.Thread) -> None:
        if self.name == "freehold-guest":
            raise RuntimeError("can't start new thread")
        really(self)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(Unavailable) as caught:
            Caller(root)
    assert caught.value.code == "too_many_connections"
    with Caller(root) as caller:
        assert caller.ask(ReadRun())[1] == 1


# Its end


def test_a_stop_lets_answers_go_out_and_tells_the_others(root: Path) -> None:
    host = freehold.open(root)
    run = host.create("a")
    with Caller(root) as working, Caller(root) as behind, wire(root) as idle, wire(root) as half, senders() as go:
        half.sendall(request(root, ReadRun())[:7])
        with Busy(run) as busy:
            first = go(working.ask, Append("x", "1"))
            second = go(behind.ask, Append("y", "1"))
            waiting(run, 2)
            closing = go(host.close)
            until(lambda: host.tree().state == "stopping")
            busy.release()
        closing.result()
        for call in (first, second):  # what was waiting is still done by a stop that drains
            assert call.exception() is not None or call.result().seq in (2, 3)
        assert code_in(read_frame(idle)) == "stopping"
        assert code_in(read_frame(half)) == "stopping"
        assert read_frame(idle) == read_frame(half) == b""
    run.close()
    assert names_of_sockets(root) == []
    done = [call.result().name for call in (first, second) if call.exception() is None]
    assert names(freehold.view(root / "a.sqlite")) == done


def test_a_stop_does_not_wait_for_whoever_does_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "LISTENER_STOP_S", 0.2)
    host = freehold.open(root)
    with host.create("a") as run, wire(root) as end:
        run.append("long", "x" * 2_000_000)
        end.sendall(request(root, ReadEvent(2)) * 2)  # two answers are more than fit between the two
        until(lambda: end.recv(1, socket.MSG_PEEK))
        host.close(timeout=10)
        assert [thread.name for thread in freehold_threads() if thread.name == "freehold-guest"] == []
    assert names_of_sockets(root) == []


def test_whoever_comes_after_the_end_is_refused(root: Path) -> None:
    with freehold.open(root) as host:
        host.create("a").close()
        (name,) = names_of_sockets(root)
    with pytest.raises(FileNotFoundError):
        (root / name).lstat()


def test_a_listener_that_fails_begins_anew_under_the_same_name(host: Host, root: Path, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    (name,) = names_of_sockets(root)
    with Caller(root) as caller:
        caller.ask(Append("x", "1"))
        host._runs[LISTENER].tell(Broke(ValueError("SECRET")))
        until(lambda: [node.restarts for node in host.tree().children if node.name == LISTENER] == [1])
        until(lambda: names_of_sockets(root) == [name])
        with pytest.raises(Unavailable) as caught:
            caller.ask(ReadRun())
        assert caught.value.code in ("stopping", "not_owner")
    with Caller(root) as again:
        assert again.ask(Append("y", "1")).seq == 3
    assert "SECRET" not in caplog.text
    assert run.info.epoch == 1


def test_whoever_lets_in_and_fails_is_noticed(host: Host, root: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Any:
        raise ValueError

    with monkeypatch.context() as patch:
        patch.setattr(listener, "Connection", fails)
        with wire(root, greet=False) as end:
            until(lambda: [node.restarts for node in host.tree().children if node.name == LISTENER] == [1])
            assert read_frame(end) == b""
    until(lambda: len(names_of_sockets(root)) == 1)
    with Caller(root) as caller:
        assert caller.ask(ReadRun())[1] == 1


def test_a_fault_of_ours_in_one_connection_ends_that_one_alone(host: Host, root: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Any:
        raise ValueError("SECRET")

    with Caller(root) as other:
        with monkeypatch.context() as patch:
            patch.setattr(connection, "encode_hello", fails)
            with wire(root, greet=False) as end:
                end.sendall(encode_hello())
                assert read_frame(end) == b""
        assert other.ask(ReadRun())[1] == 1
    assert [node.restarts for node in host.tree().children] == [0, 0, 0]


# Where there can be none


def test_a_host_without_a_socket_works_and_says_so_once(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> Any:
        raise PermissionError(1, "SECRET")

    monkeypatch.setattr(listener, "listen", fails)
    with caplog.at_level(logging.WARNING), freehold.open(root) as host, host.create("a") as run, host.create("b"):
        assert run.append("x").seq == 2
        assert names_of_sockets(root) == []
    told = [record.getMessage() for record in caplog.records if record.name == "freehold.actors"]
    assert len(told) == 1
    assert "no socket could be made" in told[0]
    assert "SECRET" not in told[0]


def test_where_no_thread_can_let_anybody_in_there_is_no_socket(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = threading.Thread.start

    def start(self: threading.Thread) -> None:
        if self.name == "freehold-door":
            raise RuntimeError("can't start new thread")
        really(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    with freehold.open(root) as host, host.create("a") as run:
        assert run.append("x").seq == 2
        assert names_of_sockets(root) == []


def test_no_room_for_a_connection_is_waited_out(host: Host, root: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    really = socket.socket.accept
    refused: list[int] = []

    def accept(self: socket.socket) -> Any:
        if len(refused) < 3:
            refused.append(1)
            raise OSError(24, "no descriptors")
        return really(self)

    with Caller(root):  # who waits in `accept` takes this one, and then meets what comes now
        monkeypatch.setattr(socket.socket, "accept", accept)
        with Caller(root), Caller(root) as caller:
            assert caller.ask(ReadRun())[1] == 1
    assert len(refused) == 3
    assert [node.restarts for node in host.tree().children] == [0, 0, 0]
