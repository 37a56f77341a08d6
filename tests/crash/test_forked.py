"""A child that a user's process forks: told at once, never hanging, harmless when it ends; free if no run file was open at the fork."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ways import read

import freehold

OWNER = """
import json, multiprocessing, os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of a fork beside threads, and rightly
import freehold

root, how = sys.argv[1:3]
host = freehold.open(root)
runs = [host.create(run_id) for run_id in "abc"]
for run in runs:
    run.append("before")
run = runs[0]
seen = freehold.view(run.path)

def told(call):
    try:
        call()
    except freehold.Error as error:
        return error.code
    return "ok"

def fill(tx, name):
    # More than SQLite keeps in memory: some of it stands in the -wal before it is committed.
    for _ in range(4):
        tx.append(name, os.urandom(500_000).hex())

def spanning():
    with runs[1].transaction() as tx:
        tx.append("never")

def another_host():
    with freehold.open(root) as own, own.open("a"):
        pass

def own_host():
    with freehold.open(root + "/own") as own, own.create("own") as mine:
        mine.append("from the child")

CALLS = {
    "append": lambda: run.append("never"),
    "append to another": lambda: runs[2].append("never"),
    "transact": lambda: run.transact(lambda tx: tx.append("never")),
    "transaction": spanning,
    "info": lambda: run.info,
    "history": lambda: list(run.history()),
    "open": lambda: host.open("a"),
    "create": lambda: host.create("never"),
    "ensure": lambda: host.ensure("a"),
    "close lease": lambda: runs[1].close(),
    "view": lambda: host.view("a"),
    "runs": lambda: list(host.runs()),
    "delete": lambda: host.delete("c"),
    "a view of the file": lambda: (seen.info, list(seen.history()), seen.verify()),
    "open as another": another_host,
    "a host of its own": own_host,
    "tree": lambda: host.tree(),
}

def child():
    found = {name: told(call) for name, call in CALLS.items()}
    found["close host"] = told(host.close)
    with open(root + "/told.json", "w") as file:
        json.dump(found, file)

if how == "os.fork":
    pid = os.fork()
    if pid == 0:
        child()
        sys.exit()  # exit hooks run, and everything is collected
    ended = os.waitpid(pid, 0)[1]
elif how == "multiprocessing":
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    ended = process.exitcode
elif how == "in a turn":
    def work(tx):
        fill(tx, "in the turn")
        pid = os.fork()
        if pid == 0:
            CALLS["append inside"] = lambda: tx.append("never")
            child()
            sys.exit()
        return os.waitpid(pid, 0)[1]
    ended = run.transact(work)
else:
    with runs[0].transaction() as tx:
        fill(tx, "in the transaction")
        pid = os.fork()
        if pid == 0:
            CALLS["append inside"] = lambda: tx.append("never")
            child()
            sys.exit()
        ended = os.waitpid(pid, 0)[1]

for number in range(100):
    for run in runs:
        run.append("after", number)
for run in runs:
    run.verify()
    run.close()
host.close()
print(json.dumps(ended))
"""


def lived(root: Path, how: str) -> tuple[int, dict[str, Any]]:
    """Let a process own three runs, fork in the middle, and go on; return how its child ended, and what it was told."""
    done = subprocess.run([sys.executable, "-c", OWNER, str(root), how], capture_output=True, text=True, check=False, timeout=50)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), json.loads((root / "told.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("how", ["os.fork", "multiprocessing", "in a turn", "in a transaction"])
def test_the_child_is_told_and_its_parent_loses_nothing(tmp_path: Path, how: str) -> None:
    ended, told = lived(tmp_path, how)

    # The run whose turn it is knows only that it is called from inside it.
    own = "inside_transaction" if "in a" in how else "forked_process"
    own_calls = ("append", "transact", "info", "history")
    harmless = ("close lease", "close host", "tree")
    assert ended == 0
    assert {told.pop(name) for name in own_calls} == {own}
    assert {told.pop(name) for name in harmless} == {"ok"}
    assert set(told.values()) == {"forked_process"}
    assert told.keys() >= {"append to another", "transaction", "open", "create", "ensure", "view", "runs", "delete"}
    assert told.keys() >= {"a view of the file", "open as another", "a host of its own"}
    assert ("append inside" in told) is ("in a" in how)

    for run_id in "abc":
        view = freehold.view(tmp_path / f"{run_id}.sqlite")
        view.verify()
        names = [row[3] for row in read(view)]
        inside = {"in a turn": ["in the turn"] * 4, "in a transaction": ["in the transaction"] * 4}.get(how, [])
        assert names == [None, "before", *(inside if run_id == "a" else []), *["after"] * 100]
        assert (view.info.epoch, Path(f"{view.path}-wal").exists()) == (1, False)
    assert not (tmp_path / "never.sqlite").exists()
    assert not (tmp_path / "own").exists()


FORKING = """
import json, os, select, signal, sys, threading, warnings
from functools import partial
warnings.simplefilter("ignore", DeprecationWarning)
import freehold

root, when = sys.argv[1:3]
quiet = freehold.view(root + "/quiet.sqlite")
ended = threading.Event()

def write(run):
    while not ended.is_set():
        run.append("busy", "x" * 1000)

def look():
    while not ended.is_set():
        assert quiet.info.events == 2
        quiet.verify()

def use(number):
    assert quiet.info.events == 2
    assert [event.name for event in freehold.view(root + "/quiet.sqlite").history()] == [None, "said"]
    with freehold.open(root) as own, own.create(f"own{number}") as run:
        run.append("from the child")
        assert run.info.events == 2

def child(number):
    try:
        use(number)
    except freehold.Error as error:
        return 3 if error.code == "forked_process" and "spawn" in str(error) else 4
    return 0

def fork(number):
    if (pid := os.fork()) == 0:
        code = 5
        try:
            code = child(number)
        finally:
            os._exit(code)
    poll = select.poll()
    poll.register(os.pidfd_open(pid), select.POLLIN)
    if not poll.poll(20_000):
        os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def work(target, *args):
    thread = threading.Thread(target=target, args=args)
    thread.start()
    return thread

def fork_among(*targets):
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    codes = [fork(number) for number in range(40)]
    ended.set()
    for thread in threads:
        thread.join()
    return codes

if when == "before any":
    codes = [fork(0)]
elif when == "a host without a run":
    with freehold.open(root):
        codes = [fork(0)]
elif when == "after all":
    with freehold.open(root) as host, host.open("quiet"):
        pass
    codes = [fork(0)]
elif when == "an idle run":
    with freehold.open(root) as host, host.create("idle"):
        codes = [fork(0)]
elif when == "others write":
    with freehold.open(root) as host:
        codes = fork_among(*[partial(write, host.create(f"busy{number}")) for number in range(3)], look)
else:
    codes = fork_among(look, look, look)
print(json.dumps(codes))
"""


def forked(root: Path, when: str) -> set[int]:
    """Return how the children ended that a process forks: 0 with all done, 3 refused, else wrong or hanging."""
    with freehold.open(root) as host, host.create("quiet") as run:
        run.append("said")
    done = subprocess.run([sys.executable, "-c", FORKING, str(root), when], capture_output=True, text=True, check=False, timeout=50)
    assert done.returncode == 0, done.stderr
    freehold.view(root / "quiet.sqlite").verify()
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("when", ["before any", "a host without a run", "after all"])
def test_a_child_that_was_forked_while_no_run_file_was_open_can_do_everything(tmp_path: Path, when: str) -> None:
    assert forked(tmp_path, when) == {0}


@pytest.mark.parametrize("when", ["an idle run", "others write"])
def test_a_child_that_was_forked_while_a_run_file_was_open_is_told_and_never_hangs(tmp_path: Path, when: str) -> None:
    assert forked(tmp_path, when) == {3}
    assert not list(tmp_path.glob("own*"))


def test_a_child_that_was_forked_among_readers_is_told_or_answered_rightly_and_never_hangs(tmp_path: Path) -> None:
    assert forked(tmp_path, "others read") <= {0, 3}
