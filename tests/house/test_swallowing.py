"""No error is dropped in silence."""

from __future__ import annotations

import ast

import pytest
from house import Source, everything


def swallowed(source: Source) -> list[str]:
    """Return the `except` clauses that do nothing, and the uses of `suppress` that no comment explains."""
    lines = source.text.splitlines()
    found = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ExceptHandler) and all(does_nothing(statement) for statement in node.body):
            found.append(f"{source}:{node.lineno} drops an error")
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"suppress", "contextlib.suppress"}:
            # The comment stands on the line itself or on the one above or below.
            around = lines[max(0, node.lineno - 2) : node.lineno + 1]
            if not any("#" in line for line in around):
                found.append(f"{source}:{node.lineno} suppresses an error and does not say why")
    return found


def does_nothing(statement: ast.stmt) -> bool:
    """Return whether a statement is `pass`, `...` or a bare text."""
    return isinstance(statement, ast.Pass) or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))


@pytest.mark.parametrize("source", everything(), ids=str)
def test_no_error_is_dropped_in_silence(source: Source) -> None:
    assert swallowed(source) == []


@pytest.mark.parametrize(
    "text",
    [
        "try: f()\nexcept Exception: pass",
        "try:\n    f()\nexcept OSError:\n    ...",
        "try:\n    f()\nexcept* OSError:\n    pass",
        "from contextlib import suppress\n\n\nwith suppress(OSError):\n    f()",
    ],
)
def test_a_dropped_error_is_found(text: str) -> None:
    assert len(swallowed(Source("actors/x.py", text))) == 1


def test_a_suppressed_error_with_its_reason_is_not() -> None:
    text = "# The file may be gone already.\nwith contextlib.suppress(FileNotFoundError):\n    file.unlink()"

    assert swallowed(Source("actors/x.py", text)) == []
