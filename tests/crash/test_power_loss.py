"""Whatever a disk holds after the power went: no acknowledged thing is lost, nothing is half there, and the run lives on.

An image that fails is told with its seed and index; the same FREEHOLD_SEED draws the same images again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from power import scratch, survey
from scenario import SCENARIOS, record, record_recovery

from freehold.storage.vfs.image import crash_image, crash_images

IMAGES = {
    "create": 160,
    "append": 100,
    "request": 100,
    "spill": 120,
    "transact": 100,
    "execute": 120,
    "take over": 100,
    "checkpoint": 140,
    "publish": 120,
    "staged publish": 100,
    "publish elsewhere": 80,
    "apply": 100,
    "not durable": 160,
    "once": 80,
    "once with intent": 80,
    "delete": 10,
    "delete what a dead owner left": 60,
}
PARTS = 50
"""The long proof draws so many times as many, each part with dice of its own."""


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch() as path:
        yield path


def prove(name: str, seed: int, folder: Path) -> None:
    """Show that no image breaks a promise."""
    steps = record(name, folder / "scenario")
    images = crash_images(steps, seed=seed, limit=IMAGES[name])
    count, wrong = survey(images, folder)

    assert wrong == []
    assert count == IMAGES[name] or name == "delete"


def test_a_thousand_images_are_looked_at() -> None:
    assert IMAGES.keys() == SCENARIOS.keys()
    assert sum(IMAGES.values()) >= 1_000


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_power_loss_breaks_a_promise(name: str, seed: int, folder: Path) -> None:
    prove(name, seed, folder)


@pytest.mark.prove
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", SCENARIOS)
def test_no_power_loss_breaks_a_promise_in_fifty_thousand(name: str, part: int, seed: int, folder: Path) -> None:
    prove(name, seed + 1 + part, folder)


def test_the_power_goes_again_while_the_next_owner_recovers(seed: int, folder: Path) -> None:
    count = 0
    for first in crash_images(record("append", folder / "first"), seed=seed, limit=8):
        again = folder / f"again {first.index}"
        steps = record_recovery(first, again)
        looked, wrong = survey(crash_images(steps, seed=seed, limit=8), folder)
        count += looked
        assert wrong == [], first
    assert count > 40


def test_an_image_is_repeated_by_its_seed_and_index(seed: int, folder: Path) -> None:
    steps = record("append", folder / "scenario")
    for image in crash_images(steps, seed=seed, limit=20):
        assert crash_image(steps, seed, image.index) == image


def test_the_same_scenario_takes_the_same_steps_twice(folder: Path) -> None:
    once, twice = (record("execute", folder / name) for name in ("once", "twice"))

    assert [type(step) for step in once.steps] == [type(step) for step in twice.steps]


def test_what_shared_memory_a_crash_leaves_does_not_matter(seed: int, folder: Path) -> None:
    images = list(crash_images(record("take over", folder / "scenario"), seed=seed, limit=12))
    for image in images:
        (file,) = [name for name in image.files if name.endswith(".sqlite")]
        image.files[file + "-shm"] = bytes(range(256)) * 128

    assert survey(images, folder) == (12, [])
