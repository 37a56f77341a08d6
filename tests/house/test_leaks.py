"""The leak check sees what it looks for."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from leaks import Before


def test_a_descriptor_of_a_run_file_is_found_until_it_is_closed(tmp_path: Path) -> None:
    before = Before()

    fd = os.open(tmp_path / "r.sqlite-wal", os.O_CREAT | os.O_RDWR)
    assert before.left() == [f"1 open descriptor(s) of {tmp_path / 'r.sqlite-wal'}"]

    os.close(fd)
    assert before.left() == []


def test_a_second_descriptor_of_a_file_that_was_open_before_is_found(tmp_path: Path) -> None:
    with (tmp_path / "r.sqlite").open("wb"):
        before = Before()

        with (tmp_path / "r.sqlite").open("rb"):
            assert before.left() == [f"1 open descriptor(s) of {tmp_path / 'r.sqlite'}"]

    assert before.left() == []


def test_a_thread_of_ours_is_found_until_it_has_ended() -> None:
    before, end = Before(), threading.Event()
    thread = threading.Thread(target=end.wait, name="freehold-run-x", daemon=True)

    thread.start()
    assert before.left(join_s=0) == ["thread freehold-run-x"]

    end.set()
    assert before.left() == []


def test_other_people_s_threads_are_not_ours() -> None:
    before, end = Before(), threading.Event()
    thread = threading.Thread(target=end.wait, name="somebody", daemon=True)

    thread.start()
    assert before.left(join_s=0) == []

    end.set()
    thread.join()


def test_the_seed_comes_from_the_environment(seed: int) -> None:
    assert str(seed) == os.environ["FREEHOLD_SEED"]
