"""C13: a result over the limit fails its step once, with size, limit and a hint; the file stays small and the run can be used on."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

import freehold
from freehold import Run, ValueRefused
from freehold.schema.limits import VALUE_BYTES_MAX

QUOTES = 2


def size_of(root: Path) -> int:
    return sum(file.stat().st_size for file in root.iterdir() if file.name.startswith("a.sqlite"))


@pytest.mark.parametrize("size", [VALUE_BYTES_MAX - 1, VALUE_BYTES_MAX])
def test_what_is_within_the_limit_is_kept(tmp_path: Path, size: int) -> None:
    text = "x" * (size - QUOTES)
    with freehold.open(tmp_path) as host, host.create("a") as run:
        assert run.once("large", lambda: text) == text == run.once("large", lambda: "")


@pytest.mark.parametrize("size", [VALUE_BYTES_MAX + 1, 1_200_000_000])
def test_what_is_beyond_it_fails_once_and_is_not_tried_again(tmp_path: Path, size: int) -> None:
    calls: list[int] = []

    def large() -> str:
        calls.append(1)
        return "x" * (size - QUOTES)

    with freehold.open(tmp_path) as host, host.create("a") as run:
        run.once("before", lambda: "kept")
        refused(run, large)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(3):
            refused(run, large)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss == before
        assert run.once("after", lambda: "kept, too") == "kept, too"
    assert len(calls) == 1
    assert size_of(tmp_path) < 1_000_000
    with freehold.open(tmp_path) as host, host.open("a") as run:
        refused(run, large)
        assert run.once("before", lambda: "") == "kept"
        run.verify()
    assert len(calls) == 1


def refused(run: Run, large: object) -> None:
    with pytest.raises(ValueRefused) as caught:
        run.once("large", large)  # type: ignore[arg-type]
    error = caught.value
    assert error.code == "value_too_large"
    assert error.details["limit"] == VALUE_BYTES_MAX
    assert error.details["size"] > VALUE_BYTES_MAX
    assert str(VALUE_BYTES_MAX) in str(error)
    assert "file" in str(error)
