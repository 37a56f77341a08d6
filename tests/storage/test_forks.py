"""A forked child neither uses nor closes what it has inherited; the parent goes on as if nothing had been."""

from __future__ import annotations

import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest
from owned import own, seen
from runfile import new_run

from freehold.storage import forks
from freehold.storage.path import RunPath
from freehold.storage.verify import verify

# A process without threads of others', which may fork. The children end in every way that a child can.
FORKING = """
import multiprocessing, os, sys
sys.path[:0] = sys.argv[3:]
from owned import begin, commit_notes, events, note, own
from freehold.schema.errors import Error
from freehold.storage.faults import Poisoned
from freehold.storage.path import resolve
from freehold.storage.pin import pin

stores = [own(resolve(sys.argv[1], run)) for run in ("a", "b", "c")]
for store in stores:
    commit_notes(store, "0")
begin(stores[0])
note(stores[0], "1")  # one of them is in the middle of a transaction

def use():
    refused = []
    for store in stores:
        for call in (begin, note, lambda store: store.commit(), lambda store: store.savepoints.open(),
                     lambda store: store.executions.begin(1), lambda store: store.transaction.guard()):
            try:
                call(store)
            except Poisoned as poisoned:
                refused.append(poisoned.error.code)
        for clean in (True, False):
            try:
                store.close(clean=clean)
            except Error as error:
                refused.append(error.code)
        store.pin.close()
    return refused

def child():
    refused = use()
    os.write(1, f"{len(refused)} {set(refused)}\\n".encode())

way = sys.argv[2]
if way == "multiprocessing":
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == 0
elif os.fork() == 0:
    child()
    if way == "killed":
        os.kill(os.getpid(), 9)
    del stores
    sys.exit(0)  # with every exit hook and every destructor
else:
    os.wait()

stores[0].commit()
for store in stores:
    for number in range(100):
        commit_notes(store, str(number))
    store.wal.checkpoint()
    assert store.db.execute("PRAGMA integrity_check").get == "ok"
for store in stores:
    store.close(clean=True)
os.write(1, b"whole\\n")
"""

OUTLIVED = """
import os, sys
sys.path[:0] = sys.argv[2:]
from owned import commit_notes, own
from freehold.storage.path import resolve
store = own(resolve(sys.argv[1], "a"))
commit_notes(store, "1")
if os.fork() == 0:
    sys.stdin.readline()
    del store
    sys.exit(0)
store.close(clean=True)
print("forked", flush=True)
os._exit(0)
"""

KILLED = """
import os, sys
sys.path[:0] = sys.argv[2:]
from owned import commit_notes, own
from freehold.storage.path import resolve
commit_notes(own(resolve(sys.argv[1], "a")), "2")
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("way", ["exits", "killed", "multiprocessing"])
def test_a_child_uses_and_closes_nothing_and_the_parent_commits_on(tmp_path: Path, way: str) -> None:
    paths = [new_run(tmp_path, run) for run in ("a", "b", "c")]
    result = subprocess.run(
        [sys.executable, "-c", FORKING, str(tmp_path), way, *sys.path], capture_output=True, text=True, check=False, timeout=60
    )

    assert (result.stdout, result.stderr, result.returncode) == ("24 {'forked_process'}\nwhole\n", "", 0)
    for path in paths:
        assert_holds_all(path, 103 if path.id == "a" else 102)
    assert sorted(file.name for file in tmp_path.glob("*.sqlite*") if not file.name.endswith(("-wal", "-shm"))) == [
        "a.sqlite",
        "b.sqlite",
        "c.sqlite",
    ]


def test_what_is_watched_is_not_kept_alive() -> None:
    class Watched:
        def forked(self) -> None:
            """Have nothing to give up."""

    watched = Watched()
    forks.watch(watched)
    alive = weakref.ref(watched)
    del watched

    assert alive() is None


def assert_holds_all(path: RunPath, events: int) -> None:
    store = own(path)
    verify(store.db, path)
    assert (store.journal.head.seq, store.epoch) == (events, 2)
    assert store.db.execute("PRAGMA integrity_check").get == "ok"
    store.close(clean=True)
    assert seen(path, "SELECT count(*) FROM event") == events


def test_a_child_that_lives_on_neither_keeps_the_run_nor_takes_away_what_a_later_owner_left(tmp_path: Path) -> None:
    path = new_run(tmp_path)
    command = [sys.executable, "-c", OUTLIVED, str(tmp_path), *sys.path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"forked\n"
        # The owner has closed, its child still waits. A later owner commits and is killed: all it has is in its -wal.
        subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), *sys.path], check=False, timeout=30)
        assert Path(path.sibling("-wal")).stat().st_size > 0
        process.stdin.write(b"\n")
        process.stdout.read()  # until the child has ended too, with every exit hook and every destructor

    store = own(path)
    assert (store.epoch, store.journal.head.seq) == (3, 3)
    store.close(clean=True)


def test_what_is_watched_can_be_swept_while_others_are_added() -> None:
    class Thing:
        def forked(self) -> None:
            """Do nothing."""

    failed: list[BaseException] = []

    def add() -> None:
        try:
            for _ in range(3_000):
                forks.watch(Thing())
                [[] for _ in range(20)]  # so that collections come
        except BaseException as error:  # noqa: BLE001 - shown below
            failed.append(error)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(forks._inherited) < 6_000  # of those that have gone, most are forgotten
