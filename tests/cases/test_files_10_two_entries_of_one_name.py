"""A crafted tree with two entries of one name, or in the wrong order, is damage to whoever reads it; nothing is made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import freehold
from freehold import Damaged, Run
from freehold.schema.hashes import ObjectKind
from freehold.schema.messages import KeepObjects, Publish
from freehold.schema.roots import make_object
from freehold.storage.objects import packed


def plant(run: Run, items: list[list[Any]]) -> None:
    """Publish a root whose tree holds *items*, as only a forger would."""
    tree = make_object(ObjectKind.TREE, msgspec.msgpack.encode([0, items]))
    size = sum(item[3] for item in items)
    root = msgspec.msgpack.encode([1, tree.hash, len(items), size, 1, 0])

    def work(tx: freehold.Transaction) -> None:
        tx._do(KeepObjects((packed(tree),)))
        tx._do(Publish("forged", "{}", root))

    run.transact(work)


def file(name: str, content: bytes) -> list[Any]:
    return [0, name, 0o644, len(content), content]


@pytest.mark.parametrize(
    "items",
    [
        [file("x", b"1"), file("x", b"2")],
        [file("y", b"1"), file("x", b"2")],
        [file("x/y", b"1")],
        [file("..", b"1")],
        [file("", b"1")],
    ],
)
def test_such_a_tree_is_refused_by_whoever_reads_it(tmp_path: Path, items: list[list[Any]]) -> None:
    with freehold.open(tmp_path, timeout=20) as host, host.create("r") as run:
        plant(run, items)
        events = run.info.events

        for call in (
            lambda: list(run.files.iterdir()),
            lambda: run.files.read_bytes("x"),
            lambda: list(run.files.glob("**/*")),
            lambda: run.publish("lost", lambda files: files.write_text("z", "")),
            lambda: run.diff(1, 2),
            run.verify,
        ):
            with pytest.raises(Damaged):
                call()
        assert run.info.events == events
