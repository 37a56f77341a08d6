"""The hosts of this process: one a root, and all closed before the interpreter ends."""

from __future__ import annotations

import signal
from pathlib import Path
from time import monotonic

import pytest
from folder import run_files
from troupe import PATIENCE_S, run_together, script

import freehold
from freehold.actors.hosts import Hosts
from freehold.schema.errors import HostOpen, InsideTransaction, Unavailable
from freehold.schema.limits import CLOSE_TIMEOUT_S


class Door:
    """Something that closes, and says so."""

    def __init__(self, log: list[str], name: str, error: BaseException | None = None) -> None:
        self._log, self._name, self._error = log, name, error

    is_left = False

    def leave(self) -> None:
        self._log.append(f"{self._name} left")

    def close(self) -> None:
        self._log.append(self._name)
        if self._error is not None:
            raise self._error


def test_a_root_has_one_place() -> None:
    hosts, first, second = Hosts(), Door([], "1"), Door([], "2")
    hosts.enter("/root", first)
    hosts.enter("/root", first)
    with pytest.raises(HostOpen):
        hosts.enter("/root", second)
    hosts.enter("/other", second)

    hosts.leave("/root", second)  # not its place
    with pytest.raises(HostOpen):
        hosts.enter("/root", second)
    hosts.leave("/root", first)
    hosts.leave("/root", first)
    hosts.enter("/root", second)
    assert hosts._open == {"/other": second, "/root": second}


def test_of_many_that_enter_one_root_at_the_same_moment_one_wins() -> None:
    hosts = Hosts()
    results = run_together(*[lambda: hosts.enter("/root", Door([], "x"))] * 8)

    assert [result for result in results if result is None] == [None]
    assert sum(isinstance(result, HostOpen) for result in results) == 7


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Unavailable("not stopped in time: a", code="still_stopping"), "/first: not stopped in time: a"),
        (ValueError("a stored value"), "/first: ValueError"),
    ],
)
def test_one_that_does_not_close_keeps_no_other_open(error: Exception, told: str, caplog: pytest.LogCaptureFixture) -> None:
    hosts, closed = Hosts(), list[str]()
    hosts.enter("/first", Door(closed, "first", error))
    hosts.enter("/second", Door(closed, "second"))
    hosts.close_all()

    assert closed == ["first", "second"]
    assert told in caplog.messages
    assert "a stored value" not in caplog.text


def test_a_forked_child_may_open_the_same_root() -> None:
    hosts, closed = Hosts(), list[str]()
    hosts.enter("/root", Door(closed, "parent's"))
    hosts.forked()
    hosts.enter("/root", Door(closed, "child's"))
    hosts.close_all()

    assert closed == ["child's"]


FORGOTTEN = """
    import logging, sys, threading, freehold
    logging.basicConfig(format="%(message)s", stream=sys.stdout)
    host = freehold.open({root!r})
    run = host.create("r")
    run.append("kept", 1)
"""


def test_a_forgotten_host_is_closed_and_does_not_keep_the_interpreter(tmp_path: Path) -> None:
    done = script(FORGOTTEN.format(root=str(tmp_path)))

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"the host on {tmp_path} was not closed; closing it now"]
    assert run_files(tmp_path) == ["r.sqlite"]  # no -wal: it was closed, not dropped
    assert [event.name for event in freehold.view(tmp_path / "r.sqlite").history()][-1] == "kept"


def test_a_stuck_run_does_not_keep_the_interpreter_and_the_others_are_closed(tmp_path: Path) -> None:
    done = script(
        FORGOTTEN.format(root=str(tmp_path))
        + """
    other = host.create("other")
    begun = threading.Event()
    def stick(tx):
        begun.set()
        threading.Event().wait()
    threading.Thread(target=lambda: run.transact(stick), daemon=True).start()
    begun.wait()
    host.close = lambda close=host.close: close(0.5)
    """,
        timeout=2 * PATIENCE_S,
    )

    assert done.returncode == 0
    assert "not stopped in time: r" in done.stdout
    assert not (tmp_path / "other.sqlite-wal").exists()


STUCK = """
    import logging, signal, sys, threading, freehold
    logging.basicConfig(format="%(message)s", stream=sys.stdout)
    begun = threading.Event()
    def stick(tx):
        begun.set()
        threading.Event().wait()
    class Interrupts(logging.Handler):
        def emit(self, record):
            if "still running" in record.getMessage():
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    logging.getLogger().addHandler(Interrupts())  # after the one that writes
"""


def test_a_second_ctrl_c_ends_a_program_whose_host_does_not_stop_at_once(tmp_path: Path) -> None:
    began = monotonic()
    done = script(
        STUCK
        + f"""
    with freehold.open({str(tmp_path)!r}) as host:
        run = host.create("r")
        run.append("kept")
        threading.Thread(target=lambda: run.transact(stick), daemon=True).start()
        begun.wait()
        raise KeyboardInterrupt  # the first; the second comes when it is said what is still running
    """
    )

    assert done.returncode == -signal.SIGINT
    assert done.stdout.splitlines() == [f"{tmp_path.name} is stopping; still running: r; {CLOSE_TIMEOUT_S:.0f} seconds are left to it"]
    assert monotonic() - began < CLOSE_TIMEOUT_S  # nobody waited for its whole time
    assert [event.name for event in freehold.view(tmp_path / "r.sqlite").history()] == [None, "kept"]


def test_a_ctrl_c_ends_a_program_that_waits_for_a_forgotten_host(tmp_path: Path) -> None:
    done = script(
        STUCK
        + f"""
    host, other = freehold.open({str(tmp_path)!r}), freehold.open({str(tmp_path / "other")!r})
    run = host.create("r")
    threading.Thread(target=lambda: run.transact(stick), daemon=True).start()
    begun.wait()
    """,
        timeout=CLOSE_TIMEOUT_S,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == f"the host on {tmp_path} was not closed; closing it now"
    assert done.stdout.splitlines()[-1] == f"the host on {tmp_path} is left as it is; what was acknowledged is safe"


def test_threads_of_others_may_go_on_while_the_interpreter_ends(tmp_path: Path) -> None:
    done = script(
        f"""
        import itertools, logging, threading, freehold
        logging.disable()
        host = freehold.open({str(tmp_path)!r})
        run = host.create("r")
        begun = threading.Barrier(9)
        def go_on():
            begun.wait()
            try:
                for number in itertools.count():
                    run.append("note", number)
            except freehold.Error:
                pass
        for number in range(8):
            threading.Thread(target=go_on, daemon=number % 2 == 0).start()
        begun.wait()
        threading.Thread(target=lambda: (threading.main_thread().join(), host.close())).start()
        """
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    freehold.view(tmp_path / "r.sqlite").verify()


def test_a_program_that_ends_inside_a_block_closes_every_run_all_the_same(tmp_path: Path) -> None:
    done = script(
        f"""
        import logging, sys, freehold
        logging.basicConfig(format="%(message)s", stream=sys.stdout)
        host = freehold.open({str(tmp_path)!r})
        a, b = host.create("a"), host.create("b")
        b.transact(lambda tx: tx.begin_execution())
        def steps():
            with a.transaction(timeout=1000) as tx, freehold.fail_after(1000):
                yield tx.append("never kept")
        suspended = steps()
        next(suspended)
        """,
        timeout=CLOSE_TIMEOUT_S / 3,  # nobody waits for a block that will not come to its end
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"the host on {tmp_path} was not closed; closing it now"]
    assert run_files(tmp_path) == ["a.sqlite", "b.sqlite"]  # no -wal: closed, not dropped
    assert freehold.view(tmp_path / "b.sqlite").info.status == "interrupted"
    assert [event.kind for event in freehold.view(tmp_path / "a.sqlite").history()] == ["created"]


def test_a_host_cannot_be_closed_in_a_turn_of_one_of_its_runs_and_goes_on(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as host, host.create("r") as run:
        with pytest.raises(InsideTransaction):
            run.transact(lambda _tx: host.close())
        with run.transaction(), pytest.raises(InsideTransaction):
            host.close()

        assert run.append("x", 1).seq == 2
        with host.create("other") as other:
            assert other.append("x", 1).seq == 2


def test_a_host_may_wait_for_ever_for_its_runs_and_its_calls(tmp_path: Path) -> None:
    for_ever = float("inf")
    with freehold.open(tmp_path, timeout=for_ever, idle_timeout=for_ever) as host:
        with host.create("r") as run, freehold.fail_after(for_ever):
            assert run.append("x", 1).seq == 2
        with host.open("r") as run:
            assert run.append("x", 1).seq == 3
