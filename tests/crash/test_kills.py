"""Whenever an owner is killed, what was acknowledged is in the file, once; the next owner takes over what is whole."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from folder import run_files, snapshot
from nursery import KILLED, Nursery, nursery
from ways import read

import freehold
from freehold import Event

Recorder = Callable[[str, object], None]
"""pytest's own: what it is given stands in its report."""

SENDERS = 4
KILLS = 20
KILLS_IN_FULL = 200


def killed_owner(others: Nursery, root: Path, dice: Random, *, execute: bool) -> tuple[int, list[list[Any]]]:
    """Let an owner live and kill it after it was told so many things; return its epoch and all that it was told."""
    pid = others.lead(do="live", root=str(root), run="a", senders=SENDERS, execute=execute)
    told = [others.hear() for _ in range(dice.choice((1, 2, 3, dice.randrange(1, 60))))]
    told += others.kill(pid)
    assert told.pop() == ["end", KILLED]
    assert {words[0] for words in told} <= {"execution", "open", "one", "request", "pair"}
    return next((words[1] for words in told if words[0] == "open"), 0), told


def check_journal(journal: list[Event], told: list[list[Any]]) -> None:
    """Show that every acknowledged note is there once, where it was said to be, and none is there in part."""
    by_seq = {event.seq: event for event in journal}
    assert list(by_seq) == list(range(1, len(journal) + 1))
    for word, name, seq in (words for words in told if words[0] in ("one", "request", "pair")):
        assert by_seq[seq].name == name
        if word == "pair":
            assert (by_seq[seq].data, by_seq[seq + 1].data, by_seq[seq + 1].name) == ("first", "second", name)
    notes = Counter(event.name for event in journal if event.kind == "note")
    for name, count in notes.items():
        assert name is not None
        sender, number = map(int, name.split("."))
        kind = (sender + number) % 4
        assert count == (2 if kind == 3 else 1), name
        found = next(event for event in journal if event.name == name)
        assert found.data == ([name] * 3000 if kind == 1 else {0: sender, 2: None, 3: "first"}[kind])


def check_senders(journal: list[Event], acknowledged: int) -> None:
    """Show that each sender's notes are those that it sent, without a gap, and at most one more than it was told of."""
    sent: dict[str, list[int]] = {}
    for event in journal:
        if event.name is not None and (not event.name.endswith("again")):
            sender, number = event.name.split(".")
            if number not in map(str, sent.setdefault(sender, [])[-1:]):
                sent[sender].append(int(number))
    assert all(numbers == list(range(len(numbers))) for numbers in sent.values())
    assert acknowledged <= sum(map(len, sent.values())) <= acknowledged + SENDERS


def kill_owners(seed: int, base: Path, kills: range) -> Counter[str]:
    """Kill one owner after another of runs that are taken over again and again; return how often what was found."""
    found: Counter[str] = Counter()
    with nursery() as others:
        for number in kills:
            dice = Random(f"{seed}/{number}")
            root, execute = base / str(number), dice.random() < 0.5
            for _ in range(dice.choice((0, 0, 1))):  # it may have had an owner before, that was killed before it sent anything
                others.kill(others.lead(do="live", root=str(root), run="a", senders=0, execute=False))
            try:
                _, told = killed_owner(others, root, dice, execute=execute)
                found[look_after(root, told)] += 1
            except BaseException as error:
                error.add_note(f"kill {number}")
                raise
    return found


def look_after(root: Path, told: list[list[Any]]) -> str:
    """Take over what a killed owner has left, and show that it is whole; return in a word what it had left."""
    file = root / "a.sqlite"
    if not file.exists():
        assert told == []
        return "nothing yet"
    left = "a -wal" if Path(f"{file}-wal").exists() else "one file"
    before, info = read(freehold.view(file)), freehold.view(file).info
    freehold.view(file).verify()
    with freehold.open(root) as host, host.open("a") as run:
        journal = list(run.history())
        assert [event.hash for event in journal] == [row[-1] for row in before]
        check_journal(journal, told)
        check_senders(journal, sum(words[0] in ("one", "request", "pair") for words in told))
        check_standing(info, run.info, told)

        for _, name, seq in (words for words in told if words[0] == "request"):
            again = run.append(name, request_id=name)
            assert (again.seq, again.hash) == (seq, journal[seq - 1].hash)
        run.verify()
        assert run.info.events == len(journal)
        assert run.append("afterwards").seq == len(journal) + 1
    assert run_files(root) == ["a.sqlite"]
    freehold.view(file).verify()
    return left


def check_standing(before: freehold.RunInfo, after: freehold.RunInfo, told: list[list[Any]]) -> None:
    """Show what the take-over has made of the run: the next epoch, and what was running is interrupted."""
    assert (after.epoch, after.txn) == (before.epoch + 1, before.txn + 1)
    epoch = next((words[1] for words in told if words[0] == "open"), before.epoch)
    assert before.epoch == epoch
    if ["execution", 1] in told:
        assert before.status == "running"
    if before.status == "running":
        assert (after.status, after.stop_code, after.generation) == ("interrupted", "owner_lost", before.generation + 1)
    else:
        assert (after.status, after.generation) == (before.status, before.generation)


def test_owners_that_are_killed_lose_nothing_that_was_acknowledged(seed: int, tmp_path: Path, record_property: Recorder) -> None:
    found = kill_owners(seed, tmp_path, range(KILLS))
    record_property("found", dict(found))
    assert found.total() == KILLS


@pytest.mark.prove
@pytest.mark.parametrize("start", range(KILLS, KILLS + KILLS_IN_FULL, 20))
def test_every_owner_that_is_killed_loses_nothing(start: int, seed: int, tmp_path: Path, record_property: Recorder) -> None:
    found = kill_owners(seed, tmp_path, range(start, start + 20))
    record_property("found", dict(found))
    assert found.total() == 20


def test_a_run_whose_owners_are_all_killed_goes_on(seed: int, tmp_path: Path) -> None:
    """One file, taken over by one victim after the other, with nobody closing it in between."""
    dice, told, epochs = Random(seed), [], []
    with nursery() as others:
        for number in range(6):
            pid = others.lead(do="live", root=str(tmp_path), run="a", senders=0 if number else SENDERS, execute=True)
            heard = [others.hear() for _ in range(2 if number else dice.randrange(5, 40))]
            heard += others.kill(pid)
            epochs += [words[1] for words in heard if words[0] == "open"]
            told += [words for words in heard if words[0] in ("one", "request", "pair")]

    assert epochs == list(range(1, 7))
    view = freehold.view(tmp_path / "a.sqlite")
    view.verify()
    check_journal(list(view.history()), told)
    with freehold.open(tmp_path) as host, host.open("a") as run:
        assert (run.info.epoch, run.info.generation, run.info.stop_code) == (7, 6, "owner_lost")
        # Each execution that its owner did not settle is in the journal as begun, and nowhere as running.
        assert sum(event.kind == "began" for event in run.history()) == 6
        run.verify()


# Killed in the middle of one thing


def prepared(root: Path, others: Nursery, do: str) -> list[tuple[Any, ...]]:
    """Make what the victim begins with; return its journal."""
    if do == "create":
        root.mkdir()
        return []
    with freehold.open(root) as host, host.create("a", props={"n": 1}) as run:
        run.append("before", "x" * 20_000)
    if do in ("take over", "delete what is in the -wal"):
        pid = others.lead(do="live", root=str(root), run="a", senders=0, execute=True)
        others.hear()
        others.kill(pid)
    return read(freehold.view(root / "a.sqlite"))


VICTIMS: dict[str, dict[str, Any]] = {
    "create": {"do": "create"},
    "open and close": {"do": "open"},
    "take over": {"do": "open"},
    "append and close": {"do": "open", "notes": 3},
    "delete": {"do": "delete"},
    "delete what is in the -wal": {"do": "delete"},
}


def cut_short(others: Nursery, root: Path, do: str, calls: int) -> tuple[list[tuple[Any, ...]], list[list[Any]]]:
    """Kill a victim at a call; return the journal that was there before, and what the victim was told."""
    journal = prepared(root, others, do)
    others.lead(root=str(root), run="a", calls=calls, **VICTIMS[do])
    return journal, others.rest()


def calls_of(others: Nursery, root: Path, do: str) -> int:
    """Return about how many calls it takes from beginning to end."""
    _, told = cut_short(others, root, do, 10**9)
    assert told[-1] == ["end", 0]
    return int(told[-2][1])


def check_whole_or_gone(root: Path, do: str, journal: list[tuple[Any, ...]], told: list[list[Any]]) -> str:
    """Show that the run is whole, with all that was acknowledged, or not there at all; and that life goes on."""
    file = root / "a.sqlite"
    before = snapshot(root)
    word = "gone"
    if file.exists():
        word = "whole"
        freehold.view(file).verify()
        left = read(freehold.view(file))
        assert left[: len(journal)] == journal or not journal
        acknowledged = [words for words in told if words[0] == "one"]
        assert [row[3] for row in left[len(journal) :]][: len(acknowledged)] == [words[1] for words in acknowledged] or do == "create"
        assert len(left) <= max(1, len(journal)) + len(acknowledged) + 1
        assert snapshot(root) == before
        with freehold.open(root) as host:
            with host.open("a") as run:
                run.append("after")
                run.verify()
            host.delete("a")
    else:
        assert do == "create" or do.startswith("delete")
    with freehold.open(root) as host:
        host.create("a").close()
    assert run_files(root) == ["a.sqlite"]
    return word


def kill_in(do: str, seed: int, base: Path, times: range) -> Counter[str]:
    """Kill victims in the middle, at calls that are dealt by chance; return how often what was left."""
    found: Counter[str] = Counter()
    with nursery() as others:
        whole = calls_of(others, base / "whole", do)
        for number in times:
            calls = Random(f"{seed}/{do}/{number}").randrange(1, whole + 1)
            root = base / str(number)
            journal, told = cut_short(others, root, do, calls)
            try:
                ended = "ended" if told[-1] == ["end", 0] else "killed"
                found[f"{ended}, {check_whole_or_gone(root, do, journal, told)}"] += 1
            except BaseException as error:
                error.add_note(f"{do}: killed at call {calls} of {whole}; told {json.dumps(told)}")
                raise
    return found


@pytest.mark.parametrize("do", VICTIMS)
def test_who_is_killed_in_the_middle_leaves_the_run_whole_or_gone(do: str, seed: int, tmp_path: Path, record_property: Recorder) -> None:
    found = kill_in(do, seed, tmp_path, range(5))
    record_property("found", dict(found))
    assert found.total() == 5


@pytest.mark.prove
@pytest.mark.parametrize("start", range(5, 65, 20))
@pytest.mark.parametrize("do", VICTIMS)
def test_whoever_is_killed_wherever_leaves_the_run_whole_or_gone(
    do: str, start: int, seed: int, tmp_path: Path, record_property: Recorder
) -> None:
    found = kill_in(do, seed, tmp_path, range(start, start + 20))
    record_property("found", dict(found))
    assert found.total() == 20
