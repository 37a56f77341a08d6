"""Measuring both sides of a row by turns, so that what else the machine does hits them alike."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median

from benchmarks.budget import Budget, Result, Sample
from benchmarks.rows import Row
from benchmarks.sides import Side


def measure(row: Row, folder: Path, *, rounds: int, amount: int) -> list[Result]:
    """Return a result for each budget of *row*, after *rounds* rounds. Who begins alternates."""
    ours: list[Sample] = []
    references: list[Sample] = []
    for number in range(rounds):
        sides = [(row.ours, ours), (row.reference, references)]
        for side, samples in sides if number % 2 else reversed(sides):
            samples.append(_in_new_folder(side, folder, amount))
    return [_result(row.name, budget, ours, references) for budget in row.budgets]


def _in_new_folder(side: Side, folder: Path, amount: int) -> Sample:
    with tempfile.TemporaryDirectory(dir=folder) as inner:
        return side(Path(inner), amount)


def _result(name: str, budget: Budget, ours: list[Sample], references: list[Sample]) -> Result:
    figure = budget.figure
    mine = [sample.figures[figure] for sample in ours]
    others = [sample.figures[figure] for sample in references if figure in sample.figures]
    # Of each round by itself: its two sides ran under the same noise.
    ratios = [our / other for our, other in zip(mine, others, strict=False)]
    notes = dict.fromkeys(note for sample in ours for note in sample.notes)
    return Result(
        name, budget, median(mine), median(others) if others else None, median(ratios) if ratios else None, len(ours), list(notes)
    )
