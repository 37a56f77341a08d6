"""What a run file may hold at a moment, kept by who drives it: what must be there, and what may be there already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple


class Line(NamedTuple):
    """One event as it was asked for; a text of None is ours to write, and `verify` checks it."""

    kind: str
    name: str | None = None
    text: str | None = None


@dataclass(frozen=True)
class State:
    """Everything about a run that a user could find out, after one of its transactions."""

    txn: int
    epoch: int
    status: str
    closed: bool
    lines: tuple[Line, ...]
    requests: Mapping[str, int] = field(default_factory=dict)
    hashes: Mapping[int, bytes] = field(default_factory=dict, compare=False)
    """The hash of each event that was acknowledged, by its number."""
    files: Mapping[str, bytes | str] = field(default_factory=dict)
    """What is in the current root: a file's bytes, `/` for a directory."""
    staged: frozenset[bytes] = frozenset()
    """The hashes of the objects that were written ahead of their publish."""

    def __repr__(self) -> str:
        return f"<transaction {self.txn}: {len(self.lines)} events, {self.status}, epoch {self.epoch}>"

    def next(self, *lines: Line, status: str | None = None, request: str | None = None, **files: Any) -> State:
        """Return the state after one more transaction; *files* may be other `files` and `staged`."""
        requests = self.requests if request is None else {**self.requests, request: len(self.lines) + 1}
        return replace(self, txn=self.txn + 1, lines=(*self.lines, *lines), requests=requests, status=status or self.status, **files)

    def taken_over(self, *, continues: bool = False) -> State:
        """Return the state after a take-over, by the same owner or by another one."""
        status = "interrupted" if self.status == "running" and not continues else self.status
        return replace(self, txn=self.txn + 1, epoch=self.epoch + 1, closed=False, status=status)

    def given_back(self) -> State:
        """Return the state after a clean close."""
        return replace(self, txn=self.txn + 1, closed=True, status="interrupted" if self.status == "running" else self.status)


CREATED = State(txn=1, epoch=0, status="created", closed=False, lines=(Line("created"),))
Word = Literal["may", "must", "told", "never"]
Fact = tuple[Word, State | None]
"""From now on a state *may* be in the file, it or a later one *must*, or it *never* will: None is no file.

One that was *told* is in it as long as the power stays; when that goes, any of those before it may be there, down to the last that must.
"""


class Book:
    """The states that the file may be in, by what has been said so far."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self.possible: list[State | None] = [None]
        self.latest: State | None = None
        """What is in the file as its owner knows it."""
        for word, state in facts:
            self.say(word, state)

    def say(self, word: Word, state: State | None) -> None:
        """Take in one fact."""
        if word in ("must", "told"):
            self.latest = state
        if word == "must":
            self.possible = [state]
        elif word == "told":
            self.possible = [*(other for other in self.possible if other != state), state]
        elif word == "may":
            if state not in self.possible:  # a turn that only reads leaves the state as it was
                self.possible.append(state)
        else:
            self.possible = [other for other in self.possible if other != state]
