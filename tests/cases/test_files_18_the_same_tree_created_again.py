"""A tree that is deleted and created again with the same bytes, in whatever order and way, is the old root; the diff is empty."""

from __future__ import annotations

import random
from pathlib import Path

import freehold
from freehold.files import Files
from freehold.schema.roots import EMPTY_ROOT, root_text

THINGS = {f"d{number % 7}/e{number % 3}/{number:03}": bytes([number]) * (number * 700) for number in range(200)}


def write(files: Files, path: str) -> None:
    files.mkdir(path.rpartition("/")[0], parents=True, exist_ok=True)
    if len(path) % 2:
        files.write_bytes(path, THINGS[path])
    else:
        with files.open(path, "wb") as file:
            for at in range(0, len(THINGS[path]), 999):
                file.write(THINGS[path][at : at + 999])


def test_the_same_tree_is_the_same_root(tmp_path: Path, seed: int) -> None:
    order = list(THINGS)
    with freehold.open(tmp_path, timeout=60) as host, host.create("r") as run:
        first = run.publish("create", lambda files: [write(files, path) for path in order])  # type: ignore[func-returns-value]
        empty = run.publish("delete", lambda files: [files.rmtree(path) for path in list(files.iterdir())])  # type: ignore[func-returns-value]
        random.Random(seed).shuffle(order)
        for part in range(0, 200, 50):
            with run.publish("create again") as files:
                for path in order[part : part + 50]:
                    write(files, path)

        assert empty.root == root_text(EMPTY_ROOT.hash)
        assert run.files.root == first.root
        assert list(run.diff(first, run.files.root)) == []
        run.verify()
