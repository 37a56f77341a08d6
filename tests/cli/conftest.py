"""What a test of the command line gets: a root, a run with files, a call that runs `main` here, and a check that nothing stays open."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from leaks import Before
from program import Call, Ended

import freehold
from freehold.cli import main
from freehold.files import Files


@pytest.fixture(autouse=True)
def _nothing_stays_open(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("FREEHOLD_ROOT", raising=False)
    before, handlers = Before(), {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
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


def _first(files: Files) -> None:
    files.mkdir("docs/deep", parents=True)
    files.write_text("docs/guide.md", "one\ntwo\nthree\n")
    files.write_bytes("docs/deep/all.bin", bytes(range(256)))
    files.write_text("run.sh", "true\n")
    files.chmod("run.sh", 0o755)
    files.symlink("link", "docs")


@pytest.fixture
def filled(root: Path) -> freehold.RunView:
    """Create a run "a" with some files, published by event 2, and return a view of it."""
    with freehold.open(root) as host, host.create("a") as run:
        run.publish("first", _first)
    return freehold.view(root / "a.sqlite")
