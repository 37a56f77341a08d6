"""What every test gets: a seed that can be repeated, and a check that it left no thread and no open run file behind."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from leaks import Before
from neighbours import Neighbours, neighbours

SEED = "FREEHOLD_SEED"
WATCHED = ("storage", "actors", "face", "crash", "simulation", "testing")
"""The folders of tests that start threads or open run files."""

_HERE = Path(__file__).resolve().parent

# A machine shared with others is slow at times; a failure prints what repeats it.
settings.register_profile("freehold", deadline=None, print_blob=True)
settings.load_profile("freehold")


def pytest_configure() -> None:
    """Fix the seed before the workers start, so that all of them have the same."""
    os.environ.setdefault(SEED, str(secrets.randbits(32)))


def pytest_report_header() -> str:
    """Say how to repeat this session's dice."""
    return f"{SEED}={os.environ[SEED]}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it again under a failure, where it is read."""
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(f"repeat with {SEED}={os.environ[SEED]}")


@pytest.fixture(scope="session")
def seed() -> int:
    """Return the number that a randomised test begins from."""
    return int(os.environ[SEED])


@pytest.fixture(scope="module")
def village() -> Iterator[Neighbours]:
    """Yield hosts in other processes; they are gone when the tests of the file are."""
    with neighbours() as found:
        yield found


@pytest.fixture(autouse=True)
def _no_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.path.relative_to(_HERE).parts[0] not in WATCHED:
        yield
        return
    before = Before()
    yield
    if left := before.left():
        pytest.fail(f"left behind: {'; '.join(left)}")
