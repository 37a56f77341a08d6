"""Whatever a file is, every way of looking at it or asking for it says the same of it, and leaves it and its folder as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from folder import snapshot
from hostile import DEEP, HARMLESS, HOSTILE
from leaks import open_run_files
from owned import commit_notes, own
from program import run_program
from runfile import new_run
from ways import LOOKS, MARK, OWNS, read, say, told

import freehold
from freehold.cli import main
from freehold.schema.errors import CODES, from_record

PROPS = f'{{"mark":"{MARK}"}}'
COMMANDS = {"show": ["show", "a"], "history": ["history", "a"], "verify": ["verify", "a"], "list": ["list"]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def made(root: Path, name: str) -> None:
    HOSTILE[name].make(new_run(root, "a", PROPS))


def said(document: Any) -> str:
    """Return what a command's document says of the run `a`."""
    row = next(row for row in document if "a" in (row.get("id"), row.get("run"))) if isinstance(document, list) else document
    record = row if "code" in row else row["error"]
    return "ok" if record is None else say(from_record(record))


@pytest.mark.parametrize("name", HOSTILE)
def test_everybody_is_told_the_same_and_nothing_is_changed(root: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    made(root, name)
    before = snapshot(root.parent)
    found: dict[str, str] = {}
    with freehold.open(root) as host:
        for way, call in (LOOKS | OWNS).items():
            listed = way != "runs" or HOSTILE[name].told != "bad_run_id"  # what no run id names is not listed
            found[way] = told(lambda call=call: call(host, "a")) if listed else HOSTILE[name].told  # type: ignore[misc]
            assert snapshot(root.parent) == before, way

    expected = dict.fromkeys(LOOKS | OWNS, HOSTILE[name].told)
    # To a creator it is enough that the name is taken.
    assert found == expected | {"create": "bad_run_id" if HOSTILE[name].told == "bad_run_id" else "run_exists"}

    for command, words in COMMANDS.items():
        code = main(["--root", str(root), "--json", *words])
        out, err = capsys.readouterr()
        if command == "list" and HOSTILE[name].told == "bad_run_id":
            assert json.loads(out) == []
            continue
        assert said(json.loads(out)) == HOSTILE[name].told, command
        assert code == CODES[HOSTILE[name].told.split(":")[0]].exit_code
        assert MARK[:4] not in out + err
        assert snapshot(root.parent) == before, command
    assert not open_run_files()


@pytest.mark.parametrize("name", HOSTILE)
def test_delete_removes_what_is_ours_and_nothing_else(root: Path, name: str) -> None:
    made(root, name)
    (root / "a.sqlite.txt").write_text("mine", encoding="utf-8")
    new_run(root, "b")
    before = snapshot(root)
    with freehold.open(root) as host:
        assert told(lambda: host.delete("a")) == HOSTILE[name].delete

        if HOSTILE[name].delete != "ok":
            assert snapshot(root) == before
            return
        left = {other: entry for other, entry in snapshot(root).items() if other not in (".", "other")}
        assert left == {other: entry for other, entry in before.items() if other in left}
        assert not [other for other in left if other in ("a.sqlite", "a.sqlite-wal", "a.sqlite-shm", "a.sqlite-journal")]
        host.create("a").close()


def test_a_folder_of_hostile_files_is_listed_by_the_program_beside_a_good_one(root: Path) -> None:
    """The program in a process of its own, over every file at once."""
    expected = {}
    for number, name in enumerate(HOSTILE):
        told_alone = HOSTILE[name].told
        if told_alone in ("bad_run_id", "another_run") or name == "a second name" or "circle" in name or "link" in name or "names" in name:
            continue
        HOSTILE[name].make(new_run(root, f"r{number}", PROPS))
        expected[f"r{number}"] = told_alone
    new_run(root, "whole", PROPS)
    before = snapshot(root)

    ended = run_program("list", "--json", "--root", str(root))

    assert {row["id"]: said([row | {"run": "a"}]) for row in ended.document} == expected | {"whole": "ok"}
    assert ended.code == 5
    assert snapshot(root) == before


@pytest.mark.parametrize("name", HARMLESS)
def test_what_does_no_harm_is_overlooked_and_left_by_those_who_look(root: Path, name: str) -> None:
    path = new_run(root, "a", PROPS)
    journal = read(freehold.view(path.file))
    HARMLESS[name](path)
    before = snapshot(root.parent)
    with freehold.open(root) as host:
        assert {way: told(lambda call=call: call(host, "a")) for way, call in LOOKS.items()} == dict.fromkeys(LOOKS, "ok")  # type: ignore[misc]
        assert snapshot(root.parent) == before

        with host.open("a") as run:
            added = run.append("still")
            run.verify()
        assert read(host.view("a"))[:-1] == journal
        assert read(host.view("a"))[-1][-1] == added.hash


@pytest.mark.parametrize("name", DEEP)
def test_damage_behind_the_newest_rows_is_told_by_who_comes_upon_it_and_never_healed(root: Path, name: str) -> None:
    path = new_run(root, "a", PROPS)
    store = own(path)
    commit_notes(store, "1", '"' + MARK * 3000 + '"', "3")
    store.close(clean=True)
    DEEP[name].make(path)
    before = snapshot(root)
    expected = {"info": "ok", "runs": "ok", "history": DEEP[name].history, "verify": DEEP[name].verify}
    with freehold.open(root) as host:
        assert {way: told(lambda way=way: LOOKS[way](host, "a")) for way in expected} == expected  # type: ignore[misc]
        assert snapshot(root) == before

        assert told(lambda: OWNS["open"](host, "a")) == "ok"
        assert told(lambda: host.view("a").verify()) == DEEP[name].verify
