"""A user's own scenario can be put through every power loss, with public names alone."""

from __future__ import annotations

import doctest
from pathlib import Path

import apsw
import pytest

import freehold
from freehold import testing
from freehold.testing import CrashImage, Recording, crash_image, crash_images


def counting(folder: Path) -> Recording:
    """Return the recording of a host on which a run was counted up, each number acknowledged."""
    with Recording(folder) as recording, recording.host(timeout=10.0) as host, host.create("r") as run:
        for number in range(4):
            recording.mark(run.append("counted", number, request_id=f"number {number}").id)
    return recording


def there(image: CrashImage, folder: Path) -> list[freehold.EventId]:
    """Return the ids of the events that are found after the power loss."""
    with freehold.open(image.restore(folder)) as host:
        return [event.id for event in host.view("r").history()]


def test_what_a_user_acknowledges_is_found_in_every_image(tmp_path: Path, seed: int) -> None:
    recording = counting(tmp_path / "runs")
    images = list(crash_images(recording, seed=seed, limit=40))

    assert len(images) == 40
    assert any(image.marks for image in images)
    for image in images:
        assert set(image.marks) <= set(there(image, tmp_path / str(image.index))), image


def test_what_a_user_acknowledges_too_early_is_missing_in_some(tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "runs"
    with Recording(folder) as recording, recording.host() as host, host.create("r") as run:
        for number in range(3):
            recording.mark(number)
            run.append("counted", number)
    lost = 0
    for image in crash_images(recording, seed=seed, limit=40):
        lost += len(there(image, tmp_path / str(image.index))) < 1 + len(image.marks)

    assert lost


def test_a_host_may_stand_below_the_recorded_folder(tmp_path: Path) -> None:
    with Recording(tmp_path) as recording, recording.host(tmp_path / "deep" / "runs") as host:
        host.create("r").close()
    images = list(crash_images(recording, seed=1))

    assert any("deep/runs/r.sqlite" in image.files for image in images)
    assert any(not image.folders for image in images)


def test_one_image_is_looked_at_again(tmp_path: Path, seed: int) -> None:
    recording = counting(tmp_path / "runs")

    for image in crash_images(recording, seed=seed, limit=10):
        assert crash_image(recording, seed, image.index) == image


def test_a_deleted_run_stays_deleted(tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "runs"
    with Recording(folder) as recording, recording.host() as host:
        host.create("r").close()
        host.delete("r")
        recording.mark("deleted")
    gone = [image for image in crash_images(recording, seed=seed) if image.marks]

    assert gone
    assert [image for image in gone if any(not name.startswith(".") for name in image.files)] == []


def test_the_example_in_the_docstring_runs() -> None:
    failed, tried = doctest.testmod(testing)

    assert (failed, tried > 0) == (0, True)


def test_a_recording_needs_a_root_that_a_host_can_have(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with Recording(tmp_path) as recording, pytest.raises(freehold.Refused, match="not a folder"):
        recording.host(tmp_path / "file")


def test_a_recording_that_has_ended_leaves_no_file_system_behind(tmp_path: Path) -> None:
    before = apsw.vfs_names()
    with Recording(tmp_path) as recording:
        assert len(apsw.vfs_names()) == len(before) + 1
    assert sorted(apsw.vfs_names()) == sorted(before)
    assert list(crash_images(recording, seed=1)) == []
