"""The benchmarks run, say what they measured as a table and as JSON, and never fail because a machine is slow."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from freehold.storage.platform import filesystem_of

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("click", "rich", "zstandard", "hypothesis", "psutil", "jsonschema", "asyncio", "tempfile", "sqlite3")

# An impossible budget for one row, and then the command as it is.
FALLS_SHORT = """
import dataclasses, sys
from benchmarks import rows
(row,) = (row for row in rows.ROWS if row.name == "ask")
rows.ROWS = (dataclasses.replace(row, budgets=(dataclasses.replace(row.budgets[0], limit=0.0),)),)
from benchmarks.__main__ import main
sys.exit(main(["--quick"]))
"""


def python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=50, check=False)


def test_two_rows_are_measured_shown_and_written(tmp_path: Path) -> None:
    file = tmp_path / "report.json"

    ended = python("-m", "benchmarks", "--quick", "--only", "cpu", "--only", "bytes", "--json", str(file))

    assert ended.returncode == 0, ended.stderr
    assert "minimal loop" in ended.stdout
    report: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    assert report.keys() == {"format", "machine", "rows"}
    assert report["machine"].keys() == {
        "freehold", "python", "sqlite", "cores", "filesystem", "load_before", "load_after", "noisy",
    }  # fmt: skip
    assert report["machine"]["filesystem"] not in {"", "tmpfs"}
    assert [row["name"] for row in report["rows"]] == ["cpu", "bytes"]
    for row in report["rows"]:
        assert row.keys() == {"name", "title", "unit", "ours", "reference", "ratio", "budget", "holds", "rounds", "notes"}
        assert row["budget"].keys() == {"of", "bound", "limit"}
        assert row["rounds"] == 1
        assert row["ours"] > 0
        assert row["reference"] > 0
        measured = row[row["budget"]["of"]]
        assert row["holds"] is (measured <= row["budget"]["limit"])  # both are bounds from above


def test_a_row_that_falls_short_is_marked_and_is_no_failure() -> None:
    ended = python("-c", FALLS_SHORT)

    assert ended.returncode == 0, ended.stderr
    assert "short" in ended.stdout
    assert "Short of the budget: ask" in ended.stdout


@pytest.mark.skipif(filesystem_of("/dev/shm") != "tmpfs", reason="needs a folder that is kept in memory")
def test_a_folder_in_memory_is_refused() -> None:
    ended = python("-m", "benchmarks", "--quick", "--only", "ask", "--folder", "/dev/shm")

    assert ended.returncode == 2
    assert "no folder on a disk" in ended.stderr


@pytest.mark.parametrize("words", [("--only", "nothing"), ("--rounds", "0"), ("--rounds", "many")])
def test_a_wrong_option_is_refused_before_anything_is_measured(words: tuple[str, str]) -> None:
    ended = python("-m", "benchmarks", *words)

    assert ended.returncode == 2
    assert "usage:" in ended.stderr
    assert ended.stdout == ""


def test_importing_freehold_loads_nothing_heavy() -> None:
    ended = python("-c", f"import freehold, sys; print(*(name for name in {HEAVY} if name in sys.modules))")

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == []
