"""What a test of the command line gets: a root, a call that runs `main` here, and a check that nothing stays open."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from leaks import Before
from program import Call, Ended

from freehold.cli import main


@pytest.fixture(autouse=True)
def _nothing_stays_open(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("FREEHOLD_ROOT", raising=False)
    before, on_interrupt = Before(), signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, on_interrupt)
    if left := before.left():
        pytest.fail(f"left behind: {'; '.join(left)}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder of runs that does not exist yet."""
    return tmp_path / "runs"


@pytest.fixture
def call(root: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Return what runs one command on the root, in this process."""

    def run(*words: str) -> Ended:
        capsys.readouterr()
        code = main(["--root", str(root), *words])
        return Ended(code, *capsys.readouterr())

    return run
