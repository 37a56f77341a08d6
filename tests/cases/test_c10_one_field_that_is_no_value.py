"""C10: one field that cannot be kept fails its own step, with the path to it; what was done before is there, and is not done again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import freehold
from freehold import Run


def job(run: Run, number: int, done: list[int]) -> dict[str, Any]:
    done.append(number)
    run.publish(f"job {number}", lambda files: files.write_text(f"{number}.txt", "done"))
    return {"ok": True}


def test_five_jobs_stay_done_when_the_last_value_cannot_be_kept(tmp_path: Path) -> None:
    done: list[int] = []
    for life in range(2):
        with freehold.open(tmp_path) as host, host.ensure("a") as run:
            assert [run.once(f"job {number}", job, run, number, done) for number in range(5)] == [{"ok": True}] * 5
            with pytest.raises(freehold.ValueRefused) as caught:
                run.once("summary", lambda: {"summary": object()})
            assert (caught.value.code, caught.value.details["path"], caught.value.details["type"]) == (
                "value_refused",
                "$.summary",
                "object",
            )
            assert "$.summary" in str(caught.value)
            if life:
                assert run.once("summary, corrected", lambda: {"summary": "five"}) == {"summary": "five"}
            assert sorted(run.files.iterdir(".")) == [f"{number}.txt" for number in range(5)]
            run.verify()
    assert done == [0, 1, 2, 3, 4]
