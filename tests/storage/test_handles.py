"""All who have one file open see each other, under whatever name it is by then; a file without a name tells nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kept import Kept, kept

from freehold.schema.paths import Parts
from freehold.storage.content import Content
from freehold.storage.handles import Handles


@pytest.fixture
def objects(tmp_path: Path) -> Iterator[Kept]:
    with kept(tmp_path) as found:
        yield found


@pytest.fixture
def told() -> list[tuple[Parts, Content]]:
    return []


@pytest.fixture
def handles(objects: Kept, told: list[tuple[Parts, Content]]) -> Handles:
    return Handles(objects, lambda way, content: told.append((way, content)))


def open_(handles: Handles, way: Parts, mode: str = "r+b", content: bytes | None = b"old") -> Any:
    there = None if content is None else Content(len(content), content)
    return handles.open(way, there, mode, 0, None, None, None)


def test_two_handles_on_one_name_are_on_one_file(handles: Handles) -> None:
    with open_(handles, ("a",)) as one, open_(handles, ("a",)) as other, open_(handles, ("b",)) as third:
        one.write(b"new")

        assert (other.read(), third.read()) == (b"new", b"old")


def test_a_closed_handle_that_is_kept_says_nothing_of_the_next_file(handles: Handles) -> None:
    closed = open_(handles, ("a",))
    closed.write(b"new")
    closed.close()

    assert not handles.has(("a",))
    with open_(handles, ("a",), content=b"later") as file:
        assert handles.has(("a",))
        assert file.read() == b"later"
    assert closed.closed


def test_what_was_written_is_told_under_the_name_that_the_file_has_then(handles: Handles, told: list[Any]) -> None:
    with open_(handles, ("d", "a")) as file:
        file.write(b"new")
        handles.moved(("d",), ("e", "f"))
        assert (handles.has(("d", "a")), handles.has(("e", "f", "a"))) == (False, True)

    assert told == [(("e", "f", "a"), Content(3, b"new"))]


@pytest.mark.parametrize("end", [("d",), ("d", "a")])
def test_a_removed_file_lives_on_for_who_has_it_open_and_is_told_to_nobody(handles: Handles, told: list[Any], end: Parts) -> None:
    with open_(handles, ("d", "a")) as file:
        handles.removed(end)
        file.write(b"new")
        file.seek(0)
        assert file.read() == b"new"
        with open_(handles, ("d", "a"), content=b"another") as other:
            assert other.read() == b"another"

    assert told == []


def test_a_file_that_another_is_moved_over_has_no_name_any_more(handles: Handles, told: list[Any]) -> None:
    with open_(handles, ("a",)) as moved, open_(handles, ("b",)) as covered:
        handles.moved(("a",), ("b",))
        covered.write(b"lost")
        moved.write(b"kept")

    assert told == [(("b",), Content(4, b"kept"))]


def test_a_sibling_with_a_like_name_stays(handles: Handles, told: list[Any]) -> None:
    with open_(handles, ("ab",)) as file:
        handles.removed(("a",))
        file.write(b"new")

    assert told == [(("ab",), Content(3, b"new"))]
