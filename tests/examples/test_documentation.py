"""What the documentation shows is run as it stands there."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_the_program_of_the_readme_does_once_what_it_is_run_twice_for(tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text(PROGRAM, encoding="utf-8")
    runs = [
        subprocess.run([sys.executable, "first.py"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=50) for _ in range(2)
    ]

    assert runs[0].stderr == runs[1].stderr == ""
    assert runs[0].stdout == runs[1].stdout
    assert [line.split()[2] for line in runs[0].stdout.splitlines()[:-2]] == ["None", "tool", "cost", "answer", "report"]
    assert runs[0].stdout.splitlines()[-2:] == ["['report.txt'] False", "5"]


def test_the_commands_of_the_readme_do_what_it_shows(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL, timeout=50)
    lines = "\n".join(re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL))
    commands = [
        (typed, shown)
        for typed, shown in re.findall(r"^\$ (.*)\n((?:[^$\n].*\n)*)", lines, flags=re.MULTILINE)
        if not typed.startswith("make ")
    ]
    assert len(commands) >= 15

    for typed, shown in commands:
        script = f'freehold() {{ {sys.executable} -m freehold "$@"; }}; {typed}'
        done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=50)
        assert (typed, done.returncode, "freehold: " in done.stderr) == (typed, 0, False)
        assert shown in ("", done.stdout)


@pytest.mark.parametrize("name", ["freehold", "freehold.actors.supervisor"])
def test_the_examples_of_a_docstring_are_true(name: str) -> None:
    results = doctest.testmod(import_module(name))

    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize(("name", "examples"), [("files", 30), ("looking", 15), ("talking", 15)])
def test_the_examples_of_a_page_are_true(name: str, examples: int) -> None:
    page = Path(__file__).parents[2] / "docs" / f"{name}.md"
    results = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)

    assert results.attempted > examples
    assert results.failed == 0
