"""What a test of hostile files gets: a check that it left no thread and no open run file behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from leaks import Before


@pytest.fixture(autouse=True)
def _nothing_stays_open() -> Iterator[None]:
    before = Before()
    yield
    if left := before.left():
        pytest.fail(f"left behind: {'; '.join(left)}")
