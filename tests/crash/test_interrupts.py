"""Ctrl-C at any step: real signals whose handler raises, at random moments of a real program, and then nothing is held by nobody."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run as run_process

import pytest
from folder import run_files
from program import environment

import freehold
from freehold.storage.path import resolve_file
from freehold.storage.pin import pin

PROGRAM = """
import gc, os, random, signal, sys, time, warnings
import freehold

root, way, seed, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
dice = random.Random(seed)
warnings.simplefilter("ignore")
sys.unraisablehook = lambda _: None  # a finalizer that was interrupted: Python itself drops what was raised there

class Interrupted(BaseException):
    pass

def interrupt(*_):
    raise Interrupted

def ends_well(call):
    "Call until what was left behind has come to its own end."
    until = time.monotonic() + 20
    while True:
        try:
            return call()
        except (freehold.Error, AssertionError, FileNotFoundError):  # the last: a descriptor went while all were looked at
            if time.monotonic() > until:
                raise
        os.sched_yield()

host = freehold.open(root, timeout=20, idle_timeout=0.1)
run = host.create("a")
run.append("x")
if way not in ("block", "step"):
    run.close()
if way in ("look", "host"):
    host.close()
run = run if way in ("block", "step") else None
number = 0

def look():
    view = freehold.view(root + "/a.sqlite")
    dice.choice([lambda: view.info, lambda: list(view.history()), view.verify])()

def block():
    with run.transaction(timeout=1000) as tx:
        tx.append("x")

def one_host():
    global host
    host = freehold.open(root)
    host.close()

calls = {
    "look": look,
    "open": lambda: host.open("a").close(),
    "ensure": lambda: host.ensure("a").close(),
    "create": lambda: host.create(f"c{number}").close(),
    "delete": lambda: host.delete(f"c{number}"),
    "block": block,
    "step": lambda: run.once(f"k{number}", lambda: number),
    "host": one_host,
}

def once(timer):
    global number
    number += 1
    if way == "delete":
        host.create(f"c{number}").close()
    began = time.perf_counter()
    try:
        signal.setitimer(signal.ITIMER_REAL, timer)
        try:
            calls[way]()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupted:
        if way == "host":
            host.close()
    except freehold.HostOpen:
        assert way == "host"  # an interrupted one closes it just now
    finally:
        took = time.perf_counter() - began
    if way == "block":
        with freehold.fail_after(10):
            run.append("y")
    elif way == "step":
        with freehold.fail_after(10):
            assert run.once(f"k{number}", lambda: number) == number
    elif way == "host":
        ends_well(lambda: freehold.open(root).close())
    return took

signal.signal(signal.SIGALRM, interrupt)
longest = 1.5 * sorted(once(0) for _ in range(5))[2]
interrupted, until = 0, time.monotonic() + seconds
while time.monotonic() < until:
    once(dice.uniform(1e-6, longest))
signal.signal(signal.SIGALRM, signal.SIG_DFL)

if way in ("look", "host"):
    host = ends_well(lambda: freehold.open(root, timeout=20, idle_timeout=0.1))
run = None
gc.collect()

def all_is_given_back():
    assert {node.name for node in host.tree().children} <= {".registrar", ".listener"}, host.tree()
    held = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    # A socket's descriptor names no file.
    assert not [file for file in held if file.startswith(root) and "/.host.sqlite" not in file], held

ends_well(all_is_given_back)
ends_well(lambda: host.open("a").close())
for file in host.files():
    if file.id != "a":
        ends_well(lambda: host.delete(file.id))
left = [name for name in os.listdir(root) if name.endswith(".new")]
assert not left, left
host.close()
print("well", number)
"""


@pytest.mark.parametrize("way", ["look", "open", "ensure", "create", "delete", "block", "step", "host"])
def test_whatever_is_interrupted_nothing_stays_held(tmp_path: Path, way: str, seed: int) -> None:
    done = run_process(
        [sys.executable, "-X", "faulthandler", "-c", PROGRAM, str(tmp_path), way, str(seed), "2.5"],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
        timeout=55,
    )

    assert (done.returncode, done.stderr) == (0, ""), f"seed {seed}"
    assert done.stdout.startswith("well ")
    pin(resolve_file(tmp_path / "a.sqlite"), exclusive=True).close()
    assert run_files(tmp_path) == ["a.sqlite"]
    freehold.view(tmp_path / "a.sqlite").verify()
    with freehold.open(tmp_path) as host:
        host.delete("a")
    assert run_files(tmp_path) == []
