"""A host: one folder, one a root and process; what it creates, opens, lists and deletes, and what it refuses without a trace."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from folder import run_files, snapshot
from other import owns
from runfile import forge, new_run
from troupe import PATIENCE_S
from turns import Busy, names, senders, settle, until

import freehold
from freehold import Damaged, DeadlineExceeded, Error, Host, HostOpen, LeaseLost, Refused, RunExists, RunNotFound, Unavailable, ValueRefused
from freehold.actors.runs import Runs
from freehold.actors.seat import PinBox
from freehold.storage import platform
from freehold.storage.clock import Clock
from freehold.storage.create import create
from freehold.storage.path import RunPath, resolve
from freehold.storage.pin import Pin
from freehold.storage.reader import reading
from freehold.storage.store import Store


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path / "runs", timeout=20) as host:
        yield host


def code(call: Callable[[], object]) -> str:
    """Return the code of the refusal that *call* meets."""
    with pytest.raises(Refused) as caught:
        call()
    assert caught.value.executed == "no"
    return caught.value.code


# Creating, opening, ensuring


def test_opening_a_host_creates_nothing_and_the_first_run_makes_the_folder(host: Host) -> None:
    assert not host.root.exists()
    assert list(host.runs()) == []
    assert host.files() == []
    assert code(lambda: host.open("a")) == code(lambda: host.delete("a")) == "run_not_found"
    assert not host.root.exists()
    host.create("a").close()
    assert host.root.is_dir()


def test_creating_what_exists_is_refused_and_leaves_it(host: Host) -> None:
    with host.create("a", props={"x": 1}) as run:
        run.append("x")
        settle(host)
        before = snapshot(host.root)
        for _ in range(2):
            with pytest.raises(RunExists):
                host.create("a", props={"x": 1})
        assert snapshot(host.root) == before
        assert names(run) == ["x"]


def test_of_eight_who_create_one_wins(host: Host) -> None:
    with senders(8) as go:
        calls = [go(host.create, "a", props={"by": number}) for number in range(8)]
        errors = [call.exception() for call in calls]
    winners = [number for number, error in enumerate(errors) if error is None]
    assert len(winners) == 1
    assert all(isinstance(error, RunExists) for number, error in enumerate(errors) if number not in winners)
    with calls[winners[0]].result() as run:
        assert run.info.props == {"by": winners[0]}
        assert [name for name in run_files(host.root) if not name.startswith("a.sqlite")] == []


def test_of_eight_who_ensure_all_get_the_same_run(host: Host) -> None:
    with senders(8) as go:
        runs = [call.result() for call in [go(host.ensure, "a", props={"x": 1}) for _ in range(8)]]
    for run in runs:
        run.append("x")
    assert names(runs[0]) == ["x"] * 8
    assert runs[0].info.epoch == 1
    for run in runs:
        run.close()


def test_ensure_joins_what_is_equal_whatever_the_order_of_its_keys(host: Host) -> None:
    props: dict[str, Any] = {"a": {"x": 1, "y": [2]}, "b": (1, b"2")}
    host.create("a", props=props, project="paint").close()
    with host.ensure("a", props={"b": (1, b"2"), "a": {"y": [2], "x": 1}}, project="paint") as run:
        assert run.info.props == props
        assert run.info.project == "paint"


@pytest.mark.parametrize(
    ("different", "fields"),
    [
        ({"props": {"a": 2}}, ["props"]),
        ({"props": {"a": 1, "canary": "canary"}}, ["props"]),
        ({"props": {"a": True}}, ["props"]),
        ({"props": None}, ["props"]),
        ({"project": "canary"}, ["project"]),
        ({"props": {}, "project": ""}, ["props", "project"]),
    ],
)
def test_ensure_refuses_what_differs_and_names_fields_only(host: Host, different: dict[str, Any], fields: list[str]) -> None:
    host.create("a", props={"a": 1}, project="paint").close()
    with pytest.raises(RunExists) as caught:
        host.ensure("a", **{"props": {"a": 1}, "project": "paint", **different})
    assert caught.value.details["fields"] == fields
    assert "canary" not in str(caught.value.record())
    with host.open("a") as run:
        assert (run.info.props, run.info.project) == ({"a": 1}, "paint")
    host.delete("a")  # the refusal left no lease behind


def test_props_are_detached_from_the_callers_object(host: Host) -> None:
    props = {"members": [1]}
    with host.create("a", props=props) as run:
        props["members"].append(2)
        assert run.info.props == {"members": [1]}


# One host a root


@pytest.mark.parametrize("spelling", ["same", "relative", "dots", "link"])
def test_a_second_host_on_a_root_is_refused_whatever_its_spelling(
    host: Host, tmp_path: Path, spelling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(host.root)
    root: str | Path = {"same": host.root, "relative": "runs", "dots": f"{host.root}/../runs/.", "link": tmp_path / "link"}[spelling]  # type: ignore[assignment]
    with pytest.raises(HostOpen):
        freehold.open(root)
    host.create("a").close()
    host.close()
    with freehold.open(root) as again:
        assert [info.id for info in again.runs()] == ["a"]


def test_of_eight_who_open_one_root_one_gets_it(tmp_path: Path) -> None:
    with senders(8) as go:
        calls = [go(freehold.open, tmp_path) for _ in range(8)]
        hosts = [call.result() for call in calls if call.exception() is None]
    assert len(hosts) == 1
    assert all(isinstance(call.exception(), HostOpen) for call in calls if call.exception() is not None)
    hosts[0].close()


def test_the_root_comes_from_the_environment_or_is_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FREEHOLD_ROOT", raising=False)
    with freehold.open() as host:
        assert host.root == tmp_path / "runs"
    monkeypatch.setenv("FREEHOLD_ROOT", "elsewhere")
    with freehold.open() as host:
        assert host.root == tmp_path / "elsewhere"


@pytest.mark.parametrize("how", ["opened", "created in", "owned in"])
def test_a_folder_on_a_network_is_refused(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    new_run(host.root, "a")
    before = snapshot(tmp_path)
    monkeypatch.setattr(platform, "filesystem_of", lambda _: "nfs4")
    calls = {
        "opened": lambda: freehold.open(tmp_path / "other"),
        "created in": lambda: host.create("b"),
        "owned in": lambda: host.open("a"),
    }
    assert code(calls[how]) == "network_filesystem"
    assert snapshot(tmp_path) == before


def test_another_platform_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.host.check_platform", lambda: platform.check_platform("darwin"))
    assert code(lambda: freehold.open(tmp_path)) == "unsupported_platform"


# Racing with others, and failing in the middle


def test_a_host_that_could_not_start_gives_its_root_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr("freehold.host.Runs", fail)
    with pytest.raises(OSError):
        freehold.open(tmp_path)
    monkeypatch.undo()
    freehold.open(tmp_path).close()


def test_whoever_ensures_joins_whoever_was_quicker_to_create(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(path: RunPath, **options: Any) -> Pin:
        monkeypatch.undo()
        create(path, project="", props="{}", clock=Clock()).close()
        return create(path, **options)

    monkeypatch.setattr("freehold.host.create", late)
    with host.ensure("a") as run:
        assert run.info.epoch == 1


def test_whoever_ensures_does_not_try_for_ever(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []

    def comes_and_goes(path: RunPath, **_: Any) -> Pin:
        tries.append(path.id)
        assert len(tries) < 100
        raise RunExists("just now")

    monkeypatch.setattr("freehold.host.create", comes_and_goes)
    with pytest.raises(Unavailable) as caught:
        host.ensure("a")
    assert caught.value.code == "changed_while_reading"


def test_a_host_that_was_closed_meanwhile_creates_nothing(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def close_first(*_: object) -> None:
        host.close()
        raise RunNotFound("not there")

    monkeypatch.setattr(Runs, "lease", close_first)
    assert code(lambda: host.ensure("a")) == "host_closed"
    assert not host.root.exists()


def test_a_creation_whose_time_is_up_does_not_even_make_the_folder(host: Host) -> None:
    with freehold.fail_after(0), pytest.raises(DeadlineExceeded):
        host.create("a")
    assert not host.root.exists()


def test_a_creation_that_is_interrupted_leaves_nothing(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Runs, "lease", interrupt)
    with pytest.raises(KeyboardInterrupt):
        host.create("a")
    monkeypatch.undo()
    assert list(host.root.iterdir()) == []
    host.create("a").close()


def test_a_creation_whose_lease_is_lost_says_that_the_run_is_there(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(_runs: object, _path: object, box: PinBox) -> None:
        pin = box.take()
        assert pin is not None
        pin.close()
        raise LeaseLost("lost")

    monkeypatch.setattr(Runs, "lease", lose)
    with pytest.raises(LeaseLost, match="the run was created") as caught:
        host.create("a")
    assert caught.value.executed == "yes"
    monkeypatch.undo()
    host.open("a").close()


# Closing


def test_a_closed_host_refuses_everything_and_closing_is_idempotent(host: Host) -> None:
    host.create("a").close()
    host.close()
    host.close()
    for call in (
        lambda: host.create("b"),
        lambda: host.open("a"),
        lambda: host.ensure("a"),
        lambda: host.view("a"),
        host.runs,
        lambda: host.delete("a"),
    ):
        assert code(call) == "host_closed"
    assert run_files(host.root) == ["a.sqlite"]


def test_closing_finishes_what_waits(host: Host) -> None:
    run = host.create("a")
    with senders() as go:
        with Busy(run):
            waiters = [go(run.append, "x") for _ in range(5)]
            until(lambda: len(run._ref.mailbox) == 5)
            closing = go(host.close)
            until(lambda: host._closed)
        closing.result()
        assert sorted(waiter.result().seq for waiter in waiters) == list(range(2, 7))
    assert names(freehold.view(run.path)) == ["x"] * 5


def test_a_run_that_does_not_stop_in_time_is_named_and_the_others_are_closed(tmp_path: Path) -> None:
    host = freehold.open(tmp_path)
    stuck, other = host.create("a"), host.create("b")
    other.append("x")
    with Busy(stuck) as busy:
        with pytest.raises(Unavailable) as caught:
            host.close(timeout=0.2)
        assert caught.value.code == "still_stopping"
        assert caught.value.details["actors"] == ["a"]
        assert sorted(file.name for file in tmp_path.iterdir() if file.name.startswith("b")) == ["b.sqlite"]
        freehold.open(tmp_path).close()  # the root is free for another host
    busy.outcome()
    until(lambda: run_files(tmp_path) == ["a.sqlite", "b.sqlite"])


@pytest.mark.parametrize("timeout", ["1", None, -1, float("nan"), True], ids=repr)
def test_a_wrong_time_to_close_in_closes_nothing(host: Host, timeout: Any) -> None:
    with host.create("a") as run:
        assert code(lambda: host.close(timeout)) == "bad_option"
        assert run.append("x").seq == 2
        host.create("b").close()


def test_a_host_may_be_closed_with_any_duration(tmp_path: Path) -> None:
    for timeout in (5, 5.0, timedelta(seconds=5), float("inf")):
        host = freehold.open(tmp_path)
        host.ensure("a").close()
        host.close(timeout)
    assert run_files(tmp_path) == ["a.sqlite"]


# Deleting


def test_a_deleted_run_is_gone_for_good_and_its_id_is_free(host: Host) -> None:
    host.create("a").close()
    host.delete("a")
    assert run_files(host.root) == []
    assert code(lambda: host.open("a")) == "run_not_found"
    with host.create("a") as run:
        assert names(run) == []


def test_a_run_is_deleted_after_its_owner_has_ended(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Event()

    def close(store: Store, **how: Any) -> None:
        assert asked.wait(PATIENCE_S)
        closed(store, **how)

    def stop_child(name: str) -> None:
        asked.set()
        stopped(name)

    closed, stopped = Store.close, host._runs.stop_child
    monkeypatch.setattr(Store, "close", close)
    monkeypatch.setattr(host._runs, "stop_child", stop_child)
    host.create("a").close()
    try:
        host.delete("a")
    finally:
        asked.set()
    assert run_files(host.root) == []


def test_a_run_that_is_just_being_read_is_deleted_a_moment_later(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.create("a").close()
    host._runs.stop_child("a")
    with ExitStack() as reader:
        monkeypatch.setattr("freehold.actors.patience.pause", reader.close)
        reader.enter_context(reading(resolve(host.root, "a")))
        host.delete("a")
    assert run_files(host.root) == []


def test_a_run_with_open_leases_is_not_deleted(host: Host) -> None:
    with host.create("a") as run, host.open("a"):
        with pytest.raises(Refused) as caught:
            host.delete("a")
        assert caught.value.code == "run_in_use"
        assert "2 leases" in str(caught.value)
        assert run.append("x").seq == 2
    host.delete("a")


def test_a_damaged_run_of_ours_can_be_deleted(host: Host) -> None:
    path = new_run(host.root, "a")
    forge(path, "UPDATE run SET epoch = 7")
    with pytest.raises(Damaged):
        host.open("a")
    host.delete("a")
    assert run_files(host.root) == []


def test_what_is_not_ours_is_not_deleted(host: Host) -> None:
    host.root.mkdir()
    foreign = {"text": b"hello", "empty": b"", "sqlite": b"SQLite format 3\x00" + bytes(4080)}
    for name, content in foreign.items():
        (host.root / f"{name}.sqlite").write_bytes(content)
    (host.root / "folder.sqlite").mkdir()
    os.mkfifo(host.root / "fifo.sqlite")
    before = snapshot(host.root)
    for name in (*foreign, "folder", "fifo"):
        with pytest.raises((Refused, Damaged)):
            host.delete(name)
    assert snapshot(host.root) == before


def test_deleting_waits_for_no_stranger(host: Host) -> None:
    with owns(host.root, "a", "x"):
        with pytest.raises(freehold.OwnedElsewhere):
            host.delete("a")
        assert names(host.view("a")) == ["x"]
    host.delete("a")
    assert host.files() == []


# Listing


def test_runs_are_listed_in_the_order_of_their_ids(host: Host) -> None:
    ids = ["a", "a-b", "a.b", "a_b", "A", "0", "b", "aa"]
    for run_id in ids:
        host.create(run_id).close()
    assert [info.id for info in host.runs()] == sorted(ids)
    assert [path.id for path in host.files()] == sorted(ids)


def test_a_bad_file_is_listed_beside_the_good_ones(host: Host) -> None:
    for run_id in ("a", "c"):
        host.create(run_id).close()
    forge(new_run(host.root, "b"), "UPDATE run SET epoch = 7")
    (host.root / "d.sqlite").write_bytes(b"not a run")
    (host.root / "e.sqlite").write_bytes(b"")
    (host.root / "f.sqlite").symlink_to(host.root / "f.sqlite")
    (host.root / "-g.sqlite").write_bytes(b"no id can name it")
    (host.root / "notes.txt").write_bytes(b"not a run")
    os.mkfifo(host.root / "h.sqlite")
    settle(host)
    before = snapshot(host.root)
    listed = {info.id: info for info in host.runs()}
    assert snapshot(host.root)["."].mtime_ns == before["."].mtime_ns
    assert {run_id for run_id, info in listed.items() if info.error is None} == {"a", "c"}
    assert all(isinstance(listed[bad].error, Error) for bad in ("b", "d", "e", "h"))
    assert isinstance(listed["b"].error, Damaged)
    assert "-g" not in listed


@pytest.mark.parametrize(
    "props", [f'{{"a":{"[" * 100}{"]" * 100}}}', '{"a":9223372036854775808}', '{"b":1,"a":1}'], ids=["too deep", "untagged", "out of order"]
)
def test_properties_that_no_run_has_hide_no_other_run(host: Host, props: str) -> None:
    host.create("a", props={"a": 1}).close()
    new_run(host.root, "b", props)
    assert {info.id: info.error and info.error.code for info in host.runs(props={"a": 1})} == {"a": None, "b": "malformed_record"}
    for call in (host.open, host.ensure, lambda run_id: host.view(run_id).info, lambda run_id: host.view(run_id).verify()):
        with pytest.raises(Damaged) as caught:
            call("b")
        assert (caught.value.code, caught.value.details["column"]) == ("malformed_record", "props")


def test_a_link_that_leads_nowhere_in_the_folder_is_not_listed(host: Host) -> None:
    host.create("a").close()
    (host.root / "b.sqlite").symlink_to(host.root / "gone.sqlite")
    assert [info.id for info in host.runs()] == ["a"]


def test_a_folder_that_may_not_be_read_is_refused_as_itself(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_folder: str) -> Iterator[os.DirEntry[str]]:
        raise PermissionError

    host.create("a").close()
    monkeypatch.setattr(os, "scandir", refuse)  # as it is for whoever is not root
    assert code(host.files) == "no_permission"


def test_a_file_that_cannot_be_read_is_listed_whatever_is_asked_for(host: Host) -> None:
    host.create("a").close()
    (host.root / "d.sqlite").write_bytes(b"not a run")
    assert [info.id for info in host.runs(status="running", props={"colour": "blue"})] == ["d"]


def test_doubles_by_link_are_listed_once(host: Host, tmp_path: Path) -> None:
    host.create("a").close()
    outside = new_run(tmp_path / "outside", "x")
    (host.root / "link.sqlite").symlink_to(host.root / "a.sqlite")
    for name in ("one", "three", "two"):
        (host.root / f"{name}.sqlite").symlink_to(outside.file)
    host.create("p").close()
    assert [info.id for info in host.runs()] == ["a", "p", "x"]


def test_runs_are_found_by_status_and_properties(host: Host) -> None:
    for run_id, props in (("a", {"colour": "blue", "n": 1}), ("b", {"colour": "red"}), ("c", {"colour": "blue", "n": True})):
        with host.create(run_id, props=props) as run:
            if run_id == "b":
                run.transact(lambda tx: tx.begin_execution())
    assert [info.id for info in host.runs(props={"colour": "blue"})] == ["a", "c"]
    assert [info.id for info in host.runs(props={"n": 1})] == ["a"]
    assert [info.id for info in host.runs(status="running")] == ["b"]
    assert [info.id for info in host.runs(status="running", props={"colour": "blue"})] == []
    assert [info.id for info in host.runs(props={"colour": None})] == []


def test_a_run_that_is_owned_by_another_process_is_listed(host: Host) -> None:
    with owns(host.root, "a", "begin"):
        assert [(info.id, info.status, info.error) for info in host.runs()] == [("a", "running", None)]


# Wrong calls

RUN_IDS: list[Any] = [
    "",
    ".",
    "..",
    "-a",
    ".a",
    "_a",
    "a/b",
    "a b",
    "a\x00",
    "a\n",
    "é",
    "a" * 129,
    None,
    1,
    b"a",
    Path("a"),
    "\ud800",
    ["a"],
]


@pytest.mark.parametrize("run_id", RUN_IDS, ids=ascii)
def test_a_wrong_run_id_is_refused_and_nothing_is_created(host: Host, run_id: Any) -> None:
    host.root.mkdir()
    before = snapshot(host.root.parent)
    for call in (host.create, host.open, host.ensure, host.view, host.delete):
        assert code(lambda call=call: call(run_id)) == "bad_run_id"  # type: ignore[misc]
    assert snapshot(host.root.parent) == before


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"props": 1}, "value_refused"),
        ({"props": 0}, "value_refused"),
        ({"props": [("a", 1)]}, "value_refused"),
        ({"props": "a"}, "value_refused"),
        ({"props": {1: 2}}, "value_refused"),
        ({"props": {"a": object()}}, "value_refused"),
        ({"props": {"a": "x" * 70_000}}, "value_too_large"),
        ({"project": None}, "bad_option"),
        ({"project": 1}, "bad_option"),
        ({"project": "x" * 257}, "bad_option"),
        ({"project": "a\nb"}, "bad_option"),
    ],
    ids=lambda wrong: wrong if isinstance(wrong, str) else next(iter(wrong)),
)
def test_wrong_properties_and_projects_are_refused_and_nothing_is_created(host: Host, wrong: dict[str, Any], expected: str) -> None:
    for call in (host.create, host.ensure):
        assert code(lambda call=call: call("a", **wrong)) == expected  # type: ignore[misc]
    assert not host.root.exists()


@pytest.mark.parametrize("wrong", [{"status": "done"}, {"status": 1}, {"status": ["running"]}, {"props": 1}, {"props": {"a": object()}}])
def test_a_wrong_filter_is_refused_before_anything_is_listed(host: Host, wrong: dict[str, Any]) -> None:
    assert code(lambda: host.runs(**wrong)) in ("bad_option", "value_refused")


@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout": "1"},
        {"timeout": None},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"timeout": True},
        {"idle_timeout": -1},
        {"idle_timeout": "x"},
        {"secrets": 1},
        {"secrets": {"a": 1}},
        {"secrets": {1: "abcd"}},
        {"secrets": {"": "abcd"}},
        {"secrets": {"a": "abc"}},
        {"secrets": ["abcd"]},
        {"on_secret_shape": "hide"},
        {"on_secret_shape": None},
        {"any_filesystem": "yes"},
        {"any_filesystem": None},
        {"any_filesystem": 1},
    ],
    ids=repr,
)
def test_a_wrong_option_opens_nothing(tmp_path: Path, wrong: dict[str, Any]) -> None:
    assert code(lambda: freehold.open(tmp_path, **wrong)) == "bad_option"
    with freehold.open(tmp_path) as host:
        assert list(host.root.iterdir()) == []


@pytest.mark.parametrize("root", [1, b"runs", "", "a\x00b", "\ud800", ["runs"], "x" * 500], ids=ascii)
def test_a_wrong_root_opens_nothing(tmp_path: Path, root: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FREEHOLD_ROOT", raising=False)
    assert code(lambda: freehold.open(root)) == "bad_root"
    assert list(tmp_path.iterdir()) == []


def test_a_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"mine")
    assert code(lambda: freehold.open(file)) == "bad_root"
    assert file.read_bytes() == b"mine"


@pytest.mark.parametrize("duration", ["1", None, -1, float("nan"), True], ids=repr)
def test_a_wrong_deadline_is_refused(duration: Any) -> None:
    with pytest.raises(Refused) as caught, freehold.fail_after(duration):
        pass
    assert caught.value.code == "bad_option"


@pytest.mark.parametrize("duration", [float("inf"), 1e300, 10**400, timedelta.max], ids=["inf", "float", "int", "timedelta"])
def test_the_longest_times_are_taken(tmp_path: Path, duration: Any) -> None:
    with freehold.open(tmp_path, timeout=duration, idle_timeout=duration) as host, freehold.fail_after(duration), host.ensure("a") as run:
        assert run.append("x").seq == 2
        assert run.info.epoch == 1


def test_a_run_that_is_not_there_is_not_found_and_nothing_is_created(host: Host) -> None:
    host.root.mkdir()
    before = snapshot(host.root)
    for call in (host.open, host.delete):
        with pytest.raises(RunNotFound) as caught:
            call("a")
        assert isinstance(caught.value, LookupError)
    assert snapshot(host.root) == before


def test_a_value_refused_is_a_type_error(host: Host) -> None:
    with pytest.raises(TypeError) as caught:
        host.create("a", props={"x": object()})
    assert isinstance(caught.value, ValueRefused)
