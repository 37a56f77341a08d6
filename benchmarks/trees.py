"""Many small files: one of them published, many in one publish, a folder imported, two roots compared; beside bare loops and git."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, quantiles
from typing import Any

import apsw
import zstandard
from benchmarks.budget import Sample
from benchmarks.files import new_run
from benchmarks.ours import run_of_ours
from benchmarks.raw import raw_commits
from benchmarks.senders import one

from freehold.files import Files
from freehold.schema.hashes import ObjectKind, object_hash
from freehold.storage.clock import Clock
from freehold.storage.path import RunPath, resolve
from freehold.storage.store import Store

FILES = 10_000
FOLDERS = 100
BYTES = 4096
_WORDS = [f"{random.Random(number).getrandbits(28):x}" for number in range(4096)]
_INSERT = "INSERT INTO object (hash, kind, size, codec, data) VALUES (?, ?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING"
_GIT = ("git", "-c", "user.name=n", "-c", "user.email=e@e", "-c", "core.fsync=none", "-c", "gc.auto=0", "-c", "core.autocrlf=false")
"""git without fsync: it is asked to be quick, not to be safe."""


def content(number: int, seed: int = 0) -> bytes:
    """Return 4 KiB of text, another one for each number and seed."""
    dice = random.Random(number * 1_000_003 + seed)
    return " ".join(dice.choices(_WORDS, k=BYTES // 7)).encode()[:BYTES].ljust(BYTES, b".")


def name(number: int, *, flat: bool) -> str:
    """Return the path of one of the files, all in one folder or in a hundred."""
    return f"f{number:05}" if flat else f"d{number // FOLDERS:02}/f{number % FOLDERS:02}"


# One file of 10,000


def ours_published(folder: Path, publishes: int, *, flat: bool, vfs: str | None = None) -> Sample:
    """Replace one file in each publish, and count the objects that it adds and their bytes as they are stored."""
    path = _filled(folder, flat=flat)
    dice = random.Random(1)
    chosen = [dice.randrange(FILES) for _ in range(publishes)]

    with run_of_ours(path, vfs) as run:
        run.publish("warm", lambda files: files.write_bytes(name(0, flat=flat), b"warm"))
        before = _objects(run.path)

        def publish(number: int) -> None:
            data = content(chosen[number], number + 1)
            run.publish("one", lambda files: files.write_bytes(name(chosen[number], flat=flat), data))

        pace = one(publish, publishes)
    added = _added(Path(path.file), before)
    assert len(added) == publishes
    kib = [sum(sizes) / 1024 for sizes in added]
    figures = {"per_second": pace.per_second, "objects": mean(map(len, added)), "kib": mean(kib), "kib_p95": quantiles(kib, n=20)[-1]}
    return Sample(figures)


def raw_published(folder: Path, publishes: int, vfs: str | None = None) -> Sample:
    """A bare loop of commits."""
    return Sample({"per_second": raw_commits(folder, "raw", '{"n":1}', publishes, vfs).per_second})


def git_published(folder: Path, publishes: int) -> Sample:
    """Replace one file, add and commit it with git, in each round."""
    tree = _folder(folder)
    _git(tree, "init", "-q")
    _git(tree, "add", "-A")
    _git(tree, "commit", "-qm", "all")
    dice = random.Random(1)

    def commit(number: int) -> None:
        path = name(chosen := dice.randrange(FILES), flat=False)
        (tree / path).write_bytes(content(chosen, number + 1))
        _git(tree, "add", path)
        _git(tree, "commit", "-qm", "one")

    return Sample({"per_second": one(commit, max(3, publishes // 10)).per_second})


# Many in one publish


def ours_together(folder: Path, files: int) -> Sample:
    """Write many files in one publish, in the owner's thread."""
    datas = [content(number) for number in range(files)]
    path, pin = new_run(folder, "run")
    pin.close()

    def work(tree: Files) -> None:
        for number, data in enumerate(datas):
            tree.write_bytes(f"f{number:05}", data)

    with run_of_ours(path) as run:
        run.publish("warm", lambda tree: tree.write_bytes("warm", b"x" * 4000))
        return _timed(lambda: run.publish("all", work))


def bare_together(folder: Path, files: int) -> Sample:
    """Hash, pack and insert the same contents in one transaction of a bare object store, each beside its name."""
    datas = [content(number) for number in range(files)]
    store = Store(new_run(folder, "run")[1], Clock())
    try:
        store.db.execute("CREATE TEMP TABLE entry (name TEXT PRIMARY KEY, hash BLOB NOT NULL)")

        def work() -> None:
            store.begin(store.clock.now_ms())
            packer = zstandard.ZstdCompressor(level=1)
            for number, data in enumerate(datas):
                hash_ = object_hash(ObjectKind.CHUNK, data)
                store.db.execute(_INSERT, (hash_, int(ObjectKind.CHUNK), len(data), 1, packer.compress(data)))
                store.db.execute("INSERT INTO entry VALUES (?, ?)", (f"f{number:05}", hash_))
            store.commit()

        return _timed(work)
    finally:
        store.close(clean=True)


# A folder


def ours_taken(folder: Path, _files: int) -> Sample:
    """Import a folder of 10,000 files, then once more when nothing in it has changed."""
    tree = _folder(folder)
    path, pin = new_run(folder, "run")
    pin.close()
    with run_of_ours(path) as run:
        first = _timed(lambda: run.import_tree(tree)).figures["ms"]
        again = _timed(lambda: run.import_tree(tree)).figures["ms"]
    return Sample({"ms": first, "again": again / first})


def git_taken(folder: Path, _files: int) -> Sample:
    """Add the same folder to git and commit it, without fsync."""
    tree = _folder(folder)

    def work() -> None:
        _git(tree, "init", "-q")
        _git(tree, "add", "-A")
        _git(tree, "commit", "-qm", "all")

    first = _timed(work).figures["ms"]
    again = _timed(lambda: _git(tree, "add", "-A")).figures["ms"]
    return Sample({"ms": first, "again": again / first})


# What is different


def ours_compared(folder: Path, times: int, *, flat: bool) -> Sample:
    """Compare two roots of 10,000 files, one of which differs."""
    with run_of_ours(_filled(folder, flat=flat)) as run:
        event = run.publish("one", lambda files: files.write_bytes(name(4321, flat=flat), b"changed"))
        assert [change.path for change in run.diff(event.seq - 1)] == [name(4321, flat=flat)]
        return Sample({"ms": one(lambda _number: run.diff(event.seq - 1), times).p50_us / 1000})


def git_compared(folder: Path, times: int) -> Sample:
    """Compare two commits of the same files with git, the start of its process included."""
    tree = _folder(folder)
    _git(tree, "init", "-q")
    _git(tree, "add", "-A")
    _git(tree, "commit", "-qm", "all")
    (tree / name(4321, flat=False)).write_bytes(b"changed")
    _git(tree, "commit", "-qam", "one")
    return Sample({"ms": one(lambda _number: _git(tree, "diff", "--name-status", "HEAD~1", "HEAD"), max(3, times // 10)).p50_us / 1000})


def _filled(folder: Path, *, flat: bool) -> RunPath:
    """Return a run of its own with the 10,000 files in it; they are written once."""
    stock = resolve(folder.parent, "flat" if flat else "deep")
    if not Path(stock.file).exists():
        made = resolve(folder.parent / stock.id, "run")
        Path(made.folder).mkdir()
        new_run(Path(made.folder), "run")[1].close()
        with run_of_ours(made) as run:
            run.publish("all", lambda files: _fill(files, flat=flat))
        Path(made.file).rename(stock.file)
    shutil.copyfile(stock.file, folder / "run.sqlite")
    return resolve(folder, "run")


def _fill(files: Files, *, flat: bool) -> None:
    for number in range(0 if flat else FOLDERS):
        files.mkdir(f"d{number:02}")
    for number in range(FILES):
        files.write_bytes(name(number, flat=flat), content(number))


def _folder(folder: Path) -> Path:
    """Return a real folder with the 10,000 files in it, old enough for a stat cache to trust them."""
    tree = folder / "tree"
    past = time.time() - 3600
    for number in range(FOLDERS):
        (tree / f"d{number:02}").mkdir(parents=True)
    for number in range(FILES):
        file = tree / name(number, flat=False)
        file.write_bytes(content(number))
        os.utime(file, (past, past))
    time.sleep(1)  # the time of a change cannot be set back
    return tree


def _objects(file: Path) -> int:
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows: list[Any] = db.execute("SELECT max(id) FROM object").fetchall()
        return int(rows[0][0])
    finally:
        db.close()


def _added(file: Path, before: int) -> list[list[int]]:
    """Return the stored sizes of the objects of each publish since: its root is the last of them."""
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows = db.execute("SELECT kind, length(data) FROM object WHERE id > ? ORDER BY id", (before,)).fetchall()
    finally:
        db.close()
    added: list[list[int]] = [[]]
    for kind, size in rows:
        assert isinstance(size, int)
        added[-1].append(size)
        if kind == ObjectKind.ROOT:
            added.append([])
    return added[:-1]


def _git(tree: Path, *arguments: str) -> None:
    subprocess.run([*_GIT, *arguments], cwd=tree, check=True, stdout=subprocess.DEVNULL)


def _timed(work: Callable[[], object]) -> Sample:
    begun = time.perf_counter()
    work()
    return Sample({"ms": (time.perf_counter() - begun) * 1000})
