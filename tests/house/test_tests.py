"""A test proves something, and says why when it does not run."""

from __future__ import annotations

import ast

import pytest
from house import Source, proofs

PROOFS = frozenset({"raises", "warns", "fail", "deprecated_call"})
MARKS = frozenset({"skip", "skipif", "xfail"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(source: Source) -> list[Function]:
    """Return every function and method of a file."""
    return [node for node in ast.walk(source.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def proves_nothing(source: Source) -> list[str]:
    """Return the test functions that neither assert, nor expect an error, nor call a function of the file that does."""
    proving = {function.name for function in functions(source) if proves(function)}
    return [
        f"{source}:{function.lineno} {function.name} proves nothing"
        for function in functions(source)
        if function.name.startswith("test_") and function.name not in proving and not called(function) & proving
    ]


def proves(function: Function) -> bool:
    """Return whether a function asserts something that could be false, or expects an error."""
    asserts = any(isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant) for node in ast.walk(function))
    return asserts or bool(called(function) & PROOFS)


def called(function: Function) -> set[str]:
    """Return the last names of what a function calls."""
    names: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
                names.add(name)
    return names


def skips_without_reason(source: Source) -> list[str]:
    """Return the skips and expected failures that give no reason."""
    with_reason = {id(node.func) for node in ast.walk(source.tree) if isinstance(node, ast.Call) and has_reason(node)}
    return [
        f"{source}:{node.lineno} {ast.unparse(node)} gives no reason"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and id(node) not in with_reason and is_skip(node)
    ]


def is_skip(node: ast.Attribute) -> bool:
    """Return whether *node* is a mark or a call of pytest's that keeps a test from counting."""
    return node.attr in MARKS and ast.unparse(node.value) in {"pytest", "pytest.mark", "mark"}


def has_reason(call: ast.Call) -> bool:
    """Return whether a call names its reason; `pytest.skip("…")` and `pytest.xfail("…")` take it first."""
    named = any(keyword.arg == "reason" and not is_empty(keyword.value) for keyword in call.keywords)
    first = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "pytest" and call.args[:1]
    return named or bool(first and not is_empty(first[0]))


def is_empty(node: ast.expr) -> bool:
    """Return whether an expression is a literal that says nothing."""
    return isinstance(node, ast.Constant) and not node.value


@pytest.mark.parametrize("source", proofs(), ids=str)
def test_every_test_proves_something(source: Source) -> None:
    assert proves_nothing(source) == []


@pytest.mark.parametrize("source", proofs(), ids=str)
def test_every_skip_has_a_reason(source: Source) -> None:
    assert skips_without_reason(source) == []


@pytest.mark.parametrize(
    "text",
    [
        "def test_x() -> None:\n    f()",
        "def test_x() -> None:\n    assert True",
        "class TestX:\n    async def test_x(self) -> None:\n        print(1)",
    ],
)
def test_a_test_that_proves_nothing_is_found(text: str) -> None:
    assert len(proves_nothing(Source("tests/x.py", text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "def test_x() -> None:\n    assert f() == 1",
        "def test_x() -> None:\n    with pytest.raises(OSError):\n        f()",
        "def same(a: int) -> None:\n    assert a == 1\n\n\ndef test_x() -> None:\n    same(1)",
    ],
)
def test_a_test_that_can_fail_is_not(text: str) -> None:
    assert proves_nothing(Source("tests/x.py", text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "@pytest.mark.skip\ndef test_x(): ...",
        "@pytest.mark.skipif(windows)\ndef test_x(): ...",
        "@pytest.mark.xfail(reason='')\ndef test_x(): ...",
        "def test_x():\n    pytest.skip()",
        "pytestmark = pytest.mark.skip",
    ],
)
def test_a_skip_without_a_reason_is_found(text: str) -> None:
    assert len(skips_without_reason(Source("tests/x.py", text))) == 1


@pytest.mark.parametrize(
    "text", ["@pytest.mark.skipif(windows, reason='no flock')\ndef test_x(): ...", "def test_x():\n    pytest.skip('needs root')"]
)
def test_a_skip_with_its_reason_is_not(text: str) -> None:
    assert skips_without_reason(Source("tests/x.py", text)) == []
