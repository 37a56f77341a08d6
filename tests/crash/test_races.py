"""However many threads and processes want one run at once, one creates it, one owns it, and everybody else is told so."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from folder import run_files
from rival import rivals
from ways import read, told

import freehold
from freehold import Host, Run
from freehold.schema.ids import is_socket_name
from freehold.storage.create import _remove
from freehold.storage.disk import Disk
from freehold.storage.platform import inode_of

THREADS = 12


@pytest.fixture(params=["a folder", "no folder"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a root without runs, that is there or that its first creator makes."""
    root = tmp_path / "deep" / "runs"
    if request.param == "a folder":
        root.mkdir(parents=True)
    return root


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """Return what each call returned or was told, all of them begun at the same moment."""
    gate = threading.Barrier(len(calls))

    def go(call: Callable[[], Any]) -> Any:
        gate.wait(30)
        try:
            return call()
        except freehold.Error as error:
            return error.code

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(go, calls))


def ensure_and_close(host: Host, run_id: str) -> None:
    host.ensure(run_id).close()


def files(root: Path) -> list[str]:
    return run_files(root)


def closed(found: list[Any]) -> list[Run]:
    """Close the leases among what was found, and return them."""
    runs = [run for run in found if isinstance(run, Run)]
    for run in runs:
        run.close()
    return runs


def test_of_many_threads_one_creates(root: Path) -> None:
    with freehold.open(root) as host:
        found = at_once([lambda: host.create("a")] * THREADS)

        assert len(closed(found)) == 1
        assert Counter(code for code in found if isinstance(code, str)) == {"run_exists": THREADS - 1}
        assert [name for name in files(root) if not is_socket_name(name)] == ["a.sqlite", "a.sqlite-shm", "a.sqlite-wal"]
    assert files(root) == ["a.sqlite"]


def test_many_threads_that_ensure_share_one_run(root: Path) -> None:
    with freehold.open(root) as host:
        runs = closed_after(lambda run: run.append("here"), at_once([lambda: host.ensure("a", props={"x": 1})] * THREADS))

        assert len(runs) == THREADS
        info = host.view("a").info
        assert (info.events, info.epoch) == (THREADS + 1, 1)
    assert files(root) == ["a.sqlite"]
    freehold.view(root / "a.sqlite").verify()


def closed_after(use: Callable[[Run], Any], found: list[Any]) -> list[Run]:
    """Let each lease be used by a thread of its own, and close it."""
    at_once([partial(use, run) for run in found if isinstance(run, Run)])
    return closed(found)


def test_threads_that_create_ensure_and_open_agree_on_one_run(root: Path) -> None:
    ways: list[Callable[[Host], Run]] = [lambda host: host.create("a"), lambda host: host.ensure("a"), lambda host: host.open("a")]
    with freehold.open(root) as host:
        found = at_once([partial(way, host) for way in ways * 4])

        created, ensured, opened = (found[number::3] for number in range(3))
        assert {type(one) for one in ensured} == {Run}
        assert sum(isinstance(one, Run) for one in created) <= 1
        assert {one for one in created if not isinstance(one, Run)} <= {"run_exists"}
        assert {one for one in opened if not isinstance(one, Run)} <= {"run_not_found"}
        runs = closed_after(lambda run: run.append("here"), found)
        assert (host.view("a").info.events, host.view("a").info.epoch) == (len(runs) + 1, 1)
    assert files(root) == ["a.sqlite"]


def test_threads_that_ensure_with_different_properties_get_one_run_or_are_told_which_field_differs(root: Path) -> None:
    with freehold.open(root) as host:
        found = at_once([partial(host.ensure, "a", props={"x": number % 2}) for number in range(THREADS)])

        assert len(closed(found)) == THREADS // 2
        assert {code for code in found if isinstance(code, str)} == {"run_exists"}
        assert host.view("a").info.events == 1


def test_threads_that_create_different_runs_do_not_hinder_each_other(root: Path) -> None:
    with freehold.open(root) as host:
        found = at_once([partial(host.create, f"r{number}") for number in range(THREADS)])

        assert len(closed(found)) == THREADS
        assert [info.id for info in host.runs()] == sorted(f"r{number}" for number in range(THREADS))
    assert files(root) == sorted(f"r{number}.sqlite" for number in range(THREADS))


def test_two_hosts_of_one_process_never_both_own_a_file(root: Path, tmp_path: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    (tmp_path / "link.sqlite").symlink_to(root / "a.sqlite")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.sqlite").symlink_to(root / "a.sqlite")
    with freehold.open(root) as one, freehold.open(tmp_path / "other") as two:
        found = at_once([partial(host.ensure, "a") for host in (one, two) * 4])

        runs = closed(found)
        # Whoever has come to own it, the other host is told; nobody gets a second connection.
        assert runs
        assert len({id(run._ref) for run in runs}) == 1
        assert {code for code in found if isinstance(code, str)} <= {"owned_elsewhere"}
        assert told(lambda: freehold.view(tmp_path / "link.sqlite").verify()) == "ok"
        assert one.view("a").info.epoch == 1


def test_of_eight_processes_one_creates_and_the_others_are_told(root: Path, tmp_path: Path) -> None:
    """Round after round, with and without a folder."""
    with rivals(8, tmp_path) as others:
        for number in range(5):
            here = root.with_name(f"{root.name}{number}") if not root.exists() else root
            orders = [{"do": "create", "root": str(here), "run": f"a{number}"}] * 8
            assert Counter(code for code, _ in others.race(orders)) == {"ok": 1, "run_exists": 7}
            assert files(here)[-1:] == [f"a{number}.sqlite"]
            freehold.view(here / f"a{number}.sqlite").verify()


def test_eight_processes_that_start_on_a_fresh_folder_all_succeed(tmp_path: Path) -> None:
    """Each has a run of its own: nobody is told of a lock, and every file is in WAL mode."""
    with rivals(8, tmp_path) as others:
        for number in range(5):
            root = tmp_path / f"home{number}" / "runs"
            orders = [{"do": "ensure", "root": str(root), "run": f"op-{rival}", "note": f"op-{rival}"} for rival in range(8)]
            assert others.race(orders) == [["ok", 2]] * 8
            assert files(root) == [f"op-{rival}.sqlite" for rival in range(8)]
            assert {file.read_bytes()[18:20] for file in root.glob("*.sqlite")} == {b"\2\2"}
            with freehold.open(root) as host:
                assert [info.events for info in host.runs()] == [2] * 8


def test_of_eight_processes_one_owns_and_the_others_are_told_by_whom(root: Path, tmp_path: Path) -> None:
    with rivals(8, tmp_path) as others:
        for number in range(3):
            orders = [{"do": "ensure", "root": str(root), "run": f"a{number}", "note": "mine"}] * 8
            found = others.race(orders, keep=True)
            assert Counter(code for code, _ in found) == {"ok": 1, "owned_elsewhere": 7}
            assert freehold.view(root / f"a{number}.sqlite").info.events == 2
    assert [name for name in files(root) if not name.endswith(".sqlite")] == []


def test_eight_processes_that_come_again_until_it_is_their_turn_all_have_it(root: Path, tmp_path: Path) -> None:
    with rivals(8, tmp_path) as others:
        for number in range(3):
            orders = [{"do": "turn", "root": str(root), "run": f"a{number}", "note": f"op-{rival}"} for rival in range(8)]
            found = others.race(orders)

            assert {code for code, _ in found} == {"ok"}
            assert sorted(seq for _, seq in found) == list(range(2, 10))
            view = freehold.view(root / f"a{number}.sqlite")
            assert {event.name: event.seq for event in view.history() if event.name} == {
                f"op-{rival}": seq for rival, (_, seq) in enumerate(found)
            }
            assert view.info.epoch == 8
            view.verify()


def test_processes_and_threads_that_want_everything_at_once_leave_whole_runs(seed: int, tmp_path: Path) -> None:
    """Creators, owners and lookers over three ids, dealt by chance."""
    dice, root = Random(seed), tmp_path / "runs"
    mine: list[Any] = []

    def join_in() -> None:
        with freehold.open(root) as host:
            mine.extend(at_once([partial(ensure_and_close, host, run) for run in ("a", "b", "c") * 2]))

    with rivals(6, tmp_path) as others:
        for _ in range(5):
            orders = [
                {"do": dice.choice(("create", "ensure", "open", "look")), "root": str(root), "run": dice.choice("abc")} for _ in range(6)
            ]
            found = others.race(orders, meanwhile=join_in)
            for (code, _), order in zip(found, orders, strict=True):
                assert (
                    code
                    in {
                        "create": ("ok", "run_exists"),
                        "ensure": ("ok", "owned_elsewhere"),
                        "open": ("ok", "owned_elsewhere", "run_not_found"),
                        "look": ("ok", "run_not_found", "database_busy", "changed_while_reading"),
                    }[order["do"]]
                ), order
    assert set(mine) <= {None, "owned_elsewhere"}
    # Who looked while the owner closed leaves the siblings that it had read beside: the next clean close takes them away.
    runs = [name for name in files(root) if name.endswith(".sqlite")]
    assert {name.removesuffix("-wal").removesuffix("-shm") for name in files(root)} == set(runs)
    for name in runs:
        freehold.view(root / name).verify()
        assert len(read(freehold.view(root / name))) == 1
    with freehold.open(root) as host:
        for name in runs:
            host.open(name.removesuffix(".sqlite")).close()
    assert files(root) == runs


class Rivalled(Disk):
    """A disk on which another sweeper is faster whenever something is to be removed."""

    def remove(self, file: str) -> None:
        Path(file).unlink()
        super().remove(file)


def test_what_another_sweeper_has_just_removed_is_gone_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "temporary").touch()
    (tmp_path / "temporary-journal").touch()

    assert _remove(str(tmp_path / "temporary"), inode_of((tmp_path / "temporary").stat()), Rivalled())
    assert files(tmp_path) == []
