"""A handle: the same calls whoever owns the run, this host, another process, or nobody; and what they say when that changes."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from caller import Owner, owner
from folder import snapshot
from other import owns
from turns import Busy, names, run_nodes, senders, until

import freehold
from freehold import Conflict, Damaged, DeadlineExceeded, Files, Host, InsideTransaction, OwnedElsewhere, Refused, RunNotFound, Unavailable
from freehold import operations as op
from freehold.actors import following, patience, route
from freehold.actors.deadline import monotonic
from freehold.handle import Handle
from freehold.schema.limits import OPENER_WAIT_S

NO_SOCKET = "listener.listen = lambda *_: (_ for _ in ()).throw(PermissionError(1, 'no'))"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    with freehold.open(folder) as host:
        host.create("a").close()
    return folder


@pytest.fixture
def host(root: Path) -> Iterator[Host]:
    with freehold.open(root, timeout=20) as host:
        yield host


@pytest.fixture
def handle(host: Host) -> Iterator[Handle]:
    with host.handle("a") as handle:
        yield handle


@pytest.fixture(params=["nobody", "this host", "another process"])
def owned(request: pytest.FixtureRequest, host: Host, root: Path) -> Iterator[str]:
    """Let the run be owned by somebody while the test runs."""
    if request.param == "this host":
        with host.open("a"):
            yield request.param
    elif request.param == "another process":
        with owner(root) as other:
            yield request.param
            other.end()
    else:
        yield request.param


def said(root: Path) -> list[str]:
    return names(freehold.view(root / "a.sqlite"))


# The same calls whoever owns it


def test_it_appends_and_the_event_is_the_journals(owned: str, handle: Handle) -> None:
    event = handle.append("x", {"to": [1, 2.5, None]}, request_id="r")
    assert (event.seq, event.kind, event.name, event.data) == (2, "note", "x", {"to": [1, 2.5, None]})
    assert [(each.id, each.hash, each.data) for each in handle.history(after=1)] == [(event.id, event.hash, event.data)]
    assert handle.append("x", {"to": [1, 2.5, None]}, request_id="r").id == event.id
    with pytest.raises(Refused) as caught:
        handle.append("x", "other", request_id="r")
    assert (caught.value.code, handle.info.events, handle.status) == ("request_conflict", 2, "created")


def test_it_publishes_a_block_in_one_event(owned: str, handle: Handle) -> None:
    with handle.publish("made", request_id="r") as files:
        files.mkdir("d")
        files.write_bytes("d/large", os.urandom(300_000))
        files.write_text("small", "1")
    effect = files.effect
    assert (effect.seq, effect.kind, effect.name) == (2, "publish", "made")
    assert [change.path for change in effect.changes] == ["d/large", "small"]
    assert handle.files.read_text("small") == "1"
    assert handle.history(after=1).__next__().root == effect.root
    with handle.publish("made", request_id="r") as again:
        again.write_text("small", "2")
    assert (again.effect.id, again.effect.changes, handle.files.read_text("small")) == (effect.id, effect.changes, "1")
    handle.verify()


def test_it_publishes_what_a_function_does_to_the_files(owned: str, handle: Handle) -> None:
    effect = handle.publish("made", lambda files: files.write_text("a", "1"))
    assert ([change.path for change in effect.changes], effect.value) == (["a"], None)
    with pytest.raises(FileNotFoundError):
        handle.publish("failed", lambda files: files.remove("b"))
    (failed,) = handle.history(name="failed")
    assert (failed.data["failed"], failed.root) == ("FileNotFoundError", effect.root)
    with pytest.raises(ZeroDivisionError):
        handle.publish("lost", lambda _files: 1 / 0)
    assert handle.info.events == 3


def test_a_request_that_removes_a_file_is_answered_again_though_the_file_is_gone(owned: str, handle: Handle) -> None:
    with handle.publish("made") as files:
        files.touch("a")
        files.touch("b")
    removed = handle.publish("rm", lambda files: files.remove("a"), request_id="r")
    again = handle.publish("rm", lambda files: files.remove("a"), request_id="r")
    assert (again.id, again.changes, handle.info.events) == (removed.id, removed.changes, 3)
    with pytest.raises(FileNotFoundError):
        handle.publish("rm", lambda files: files.remove("a"), request_id="s")
    assert [event.data.get("failed") for event in handle.history(after=3)] == ["FileNotFoundError"]


def test_it_applies_a_transaction_that_is_data(owned: str, handle: Handle) -> None:
    steps = [op.append("one", 1), op.write_text("f", "1"), op.begin_execution(), op.settle("completed", code="done")]
    one, nothing, number, settled = handle.apply(steps, request_id="r")
    assert isinstance(one, freehold.Event)
    assert (one.seq, one.data, nothing, number, settled) == (2, 1, None, 1, None)
    assert [event.name or event.kind for event in handle.history(after=1)] == ["one", "files", "began"]
    again = handle.apply(steps, request_id="r")
    assert isinstance(again[0], freehold.Event)
    assert (again[0].id, again[1:]) == (one.id, [None, 1, None])
    with pytest.raises(FileNotFoundError):
        handle.apply([op.append("lost"), op.remove("not there")])
    assert (handle.info.events, handle.status) == (4, "completed")


def test_it_imports_a_folder_and_restores_a_moment(owned: str, handle: Handle, tmp_path: Path) -> None:
    (tmp_path / "in" / "d").mkdir(parents=True)
    for number in range(40):
        (tmp_path / "in" / "d" / f"{number}").write_bytes(os.urandom(3000))
    taken = handle.import_tree(tmp_path / "in", "here", request_id="r")
    assert (len(taken.changes), taken.complete) == (40, True)
    assert handle.import_tree(tmp_path / "in", "here", request_id="r").id == taken.id
    handle.publish("gone", lambda files: files.rmtree("here"))
    assert handle.restore(taken, "here/d/7").changes[0].path == "here/d/7"
    back = handle.restore(taken)
    assert (back.root, len(back.changes)) == (taken.root, 39)
    assert handle.files.read_bytes("here/d/39") == (tmp_path / "in" / "d" / "39").read_bytes()


def test_what_is_refused_changes_nothing(owned: str, host: Host, handle: Handle) -> None:
    for call, code in (
        (lambda: handle.append(""), "bad_name"),
        (lambda: handle.append("x", object()), "value_refused"),
        (lambda: handle.append("x", request_id=""), "bad_request_id"),
        (lambda: handle.publish("", print), "bad_name"),
        (lambda: handle.publish("x", 7), "bad_option"),  # type: ignore[call-overload]
        (lambda: handle.apply([op.settle("completed")]), "no_execution"),
        (lambda: handle.restore(999), "bad_position"),
    ):
        with pytest.raises(Refused) as caught:
            call()
        assert (caught.value.code, caught.value.executed) == (code, "no")
    assert handle.info.events == 1


def test_it_follows_what_is_added_by_whom_ever(owned: str, handle: Handle, monkeypatch: pytest.MonkeyPatch) -> None:
    if owned == "another process":  # its owner says so: nobody looks at its file
        monkeypatch.setattr(following.Watch, "_look", lambda _watch: pytest.fail("it was looked at"))
    events = handle.follow()
    assert next(events).kind == "created"
    for number in range(3):
        timer = threading.Timer(0.05, handle.append, ("x", number))
        timer.start()
        assert next(events).data == number
        timer.join()
    handle.apply([op.begin_execution(), op.settle("completed", code="done")])
    assert [event.kind for event in events] == ["began"]


def test_following_ends_when_its_time_is_up_whoever_owns_it(owned: str, handle: Handle) -> None:
    begun = monotonic()
    assert [event.kind for event in handle.follow(timeout=0.4)] == ["created"]
    assert 0.3 <= monotonic() - begun < 15
    assert handle.append("on").seq == 2


def test_following_an_owner_that_hangs_ends_in_time_too(handle: Handle, root: Path) -> None:
    with owner(root) as other:
        handle.append("before")
        events = handle.follow(timeout=0.5)
        assert [next(events).seq for _ in range(2)] == [1, 2]
        other.stop()
        begun = monotonic()
        assert (next(events, None), monotonic() - begun < 10) == (None, True)
        other.go_on()
        handle.append("on")
        other.stop()
        events = handle.follow(after=3, timeout=0.3)
        with pytest.raises(DeadlineExceeded), freehold.fail_after(0.2):  # the nearer one, though both are over when it is told
            next(events)
        other.go_on()
        other.end()


def test_its_owner_is_named_whoever_it_is(owned: str, handle: Handle) -> None:
    held = handle.owner
    if owned == "nobody":
        assert held is None
    else:
        assert held is not None
        assert (held.pid == os.getpid(), held.hostname) == (owned == "this host", os.uname().nodename)


def test_what_following_it_means_is_said_by_itself() -> None:
    assert Handle.follow.__doc__ != freehold.RunView.follow.__doc__
    assert "Its owner says" in (Handle.follow.__doc__ or "")


def test_a_deadline_bounds_its_calls(owned: str, handle: Handle) -> None:
    with freehold.fail_after(0), pytest.raises(DeadlineExceeded) as caught:
        handle.append("x")
    assert (caught.value.executed, handle.info.events) == ("no", 1)


# Nobody owns it


def test_a_run_that_nobody_owns_is_nobodys_again_after_each_call(host: Host, handle: Handle, root: Path) -> None:
    handle.append("x")
    with handle.publish("made") as files:
        files.touch("f")
        assert [node.name for node in run_nodes(host)] == ["a"]  # for as long as the block lasts
    until(lambda: not run_nodes(host))
    with owns(root, "a", "theirs"):
        pass
    assert said(root) == ["x", "theirs"]


def test_a_run_that_somebody_has_opened_meanwhile_stays_his(host: Host, handle: Handle) -> None:
    with handle.publish("made") as files:
        files.touch("f")
        run = host.open("a")
    assert run.append("x").seq == 3
    assert [node.name for node in run_nodes(host)] == ["a"]
    run.close()


def test_a_run_that_is_not_there_is_said_not_to_be_and_not_made(host: Host, root: Path, tmp_path: Path) -> None:
    before = snapshot(root)
    handle = host.handle("nobody")
    assert (handle.exists, list(handle.history()), list(handle.follow())) == (False, [], [])
    calls: list[Callable[[], object]] = [
        lambda: handle.append("x"),
        lambda: handle.publish("x", print),
        lambda: handle.import_tree(tmp_path),
    ]
    for call in calls:
        with pytest.raises(RunNotFound):
            call()
    assert {name: entry for name, entry in snapshot(root).items() if not name.startswith(".")} == {
        name: entry for name, entry in before.items() if not name.startswith(".")
    }


def test_a_handle_of_a_host_that_is_closed_is_refused(root: Path) -> None:
    with freehold.open(root) as host:
        handle = host.handle("a")
    calls: list[Callable[[], object]] = [lambda: handle.append("x"), lambda: host.handle("a")]
    for call in calls:
        with pytest.raises(Refused) as caught:
            call()
        assert caught.value.code == "host_closed"
    assert handle.info.events == 1  # looking needs no host


def test_a_handle_of_a_closed_host_asks_no_owner_elsewhere_either(root: Path) -> None:
    with owner(root) as other:
        with freehold.open(root) as host, host.handle("a") as handle:
            handle.append("x")
            host.close()
            calls: list[Callable[[], object]] = [lambda: handle.append("y"), lambda: handle.publish("y", print)]
            for call in calls:
                with pytest.raises(Refused) as caught:
                    call()
                assert (caught.value.code, caught.value.executed) == ("host_closed", "no")
        other.end()
    assert said(root) == ["x"]


def test_it_is_refused_inside_a_turn_of_its_own_run(host: Host, handle: Handle) -> None:
    with host.open("a") as run, pytest.raises(InsideTransaction):
        run.transact(lambda _tx: handle.append("x"))
    assert handle.info.events == 1


# Whoever owns it changes


def test_an_owner_that_ends_passes_the_run_on_and_the_next_one_is_found(host: Host, handle: Handle, root: Path) -> None:
    for number in range(3):
        with owner(root) as other:
            handle.append("theirs", number)
            other.end()
        handle.append("ours", number)
    assert said(root) == ["theirs", "ours"] * 3
    assert host.view("a").info.epoch == 7


def test_an_owner_that_is_killed_passes_the_run_on_too(handle: Handle, root: Path) -> None:
    with owner(root) as other:
        handle.append("theirs")
        other.kill()
    handle.append("ours")
    assert said(root) == ["theirs", "ours"]


def test_a_block_goes_on_at_the_next_owner(handle: Handle, root: Path) -> None:
    with owner(root) as one, handle.publish("made") as files:
        files.write_bytes("large", os.urandom(5_000_000))
        files.write_text("f", "1")
        one.kill()
        with owner(root) as two:
            two.do("run.publish('beside', lambda files: files.touch('g'))")
            files.write_text("h", "2")
            two.end()
    assert [change.path for change in files.effect.changes] == ["f", "h", "large"]
    assert sorted(handle.files.iterdir()) == ["f", "g", "h", "large"]
    handle.verify()


def test_an_owner_that_dies_over_a_request_leaves_it_as_unknown_as_it_is(handle: Handle, root: Path) -> None:
    with owner(root) as other:
        other.do("after(store.Store, 'commit')")
        with pytest.raises(Unavailable) as caught:
            handle.append("x", 1, request_id="r")
        assert (caught.value.code, caught.value.executed, caught.value.retryable) == ("no_answer", "unknown", True)
    event = handle.append("x", 1, request_id="r")  # it was kept: this says so, and adds nothing
    assert (event.seq, said(root)) == (2, ["x"])


def test_an_owner_that_hangs_is_waited_for_until_the_deadline(handle: Handle, root: Path) -> None:
    with owner(root) as other:
        handle.append("before")
        other.stop()
        with pytest.raises(DeadlineExceeded) as caught, freehold.fail_after(0.5):
            handle.append("late", request_id="r")
        assert caught.value.executed == "unknown"
        assert said(root) == ["before"]  # looking at it waits for nobody
        other.go_on()
        assert handle.append("late", request_id="r").seq == 3
        other.end()
    assert said(root) == ["before", "late"]


def test_an_owner_that_hung_and_was_killed_is_followed_by_the_next(handle: Handle, root: Path) -> None:
    with owner(root) as other:
        other.stop()
        with pytest.raises(DeadlineExceeded) as caught, freehold.fail_after(0.5):
            handle.append("x")
        assert caught.value.executed == "no"
        other.kill()
        assert handle.append("x").seq == 2


def test_a_run_that_another_process_owns_for_one_call_is_opened_a_moment_later(
    host: Host, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for open_ in (host.open, host.ensure):
        with owner(root) as other:
            monkeypatch.setattr(patience, "pause", other.end)
            with open_("a") as run:
                assert run.info.epoch % 2  # the other's tenure has come between ours
            monkeypatch.undo()
        host._runs.stop_child("a")


def test_a_run_that_another_process_owns_for_long_is_refused_with_its_holder(host: Host, root: Path) -> None:
    with owner(root) as other:
        began = monotonic()
        with pytest.raises(OwnedElsewhere) as caught:
            host.open("a")
        assert caught.value.holder is not None
        assert (caught.value.holder.pid, monotonic() - began >= OPENER_WAIT_S) == (other.process.pid, True)
        other.end()


def test_the_time_that_a_call_was_given_bounds_its_wait_for_the_owner(host: Host, root: Path) -> None:
    with owner(root) as other:
        with pytest.raises((OwnedElsewhere, DeadlineExceeded)), freehold.fail_after(0.05):
            host.open("a")
        other.do("run.append('still theirs')")
        other.end()
    assert said(root) == ["still theirs"]


def test_an_owner_that_does_not_answer_is_named_by_its_run(handle: Handle, root: Path) -> None:
    with owner(root) as other:
        other.stop()
        with pytest.raises(DeadlineExceeded, match="to a is up"), freehold.fail_after(0.2):
            handle.append("x")
        other.kill()


def test_an_owner_that_cannot_be_asked_is_named(handle: Handle, root: Path) -> None:
    with owner(root, first=NO_SOCKET) as other:
        calls: list[Callable[[], object]] = [lambda: handle.append("x"), lambda: handle.publish("x", print)]
        for call in calls:
            with pytest.raises(OwnedElsewhere) as caught:
                call()
            assert caught.value.holder is not None
            assert caught.value.holder.pid == other.process.pid
            assert (caught.value.executed, caught.value.retryable) == ("no", True)
        assert handle.info.events == 1
        other.end()


def test_an_owner_that_cannot_be_asked_is_looked_for_again_for_a_moment(
    handle: Handle, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with owner(root, first=NO_SOCKET) as other:
        paused: list[None] = []

        def pause() -> None:
            if not paused:
                other.end()
            paused.append(None)

        monkeypatch.setattr(route, "pause", pause)
        assert handle.append("x").seq == 2
    assert paused


def test_each_owner_has_its_time_to_be_found(handle: Handle, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owners = [Owner(root, first=NO_SOCKET)]

    def pause() -> None:
        owners[-1].end()
        if len(owners) < 3:
            owners.append(Owner(root, first=NO_SOCKET))

    monkeypatch.setattr(route, "pause", pause)
    monkeypatch.setattr(route, "PASSED_ON_S", 0.0)
    assert handle.append("x").seq == 2
    assert len(owners) == 3


def test_an_owner_that_was_found_is_asked_at_once(handle: Handle, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with owner(root) as other:
        handle.append("x")
        monkeypatch.setattr(handle._route, "try_here", lambda: pytest.fail("it was tried to own the run"))
        assert [handle.append("x").seq for _ in range(3)] == [3, 4, 5]
        monkeypatch.undo()
        other.end()


def test_a_function_meets_what_others_have_published_until_it_fits(handle: Handle, root: Path) -> None:
    with owner(root) as other:
        tries = itertools.count(1)

        def add(files: Files) -> None:
            before = files.read_text("count") if files.exists("count") else ""
            if (number := next(tries)) < 4:
                other.do(f"run.publish('beside', lambda files: files.write_text('count', {before + str(number)!r}))")
            files.write_text("count", before + "!")

        handle.publish("count", add)
        assert (next(tries), handle.files.read_text("count")) == (5, "123!")
        other.end()


def test_a_block_that_met_another_publish_of_its_path_conflicts(handle: Handle, root: Path) -> None:
    with owner(root) as other:
        with pytest.raises(Conflict) as caught, handle.publish("mine") as files:
            files.write_text("f", "mine")
            other.do("run.publish('theirs', lambda files: files.write_text('f', 'theirs'))")
        assert caught.value.details["paths"] == ["f"]
        assert handle.files.read_text("f") == "theirs"
        other.end()


_ASKS = """
import sys
import freehold
with freehold.open(sys.argv[1]) as host, host.handle("a") as handle:
    for number in range(int(sys.argv[3])):
        handle.append(sys.argv[2], number, request_id=f"{sys.argv[2]}/{number}")
"""


def test_several_processes_steer_a_run_that_passes_from_one_to_the_other(root: Path) -> None:
    askers = [subprocess.Popen([sys.executable, "-c", _ASKS, str(root), f"p{number}", "25"]) for number in range(4)]
    assert [asker.wait(60) for asker in askers] == [0] * 4
    said = [(event.name, event.data) for event in freehold.view(root / "a.sqlite").history(after=1)]
    assert sorted(said) == sorted((f"p{number}", count) for number in range(4) for count in range(25))
    for number in range(4):
        assert [data for name, data in said if name == f"p{number}"] == list(range(25))
    freehold.view(root / "a.sqlite").verify()


def test_threads_share_it_and_each_call_is_answered_once(handle: Handle, root: Path) -> None:
    with owner(root) as other, senders(8) as go:
        events = [go(handle.append, "x", number) for number in range(200)]
        assert sorted(event.result().seq for event in events) == list(range(2, 202))
        other.end()


def test_ctrl_c_ends_a_call_to_an_owner_that_hangs(root: Path) -> None:
    program = f"import freehold; host = freehold.open({str(root)!r}); host.handle('a').append('x')"
    with owner(root) as other:
        other.stop()
        asker = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
        until(lambda: _connects(asker.pid))
        asker.send_signal(signal.SIGINT)
        _, text = asker.communicate(timeout=20)
        assert (asker.returncode, "KeyboardInterrupt" in text.splitlines()) == (-signal.SIGINT, True)
        other.go_on()
        other.end()
    assert said(root) == []


def _connects(pid: int) -> bool:
    """Return whether a process has a socket."""
    try:
        return any(str(fd.readlink()).startswith("socket:") for fd in Path(f"/proc/{pid}/fd").iterdir())
    except FileNotFoundError:
        return False


def test_a_busy_owner_here_is_waited_for(host: Host, handle: Handle) -> None:
    with host.open("a") as run, senders(1) as go, Busy(run) as busy:
        call = go(handle.append, "x")
        busy.release()
        assert call.result().seq == 2


def test_handles_of_many_runs_of_one_owner_share_their_connections(root: Path, host: Host) -> None:
    with owner(root, first="listener.CONNECTIONS_MAX = 2") as other:
        other.do("runs = [host.create(f'r{number}') for number in range(8)]")
        handles = [host.handle(f"r{number}") for number in range(8)]
        assert [handle.append("x").seq for handle in handles] == [2] * 8
        with senders(8) as go:  # more than there are connections: the others wait for one
            assert [call.result().seq for call in [go(handle.append, "y") for handle in handles]] == [3] * 8
        other.end()


def test_those_who_wait_for_events_keep_nobody_out(root: Path, host: Host, handle: Handle) -> None:
    with owner(root, first="listener.CONNECTIONS_MAX = 4") as other, senders(6) as go:
        followers = [go(lambda: [event.name for event in host.handle("a").follow()]) for _ in range(6)]
        assert [handle.append("x", number).seq for number in range(20)] == list(range(2, 22))
        handle.apply([op.begin_execution(), op.settle("completed", code="done")])
        assert [follower.result() for follower in followers] == [[None, *["x"] * 20, None]] * 6
        other.end()


LIES = "import freehold.schema.errors as errors, freehold.schema.repeated as repeated; lie = connection.encode_value"


@pytest.mark.parametrize("details", ["", ", errno='2', path='f'", ", errno=2, path=7"])
def test_a_file_error_that_an_owner_tells_wrongly_is_told_as_it_came(root: Path, handle: Handle, details: str) -> None:
    with owner(root) as other:
        other.do(LIES)
        other.do("def encode_value(_value): raise errors.Refused('no such file', code='file_error'" + details + ")")
        other.do("connection.encode_value = encode_value")
        with pytest.raises(Refused) as caught:
            handle.apply([op.append("x")])
        assert caught.value.code == "file_error"
        other.end()


@pytest.mark.parametrize("reply", ["[1,[]]", "[[1],[[0]]]", "[[1,2],[]]", "[[1,2],[[1]]]", "[{},[]]"])
def test_a_reply_that_an_owner_makes_up_is_damage_and_nothing_else(root: Path, handle: Handle, reply: str) -> None:
    with owner(root) as other:
        other.do(LIES)
        made_up = f"lie(repeated.Repeated({reply!r}, True) if type(value).__name__ == 'Written' else value)"
        other.do(f"connection.encode_value = lambda value: {made_up}")
        with pytest.raises(Damaged) as caught, handle.publish("p") as files:
            files.touch("f")
        assert caught.value.code == "malformed_record"
        other.end()


def test_closing_it_twice_is_fine_and_it_can_be_used_again(handle: Handle, root: Path) -> None:
    with owner(root) as other:
        handle.append("x")
        handle.close()
        handle.close()
        assert handle.append("x").seq == 3
        other.end()


def test_its_text_says_which_run_it_is(handle: Handle) -> None:
    assert repr(handle) == "<Handle a>"
