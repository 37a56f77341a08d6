"""C2: whoever polled a run or steered it from another process brought lock errors into its runner; inside one process all was well."""

from __future__ import annotations

from pathlib import Path

import pytest
from neighbours import Neighbours
from program import run_program

import freehold

STEPS = 200
REQUESTS = 20
LOOKERS = 3

FUNCTIONS = """
import itertools, pathlib, time
end = pathlib.Path(root) / "end"

def step(files, number):
    files.write_text("number", str(number))
    files.write_text(f"step {number}", "done")

def work(run, steps):
    "Take short steps, two files and an event each."
    told = []
    for number in range(steps):
        told.append(note(run.publish(f"step {number}", lambda files: step(files, number))))
    return told

def look(pause):
    "Look at where the run stands until the end; each look is one moment."
    view, looks, last = freehold.view(pathlib.Path(root) / "a.sqlite"), 0, 0
    while not end.exists():
        info, events = view.info, list(view.history())
        assert info.events >= last
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        last = len(events)
        root_now = next((event for event in reversed(events) if event.kind == "publish"), None)
        if root_now is not None:
            files = view.snapshot(root_now)
            number = files.read_text("number")
            assert files.read_text(f"step {number}") == "done", "half a step"
        looks += 1
        time.sleep(pause)
    return looks

def steer(requests):
    "Ask for something twenty times, as whoever pauses and resumes it would."
    told = []
    for number in range(requests):
        word = "pause" if number % 2 == 0 else "resume"
        told.append(note(handle.append(word, number, request_id=f"request {number}")))
        time.sleep(0.01)
    return told
"""


@pytest.mark.parametrize("how", ["with a lease", "call by call"])
def test_three_who_look_and_two_who_steer_meet_no_lock_and_the_runner_meets_none(tmp_path: Path, village: Neighbours, how: str) -> None:
    with freehold.open(tmp_path) as host:
        host.create("a").close()
    runner, steering, *lookers = (village.new(tmp_path) for _ in range(2 + LOOKERS))
    for each in (runner, steering, *lookers):
        each.do(FUNCTIONS + "\nhandle = host.handle('a')")
    if how == "with a lease":
        runner.do("mine = host.open('a')")
    else:
        runner.do("mine = handle")

    for looker in lookers:
        looker.tell("looks = look(0.005)", "looks")
    steering.tell(f"told = steer({REQUESTS})", "told")
    runner.tell(f"told = work(mine, {STEPS})", "told")
    by_command = [run_program("--root", str(tmp_path), "--json", *words) for words in (["put", "a", "x", "/dev/null"], ["show", "a"])]
    worked, steered = runner.hear(), steering.hear()
    (tmp_path / "end").touch()
    looks = [looker.hear() for looker in lookers]

    for ended in by_command:
        # A command whose publish meets another root again and again is told to come later; nobody is ever told of a lock.
        assert (ended.code, ended.err) == (0, "") or (ended.code, ended.document["code"]) == (6, "root_keeps_moving"), ended
    assert all(each > 2 for each in looks)
    for each in (runner, steering, *lookers):
        each.end()
    view = freehold.view(tmp_path / "a.sqlite")
    view.verify()
    events = {event.name: event for event in view.history(after=1)}
    assert len(events) == view.info.events - 1 - REQUESTS + 2  # pause and resume stand there ten times each
    assert [[events[f"step {number}"].seq, events[f"step {number}"].hash] for number in range(STEPS)] == worked
    asked = [event for event in view.history() if event.name in ("pause", "resume")]
    assert [[event.seq, event.hash] for event in asked] == steered
    assert [event.data for event in asked] == list(range(REQUESTS))
    assert view.files.exists("x") == (by_command[0].code == 0)
