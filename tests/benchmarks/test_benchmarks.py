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

LOOKS = {"open", "take-over", "reopen", "list"}

STOCK = """
import sys
from pathlib import Path
import freehold
from benchmarks.stock import MIB, let_die, sized_run
path = sized_run(Path(sys.argv[1]), MIB)
freehold.view(path.file).verify()
print(Path(path.file).stat().st_size)
let_die(path)
freehold.view(path.file).verify()
with freehold.open(path.folder) as host, host.open(path.id) as run:
    print(run.info.status, run.info.stop_code)
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


def test_a_large_file_is_written_and_read_beside_a_bare_loop(tmp_path: Path) -> None:
    file = tmp_path / "report.json"

    ended = python("-m", "benchmarks", "--quick", "--only", "file-write", "--only", "file-read", "--json", str(file))

    assert ended.returncode == 0, ended.stderr
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert [(row["name"], row["unit"]) for row in rows] == [
        (name, unit) for name in ("file-write", "file-read") for unit in ("MiB/s", "ms")
    ]
    assert all(row["ours"] > 0 and row["reference"] > 0 for row in rows)


def test_a_row_that_falls_short_is_marked_and_is_no_failure() -> None:
    ended = python("-c", FALLS_SHORT)

    assert ended.returncode == 0, ended.stderr
    assert "short" in ended.stdout
    assert "Short of the budget: ask" in ended.stdout


def test_what_has_no_budget_is_shown_and_cannot_fall_short(tmp_path: Path) -> None:
    file = tmp_path / "report.json"

    ended = python("-m", "benchmarks", "--quick", *(f"--only={name}" for name in LOOKS), "--json", str(file))

    assert ended.returncode == 0, ended.stderr
    report: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    assert {row["name"] for row in report["rows"]} == LOOKS
    assert all(row["budget"]["limit"] is None and row["holds"] and row["reference"] > 0 for row in report["rows"])
    assert "short" not in ended.stdout.lower()


def test_what_takes_long_to_make_has_no_quick_look() -> None:
    ended = python("-m", "benchmarks", "--quick", "--only", "open-1G")

    assert ended.returncode == 2
    assert "no quick look at open-1G" in ended.stderr
    assert ended.stdout == ""


def test_the_stock_is_of_the_size_that_was_asked_for_and_whole(tmp_path: Path) -> None:
    ended = python("-c", STOCK, str(tmp_path))

    assert ended.returncode == 0, ended.stderr
    size, status, code = ended.stdout.split()
    assert 0.8 < int(size) / 2**20 < 1.3
    assert (status, code) == ("interrupted", "owner_lost")


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
