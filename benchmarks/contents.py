"""A large file written to a run file and read from it: through a handle as `open` gives it, and by a bare loop over the same chunks."""

from __future__ import annotations

import base64
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import zstandard
from benchmarks.budget import Sample
from benchmarks.files import new_run

from freehold.schema.hashes import ObjectKind, object_hash
from freehold.schema.limits import CHUNK_BYTES
from freehold.storage.clock import Clock
from freehold.storage.content import Content, pieces, write_stream
from freehold.storage.filestate import FileState
from freehold.storage.objects import ZSTD, StoredObjects
from freehold.storage.opened import open_file
from freehold.storage.store import Store

MIB = 2**20
_INSERT = "INSERT INTO object (hash, kind, size, codec, data) VALUES (?, ?, ?, ?, ?)"
_SELECT = "SELECT data FROM object WHERE hash = ?"


def ours_written(folder: Path, size: int) -> Sample:
    """Write *size* MiB through a handle and commit."""
    data = _text(size)
    with _store(folder) as store:
        told: list[Content] = []

        def write() -> None:
            store.begin(store.clock.now_ms())
            state = FileState(StoredObjects(store.db), None)
            with open_file(state, "wb", name="large", closed=told.append) as file:
                for begun in range(0, len(data), MIB):
                    file.write(data[begun : begun + MIB])  # type: ignore[arg-type]
            store.commit()

        sample = _timed(write, size)
        assert told[0].size == len(data)
    return sample


def bare_written(folder: Path, size: int) -> Sample:
    """Hash, pack and insert the same chunks, one after the other, and commit."""
    data = _text(size)
    with _store(folder) as store:

        def write() -> None:
            store.begin(store.clock.now_ms())
            packer = zstandard.ZstdCompressor(level=1)
            for begun in range(0, len(data), CHUNK_BYTES):
                chunk = data[begun : begun + CHUNK_BYTES]
                hash_ = object_hash(ObjectKind.CHUNK, chunk)
                store.db.execute(_INSERT, (hash_, int(ObjectKind.CHUNK), len(chunk), ZSTD, packer.compress(chunk)))
            store.commit()

        return _timed(write, size)


def ours_read(folder: Path, size: int) -> Sample:
    """Read *size* MiB through a handle."""
    with _store(folder) as store:
        content = _kept(store, size)

        def read() -> None:
            state = FileState(StoredObjects(store.db), content)
            with open_file(state, "rb", name="large", closed=_never) as file:
                while file.read(MIB):
                    pass

        return _timed(read, size)


def bare_read(folder: Path, size: int) -> Sample:
    """Select, unpack and hash the same chunks, one after the other."""
    with _store(folder) as store:
        content = _kept(store, size)
        hashes = [piece.hash for piece in pieces(StoredObjects(store.db), content, set()) if piece.kind == ObjectKind.CHUNK]

        def read() -> None:
            unpacker = zstandard.ZstdDecompressor()
            for hash_ in hashes:
                assert object_hash(ObjectKind.CHUNK, unpacker.decompress(store.db.execute(_SELECT, (hash_,)).get)) == hash_

        return _timed(read, size)


@contextmanager
def _store(folder: Path) -> Iterator[Store]:
    store = Store(new_run(folder, "run")[1], Clock())
    try:
        yield store
    finally:
        store.close(clean=True)


def _kept(store: Store, size: int) -> Content:
    store.begin(store.clock.now_ms())
    content = write_stream(StoredObjects(store.db), [_text(size)])
    store.commit()
    store.wal.checkpoint()
    return content


def _text(size: int) -> bytes:
    """Return *size* MiB that pack to three quarters, no chunk of them twice."""
    return base64.b64encode(random.Random(size).randbytes(size * MIB * 3 // 4))


def _timed(work: Callable[[], None], size: int) -> Sample:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Sample({"mib_per_second": size / wall, "cpu_ms": cpu * 1e3})


def _never(_: Content) -> None:
    raise AssertionError("a reader tells nothing")
