"""Removes each guard in a copy of the project, and shows that the test which stands beside it in its table fails.

`python tests/guards [TABLE…]`: the tables are the .toml files of this folder, one for each area of the code.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from shutil import copytree, ignore_patterns

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kit"))
from guards import PROJECT, Guard, guards

_NOT_COPIED = ignore_patterns(".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis")
_TEST_S = 60
"""A test that hangs without the guard has noticed it too; this is how long it may hang."""


class Copies:
    """Copies of the project, one for each core, in which guards are removed side by side."""

    def __init__(self, folder: Path) -> None:
        self.count = os.cpu_count() or 1
        self._free: SimpleQueue[Path] = SimpleQueue()
        for number in range(self.count):
            copytree(PROJECT, copy := folder / str(number), symlinks=True, ignore=_NOT_COPIED)
            self._free.put(copy)

    def remove(self, guard: Guard) -> str | None:
        """Remove *guard* in a copy, run its test there and put it back. Return what is wrong, or None: the test failed."""
        copy = self._free.get()
        file = copy / guard.file
        whole = file.read_text()
        try:
            file.write_text(whole.replace(guard.old, guard.new))
            return verdict(copy, guard.test)
        finally:
            file.write_text(whole)
            self._free.put(copy)


def verdict(copy: Path, test: str) -> str | None:
    """Return how *test* did not fail, or None when it did."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "", f"--timeout={_TEST_S}", test]
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        ended = subprocess.run(
            command, cwd=copy, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=3 * _TEST_S, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    if ended.returncode == 0:
        return "nothing fails without it"
    if "KeyboardInterrupt" in ended.stdout:  # a signal that nobody caught
        return None
    # 2 to 5: pytest could not even begin with the test. Whatever else ended the interpreter was the test itself.
    return f"its test did not run\n{ended.stdout[-2000:]}" if ended.returncode in {2, 3, 4, 5} else None


def main(tables: list[str]) -> int:
    """Try the guards of *tables*, or all; return 1 if one can be removed unnoticed."""
    wanted = [guard for guard in guards() if not tables or guard.table in tables]
    unnoticed = 0
    with tempfile.TemporaryDirectory(prefix="guards-") as folder:
        copies = Copies(Path(folder))
        with ThreadPoolExecutor(copies.count) as threads:
            for number, (guard, wrong) in enumerate(zip(wanted, threads.map(copies.remove, wanted), strict=True), 1):
                if number % 50 == 0:
                    print(f"{number} of {len(wanted)}", file=sys.stderr, flush=True)
                if wrong is not None:
                    unnoticed += 1
                    print(f"{guard.table}: {guard.file}: {guard.why}: {wrong}", flush=True)
    print(f"{len(wanted)} guards removed one by one: {len(wanted) - unnoticed} noticed, {unnoticed} not")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
