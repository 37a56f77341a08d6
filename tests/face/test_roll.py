"""The roll of a folder: what is known spares a look only where the file is still what it was, and hides nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from folder import snapshot
from hosting import host_file
from other import owns, write
from runfile import forge, forge_and_die, new_run
from turns import settle, until

import freehold
from freehold import Host
from freehold.actors.registrar import ReadKnown
from freehold.storage.path import RunPath, resolve


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder with three runs that are known, and nobody there."""
    root = tmp_path / "runs"
    with freehold.open(root) as host:
        for run_id in "abc":
            with host.create(run_id, props=None if run_id == "c" else {"x": run_id}) as run:
                run.append("n")
    return root


@pytest.fixture
def host(root: Path) -> Iterator[Host]:
    with freehold.open(root) as host:
        yield host


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the ids of the runs that were looked at for real."""
    from freehold.actors.look import look as really

    seen: list[str] = []

    def look(path: RunPath, *arguments: Any, **options: Any) -> Any:
        seen.append(path.id)
        return really(path, *arguments, **options)

    monkeypatch.setattr("freehold.roll.look", look)
    return seen


def memory(host: Host) -> set[str]:
    """Return which runs the host file knows."""
    return set(host._runs.start_registrar().ask(ReadKnown()))


def listed(host: Host, **options: Any) -> dict[str, Any]:
    return {info.id: info.error.code if info.error else info.events for info in host.runs(**options)}


def test_what_is_known_is_what_a_look_says_and_a_look_leaves_no_trace(host: Host, looked: list[str]) -> None:
    before = snapshot(host.root)
    recalled = [info.record() for info in host.runs()]
    assert looked == []
    assert [info.record() for info in host.runs(check=True)] == recalled
    assert looked == ["a", "b", "c"]
    assert snapshot(host.root) == before
    assert [info.id for info in host.runs(props={"x": "b"}, status="created")] == ["b"]


def overwritten(root: Path) -> None:
    (root / "a.sqlite").write_bytes(b"no database")


def appended(root: Path) -> None:
    with freehold.open(root) as host, host.open("a") as run:
        run.append("more")
    host_file(root).unlink()


def killed(root: Path) -> None:
    forge_and_die(resolve(root, "a"), "UPDATE run SET epoch = epoch + 1, txn = txn + 1")


def renamed(root: Path) -> None:
    (root / "a.sqlite").rename(root / "z.sqlite")
    (root / "b.sqlite").rename(root / "a.sqlite")
    (root / "z.sqlite").rename(root / "b.sqlite")


def copied(root: Path) -> None:
    shutil.copy2(root / "b.sqlite", root / "a.sqlite")


def forged(root: Path) -> None:
    path = root / "a.sqlite"
    found = path.stat()
    forge(resolve(root, "a"), "UPDATE run SET txn = 0")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def linked(root: Path) -> None:
    os.link(root / "a.sqlite", root.parent / "x")


def with_a_journal(root: Path) -> None:
    (root / "a.sqlite-journal").write_bytes(b"x" * 1000)


CHANGES: dict[Callable[[Path], None], Any] = {
    overwritten: "not_a_run",
    appended: 3,
    killed: "damaged",
    renamed: "another_run",
    copied: "another_run",
    forged: "malformed_record",
    linked: "hard_link",
    with_a_journal: "damaged",
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_file_that_has_changed_is_looked_at(root: Path, change: Callable[[Path], None]) -> None:
    change(root)
    with freehold.open(root) as host:
        checked = listed(host, check=True)
        assert listed(host) == checked
        assert checked["a"] == CHANGES[change]


def test_what_is_not_there_is_not_listed_and_what_is_new_is(root: Path, host: Host) -> None:
    (root / "a.sqlite").unlink()
    new_run(root, "d")
    assert listed(host) == {"b": 2, "c": 2, "d": 1}


def test_whoever_owns_a_run_has_what_is_gone_forgotten_and_what_was_looked_at_remembered(root: Path, host: Host, looked: list[str]) -> None:
    host.open("c").close()
    settle(host)
    new_run(root, "d")
    (root / "a.sqlite").unlink()
    old = (root / "d.sqlite").stat().st_mtime_ns - 10**10
    os.utime(root / "d.sqlite", ns=(old, old))

    def remembered() -> bool:
        assert listed(host).keys() == {"b", "c", "d"}
        return {"b", "d"} <= memory(host)

    until(remembered)  # its ctime is younger than the margin at first
    assert "a" not in memory(host)
    looked.clear()
    assert listed(host)["d"] == 1
    assert "d" not in looked


def test_a_run_that_somebody_owns_is_asked_however_well_it_is_known(root: Path, host: Host) -> None:
    with host.open("a") as mine, owns(root, "c", "x"):
        mine.append("x")
        assert listed(host) == {"a": 3, "b": 2, "c": 3}
        mine.append("y")
        assert listed(host) == {"a": 4, "b": 2, "c": 3}


def test_a_row_that_no_run_can_have_said_is_not_believed(root: Path, host: Host, looked: list[str]) -> None:
    write(
        host_file(root),
        """UPDATE known SET props = '{"$x":[]}' WHERE run = 'a'""",
        f"UPDATE known SET created_at = {2**62} WHERE run = 'b'",
    )
    assert listed(host) == {"a": 2, "b": 2, "c": 2}
    assert looked[-1:] == ["b"]


def test_a_row_that_was_seen_too_soon_is_not_believed(root: Path, host: Host, looked: list[str]) -> None:
    write(host_file(root), "UPDATE known SET sealed = 0")
    assert listed(host) == {"a": 2, "b": 2, "c": 2}
    assert looked == ["a", "b", "c"]


def test_a_damaged_host_file_hides_no_run(root: Path, host: Host, looked: list[str], caplog: pytest.LogCaptureFixture) -> None:
    host_file(root).write_bytes(b"x" * 5000)
    assert listed(host) == {"a": 2, "b": 2, "c": 2}
    assert looked == ["a", "b", "c"]
    assert any("not a host file" in message for message in caplog.messages)


def test_a_file_system_that_is_not_relied_on_is_refused_also_where_all_is_known(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.storage.platform.filesystem_of", lambda *_: "nfs")
    assert set(listed(host).values()) == {"network_filesystem"}


def test_a_run_that_lies_elsewhere_is_known_by_its_path(tmp_path: Path, root: Path, looked: list[str]) -> None:
    elsewhere = new_run(tmp_path / "elsewhere", "e")
    (root / "link.sqlite").symlink_to(elsewhere.file)
    with freehold.open(root) as host:
        host.open("link").close()
    with freehold.open(root) as host:
        assert listed(host) == {"a": 2, "b": 2, "c": 2, "e": 1}
        assert looked == []
