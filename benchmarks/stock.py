"""Run files that are made once and opened often: large ones, many of them, and one whose owner has died.

Large ones are made of records that hardly compress, a few of them a transaction: a gigabyte is a matter of seconds.
"""

from __future__ import annotations

import base64
import random
from contextlib import closing
from pathlib import Path

import apsw
from benchmarks.files import new_run

from freehold.schema.rows import Known
from freehold.storage.clock import Clock
from freehold.storage.events import read_run
from freehold.storage.hostfile import HostFile
from freehold.storage.known import put_known
from freehold.storage.objects import pack
from freehold.storage.path import RunPath, resolve
from freehold.storage.pin import pin
from freehold.storage.stamp import stamp_of
from freehold.storage.store import Store

MIB = 2**20
_PAGE_BYTES = 4096
_RECORD_BYTES = MIB // 4
_RECORDS_A_TURN = 64
_NOTES_OF_THE_DEAD = 100


def sized_run(folder: Path, size: int) -> RunPath:
    """Return a run file of about *size* bytes in *folder*, closed cleanly; it is made when it is first asked for."""
    path = resolve(folder, f"{size // MIB}-MiB")
    if Path(path.file).exists():
        return path
    noise = base64.b64encode(random.Random(size).randbytes(_RECORD_BYTES)).decode()
    each = len(pack(noise.encode())[1])
    clock = Clock()
    store = Store(new_run(folder, path.id)[1], clock)
    try:
        for begun in range(0, size // each, _RECORDS_A_TURN):
            now_ms = clock.now_ms()
            store.begin(now_ms)
            for number in range(begun, min(begun + _RECORDS_A_TURN, size // each)):
                store.journal.append("note", "e", f'"{number} {noise}"', now_ms)
            store.commit()
            store.wal.checkpoint()
    finally:
        store.close(clean=True)
    return path


def many_runs(folder: Path, runs: int) -> Path:
    """Return a folder of *runs* small runs that nobody owns; it is made when it is first asked for."""
    root = folder / f"{runs}-runs"
    if not root.exists():
        for number in range(runs):
            new_run(root, f"run-{number:04}")[1].close()
    return root


def known_runs(folder: Path, runs: int) -> Path:
    """Return a folder with a host file that knows *runs* runs; it is made when it is first asked for.

    Only the first page of each run file is there: one that is known to be unchanged is not looked into.
    """
    root = folder / f"{runs}-known"
    if root.exists():
        return root
    clock = Clock()
    path, pin = new_run(folder / "sample", "sample")
    with closing(apsw.Connection(path.file, flags=apsw.SQLITE_OPEN_READONLY)) as db:
        row = read_run(db)
    head = Path(path.file).read_bytes()[:_PAGE_BYTES]
    pin.close()
    root.mkdir()
    known = []
    for number in range(runs):
        run = f"run-{number:04}"
        (root / f"{run}.sqlite").write_bytes(head)
        stamp = stamp_of(RunPath(str(root), run))
        assert stamp is not None
        known.append(Known(run, stamp, sealed=True, seen_at=clock.now_ms(), row=row._replace(id=run), events=1))
    with closing(HostFile(str(root))) as file:
        file.write(lambda db: put_known(db, known))
    return root


def let_die(path: RunPath) -> None:
    """Leave a run file as a killed owner does: an execution is running, the tenure is open, the newest pages are in the -wal."""
    clock = Clock()
    store = Store(pin(path, exclusive=True), clock)
    now_ms = clock.now_ms()
    store.begin(now_ms)
    store.executions.begin(now_ms)
    store.commit()
    for number in range(_NOTES_OF_THE_DEAD):
        store.begin(now_ms)
        store.journal.append("note", "e", str(number), now_ms)
        store.commit()
    store.db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    store.close(clean=False)
