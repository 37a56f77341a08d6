"""Several hosts are asked at once: each is answered for, and one that hangs holds nobody up beyond the deadline."""

from __future__ import annotations

import _thread
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from caller import names_of_sockets, owner

from freehold import DeadlineExceeded, Unavailable, fail_after
from freehold.actors import asking
from freehold.actors.asking import ask_hosts
from freehold.actors.deadline import monotonic
from freehold.schema.messages import ShowTree


def runs(answer: Any) -> Any:
    """Return the names of the runs in a picture, or what else was answered."""
    return [node["name"] for node in answer["children"] if node["name"][0] != "."] if isinstance(answer, dict) else answer


def test_each_host_is_answered_for_also_beside_those_that_hang(tmp_path: Path) -> None:
    with ExitStack() as stack:
        names: dict[str, str] = {}
        owners = {}
        for run_id in "abcd":
            before = set(names.values())
            owners[run_id] = stack.enter_context(owner(tmp_path, run_id))
            (names[run_id],) = set(names_of_sockets(tmp_path)) - before
        for run_id in "acd":
            owners[run_id].stop()
        (tmp_path / names["d"]).unlink()

        begun = monotonic()
        answers = ask_hosts(str(tmp_path), names.values(), ShowTree(), 0.5)
        taken = monotonic() - begun

    assert list(answers) == list(names.values())
    assert runs(answers[names["b"]]) == ["b"]
    for run_id in "ac":
        assert isinstance(answers[names[run_id]], DeadlineExceeded)
    assert answers[names["d"]].code == "not_owner"
    assert 0.5 <= taken < 0.5 + 0.5 + asking._GRACE_S  # and not once for each that hangs


def test_the_nearer_deadline_wins(tmp_path: Path) -> None:
    with owner(tmp_path) as other:
        other.stop()
        begun = monotonic()
        with fail_after(0.1):
            (answer,) = ask_hosts(str(tmp_path), names_of_sockets(tmp_path), ShowTree(), 30.0).values()
        assert monotonic() - begun < 10

    assert isinstance(answer, DeadlineExceeded)


def test_nobody_is_asked_where_there_is_nobody(tmp_path: Path) -> None:
    assert ask_hosts(str(tmp_path), [], ShowTree(), 1.0) == {}


def test_where_no_thread_can_be_had_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", none_left)
    answer = ask_hosts(str(tmp_path), [".host-0123456789abcdef.sock"], ShowTree(), 1.0).popitem()[1]

    assert isinstance(answer, Unavailable)
    assert "no room for a thread" in str(answer)


def test_a_fault_of_ours_is_raised_and_not_told_of_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(asking, "ask_host", fails)
    with pytest.raises(ZeroDivisionError):
        ask_hosts(str(tmp_path), [".host-0123456789abcdef.sock"], ShowTree(), 1.0)
