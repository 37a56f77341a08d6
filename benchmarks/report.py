"""The report: a table for people, a document for programs. What falls short is marked in both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.budget import Budget, Result
from benchmarks.machine import Machine
from rich import box
from rich.console import Console
from rich.table import Table

FORMAT = 1


def document(results: Sequence[Result], machine: Machine) -> dict[str, Any]:
    """Return the report as plain JSON."""
    return {"format": FORMAT, "machine": machine.record(), "rows": [result.record() for result in results]}


def show(results: Sequence[Result], machine: Machine, console: Console) -> None:
    """Print the report."""
    table = Table(title="Freehold / its raw reference, measured by turns", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("what")
    for column in ("ours", "reference", "ratio", "budget"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for result in results:
        budget = result.budget
        table.add_row(
            budget.title,
            _number(result.ours, budget.unit),
            "" if result.reference is None else _number(result.reference, budget.unit),
            "" if result.ratio is None else f"{result.ratio:.2f}x",
            _bound(budget),
            "" if budget.limit is None else "ok" if result.holds else "[bold red]short[/]",
        )
    console.print(table)
    for result in results:
        for note in result.notes:
            console.print(f"{result.name}: {note}", highlight=False)
    console.print(machine.sentence(), highlight=False)
    short = [result.budget.title.strip() for result in results if not result.holds]
    if short:
        console.print(f"Short of the budget: {'; '.join(short)}.", highlight=False)


def _bound(budget: Budget) -> str:
    if budget.limit is None:
        return ""
    unit = "x" if budget.of == "ratio" else f" {budget.unit}".rstrip()
    return f"{'≤' if budget.bound == 'at most' else '≥'} {budget.limit:g}{unit}"


def _number(value: float, unit: str) -> str:
    digits = 0 if value >= 100 else 1
    return f"{value:,.{digits}f} {unit}".rstrip()
