"""What a figure has to keep to, and what came of it: plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Bound = Literal["at most", "at least"]


@dataclass(frozen=True, slots=True)
class Budget:
    """A bound on our figure, or on its ratio to the reference. *figure* is its name in a `Sample`.

    Without a *limit* the figure is there to be known: it cannot fall short.
    """

    title: str
    figure: str
    unit: str
    bound: Bound
    limit: float | None
    of: Literal["ratio", "ours"]

    def holds(self, value: float) -> bool:
        """Return whether *value* keeps to the budget."""
        if self.limit is None:
            return True
        return value <= self.limit if self.bound == "at most" else value >= self.limit


@dataclass(frozen=True, slots=True)
class Sample:
    """What one side has shown in one round: figures by name, and words where there is more to say."""

    figures: dict[str, float]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the report: the medians of both sides, and the median of the ratios of each round."""

    name: str
    budget: Budget
    ours: float
    reference: float | None
    ratio: float | None
    rounds: int
    notes: list[str]

    @property
    def measured(self) -> float:
        """What the budget is about."""
        if self.budget.of == "ours":
            return self.ours
        assert self.ratio is not None
        return self.ratio

    @property
    def holds(self) -> bool:
        """Whether it is within the budget."""
        return self.budget.holds(self.measured)

    def record(self) -> dict[str, object]:
        """Return the line as plain JSON."""
        return {
            "name": self.name,
            "title": self.budget.title,
            "unit": self.budget.unit,
            "ours": self.ours,
            "reference": self.reference,
            "ratio": self.ratio,
            "budget": {"of": self.budget.of, "bound": self.budget.bound, "limit": self.budget.limit},
            "holds": self.holds,
            "rounds": self.rounds,
            "notes": self.notes,
        }
