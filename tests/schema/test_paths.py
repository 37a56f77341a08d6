"""A path is taken as it was written or refused with the rule that it breaks; what is taken fits every system."""

from __future__ import annotations

import ntpath
import os
import sys
import unicodedata
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from freehold.schema.errors import PathRefused
from freehold.schema.limits import ENTRY_NAME_BYTES_MAX, PATH_BYTES_MAX, PATH_DEPTH_MAX
from freehold.schema.paths import fold, is_entry_name, parse, text, unportable


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        (".", ()),
        ("./", ()),
        ("././.", ()),
        ("a", ("a",)),
        ("./a", ("a",)),
        ("a/", ("a",)),
        ("a//b/./c//", ("a", "b", "c")),
        ("a/...", None),
        (".git/config", (".git", "config")),
        ("..a/b..c", ("..a", "b..c")),
        ("Grüße/日本", ("Grüße", "日本")),
        (PurePosixPath("a//b/"), ("a", "b")),
        (PurePosixPath(), ()),
    ],
)
def test_a_path_is_its_names(path: Any, parts: tuple[str, ...] | None) -> None:
    if parts is None:
        with pytest.raises(PathRefused):
            parse(path)
    else:
        assert parse(path) == parts


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("", "is not empty"),
        ("/", "relative"),
        ("/a", "relative"),
        ("//a", "relative"),
        (Path("/a"), "relative"),
        ("..", "no '..'"),
        ("../a", "no '..'"),
        ("a/../b", "no '..'"),
        ("a/..", "no '..'"),
        ("a\x00b", "no NUL"),
        ("a/\x00", "no NUL"),
        ("a\udc80", "surrogates"),
        ("\ud800/b", "surrogates"),
        (os.fsdecode(b"\xff\xfe"), "surrogates"),
        ("x" * 256, "more than 255 bytes"),
        ("é" * 128, "more than 255 bytes"),
        ("a/" * 257, "at most 256 names"),
        ("/".join(["x" * 255] * 17), "at most 4096 bytes"),
        ("/".join(["é" * 127] * 17), "at most 4096 bytes"),
        ("C:\\x", "backslash"),
        ("C:/x", "backslash"),
        ("C:", "backslash"),
        ("a\\b", "backslash"),
        ("a\nb", "control"),
        ("a\x7f", "control"),
        ("a\x85", "control"),
        *((f"a{sign}", "< > : ") for sign in '<>:"|?*'),
        ("a.", "ends with a dot"),
        ("...", "ends with a dot"),
        ("a ", "ends with a dot"),
        (" ", "ends with a dot"),
        ("a. /b", "ends with a dot"),
        *(
            (name, "device")
            for name in ("CON", "con", "Con.txt", "nul.tar.gz", "a/AUX/b", "prn", "COM1", "lpt9.x", "com¹", "con .txt", "CONIN$")
        ),
        ("e\u0301", "normal form C"),
        ("a/\u212b", "normal form C"),
        (b"a", "not bytes"),
        (1, "not int"),
        (None, "not NoneType"),
    ],
)
def test_a_path_that_a_workspace_cannot_hold_is_refused_with_its_rule(path: Any, rule: str) -> None:
    with pytest.raises(PathRefused) as raised:
        parse(path)

    assert raised.value.code == "bad_path"
    assert rule in str(raised.value)
    assert len(str(raised.value)) < 400
    str(raised.value).encode()  # whatever it shows can be printed


@pytest.mark.parametrize(
    "path",
    [
        "x" * ENTRY_NAME_BYTES_MAX,
        "/".join(["a"] * PATH_DEPTH_MAX),
        "/".join(["x" * 255] * 16),
        "CONSOLE",
        "com0",
        "COM10",
        "nulx",
        "a.con",
        " a",
    ],
)
def test_what_is_just_within_a_rule_is_taken(path: str) -> None:
    assert text(parse(path)) == path
    assert len(path) <= PATH_BYTES_MAX


def test_the_refused_path_is_shown() -> None:
    with pytest.raises(PathRefused, match=r"^'a/\.\./b\\x07': a path in a workspace has no '\.\.' in it; nothing was changed$"):
        parse("a/../b\x07")


def test_a_text_that_lies_about_itself_is_read_as_it_is() -> None:
    class Liar(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "b"

        def split(self, *_: Any) -> list[Any]:
            return ["/etc"]

    (name,) = parse(Liar("a"))

    assert (name, type(name)) == ("a", str)


@pytest.mark.parametrize("path", [".", "a", "a/b/c.txt", "Grüße/x"])
def test_a_path_is_written_as_it_was_read(path: str) -> None:
    assert text(parse(path)) == path


@given(st.text(max_size=20))
@example("a/./b")
@example("CON /x")
def test_a_path_is_taken_as_pathlib_takes_it_or_refused(path: str) -> None:
    try:
        parts = parse(path)
    except PathRefused:
        return
    assert parts == PurePosixPath(path).parts
    assert parse(text(parts)) == parts
    assert all(is_entry_name(name) for name in parts)
    for name in parts:
        assert unicodedata.is_normalized("NFC", name)
        assert "\\" not in name
        if sys.version_info >= (3, 13):
            assert not ntpath.isreserved(name)


@pytest.mark.parametrize("name", ["a", "a\\b", "CON", "a ", "...", "e\u0301", "\x01", "x" * 255, "é" * 127, "a:b"])
def test_a_stored_name_need_not_be_portable(name: str) -> None:
    assert is_entry_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "/", "a/b", "\x00", "a\x00", "\udcff", "x" * 256, "é" * 128])
def test_what_no_directory_can_hold_is_no_name(name: str) -> None:
    assert not is_entry_name(name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("readme", "README"),
        ("straße", "STRASSE"),
        ("\u212b", "å"),
        ("e\u0301", "É"),
        ("\u1fb3", "\u03b1\u0345"),
        ("\u01f0", "J\u030c"),
        ("ς", "Σ"),
    ],
)
def test_names_that_a_folding_system_takes_for_one_have_one_key(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(("one", "other"), [("a", "b"), ("i", "\u0131"), ("a", "á"), ("a.txt", "a_txt")])
def test_names_that_no_system_takes_for_one_have_two(one: str, other: str) -> None:
    assert fold(one) != fold(other)


@given(st.text(max_size=8))
def test_the_key_of_a_name_is_that_of_all_its_forms(name: str) -> None:
    forms = [unicodedata.normalize(form, name) for form in ("NFC", "NFD")]

    assert {fold(form) for form in forms} == {fold(name)}
    assert fold(name.casefold()) == fold(name)


@given(st.text(alphabet="abAB.", min_size=1, max_size=5))
def test_the_short_way_for_plain_letters_is_the_long_one(name: str) -> None:
    assert fold(name) == unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def test_each_rule_of_the_portable_profile_has_its_own_words() -> None:
    assert unportable("a.txt") is None
    assert len({unportable(name) for name in ("a\\b", "a.", "nul", "e\u0301")}) == 4
