"""A child that a user's process forks: it is told at once, hurts nothing of its parent's when it ends, and may have a host of its own."""

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
    harmless = ("a view of the file", "a host of its own", "close lease", "close host", "tree")
    assert ended == 0
    assert {told.pop(name) for name in own_calls} == {own}
    assert {told.pop(name) for name in harmless} == {"ok"}
    assert told.pop("open as another") == "owned_elsewhere"
    assert set(told.values()) == {"forked_process"}
    assert told.keys() >= {"append to another", "transaction", "open", "create", "ensure", "view", "runs", "delete"}
    assert ("append inside" in told) is ("in a" in how)

    for run_id in "abc":
        view = freehold.view(tmp_path / f"{run_id}.sqlite")
        view.verify()
        names = [row[3] for row in read(view)]
        inside = {"in a turn": ["in the turn"] * 4, "in a transaction": ["in the transaction"] * 4}.get(how, [])
        assert names == [None, "before", *(inside if run_id == "a" else []), *["after"] * 100]
        assert (view.info.epoch, Path(f"{view.path}-wal").exists()) == (1, False)
    assert [row[3] for row in read(freehold.view(tmp_path / "own" / "own.sqlite"))] == [None, "from the child"]
    assert not (tmp_path / "never.sqlite").exists()
