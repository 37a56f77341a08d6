"""What a publish has done: an event with the value of the function and the changes that led to its root."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from freehold.event import Event
from freehold.schema.changes import Change
from freehold.schema.rows import EventRow, Written
from freehold.schema.skipped import Skipped

T = TypeVar("T")


class Effect(Event, Generic[T]):
    """The event of a publish, with what the function returned (`value`) and what is different in the files (`changes`).

    `skipped` lists what imports in it could not take, or not as it was, each path with its reason. An effect that a repeated
    request returns has it from the journal: the first 1,000 paths and reasons, no details, and "" for a path that tells a secret.
    """

    __slots__ = ("changes", "skipped", "value")

    def __init__(
        self,
        row: EventRow | Written,
        value: T,
        changes: Sequence[Change],
        skipped: Sequence[Skipped] = (),
        *,
        durable: bool | None = None,
    ) -> None:
        super().__init__(row, durable=durable)
        self.value: T = value
        self.changes: Sequence[Change] = changes
        self.skipped: Sequence[Skipped] = skipped

    @property
    def complete(self) -> bool:
        """Whether every import in it took everything as it was, but for what it was told to ignore."""
        return not self.skipped
