"""The whole product of statuses and moves: what is in the table happens, everything else is refused as what it is."""

from __future__ import annotations

import enum
import re
from itertools import product

import pytest

from freehold.schema import lifecycle
from freehold.schema.errors import Refused, RunEnded
from freehold.schema.lifecycle import SETTLING, STEPS, Move, Status, settling, step

ENDED = {Status.COMPLETED, Status.CANCELLED}
IDLE = {Status.CREATED, Status.SUSPENDED, Status.INTERRUPTED, Status.FAILED}
SETTLED_AS = {
    Move.SUSPEND: Status.SUSPENDED,
    Move.INTERRUPT: Status.INTERRUPTED,
    Move.COMPLETE: Status.COMPLETED,
    Move.FAIL: Status.FAILED,
    Move.CANCEL: Status.CANCELLED,
}


def right(status: Status, move: Move) -> Status | str:
    """Return where a move leads, or the code of its refusal, told by sentences and not by the table."""
    if status in ENDED:
        return "run_ended"
    if move is Move.BEGIN:
        return Status.RUNNING if status in IDLE else "execution_running"
    return SETTLED_AS[move] if status is Status.RUNNING else "no_execution"


@pytest.mark.parametrize(("status", "move"), list(product(Status, Move)))
def test_every_move_from_every_status_leads_where_it_must(status: Status, move: Move) -> None:
    expected = right(status, move)
    if isinstance(expected, Status):
        assert step(status, move) is expected
        return
    with pytest.raises(Refused) as raised:
        step(status, move)
    assert raised.value.code == expected
    assert isinstance(raised.value, RunEnded) == (status in ENDED)
    assert "othing was changed" in str(raised.value)


def test_every_status_has_a_row_and_every_status_but_the_first_is_reached() -> None:
    assert set(STEPS) == set(Status)
    assert {to for row in STEPS.values() for to in row.values()} == set(Status) - {Status.CREATED}


def test_what_an_execution_can_be_settled_as() -> None:
    assert set(SETTLED_AS.values()) == SETTLING
    assert {move: settling(str(move)) for move in SETTLED_AS} == {move: move for move in SETTLED_AS}


class Outcome(str, enum.Enum):  # noqa: UP042 - its str() is not its text, which is the point
    """A word under another name."""

    BAD = "failed"


def test_a_word_under_another_name_is_that_word() -> None:
    assert settling(Outcome.BAD) is Move.FAIL
    assert settling(Status.CANCELLED) is Move.CANCEL


@pytest.mark.parametrize("word", ["", "running", "created", "begin", "Failed", "failed ", "SECRET", None, 7, b"failed", ["failed"], {}])
def test_a_word_that_settles_nothing_is_refused_without_repeating_it(word: object) -> None:
    with pytest.raises(Refused) as raised:
        settling(word)

    assert raised.value.code == "bad_option"
    assert "SECRET" not in str(raised.value)


def test_the_table_in_the_docstring_is_the_table() -> None:
    told: dict[str, dict[str, set[str]]] = {}
    for line in re.findall(r"^\| (.+)\|$", lifecycle.__doc__ or "", re.MULTILINE)[1:]:
        statuses, began, settled = ([word for word in re.split(r"[,\s]+", cell) if word] for cell in line.split("|"))
        told |= {status: {"began": set(began), "settled": set(settled)} for status in statuses if status != "---"}
    true = {
        status: {"began": {to for move, to in row.items() if move is Move.BEGIN}, "settled": set(row.values()) - {Status.RUNNING}}
        for status, row in STEPS.items()
    }

    assert told == true
