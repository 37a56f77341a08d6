"""A fresh process that imports something: how long that takes, and what it loads.

Bytecode is compiled beforehand into a folder of its own, as an installed package has it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HEAVY = ("click", "rich", "zstandard", "hypothesis", "cyclopts", "psutil", "jsonschema", "asyncio", "sqlite3", "ray", "fsspec")
"""What nobody should pay for who only wants to append an event."""

_SCRIPT = """
import sys, time
wall, cpu = time.perf_counter(), time.process_time()
for name in sys.argv[1].split():
    __import__(name)
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
print(wall, cpu, " ".join(name for name in sys.argv[2].split() if name in sys.modules))
"""


def import_ms(folder: Path, modules: str) -> tuple[float, float, list[str]]:
    """Return the milliseconds and the CPU milliseconds of importing *modules*, and which heavy ones came with them."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    ended = subprocess.run(
        [sys.executable, "-c", _SCRIPT, modules, " ".join(HEAVY)], env=environment, capture_output=True, text=True, check=True
    )
    wall, cpu, *heavy = ended.stdout.split()
    return float(wall) * 1e3, float(cpu) * 1e3, heavy
