"""The exit codes are those that docs/errors.md lists, each with what it means, and those that the help shows."""

from __future__ import annotations

import re
from pathlib import Path

from click import UsageError
from program import Call

from freehold.cli import exits
from freehold.cli.exits import EXITS, gravest
from freehold.cli.faults import FileError, record_of
from freehold.cli.interrupt import Terminated
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


def test_the_page_explains_the_codes_that_only_the_program_says() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## What only the command line says")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)`", section, re.MULTILINE)
    errors: list[BaseException] = [UsageError("x"), FileError(FileNotFoundError(2, "x"), 2, "x", "no"), KeyboardInterrupt(), Terminated()]
    said = [record_of(error) for error in errors]

    assert listed == [record["code"] for record in said]
    for record in said:
        (row,) = [line for line in section.splitlines() if line.startswith(f"| `{record['code']}`")]
        assert f"({record['exit_code']})" in row
    assert not {record["code"] for record in said} & CODES.keys()
