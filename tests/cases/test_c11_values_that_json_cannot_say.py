"""C11: a number that JSON cannot say is the same after its process was killed, or refused at once with the path to it."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import freehold

VALUES = """[
    9007199254740993,
    2**64,
    -2**63 - 1,
    int("2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", 16),
    float("nan"),
    float("inf"),
    -0.0,
    {"a": [1e308 * 10]},
    -float("inf"),
    2**63,
    10**300,
    5e-324,
]"""
PROGRAM = f"""
import os, signal, sys
import freehold
host = freehold.open(sys.argv[1])
run = host.ensure("a")
value = {VALUES}[int(sys.argv[2])]
first = run.append("value", value).data
reply = run.transact(lambda tx: [value, tx.append("inside", value)], request_id=sys.argv[2])
print(repr(first), repr(reply[0]), repr(reply[1].data), sep="\\n", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
WANTED = eval(VALUES)


def nothing(_tx: freehold.Transaction) -> Any:
    """Do nothing: what a repeated request returns is what it returned before."""


def same(one: object, other: object) -> bool:
    """Return whether two numbers are the same, sign of zero and NaN included."""
    if isinstance(one, dict) and isinstance(other, dict):
        return same(one["a"][0], other["a"][0])
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or (one == other and math.copysign(1, one) == math.copysign(1, other))
    return type(one) is type(other) and one == other


def test_every_number_is_the_same_before_and_after_a_kill(tmp_path: Path) -> None:
    told = []
    for number in range(len(WANTED)):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path), str(number)], capture_output=True, text=True, timeout=30, check=False
        )
        assert done.returncode == -9, done.stderr
        told.append(done.stdout.split("\n")[:3])

    with freehold.open(tmp_path) as host, host.open("a") as run:
        values = [event.data for event in run.history(name="value")]
        inside = [event.data for event in run.history(name="inside")]
        replies = [run.transact(nothing, request_id=str(number)) for number in range(len(WANTED))]
        run.verify()
    assert len(values) == len(inside) == len(WANTED)
    for wanted, value, within, reply, texts in zip(WANTED, values, inside, replies, told, strict=True):
        assert same(value, wanted)
        assert same(within, wanted)
        assert same(reply[0], wanted)
        assert same(reply[1].data, wanted)
        assert set(texts) == {repr(wanted)}


@pytest.mark.parametrize("value", [1 + 2j, {"a": [object()]}, {1: 2}], ids=["complex", "object", "key"])
def test_what_cannot_be_the_same_is_refused_with_the_path_to_it(tmp_path: Path, value: object) -> None:
    with freehold.open(tmp_path) as host, host.create("a") as run:
        with pytest.raises(freehold.ValueRefused) as caught:
            run.append("value", value)
        assert caught.value.details["path"].startswith("$")
        assert run.info.events == 1
