"""What a run says of itself in one value, as plain data too, and without showing a stored value."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import freehold
from freehold import RunInfo
from freehold.schema.errors import Damaged


def test_a_new_run_says_what_it_was_created_with(tmp_path: Path) -> None:
    before = datetime.now(UTC)
    with freehold.open(tmp_path) as host, host.create("a", props={"colour": "blue"}, project="paint") as run:
        info = run.info
    assert (info.id, info.status, info.project, info.props) == ("a", "created", "paint", {"colour": "blue"})
    assert (info.events, info.epoch, info.generation, info.workflow, info.error) == (1, 1, 0, None, None)
    assert info.created is not None
    assert info.updated is not None
    assert -0.001 <= (info.created - before).total_seconds() < 30
    assert info.updated >= info.created


def test_it_follows_the_run(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as host, host.create("a") as run:
        run.append("x")
        run.transact(lambda tx: (tx.begin_execution(), tx.settle("failed", code="tired")))
        info = run.info
        assert (info.events, info.status, info.stop_code, info.stop_event) == (3, "failed", "tired", None)


def test_its_record_is_plain_data(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as host, host.create("a", props={"bytes": b"x", "pair": (1, 2)}) as run:
        run_info = run.info
    record = run_info.record()
    assert json.loads(json.dumps(record)) == record
    for time, text in ((run_info.created, record["created"]), (run_info.updated, record["updated"])):
        assert (datetime.fromisoformat(text), text[-1]) == (time, "Z")
    broken = RunInfo("a", error=Damaged("broken", rule="run")).record()
    assert broken["error"]["code"] == "damaged"
    assert json.loads(json.dumps(broken)) == broken


def test_its_repr_shows_no_stored_value(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as host, host.create("a", props={"canary": "canary"}, project="canary") as run:
        run.transact(lambda tx: (tx.begin_execution(), tx.settle("failed", code="canary")))
        assert "canary" not in repr(run.info)


def test_it_cannot_be_changed(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as host, host.create("a") as run:
        info = run.info
    with pytest.raises(AttributeError):
        info.status = "failed"  # type: ignore[misc]
