"""The exit codes are those that docs/errors.md lists, each with what it means, and those that the help shows."""

from __future__ import annotations

import re
from pathlib import Path

from program import Call

from freehold.cli import exits
from freehold.cli.exits import EXITS, gravest
from freehold.schema.errors import CODES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"
ROWS = {int(code): text for code, text in re.findall(r"^\| (\d+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)}


def test_the_page_lists_every_exit_code_and_no_other() -> None:
    assert list(ROWS) == list(EXITS)
    assert {code: text for code, text in EXITS.items() if not ROWS[code].startswith(text)} == {}


def test_every_code_that_the_program_can_end_with_is_listed() -> None:
    constants = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    errors = {cls.exit_code for cls in CODES.values()}

    assert constants | errors <= EXITS.keys()
    for code in EXITS.keys() - {exits.USAGE, exits.INTERRUPTED, exits.BROKEN_PIPE, exits.TERMINATED}:
        assert gravest([0, code]) == code


def test_the_help_shows_all_of_them(call: Call) -> None:
    shown = call("--help").out.partition("Exit codes:")[2].partition("With --json")[0]

    assert {code: text for code, text in EXITS.items() if f"{code} {text}" not in shown} == {}
