"""The rows of the table: what is measured, against what, and the budget of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from benchmarks.budget import Budget
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

from freehold.storage.vfs.slow import SLOW


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. *amount* is the number of messages (of a sender) in a round; *quick* the same for a short look."""

    name: str
    budgets: tuple[Budget, ...]
    ours: Side
    reference: Side
    amount: int
    quick: int


def _rate(title: str, limit: float) -> Budget:
    return Budget(title, "per_second", "/s", "at least", limit, "ratio")


_TOGETHER = Budget("  records per commit", "records_per_commit", "", "at least", 2, "ours")

ROWS = (
    Row(
        "cpu",
        (Budget("CPU of an append / minimal loop", "cpu_us", "us", "at most", 1.5, "ratio"),),
        ours_alone,
        minimal_alone,
        amount=500,
        quick=60,
    ),
    Row("sender", (_rate("one sender / raw commits", 0.5),), ours_alone, raw_alone, amount=500, quick=60),
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
    Row(
        "runs",
        (_rate("eight runs at once / one run", 1.5), Budget("  p99 of an append", "p99_ms", "ms", "at most", 30, "ours")),
        ours_beside,
        ours_alone,
        amount=150,
        quick=20,
    ),
)
