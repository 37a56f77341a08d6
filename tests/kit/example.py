"""Examples that run as users run them: in a process of their own, with a table to read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ODD_NAMES = (
    b"with space",
    b"new\nline",
    b"tab\t",
    b"\xff\xfe",
    b"\\xff",
    b"back\\slash",
    b"[red]markup",
    "ünï".encode(),
    b"-rf",
    b"x" * 255,
    b"AKIA" + b"IOSFODNN7EXAMPLE",
)


def run(file: Path, *arguments: str | Path, home: Path, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run an example to its end; whatever it makes by itself, it makes in *home*."""
    command = [*prefix, sys.executable, "-W", "error", str(file), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TMPDIR": str(home), "COLUMNS": "100"}, check=False)


def table(output: str) -> dict[str, str]:
    """Return the rows of the printed table."""
    rows = [line.strip("│").split("│") for line in output.splitlines() if line.startswith("│")]
    return {what.strip(): found.strip() for what, found in rows}


def number(rows: dict[str, str], what: str) -> int:
    """Return a row's whole number."""
    return int(rows[what].replace(",", ""))


def processes_of(root: Path) -> list[str]:
    """Return the processes whose command line names *root*."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(root) in command.read_bytes():
                found.append(command.parent.name)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def odd_folder(folder: Path, files: int) -> Path:
    """Make a folder of seven times so many files, with every odd thing in it that a folder can hold."""
    for part in range(7):
        (folder / f"part{part}").mkdir(parents=True)
        for file in range(files):
            (folder / f"part{part}" / f"{file}.txt").write_text("x" * file * part)
    raw = os.fsencode(folder)
    for name in ODD_NAMES:
        Path(os.fsdecode(raw + b"/" + name)).write_bytes(name)
    odd = Path(os.fsdecode(raw + b"/\xfd"))
    odd.mkdir()
    (odd / "inside").write_text("a name that is no text, above one that is")
    (folder / "link").symlink_to("part1")
    (folder / "dangling").symlink_to("nowhere")
    os.mkfifo(folder / "fifo")
    return folder
