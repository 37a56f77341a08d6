"""The rows of the table: what is measured, against what, and the budget of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from benchmarks.budget import Budget
from benchmarks.contents import bare_read, bare_written, ours_read, ours_written
from benchmarks.openings import (
    bare_listed,
    bare_opened,
    bare_recalled,
    bare_reopened,
    bare_taken_over,
    ours_listed,
    ours_opened,
    ours_recalled,
    ours_reopened,
    ours_taken_over,
)
from benchmarks.sides import (
    Side,
    minimal_alone,
    minimal_asked,
    minimal_crowded,
    others_imported,
    ours_alone,
    ours_asked,
    ours_beside,
    ours_crowded,
    ours_imported,
    ours_weighed,
    raw_alone,
    raw_weighed,
)
from benchmarks.stock import MIB
from benchmarks.trees import (
    bare_together,
    git_compared,
    git_published,
    git_taken,
    ours_compared,
    ours_published,
    ours_taken,
    ours_together,
    raw_published,
)

from freehold.storage.vfs.slow import SLOW


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. *amount* is the number of messages (of a sender) in a round; *quick* the same for a short look."""

    name: str
    budgets: tuple[Budget, ...]
    ours: Side
    reference: Side
    amount: int
    quick: int | None
    """None: there is no short look, because what it needs takes long to make."""


def _rate(title: str, limit: float) -> Budget:
    return Budget(title, "per_second", "/s", "at least", limit, "ratio")


def _known(title: str, figure: str) -> Budget:
    return Budget(title, figure, "ms", "at most", None, "ratio")


def _growth(large: str) -> tuple[Budget, ...]:
    return (
        Budget(f"open and recognise, {large} / 1 MiB", "open_ms", "ms", "at most", 3, "ratio"),
        Budget("  clean close", "close_ms", "ms", "at most", 3, "ratio"),
    )


def _bare(size: str) -> tuple[Budget, ...]:
    return _known(f"open and recognise, {size} / bare", "open_ms"), _known("  clean close / bare", "close_ms")


def _stream(what: str) -> tuple[Budget, ...]:
    return (
        Budget(f"64 MiB {what} / bare loop over chunks", "mib_per_second", "MiB/s", "at least", 0.5, "ratio"),
        Budget("  its CPU", "cpu_ms", "ms", "at most", 2, "ratio"),
    )


def _diff(what: str) -> Budget:
    return Budget(f"diff, 1 of 10,000 files, {what} / git diff", "ms", "ms", "at most", 1, "ratio")


def _publish(what: str) -> tuple[Budget, ...]:
    return (
        _rate(f"publish 1 of 10,000 files, {what} / raw commits, slow disk", 0.5),
        Budget("  objects", "objects", "", "at most", 8, "ours"),
        Budget("  KiB of objects, mean", "kib", "KiB", "at most", 8, "ours"),
        Budget("  KiB of objects, p95", "kib_p95", "KiB", "at most", 12, "ours"),
    )


_BESIDE = (_rate("eight runs at once / one run", 1.5), Budget("  p99 of an append", "p99_ms", "ms", "at most", 30, "ours"))
_BESIDE_SLOW = (_rate("eight runs at once / one run, slow disk", 1.5), _BESIDE[1])
_SMALL, _MIDDLE, _LARGE = MIB, 30 * MIB, 1024 * MIB
_TOGETHER = Budget("  records per commit", "records_per_commit", "", "at least", 2, "ours")

ROWS = (
    Row(
        "cpu",
        (Budget("CPU of an append / minimal loop", "cpu_us", "us", "at most", 1.5, "ratio"),),
        ours_alone,
        minimal_alone,
        amount=2_000,
        quick=60,
    ),
    Row("sender", (_rate("one sender / raw commits", 0.5),), ours_alone, raw_alone, amount=2_000, quick=60),
    Row(
        "sender-slow",
        (_rate("one sender / raw commits, slow disk", 0.85),),
        partial(ours_alone, vfs=SLOW),
        partial(raw_alone, vfs=SLOW),
        amount=200,
        quick=30,
    ),
    Row("senders", (_rate("64 senders / a commit each", 3), _TOGETHER), ours_crowded, minimal_crowded, amount=40, quick=8),
    Row(
        "senders-slow",
        (_rate("64 senders / a commit each, slow disk", 12), _TOGETHER),
        partial(ours_crowded, vfs=SLOW),
        partial(minimal_crowded, vfs=SLOW),
        amount=32,
        quick=8,
    ),
    Row(
        "ask",
        (Budget("ask / queue, thread and future", "p50_us", "us", "at most", 1.3, "ratio"),),
        ours_asked,
        minimal_asked,
        amount=4_000,
        quick=500,
    ),
    Row(
        "bytes",
        (Budget("small event / its bare record", "bytes", "B", "at most", 250, "ours"),),
        ours_weighed,
        raw_weighed,
        amount=20_000,
        quick=2_000,
    ),
    Row(
        "import",
        (
            Budget("import freehold / what it stands on", "ms", "ms", "at most", 150, "ours"),
            Budget("  its CPU", "cpu_ms", "ms", "at most", 150, "ours"),
        ),
        ours_imported,
        others_imported,
        amount=1,
        quick=1,
    ),
    Row("runs", _BESIDE, ours_beside, ours_alone, amount=150, quick=20),
    Row("runs-slow", _BESIDE_SLOW, partial(ours_beside, vfs=SLOW), partial(ours_alone, vfs=SLOW), amount=100, quick=10),
    Row("open", _bare("1 MiB"), partial(ours_opened, size=_SMALL), partial(bare_opened, size=_SMALL), amount=15, quick=3),
    Row("open-30M", _growth("30 MiB"), partial(ours_opened, size=_MIDDLE), partial(ours_opened, size=_SMALL), amount=15, quick=3),
    Row("open-1G", _growth("1 GiB"), partial(ours_opened, size=_LARGE), partial(ours_opened, size=_SMALL), amount=15, quick=None),
    Row("open-1G-bare", _bare("1 GiB"), partial(ours_opened, size=_LARGE), partial(bare_opened, size=_LARGE), amount=15, quick=None),
    Row("take-over", (_known("take-over from a dead owner / bare", "open_ms"),), ours_taken_over, bare_taken_over, amount=15, quick=2),
    Row("reopen", (_known("reopen after passivation / bare", "open_ms"),), ours_reopened, bare_reopened, amount=30, quick=3),
    Row("file-write", _stream("written"), ours_written, bare_written, amount=64, quick=4),
    Row("file-read", _stream("read"), ours_read, bare_read, amount=64, quick=4),
    Row(
        "publish",
        _publish("100 folders"),
        partial(ours_published, flat=False, vfs=SLOW),
        partial(raw_published, vfs=SLOW),
        amount=100,
        quick=20,
    ),
    Row(
        "publish-flat",
        _publish("one folder"),
        partial(ours_published, flat=True, vfs=SLOW),
        partial(raw_published, vfs=SLOW),
        amount=100,
        quick=20,
    ),
    Row(
        "publish-git",
        (Budget("publish 1 of 10,000 files / git add and commit", "per_second", "/s", "at least", None, "ratio"),),
        partial(ours_published, flat=False),
        git_published,
        amount=100,
        quick=None,
    ),
    Row(
        "together",
        (Budget("1,000 x 4 KiB in one publish / bare object store", "ms", "ms", "at most", 2, "ratio"),),
        ours_together,
        bare_together,
        amount=1_000,
        quick=200,
    ),
    Row(
        "folder",
        (
            Budget("import of 10,000 x 4 KiB / git add and commit", "ms", "ms", "at most", 1, "ratio"),
            Budget("  unchanged / first", "again", "", "at most", 0.2, "ours"),
        ),
        ours_taken,
        git_taken,
        amount=1,
        quick=None,
    ),
    Row("diff", (_diff("100 folders"),), partial(ours_compared, flat=False), git_compared, amount=50, quick=None),
    Row("diff-flat", (_diff("one folder"),), partial(ours_compared, flat=True), git_compared, amount=50, quick=None),
    Row("list", (_known("list of a folder, each run / bare", "list_ms"),), ours_listed, bare_listed, amount=200, quick=20),
    Row(
        "list-known",
        (
            Budget("list of 5,000 runs", "s", "s", "at most", 1, "ours"),
            Budget("  / names, stats and one SELECT", "s", "s", "at most", None, "ratio"),
        ),
        ours_recalled,
        bare_recalled,
        amount=5_000,
        quick=500,
    ),
)
