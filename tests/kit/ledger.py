"""What a run must hold, and what it may hold, kept in plain dictionaries by whoever asked for it and was told what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from freehold import Error, Event

Tree = Mapping[str, bytes]
Deed = Mapping[str, bytes | None] | int
"""What an event does to the files: new content by path, None for one that goes; or the seq of the moment that all is put back to."""


class Told(NamedTuple):
    """Where an event stands, as its asker was told."""

    seq: int
    hash: str


class Ledger:
    """One life of a run, from its creation to its deletion. Each event has a name of its own."""

    def __init__(self) -> None:
        self.deeds: dict[str, Deed] = {}
        self.must: dict[str, Told] = {}
        """What was acknowledged."""
        self.may: dict[str, int] = {}
        """What nobody knows of, and how many events were acknowledged before it was asked for."""
        self.never: dict[str, str] = {}
        """What was said not to be carried out, and by which code."""
        self.groups: dict[str, Sequence[str]] = {}
        """What is kept together or not at all, by each of its names."""

    def ask(self, deeds: Mapping[str, Deed]) -> None:
        """Note what is asked for: an event for each name, all of them or none."""
        self.deeds.update(deeds)
        for name in deeds:
            self.groups[name] = tuple(deeds)
            self.may[name] = len(self.must)

    def acknowledge(self, names: Iterable[str], told: Iterable[Told], *, again: bool = False) -> None:
        """Note that it was carried out. Unless it was carried out *again*, it comes after all that was acknowledged before."""
        last = max((each.seq for each in self.must.values()), default=1)
        for name, each in zip(names, told, strict=True):
            assert self.must.get(name, each) == each, f"{name} was told otherwise before"
            assert name in self.may or name in self.must, f"{name} was told not to be carried out"
            assert again or each.seq > last, f"{name} came before what was acknowledged before it was asked for"
            self.may.pop(name, None)
            self.must[name] = each

    def fail(self, names: Iterable[str], error: Error) -> None:
        """Note what is known of what was answered with an error."""
        for name in names:
            assert error.executed != "yes", error
            if error.executed == "no":
                self.may.pop(name)
                self.never[name] = error.code

    def check(self, events: Sequence[Event]) -> list[Tree]:
        """Hold a journal against all of it, and return the files after each of its events: those before the first are none."""
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        found = {event.name: Told(event.seq, event.hash) for event in events if event.name is not None}
        times = Counter(event.name for event in events if event.name is not None)
        assert all(number == 1 for number in times.values()), f"carried out twice: {times.most_common(1)}"
        for name, told in self.must.items():
            assert found.get(name) == told, f"{name} was acknowledged and is not there as it was told"
        strangers = found.keys() - self.must.keys() - self.may.keys()
        assert not strangers, f"there although it was told not to be: {[(name, self.never.get(name)) for name in strangers]}"
        for name in found.keys() & self.may.keys():
            assert {each in found for each in self.groups[name]} == {True}, f"{name} is there in part"
            assert found[name].seq > self.may[name], f"{name} came before it was asked for"
        return self._trees(events)

    def _trees(self, events: Iterable[Event]) -> list[Tree]:
        trees: list[Tree] = [{}]
        for event in events:
            deed = self.deeds.get(event.name or "", {})
            if isinstance(deed, int):
                trees.append(trees[deed])
            else:
                after = {**trees[-1], **deed}
                trees.append({path: content for path, content in after.items() if content is not None})
        return trees
