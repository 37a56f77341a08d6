"""Asking an owner in another process: while it lives, hangs, dies or passes the run on, what is told of a request is true."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from caller import Owner, names_of_sockets, owner
from folder import descriptors
from other import owns
from runfile import new_run
from turns import names, senders, until

import freehold
from freehold import DeadlineExceeded, Refused, RunNotFound, Unavailable
from freehold.actors.deadline import monotonic
from freehold.actors.remote import PASSED_ON, Line, Remote, ask_host
from freehold.schema.errors import Error
from freehold.schema.limits import CONNECTIONS_KEPT_MAX
from freehold.schema.messages import Append, KeepObjects, ReadPage, ReadRun, Settle, ShowTree
from freehold.schema.roots import EMPTY_TREE
from freehold.schema.wire import encode_error
from freehold.storage.objects import packed
from freehold.storage.path import RunPath, resolve

KILLED = -signal.SIGKILL


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def path(root: Path) -> RunPath:
    return resolve(root, "a")


@pytest.fixture
def remote(path: RunPath) -> Iterator[Remote]:
    found = Remote(path, timeout=20.0)
    yield found
    found.close()


def refused(remote: Remote, message: Append | ReadRun = Append("x", "1")) -> Error:  # noqa: B008 - frozen
    with pytest.raises(Error) as caught:
        remote.ask(message)
    return caught.value


def said(path: RunPath) -> list[str]:
    return names(freehold.view(path.file))


# While it lives


def test_what_is_asked_is_done_by_the_owner_and_durable_when_it_is_answered(root: Path, path: RunPath, remote: Remote) -> None:
    with owner(root) as other:
        assert remote.ask(Append("x", '{"a":1}')).seq == 2
        remote.ask(KeepObjects((packed(EMPTY_TREE),), ahead=True))
        row, events = remote.ask(ReadRun())
        assert (row.id, row.epoch, events) == ("a", 1, 2)
        other.kill()
    assert said(path) == ["x"]


def test_a_connection_is_used_again_and_several_threads_have_one_each(root: Path, remote: Remote) -> None:
    with owner(root) as other, senders(8) as go:
        before = descriptors()
        for call in [go(remote.ask, Append("x", str(number))) for number in range(64)]:
            assert call.result().kind == "note"
        assert descriptors() <= before + CONNECTIONS_KEPT_MAX
        assert ".host-" in remote.ask(ShowTree())["children"][1]["doing"]
        other.end()


def test_the_picture_of_a_host_is_had_by_its_sockets_name(root: Path) -> None:
    with owner(root) as other:
        (name,) = names_of_sockets(root)
        assert ask_host(str(root), name, ShowTree())["children"][0]["name"] == "a"
        other.end()
    with pytest.raises(Unavailable) as caught:
        ask_host(str(root), name, ShowTree())
    assert caught.value.code == "not_owner"


def test_the_owners_socket_may_lie_in_the_folder_of_the_asker(tmp_path: Path, root: Path) -> None:
    path = new_run(tmp_path / "elsewhere")
    root.mkdir()
    (root / "a.sqlite").symlink_to(path.file)
    with owner(root, first="freehold.Host.ensure = freehold.Host.open") as other:
        away, near = Remote(path), Remote(path, str(root))
        assert refused(away, ReadRun()).code == "not_owner"
        assert near.ask(ReadRun())[0].id == "a"
        near.close()
        other.end()


def test_a_folder_whose_path_is_longer_than_an_address_is_reached(tmp_path: Path) -> None:
    root = tmp_path / ("d" * 150)
    with owner(root) as other:
        remote = Remote(resolve(root, "a"))
        assert remote.ask(Append("x", "1")).seq == 2
        remote.close()
        other.end()


def test_what_the_owner_refuses_is_raised_as_itself(root: Path, path: RunPath, remote: Remote) -> None:
    with owner(root) as other:
        for message, code in ((Append("", "1"), "bad_name"), (Append("x", "{"), "malformed_frame")):
            error = refused(remote, message)
            assert (type(error), error.code, error.executed) == (Refused, code, "no")
        with pytest.raises(Refused, match="cannot be asked"):
            remote.ask(Settle("failed"))
        remote.ask(Append("x", "1", "r"))
        assert refused(remote, Append("x", "2", "r")).code == "request_conflict"
        other.end()
    assert said(path) == ["x"]


def test_a_connection_that_the_owner_has_ended_is_made_anew_and_nobody_notices(root: Path, remote: Remote) -> None:
    with owner(root, first="connection.CONNECTION_IDLE_S = 0.1") as other:
        for number in range(30):
            assert remote.ask(Append("x", "1")).seq == number + 2
            threading.Event().wait(0.09 + 0.0007 * number)  # around the moment in which it is ended
        other.end()


# Hanging


def test_an_owner_that_hangs_leaves_a_write_unknown_and_a_read_undone(root: Path, path: RunPath, remote: Remote) -> None:
    with owner(root) as other:
        remote.ask(ReadRun())
        other.stop()
        for message, executed in ((Append("x", "1"), "unknown"), (ReadRun(), "no")):
            with freehold.fail_after(0.3), pytest.raises(DeadlineExceeded) as caught:
                remote.ask(message)
            assert caught.value.executed == executed
            assert caught.value.retryable
        other.go_on()
        assert remote.ask(Append("y", "1")).name == "y"
        other.end()
    assert said(path) in (["y"], ["x", "y"], ["y", "x"])


def test_of_an_owner_that_hung_before_it_greeted_nothing_was_asked(root: Path, path: RunPath, remote: Remote) -> None:
    with owner(root) as other:
        other.stop()
        with freehold.fail_after(0.3), pytest.raises(DeadlineExceeded) as caught:
            remote.ask(Append("x", "1"))
        assert caught.value.executed == "no"
        other.go_on()
        other.end()
    assert said(path) == []


def test_what_its_asker_no_longer_waits_for_when_the_owner_wakes_is_not_done(root: Path, path: RunPath, remote: Remote) -> None:
    with owner(root) as other:
        remote.ask(ReadRun())
        other.do("import threading; inside, go = threading.Event(), threading.Event()")
        other.do(
            "busy = threading.Thread(target=run.transact, args=(lambda tx: (inside.set(), go.wait())[1],)); busy.start(); inside.wait()"
        )
        with freehold.fail_after(0.3), pytest.raises(DeadlineExceeded) as caught:
            remote.ask(Append("x", "1"))
        assert caught.value.executed == "no"
        other.do("go.set(); busy.join()")
        other.end()
    assert said(path) == []


def test_a_request_that_does_not_fit_into_a_hanging_owner_was_not_made(root: Path, path: RunPath, remote: Remote) -> None:
    with owner(root) as other:
        remote.ask(ReadRun())
        other.stop()
        with freehold.fail_after(0.5), pytest.raises(DeadlineExceeded) as caught:
            remote.ask(Append("x", '"' + "x" * 8_000_000 + '"'))
        assert caught.value.executed == "no"
        other.go_on()
        other.end()
    assert said(path) == []


def test_time_that_is_up_already_asks_nobody(root: Path, remote: Remote) -> None:
    with owner(root) as other, freehold.fail_after(0):
        assert refused(remote).code == "deadline_exceeded"
        other.end()


# Dying

DIES = {
    "when it should greet": ("connection.check_hello = die", "no"),
    "when it has read the request": ("connection.decode_request = die", "unknown"),
    "when it has checked it": ("after(connection, 'checked')", "unknown"),
    "when it is asked for a lease": ("connection.Lease = die", "unknown"),
    "when it takes the turn": ("batch.Batch.add = die", "unknown"),
    "before the COMMIT": ("store.Store.commit = die", "unknown"),
    "after the COMMIT": ("after(store.Store, 'commit')", "unknown"),
    "when it answers": ("connection.encode_value = die", "unknown"),
}
DONE = {"after the COMMIT": ["x"], "when it answers": ["x"]}


@pytest.mark.parametrize("when", DIES)
def test_an_owner_that_dies_leaves_a_write_as_unknown_as_it_is(root: Path, path: RunPath, remote: Remote, when: str) -> None:
    die, executed = DIES[when]
    with owner(root) as other:
        other.do(die)
        error = refused(remote)
        assert other.process.wait(30) == KILLED
    assert (error.code in PASSED_ON, error.executed) == (executed == "no", executed)
    assert executed == "no" or error.code == "no_answer"
    assert said(path) == DONE.get(when, [])


@pytest.mark.parametrize("when", ["when it has read the request", "when it answers"])
def test_an_owner_that_dies_leaves_a_read_undone(root: Path, remote: Remote, when: str) -> None:
    with owner(root) as other:
        other.do(DIES[when][0])
        error = refused(remote, ReadRun())
        assert other.process.wait(30) == KILLED
    assert (error.code, error.executed) == ("no_answer", "no")


def test_after_its_owners_death_a_run_is_nobodys(root: Path, remote: Remote) -> None:
    with owner(root) as other:
        remote.ask(ReadRun())
        other.kill()
        for _ in range(2):
            error = refused(remote)
            assert (error.code, error.executed, error.retryable) == ("not_owner", "no", True)


def test_a_child_that_an_owner_has_forked_does_not_keep_its_askers_waiting(root: Path, remote: Remote) -> None:
    with owner(root) as other:
        remote.ask(Append("x", "1"))
        other.do("child, reading, writing = None, *os.pipe()")
        other.do("child = os.fork() or (os.write(writing, b'x'), signal.pause())")
        other.do("os.read(reading, 1)")  # the child has let go of all that it holds before it comes so far
        other.do("open(sys.argv[1] + '/child', 'w').write(str(child))")
        other.kill()
        try:
            for message in (Append("y", "1"), ReadRun()):
                assert refused(remote, message).code == "not_owner"
        finally:
            os.kill(int((root / "child").read_text()), signal.SIGKILL)


def test_a_fork_of_the_asker_lets_go_of_its_connections(root: Path, remote: Remote) -> None:
    with owner(root) as other:
        remote.ask(Append("x", "1"))
        (lines,) = map(list, remote._lines._kept.values())
        assert [line.is_quiet for line in lines] == [True]
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, b"held" if any(line._end.fileno() >= 0 for line in lines) else b"free")
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reading, 10) == b"free"
        os.close(reading)
        os.close(writing)
        assert remote.ask(Append("y", "1")).seq == 3
        other.end()


# Passing on


def test_a_run_that_was_given_back_is_looked_for_again(root: Path, path: RunPath, remote: Remote) -> None:
    with owner(root, first="freehold.open = __import__('functools').partial(freehold.open, idle_timeout=0.05)") as one:
        remote.ask(ReadRun())
        one.do("run.close()")
        one.do("import time; exec('while [node for node in host.tree().children if node.name == \"a\"]: time.sleep(0.01)')")
        error = refused(remote)
        assert (error.code, error.executed, error.retryable) == ("not_owner", "no", True)
        with owner(root) as two:  # another host owns it now
            assert remote.ask(Append("x", "1")).seq == 2
            assert remote.ask(ReadRun())[0].epoch == 2
            two.end()
        assert refused(remote).code in PASSED_ON
        one.end()
    assert said(path) == ["x"]


def test_a_host_that_closes_answers_what_it_has_taken_up_and_passes_the_rest_on(root: Path, path: RunPath) -> None:
    remotes = [Remote(path, timeout=20.0) for _ in range(16)]
    answered: list[int] = []

    def ask_on(remote: Remote) -> Error:
        while True:
            try:
                answered.append(remote.ask(Append("x", "1")).seq)
            except Error as error:
                return error

    with owner(root) as other, senders() as go:
        calls = [go(ask_on, remote) for remote in remotes]
        until(lambda: len(answered) > 50)
        other.do("host.close()")
        ended = [call.result() for call in calls]
        other.end()
    assert {(error.code in PASSED_ON, error.executed) for error in ended} == {(True, "no")}, [str(error) for error in ended]
    assert sorted(answered) == list(range(2, len(answered) + 2))  # none was lost, and none was done that was not answered
    assert len(said(path)) == len(answered)
    for remote in remotes:
        remote.close()


@pytest.mark.parametrize("round_", range(3))
def test_killed_in_the_middle_of_everything_every_answer_is_true(root: Path, path: RunPath, round_: int) -> None:
    remotes = [Remote(path, timeout=20.0) for _ in range(8)]
    answered: list[str] = []
    unknown: list[str] = []

    def ask_on(number: int) -> None:
        for count in range(10_000):
            name = f"{number}-{count}"
            try:
                remotes[number].ask(Append(name, "1"))
            except Error as error:
                if error.executed == "unknown":
                    unknown.append(name)
                return
            answered.append(name)

    with owner(root) as other, senders() as go:
        calls = [go(ask_on, number) for number in range(8)]
        until(lambda: len(answered) > 30 + 17 * round_)
        other.kill()
        for call in calls:
            call.result()
    kept = said(path)
    assert set(answered) <= set(kept) <= set(answered) | set(unknown)
    assert len(kept) == len(set(kept))
    for remote in remotes:
        remote.close()


# Nobody there


def test_a_run_that_is_not_there_or_nobodys_or_ours_is_nobody_elses(root: Path, path: RunPath, remote: Remote) -> None:
    with pytest.raises(RunNotFound):
        remote.ask(ReadRun())
    assert not root.exists()
    new_run(root)
    assert refused(remote).code == "not_owner"  # it was never owned
    with freehold.open(root) as host, host.open("a") as run:
        assert refused(remote).code == "not_owner"  # this process asks itself in another way
        assert names(run) == []
    assert refused(remote).code == "not_owner"  # it was closed


def test_an_owner_without_a_socket_cannot_be_asked(root: Path, path: RunPath, remote: Remote) -> None:
    with owner(root, first="listener.listen = lambda *_: (_ for _ in ()).throw(PermissionError(1, 'no'))") as other:
        assert refused(remote).code == "not_owner"
        assert names_of_sockets(root) == []
        other.end()


def test_what_a_killed_host_has_left_is_swept_by_the_next_and_a_living_ones_is_not(root: Path) -> None:
    with owner(root, "a") as dead, owns(root, "b"):
        both = names_of_sockets(root)
        dead.kill()
        with owner(root, "c") as third:
            now = names_of_sockets(root)
            assert len(both) == len(now) == 2
            assert len(set(both) & set(now)) == 1
            remote = Remote(resolve(root, "b"))
            assert remote.ask(ReadRun())[0].id == "b"
            remote.close()
            third.end()


def test_why_somebody_has_hung_up_is_heard_although_he_has(root: Path) -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(encode_error(Unavailable("full", code="too_many_connections")))
    theirs.close()
    line = Line(ours)
    with pytest.raises(Unavailable) as caught:
        line.greet(monotonic() + 5)
    assert caught.value.code == "too_many_connections"
    line.close()


def test_a_remote_that_was_closed_keeps_nothing(root: Path, remote: Remote) -> None:
    with owner(root) as other:
        before = descriptors()
        remote.ask(ReadRun())
        assert descriptors() == before + 1
        remote.close()
        assert descriptors() == before
        assert remote.ask(ReadPage(0))[1] is None  # it asks all the same, and hangs up
        assert descriptors() == before
        other.end()


def test_whoever_answers_what_nobody_of_ours_would_is_no_owner(root: Path, path: RunPath, remote: Remote) -> None:
    for garbage in ("b'\\xc1'", "b''", "b'\\x81\\xa4type\\xa6answer'"):
        with owner(root) as other:
            other.do(f"from freehold.schema.wire import frame; connection.encode_value = lambda _value: frame({garbage})")
            error = refused(remote, Append("x", "1"))
            assert (error.code, error.executed) == ("no_answer", "unknown")
            assert refused(remote, ReadRun()).executed == "no"
            other.end()


def test_an_owner_of_another_protocol_is_told_from_one_that_is_gone(root: Path, remote: Remote) -> None:
    with owner(root) as other:
        other.do("import msgspec; from freehold.schema.wire import frame")
        other.do("connection.encode_hello = lambda: frame(msgspec.msgpack.encode({'type': 'hello', 'protocol': 2}))")
        assert refused(remote).code == "other_protocol"
        other.end()


def test_an_owner_that_serves_too_many_says_so(root: Path, path: RunPath, remote: Remote) -> None:
    with owner(root, first="listener.CONNECTIONS_MAX = 1") as other:
        remote.ask(ReadRun())
        second = Remote(path)
        with freehold.fail_after(0.2):
            assert refused(second).code == "too_many_connections"
        with senders(1) as go:
            waits = go(second.ask, ReadRun())
            remote.close()
            assert waits.result()[0].id == "a"
        second.close()
        other.end()
    assert isinstance(other, Owner)
