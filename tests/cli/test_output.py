"""What is printed is what it says: no text can steer the terminal, and JSON stays the same JSON."""

from __future__ import annotations

import io
import json
import os
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.cli.exits import gravest
from freehold.cli.output import check_reader, drop, json_text, plain, say_bytes
from freehold.cli.progress import progress
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


class Sip(io.RawIOBase):
    """An output that takes three bytes at a time."""

    def __init__(self) -> None:
        self.taken = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self.taken += bytes(data[:3])
        return min(3, len(data))


def test_bytes_are_written_whole_to_an_output_that_takes_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sip = Sip()
    with io.TextIOWrapper(sip, write_through=True) as out:  # type: ignore[type-var]
        monkeypatch.setattr("sys.stdout", out)

        say_bytes(bytes(range(256)))

        assert sip.taken == bytes(range(256))
        monkeypatch.undo()


def test_a_document_is_written_in_ascii() -> None:
    assert json_text({"é": "\u2028"}) == '{"\\u00e9": "\\u2028"}'


def test_an_output_that_is_no_file_has_nothing_to_drop() -> None:
    stream = io.StringIO()
    stream.write("kept")
    drop(stream)
    assert stream.getvalue() == "kept"


def test_a_reader_that_has_gone_is_noticed_before_anything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    check_reader()  # where pytest reads
    reading, writing = os.pipe()
    with open(writing, "w", encoding="utf-8") as out:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr("sys.stdout", out)
        check_reader()
        os.close(reading)
        with pytest.raises(BrokenPipeError):
            check_reader()
        monkeypatch.undo()
    monkeypatch.setattr("sys.stdout", io.StringIO())
    check_reader()


class Watched(io.StringIO):
    """What says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_is_shown_where_somebody_watches_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with progress("reading") as bar:
        assert bar is None
    monkeypatch.setattr(sys, "stderr", terminal := Watched())
    with progress("reading \x1b]0;title\x07") as bar:
        assert bar is not None
        bar(1, 2)
    assert "reading \\u001b]0;title" in terminal.getvalue()
    assert "\x1b]0;" not in terminal.getvalue()
