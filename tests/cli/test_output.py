"""What is printed is what it says: no text can steer the terminal, and JSON stays the same JSON."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from freehold.cli.exits import gravest
from freehold.cli.output import plain
from freehold.schema.values import encode


@given(st.text())
def test_plain_text_prints_as_itself(text: str) -> None:
    assert plain(text).isprintable()
    assert plain(text) == text or not text.isprintable()


@given(st.recursive(st.none() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5))
def test_plain_json_says_the_same(value: object) -> None:
    assert json.loads(plain(encode(value))) == json.loads(encode(value))


def test_the_gravest_code_is_not_the_highest_number() -> None:
    assert gravest([]) == 0
    assert gravest([0, 6, 0]) == 6
    assert gravest([6, 4]) == 4
    assert gravest([6, 5, 4]) == 5
