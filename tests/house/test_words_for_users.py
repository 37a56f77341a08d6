"""What a user can meet is explained: every error code on its page, every public name in its docstring."""

from __future__ import annotations

import inspect
import re
from types import ModuleType
from typing import Any

import pytest
from house import ROOT

import freehold
from freehold.schema.errors import CODES

ERRORS_PAGE = ROOT / "docs" / "errors.md"


def codes_in(page: str) -> list[str]:
    """Return the codes that have a heading: a heading that is one lower-case word, in backticks or bare."""
    return re.findall(r"^#+ +`?([a-z][a-z0-9_]*)`? *$", page, flags=re.MULTILINE)


def is_explained(thing: Any) -> bool:
    """Return whether a public name has a docstring of its own. Plain values and type aliases cannot have one."""
    if inspect.isclass(thing):
        # Not one that is inherited, nor the signature that a dataclass writes for itself.
        own = vars(thing).get("__doc__") or ""
        return bool(own.strip()) and not own.startswith(f"{thing.__name__}(")
    if inspect.isroutine(thing) or isinstance(thing, ModuleType):
        return bool((thing.__doc__ or "").strip())
    return True


def test_every_error_code_has_a_heading_and_every_heading_a_code() -> None:
    headings = codes_in(ERRORS_PAGE.read_text(encoding="utf-8"))

    assert sorted(headings) == sorted(CODES)


def test_the_face_has_public_names() -> None:
    assert freehold.__all__
    assert len(set(freehold.__all__)) == len(freehold.__all__)


def test_every_public_name_has_a_docstring() -> None:
    assert [name for name in freehold.__all__ if not is_explained(getattr(freehold, name))] == []


def test_a_heading_is_a_code_only_when_it_is_nothing_else() -> None:
    assert codes_in("# Errors\n## `bad_name`\ntext\n### run_exists\n## Refused: ask differently\n") == ["bad_name", "run_exists"]


@pytest.mark.parametrize("thing", [type("Bare", (Exception,), {}), lambda: None])
def test_a_name_without_a_docstring_is_found(thing: Any) -> None:
    assert not is_explained(thing)
