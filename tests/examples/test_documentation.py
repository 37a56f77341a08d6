"""What the documentation shows is run as it stands there."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from caller import owner

import freehold
from freehold import Refused, Unavailable
from freehold.actors.deadline import monotonic

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


@pytest.fixture
def append_once() -> Callable[..., Any]:
    """Return the first example of docs/errors.md."""
    page = (Path(__file__).parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0], names)
    made: Callable[..., Any] = names["append_once"]
    return made


@pytest.fixture
def handle(tmp_path: Path) -> Iterator[freehold.Handle]:
    with freehold.open(tmp_path) as host:
        host.create("a").close()
    with freehold.open(tmp_path, timeout=20) as host, host.handle("a") as handle:
        yield handle


def test_the_loop_of_the_errors_page_appends_once_over_an_owner_that_dies(
    append_once: Callable[..., Any], handle: freehold.Handle, tmp_path: Path
) -> None:
    with owner(tmp_path) as other:
        other.do("after(store.Store, 'commit')")
        event = append_once(handle, "x", 1, "r")

    assert [each.id for each in handle.history(name="x")] == [event.id] == [append_once(handle, "x", 1, "r").id]


def test_the_loop_of_the_errors_page_waits_for_an_owner_that_hangs(
    append_once: Callable[..., Any], handle: freehold.Handle, tmp_path: Path
) -> None:
    with owner(tmp_path) as other:
        other.stop()
        begun = monotonic()
        with pytest.raises(freehold.DeadlineExceeded) as caught:
            append_once(handle, "x", 1, "r", patience=0.3)
        assert (caught.value.executed, monotonic() - begun < 10) == ("no", True)
        timer = threading.Timer(0.3, other.kill)
        timer.start()
        assert append_once(handle, "x", 1, "r").seq == 2
        timer.join()


def test_the_loop_of_the_errors_page_raises_what_asking_again_does_not_mend(
    append_once: Callable[..., Any], handle: freehold.Handle
) -> None:
    append_once(handle, "x", 1, "r")
    for data, code in ((2, "request_conflict"), (object(), "value_refused")):
        begun = monotonic()
        with pytest.raises(Refused) as caught:
            append_once(handle, "x", data, "r")
        assert (caught.value.code, monotonic() - begun < 10) == (code, True)


def test_the_loop_of_the_errors_page_never_takes_a_later_no_for_an_answer(
    append_once: Callable[..., Any], handle: freehold.Handle, tmp_path: Path
) -> None:
    with owner(tmp_path) as other:
        other.do("after(store.Store, 'commit')")
        hanging: list[Any] = []

        class Handle:
            """The handle, which meets a second owner that hangs as soon as the first one has died."""

            def append(self, *given: Any, **how: Any) -> Any:
                if other.process.poll() is not None and not hanging:
                    hanging.append(stack.enter_context(owner(tmp_path)))
                    hanging[0].stop()
                return handle.append(*given, **how)

        with ExitStack() as stack, pytest.raises(Unavailable) as caught:
            append_once(Handle(), "x", 1, "r", patience=3.0)

    assert (caught.value.code, caught.value.executed, len(hanging)) == ("no_answer", "unknown", 1)
    assert [event.data for event in handle.history(name="x")] == [1]  # it was carried out


@pytest.mark.parametrize("name", ["freehold", "freehold.actors.supervisor"])
def test_the_examples_of_a_docstring_are_true(name: str) -> None:
    results = doctest.testmod(import_module(name))

    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize(("name", "examples"), [("files", 30), ("looking", 17), ("talking", 22), ("workflows", 25)])
def test_the_examples_of_a_page_are_true(name: str, examples: int) -> None:
    page = Path(__file__).parents[2] / "docs" / f"{name}.md"
    results = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)

    assert results.attempted > examples
    assert results.failed == 0
