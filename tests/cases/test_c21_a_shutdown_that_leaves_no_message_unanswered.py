"""C21: a shutdown stopped the providers first, while clients still worked off what waited and asked for actors that were gone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from folder import run_files
from neighbours import Neighbour, Neighbours
from turns import names

import freehold
from freehold.actors.deadline import monotonic
from freehold.schema.ids import is_socket_name

RUNS = 20
WAITING = 5
PROGRAM = """
import json, logging, os, signal, sys, threading
import freehold
from freehold.actors.listener import Listener
from freehold.actors.registrar import Registrar
from freehold.actors.run import RunActor

logging.basicConfig(format="%(message)s", stream=sys.stderr)
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.default_int_handler)
root, runs, waiting = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
stopped, told, go = [], {}, threading.Event()

def noted(kind):
    really = kind.stopped
    def stop(self, reason):
        really(self, reason)
        stopped.append(kind.__name__)
    kind.stopped = stop

for kind in (Listener, Registrar, RunActor):
    noted(kind)

def ask(run, name):
    try:
        told[name] = ["yes", run.append(name).seq]
    except freehold.Error as error:
        told[name] = [error.executed, error.code]

def hold(run, begun):
    def work(tx):
        begun.set()
        go.wait()
        tx.append("held")
    run.transact(work)

def interrupt():
    # Whatever was at work goes on as soon as the end has begun.
    try:
        threading.Event().wait()
    finally:
        go.set()

threads, leases = [], []
try:
    with freehold.open(root) as host:
        for number in range(runs):
            run = host.create(f"r{number}")
            leases.append(run)
            begun = threading.Event()
            threads.append(threading.Thread(target=hold, args=(run, begun)))
            threads[-1].start()
            begun.wait()
            for each in range(waiting):
                threads.append(threading.Thread(target=ask, args=(run, f"{number} {each}")))
                threads[-1].start()
            while len(run._ref.mailbox) < waiting:
                os.sched_yield()
        print("ready", flush=True)
        interrupt()
except KeyboardInterrupt:
    for thread in threads:
        thread.join(20)
    held = [name for name in map(os.path.realpath, (f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd"))) if name.startswith(root)]
    late = []
    for run in leases:
        try:
            run.append("late")
        except freehold.Error as error:
            late.append(error.code)
        run.close()
    print(json.dumps([stopped, told, held, late, sum(thread.is_alive() for thread in threads)]), flush=True)
    raise
"""


def asking(village: Neighbours, root: Path) -> Neighbour:
    """Return a neighbour that is in the middle of asking all of the runs, one after the other, again and again."""
    other = village.new(root)
    other.do("import threading")
    other.tell(
        f"""
told = []
handles = [host.handle(f"r{{number}}") for number in range({RUNS})]
def ask(number):
    try:
        told.append(["yes", number, handles[number].append("theirs").seq])
    except freehold.Error as error:
        told.append([error.executed, number, error.code])
threads = [threading.Thread(target=ask, args=(number,)) for number in range({RUNS})]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
        "told",
    )
    return other


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_each_waiting_message_is_carried_out_or_refused_and_the_owners_go_before_what_they_need(
    tmp_path: Path, village: Neighbours, number: signal.Signals
) -> None:
    root = tmp_path / "runs"
    command = [sys.executable, "-c", PROGRAM, str(root), str(RUNS), str(WAITING)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        other = asking(village, root)
        began = monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=40)
    finally:
        process.kill()
        process.communicate(timeout=30)
    took = monotonic() - began

    assert took < 20
    assert process.returncode == -signal.SIGINT  # what Python ends with after an interrupt that nobody catches
    lines = [line for line in err.splitlines() if line and not line.startswith((" ", "Traceback", "KeyboardInterrupt"))]
    assert len(lines) <= 1, err  # one line at the most says what is still running
    stopped, told, held, late, alive = json.loads(out)
    assert sorted(stopped[:RUNS]) == ["RunActor"] * RUNS
    assert stopped[RUNS:] == ["Listener", "Registrar"]
    assert (held, late, alive) == ([], ["lease_lost"] * RUNS, 0)
    assert len(told) == RUNS * WAITING
    theirs = other.hear()
    other.end()
    check(root, told, theirs)


def check(root: Path, told: dict[str, list[Any]], theirs: list[list[Any]]) -> None:
    """Hold what each was told against the files, and show that nothing was left beside them."""
    for number in range(RUNS):
        view = freehold.view(root / f"r{number}.sqlite")
        found = [(event.seq, event.name) for event in view.history(after=1)]
        mine = {name: answer for name, answer in told.items() if name.partition(" ")[0] == str(number)}
        for name, (executed, more) in mine.items():
            assert executed in ("yes", "no")
            assert ((more, name) in found) == (executed == "yes")
            assert executed == "yes" or more in ("stopping", "lease_lost")
        (their,) = (answer for answer in theirs if answer[1] == number)
        assert ("theirs" in names(view)) == (their[0] == "yes"), their
        assert "held" in names(view)
        view.verify()
    assert [file.name for file in root.iterdir() if is_socket_name(file.name)] == []
    assert run_files(root) == sorted(f"r{number}.sqlite" for number in range(RUNS))
