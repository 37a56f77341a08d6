"""Others look all the time while an owner works: nobody meets a lock, and nobody sees half of anything."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import freehold

EVENTS = 2_000
SENDERS = 8
LOOKER = """
import json, sys, threading
import freehold

# What is looked at: pairs come in one transaction each, and every look is one moment.
view, what = freehold.view(sys.argv[1]), sys.argv[2]
seen, errors, ended = [], [], threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), ended.set())).start()
print("ready", flush=True)
while True:
    last = ended.is_set()
    try:
        if what == "verify":
            view.verify()
            seen.append(0)
        else:
            info, events = view.info, list(view.history())
            assert info.events % 2 == 1, info.events
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            notes = [event.name for event in events[1:]]
            assert notes[::2][: len(notes) // 2] == notes[1::2], "half a pair"
            assert info.events <= len(events)
            seen.append(len(events))
    except freehold.Error as error:
        errors.append(error.code)
    if last:
        break
    ended.wait(0.002)
assert seen == sorted(seen)
print(json.dumps([len(seen), errors, seen[-1]]))
"""


def test_three_that_poll_and_one_that_verifies_hinder_nobody(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as host, host.create("a") as run:
        command = [sys.executable, "-c", LOOKER, str(run.path)]
        lookers = [
            subprocess.Popen([*command, what], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for what in ("status", "status", "status", "verify")
        ]
        try:
            for looker in lookers:
                assert looker.stdout is not None
                assert looker.stdout.readline() == "ready\n"
            acknowledged = append_pairs(run)
            found = [json.loads(looker.communicate("\n", timeout=50)[0]) for looker in lookers]
        finally:
            for looker in lookers:
                looker.kill()
                looker.communicate(timeout=30)

        assert {looker.returncode for looker in lookers} == {0}
        assert [errors for _, errors, _ in found] == [[], [], [], []]
        assert [last for _, _, last in found] == [EVENTS + 1] * 3 + [0]
        assert all(looks > 2 for looks, _, _ in found)
        assert sorted(acknowledged) == sorted(event.name for event in run.history() if event.name)
        run.verify()
    assert not Path(f"{run.path}-wal").exists()


def append_pairs(run: freehold.Run) -> list[str]:
    """Append from several threads, two events a transaction; return the names of what was acknowledged."""

    def send(sender: int) -> list[str]:
        sent: list[str] = []
        for number in range(EVENTS // SENDERS // 2):
            name = f"{sender}.{number}"
            sent += run.transact(lambda tx, name=name: [tx.append(name, word).name for word in ("first", "second")])  # type: ignore[misc]
        return sent

    with ThreadPoolExecutor(SENDERS) as pool:
        return [name for sent in pool.map(send, range(SENDERS)) for name in sent]
