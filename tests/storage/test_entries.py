"""What is no tree is refused before anything is written, and so are names that the target takes for one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from trees import Shelf, folder, link

from freehold.schema.errors import PathRefused, Refused
from freehold.storage import entries as module
from freehold.storage.entries import Out, check_folding, checked
from freehold.storage.folders import open_top, same_name

FILE = Out(("f",), "file", 0o644)


def test_a_tree_is_taken_as_it_is() -> None:
    tree = [folder("a"), folder("a/b"), link("a/b/c", "x"), FILE._replace(parts=("a", "c")), FILE._replace(parts=("a-",)), FILE]

    assert checked(iter(tree)) == tree
    assert checked([]) == []


@pytest.mark.parametrize(
    ("rule", "entries"),
    [
        ("comes twice", [FILE, FILE]),
        ("comes twice", [folder("a"), link("a", "x")]),
        ("out of order", [FILE._replace(parts=("b",)), FILE._replace(parts=("a",))]),
        ("out of order", [folder("a"), FILE, link("a/x", "x")]),
        ("no folder", [FILE._replace(parts=("a", "b"))]),
        ("no folder", [FILE, FILE._replace(parts=("f", "x"))]),
        ("no folder", [link("a", "/tmp"), FILE._replace(parts=("a", "x"))]),
        ("no folder", [folder("a"), FILE._replace(parts=("a", "b", "c"))]),
        ("single name", [FILE._replace(parts=())]),
        *(("single name", [FILE._replace(parts=(name,))]) for name in ("", ".", "..", "a/b", "/", "a\0", "\udcff", "ä" * 128)),
        ("single name", [folder(".."), FILE._replace(parts=("..", "x"))]),
        ("too long", [FILE._replace(parts=("d",) * 257)]),
        ("too long", [FILE._replace(parts=("n" * 250,) * 17)]),
        ("mode", [FILE._replace(mode=0o4755)]),
        ("mode", [FILE._replace(mode=-1)]),
        *(("target", [link("l", target)]) for target in ("", "a\0", "x" * 4096, "\udcff")),
    ],
)
def test_what_is_no_tree_is_refused_with_its_path(rule: str, entries: list[Out]) -> None:
    with pytest.raises(PathRefused, match=rule) as raised:
        checked(entries)

    assert raised.value.code == "bad_path"


ALIKE = [
    ("README", "readme"),
    ("stra\N{LATIN SMALL LETTER SHARP S}e", "strasse"),
    ("\N{LATIN SMALL LETTER E WITH ACUTE}", "e\N{COMBINING ACUTE ACCENT}"),
    (".git", ".g\N{ZERO WIDTH NON-JOINER}it"),
    ("a", "a."),
    ("K", "\N{KELVIN SIGN}"),
]


@pytest.mark.parametrize("names", ALIKE)
def test_names_that_some_file_system_takes_for_one_are_refused_where_the_probe_says_so(names: tuple[str, str]) -> None:
    first, second = sorted(names)
    entries = [folder("d"), *(FILE._replace(parts=("d", name)) for name in (first, second))]

    with pytest.raises(PathRefused, match="one name"):
        check_folding(entries, -1, lambda fd, one, other: True)
    asked = set()

    def tell_apart(fd: int, one: str, other: str) -> bool:
        asked.add((one, other))
        return False

    check_folding(entries, -1, tell_apart)
    assert asked == {(first, second)}


def test_names_in_different_folders_are_never_compared() -> None:
    entries = [folder("A"), FILE._replace(parts=("A", "x")), folder("B"), FILE._replace(parts=("B", "X"))]

    check_folding(entries, -1, lambda fd, one, other: True)
    with pytest.raises(PathRefused):
        check_folding([*entries, folder("a")], -1, lambda fd, one, other: True)


def test_here_the_file_system_itself_is_asked(tmp_path: Path) -> None:
    entries = [Out((name,), "file") for name in sorted({name for names in ALIKE for name in names})]
    fd = open_top(str(tmp_path))
    (tmp_path / "probe").touch()
    folds = (tmp_path / "PROBE").exists()
    (tmp_path / "probe").unlink()
    if folds:
        with pytest.raises(PathRefused):
            check_folding(entries, fd, same_name)
    else:
        check_folding(entries, fd, same_name)
    assert list(tmp_path.iterdir()) == []
    os.close(fd)


def test_twenty_thousand_entries_are_checked() -> None:
    shelf = Shelf()
    entries = [shelf.file(f"{number:05}") for number in range(20_000)]

    assert checked(entries) == entries
    check_folding(entries, -1, lambda fd, one, other: True)


@pytest.mark.parametrize(("most", "fits"), [(3, True), (2, False)])
def test_more_than_may_be_held_at_once_are_refused(monkeypatch: pytest.MonkeyPatch, most: int, fits: bool) -> None:
    monkeypatch.setattr(module, "ENTRIES_AT_ONCE_MAX", most)
    outs = [Out((name,), "directory") for name in "abc"]
    if fits:
        assert checked(outs) == outs
        return
    with pytest.raises(Refused) as caught:
        checked(outs)
    assert caught.value.code == "too_many_entries"
