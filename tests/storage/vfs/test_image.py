"""Every state that a disk may be in after a power loss is drawn, and none that it cannot be in."""

from __future__ import annotations

from pathlib import Path

from freehold.storage.vfs.image import KINDS, CrashImage, crash_image, crash_images
from freehold.storage.vfs.record import Cut, Marked, Record, Step, Synced, SyncedFolder, Wrote


def recorded(tmp_path: Path, *steps: Step) -> Record:
    """Return a record of *steps* on the one file `a`, number 0, of 2,048 bytes."""
    (tmp_path / "a").write_bytes(b"." * 2048)
    record = Record(tmp_path)
    for step in steps:
        record.add(step)
    return record


def contents(record: Record, limit: int = 300) -> set[bytes]:
    """Return everything that `a` is found to hold."""
    return {image.files["a"] for image in crash_images(record, seed=1, limit=limit)}


def test_synced_bytes_are_in_every_image_and_later_ones_in_some(tmp_path: Path) -> None:
    record = recorded(tmp_path, Wrote(0, 0, b"1"), Synced(0), Marked("synced"), Wrote(0, 1, b"2"), Wrote(0, 2, b"3"))
    images = list(crash_images(record, seed=1, limit=300))

    assert {image.files["a"][:3] for image in images if image.marks} == {b"1..", b"12.", b"1.3", b"123"}
    assert {image.files["a"][:3] for image in images if not image.marks} == {b"...", b"1.."}


def test_a_write_is_torn_at_a_sector(tmp_path: Path) -> None:
    found = contents(recorded(tmp_path, Wrote(0, 0, b"x" * 1024)))
    old, new, zeros = b"." * 512, b"x" * 512, bytes(512)

    assert {content[:1024] for content in found} == {old + old, new + new, new + old, old + new, new + zeros}


def test_a_cut_may_be_lost(tmp_path: Path) -> None:
    assert {len(content) for content in contents(recorded(tmp_path, Cut(0, 10)))} == {10, 2048}


def test_names_come_and_go_with_their_folder_s_sync(tmp_path: Path) -> None:
    record = recorded(tmp_path)
    record.add_name("b")
    record.rename("b", "c")
    record.remove("a")
    record.add(Marked("before"))
    record.add(SyncedFolder("."))
    record.add(Marked("after"))
    images = list(crash_images(record, seed=1, limit=400))

    every = [{"a"}, {"a", "b"}, {"a", "c"}, {"b"}, {"c"}, set()]
    assert [names for names in every if not any(set(image.files) == names for image in images)] == []
    assert [set(image.files) for image in images if image.marks == ("before", "after")] == [{"c"}]


def test_what_stands_in_a_folder_goes_with_it(tmp_path: Path) -> None:
    record = recorded(tmp_path)
    record.add_name("folder", is_folder=True)
    record.add_name("folder/b")
    record.add(SyncedFolder("folder"))
    images = list(crash_images(record, seed=1, limit=100))

    assert all(("folder/b" in image.files) <= ("folder" in image.folders) for image in images)
    assert any(image.folders for image in images)
    assert any(not image.folders for image in images)


def test_without_a_limit_each_step_has_one_image_of_each_kind(tmp_path: Path) -> None:
    record = recorded(tmp_path, *(Wrote(0, 512 * number, b"x" * 2000) for number in range(6)))
    images = list(crash_images(record, seed=1))

    assert {image.index for image in images} <= set(range(6 * len(KINDS)))
    assert {image.index // len(KINDS) for image in images} == set(range(6))


def test_images_are_different_and_repeatable(tmp_path: Path) -> None:
    record = recorded(tmp_path, *(Wrote(0, 100 * number, b"%d" % number * 900) for number in range(9)))
    images = list(crash_images(record, seed=3, limit=100))

    assert len(images) == 100
    assert len({image.files["a"] for image in images}) == 100
    assert list(crash_images(record, seed=3, limit=100)) == images
    assert list(crash_images(record, seed=4, limit=100)) != images
    assert [crash_image(record, 3, image.index) for image in images] == images


def test_a_record_with_few_states_ends_before_its_limit(tmp_path: Path) -> None:
    assert len(contents(recorded(tmp_path, Cut(0, 10)), limit=10_000)) == 2


def test_an_empty_record_has_no_image(tmp_path: Path) -> None:
    assert list(crash_images(recorded(tmp_path), seed=1, limit=10)) == []


def test_an_image_tells_its_story_and_nothing_that_it_holds(tmp_path: Path) -> None:
    record = recorded(tmp_path, Wrote(0, 0, b"a secret"), Marked("another secret"))
    (image,) = [image for image in crash_images(record, seed=7) if image.index == 0]

    assert repr(image) == ("CrashImage(seed=7, index=0, story='after step 1 of 2 (8 bytes written at 0 of a): all; 1 of 1 steps on a')")


def test_an_image_is_written_into_a_folder(tmp_path: Path) -> None:
    image = CrashImage(1, 0, "", (), {"f/a": b"x", "b": b""}, ("f",))
    root = image.restore(tmp_path / "deep" / "image")

    assert sorted(str(path.relative_to(root)) for path in root.rglob("*")) == ["b", "f", "f/a"]
    assert (root / "f" / "a").read_bytes() == b"x"


def test_no_more_images_come_than_were_asked_for(tmp_path: Path) -> None:
    record = recorded(tmp_path, *(Cut(0, size) for size in range(10)))

    assert [len(list(crash_images(record, seed=1, limit=limit))) for limit in range(16)] == list(range(16))


def test_a_few_images_of_a_long_record_are_drawn_from_all_of_it(tmp_path: Path) -> None:
    record = recorded(tmp_path, *(Marked(number) for number in range(2_000)))
    ends = [len(image.marks) for image in crash_images(record, seed=1, limit=40)]

    assert len(ends) == 40
    assert max(ends) > 1_800
