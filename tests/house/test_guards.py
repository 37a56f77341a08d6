"""The tables of guards speak of the code as it is. That each guard's removal is noticed is proved by `make guards`."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
from guards import PROJECT, Guard, guards


@cache
def names(file: Path) -> frozenset[str]:
    return frozenset(node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef | ast.ClassDef))


@pytest.mark.parametrize("guard", list(guards()), ids=lambda guard: f"{guard.table}: {guard.file}: {guard.why}")
def test_a_guard_stands_once_in_its_file_and_its_test_exists(guard: Guard) -> None:
    assert (PROJECT / guard.file).read_text().count(guard.old) == 1
    assert guard.old != guard.new
    file, *rest = guard.test.split("::")
    assert {part.partition("[")[0] for part in rest} <= names(PROJECT / file)


def test_no_guard_is_listed_twice() -> None:
    listed = [(guard.file, guard.old, guard.new) for guard in guards()]
    assert len(set(listed)) == len(listed)
