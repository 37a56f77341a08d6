"""append adds one note, whoever owns the run, and prints its event; what is no value is refused before anything is touched."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from caller import owner
from folder import run_files, snapshot
from program import COMMAND, Call, environment

import freehold
from freehold.cli import values


@pytest.fixture(autouse=True)
def _run(root: Path) -> None:
    with freehold.open(root) as host:
        host.create("a").close()


def notes(root: Path) -> list[tuple[str | None, Any]]:
    """Return the names and values of the notes in the run."""
    return [(event.name, event.data) for event in freehold.view(root / "a.sqlite").history(after=1)]


def fed(root: Path, content: bytes, *words: str, **how: Any) -> subprocess.CompletedProcess[bytes]:
    """Append in a process of its own, with *content* in a pipe."""
    command = [*COMMAND, "--root", str(root), "append", "a", *words]
    given: Any = {"input": content} | how
    return subprocess.run(command, capture_output=True, env=environment(), check=False, timeout=50, **given)


def test_a_note_is_added_and_its_event_printed_as_history_prints_it(call: Call, root: Path) -> None:
    text, document = call("append", "a", "x", '{"to": [1, 2.5, null]}'), call("append", "a", "day", '{"$date": "2026-11-23"}', "--json")

    assert (text.code, text.err, text.out) == (0, "", call("history", "a", "--name", "x").out)
    (event,) = call("history", "a", "--name", "day", "--json").document["events"]
    assert document.document == {"run": "a", "event": event, "exit_code": 0}
    assert notes(root) == [("x", {"to": [1, 2.5, None]}), ("day", date(2026, 11, 23))]
    assert run_files(root) == ["a.sqlite"]  # nobody owns it any more


@pytest.mark.parametrize("words", [["x"], ["x", "-"]], ids=["nothing", "dash"])
def test_a_pipe_is_read_where_there_is_no_json_or_a_dash(root: Path, words: list[str]) -> None:
    assert fed(root, b'{"from": "a pipe"}\n', *words).returncode == 0
    assert notes(root) == [("x", {"from": "a pipe"})]


def test_a_pipe_is_not_read_where_json_is_given(root: Path) -> None:
    assert fed(root, b"not this", "x", "1").returncode == 0
    assert notes(root) == [("x", 1)]


def test_a_file_is_read_as_a_pipe_is(root: Path, tmp_path: Path) -> None:
    (tmp_path / "value.json").write_text("[7]")
    with (tmp_path / "value.json").open() as file:
        assert fed(root, b"", "x", input=None, stdin=file).returncode == 0
    assert notes(root) == [("x", [7])]


def test_without_json_and_without_anything_that_comes_in_the_value_is_null(root: Path) -> None:
    assert fed(root, b"", "empty").returncode == 0
    assert fed(root, b"", "nowhere", input=None, stdin=subprocess.DEVNULL).returncode == 0
    reading, writing = os.openpty()
    try:
        assert fed(root, b"", "terminal", input=None, stdin=writing).returncode == 0
    finally:
        os.close(reading)
        os.close(writing)

    assert notes(root) == [("empty", None), ("nowhere", None), ("terminal", None)]


WANTED = """freehold: the value is JSON, such as '{"done": 3}' or '"done"'; nothing was changed [bad_option]\n"""
TWICE = "freehold: an object of the value has the same key twice; nothing was changed [bad_option]\n"
NO_TEXT = "freehold: standard input is no UTF-8 text; nothing was changed [bad_option]\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"hunter2", WANTED),
        (b"", WANTED),
        (b"{", WANTED),
        (b'{"$date": "x"}', WANTED),
        (b"\xffhunter2", NO_TEXT),
        (b'{"a":1,"a":2}', TWICE),
    ],
)
def test_what_is_no_value_is_refused_not_repeated_and_changes_nothing(
    call: Call, root: Path, monkeypatch: pytest.MonkeyPatch, given: bytes, said: str
) -> None:
    before = snapshot(root)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))

    assert call("append", "a", "x", "-") == (4, "", said)
    if said != NO_TEXT:
        assert call("append", "a", "x", given.decode()) == (4, "", said)
    assert snapshot(root) == before


def test_an_input_that_is_longer_than_any_value_is_refused(call: Call, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "OBJECT_BYTES_MAX", 10)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1" * 11)))

    ended = call("append", "a", "x", "-", "--json")

    assert (ended.code, ended.document["code"], notes(root)) == (4, "value_too_large", [])


def test_a_secret_is_refused_and_not_repeated(call: Call, root: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    for words in (["x", json.dumps(secret)], [secret, "1"], ["x", "1", "--request-id", secret]):
        ended = call("append", "a", *words)
        assert (ended.code, "[secret_refused]" in ended.err, secret in ended.err) == (4, True, False)
    assert notes(root) == []


def test_the_same_request_id_adds_nothing_more_and_prints_the_same_event(call: Call, root: Path) -> None:
    first = call("append", "a", "x", "1", "--request-id", "r")

    assert call("append", "a", "x", "1", "--request-id", "r") == first
    for words in (["x", "2"], ["y", "1"]):
        assert "[request_conflict]" in call("append", "a", *words, "--request-id", "r").err
    assert "[bad_request_id]" in call("append", "a", "x", "1", "--request-id", "").err
    assert notes(root) == [("x", 1)]


def test_whoever_owns_the_run_in_another_process_adds_it(call: Call, root: Path) -> None:
    with owner(root) as other:
        ended = call("append", "a", "x", "1", "--json")
        other.do("assert run.append('y').seq == 3")
        other.end()

    assert (ended.code, ended.document["event"]["seq"], notes(root)) == (0, 2, [("x", 1), ("y", None)])


def test_a_run_that_is_not_there_is_said_not_to_be_and_not_made(call: Call, root: Path) -> None:
    ended = call("append", "b", "x", "1")

    assert (ended.code, "[run_not_found]" in ended.err, (root / "b.sqlite").exists()) == (4, True, False)
