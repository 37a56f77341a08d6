"""A mode means what it means to Python's own `open`, and is refused as it refuses it."""

from __future__ import annotations

import io
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from freehold.storage.openmode import OpenMode, parse_mode

MODES = ["".join(letters) for length in range(5) for letters in product("rwax+bt", repeat=length) if length < 4 or "+" in letters]
OTHERS = ["U", "rU", "r b", "R", "rb\0", "é", "r" * 300]


def test_every_mode_is_taken_or_refused_as_by_open(tmp_path: Path) -> None:
    file = tmp_path / "file"
    differ = []
    for mode in [*MODES, *OTHERS]:
        file.unlink(missing_ok=True)
        if "x" not in mode:
            file.touch()
        try:
            with file.open(mode) as real:
                expected: object = (real.readable(), real.writable(), isinstance(real, io.TextIOBase))
        except ValueError as error:
            expected = str(error)
        try:
            found = parse_mode(mode)
            asked: object = (found.reads, found.writes, found.is_text)
        except ValueError as error:
            asked = str(error)
        if asked != expected:
            differ.append((mode, asked, expected))

    # Of a mode that is wrong in two ways, one is named; and Python cuts one that is longer than any.
    assert [
        (mode, asked, expected) for mode, asked, expected in differ if not isinstance(asked, str) or not isinstance(expected, str)
    ] == []


@pytest.mark.parametrize("mode", ["", "b", "+", "rw", "ra", "rx", "wa", "r++", "rr", "rbt", "z", "br+t", "wb+w"])
def test_a_wrong_mode_is_refused_in_the_words_of_open(tmp_path: Path, mode: str) -> None:
    with pytest.raises(ValueError) as theirs:
        (tmp_path / "file").open(mode)
    with pytest.raises(ValueError) as ours:
        parse_mode(mode)

    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("rb", {"encoding": "utf-8"}),
        ("wb", {"errors": "strict"}),
        ("ab", {"newline": ""}),
        ("r", {"buffering": 0}),
    ],
)
def test_an_argument_that_does_not_go_with_the_mode_is_refused_in_the_words_of_open(
    tmp_path: Path, mode: str, options: dict[str, Any]
) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ValueError) as theirs:
        file.open(mode, **options)
    with pytest.raises(ValueError) as ours:
        parse_mode(mode, **options)

    assert str(ours.value) == str(theirs.value)


def test_what_is_no_text_is_no_mode() -> None:
    with pytest.raises(TypeError, match="must be str, not bytes"):
        parse_mode(b"r")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mode", "asked"),
    [
        ("r", OpenMode(reads=True, writes=False, is_text=True)),
        ("rb", OpenMode(reads=True, writes=False)),
        ("r+b", OpenMode(reads=True, writes=True)),
        ("wb", OpenMode(reads=False, writes=True, truncates=True)),
        ("+wb", OpenMode(reads=True, writes=True, truncates=True)),
        ("ab", OpenMode(reads=False, writes=True, appends=True)),
        ("a+b", OpenMode(reads=True, writes=True, appends=True)),
        ("xb", OpenMode(reads=False, writes=True, creates=True)),
        ("x+b", OpenMode(reads=True, writes=True, creates=True)),
    ],
)
def test_a_mode_says_what_it_asks_for(tmp_path: Path, mode: str, asked: OpenMode) -> None:
    assert parse_mode(mode) == asked
    if not asked.creates:
        (tmp_path / "file").touch()
    with io.FileIO(tmp_path / "file", mode.replace("b", "")) as real:
        assert asked.raw == real.mode
