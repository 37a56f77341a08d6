"""The words that Python knows are the words that the tables allow, no more and no fewer."""

from __future__ import annotations

import re

import pytest

from freehold.schema.ddl import statements
from freehold.schema.hashes import ObjectKind
from freehold.schema.kinds import EventKind, Phase
from freehold.schema.lifecycle import Status
from freehold.schema.steps import INTENTS, STATES


def listed(table: str, column: str) -> list[set[str]]:
    """Return each list of words that a CHECK of *table* gives for *column* alone, as `((column IN (…)) IS TRUE)`."""
    text = re.search(rf"CREATE TABLE {table} .*?STRICT", statements(), re.DOTALL)
    assert text is not None
    return [set(re.findall(r"'(\w+)'", found)) for found in re.findall(rf"CHECK \(\({column} IN \(([^)]*)\)\) IS TRUE\)", text[0])]


@pytest.mark.parametrize(
    ("table", "column", "words"),
    [
        ("event", "kind", set(EventKind)),
        ("run", "status", set(Status)),
        ("execution", "status", set(Status) - {Status.CREATED}),
        ("intent", "state", set(STATES)),
    ],
)
def test_a_check_lists_the_words_of_its_enum(table: str, column: str, words: set[str]) -> None:
    assert listed(table, column) == [words]


def test_object_kinds_are_the_range_of_their_check() -> None:
    assert sorted(ObjectKind) == list(range(5))
    assert "kind BETWEEN 0 AND 4" in statements()


def test_a_kind_is_its_word() -> None:
    assert [str(kind) for kind in EventKind] == ["created", "note", "publish", "began", "settled", "step"]


def test_the_phases_and_the_policies_are_those_of_the_tables() -> None:
    assert f"phase IN ({', '.join(str(int(phase)) for phase in Phase)})" in statements()
    assert "policy IN ('probe', 'park')" in statements()
    assert {"probe", "park"} == INTENTS
