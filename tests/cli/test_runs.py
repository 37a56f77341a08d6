"""create, list, show and delete say what is there, and touch nothing else."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from folder import run_files
from other import owns, write
from program import Call
from runfile import forge, new_run

import freehold
from freehold.cli import main

BROKEN_HASH = "UPDATE event SET hash = zeroblob(32) WHERE seq = 1"


def finish(root: Path, run_id: str, status: str) -> None:
    """Create a run that was executed once and has come to an end."""
    with freehold.open(root) as host, host.create(run_id) as run, run.transaction() as tx:
        tx.begin_execution()
        tx.settle(status, code="done")


def test_create_prints_the_id_and_the_file(call: Call, root: Path) -> None:
    assert call("create", "a") == (0, f"a  {root}/a.sqlite\n", "")
    assert call("create", "b", "--json").document == {"id": "b", "path": f"{root}/b.sqlite", "exit_code": 0}


def test_create_prints_no_control_character_of_a_path(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--root", str(root / "a\x1bb"), "create", "r"]) == 0

    out = capsys.readouterr().out
    assert "a\\u001bb" in out
    assert "\x1b" not in out


def test_create_holds_nothing_afterwards(call: Call, root: Path) -> None:
    call("create", "a")

    assert run_files(root) == ["a.sqlite"]
    with freehold.open(root) as host, host.open("a") as run:
        assert run.info.epoch == 2


def test_create_takes_properties_and_a_project(call: Call, root: Path) -> None:
    assert call("create", "a", "--props", '{"branch": "main", "when": {"$date": "2026-11-23"}}', "--project", "paint").code == 0

    info = freehold.view(root / "a.sqlite").info
    assert info.props["branch"] == "main"
    assert str(info.props["when"]) == "2026-11-23"
    assert info.project == "paint"


def test_properties_that_show_prints_create_the_same_properties(call: Call) -> None:
    call("create", "a", "--props", '{"n": 123456789012345678901234567890, "$$x": {"$bytes": "AA=="}, "text": "\\u00e9\\u202e"}')
    shown = call("show", "a", "--json").document["props"]

    call("create", "b", "--props", json.dumps(shown))

    assert call("show", "b", "--json").document["props"] == shown
    assert shown["$$x"] == {"$bytes": "AA=="}


@pytest.mark.parametrize(
    "props",
    ["[1]", "1", "null", "", "{", "{'a': 1}", '{"a": NaN}', '{"a": 1e999}', '{"$date": "2026-11-23"}', '{"a": {"$date": "x"}}', "\udcff"],
)
def test_properties_that_are_no_json_object_are_refused_and_not_repeated(call: Call, root: Path, props: str) -> None:
    ended = call("create", "a", "--props", props)

    assert ended.code == 4
    assert ended.err == """freehold: --props is a JSON object, such as '{"branch": "main"}'; nothing was created [bad_option]\n"""
    assert not root.exists()


def test_a_secret_among_the_properties_is_refused_and_not_repeated(call: Call, root: Path) -> None:
    secret = "ghp_" + "a1B2" * 9

    ended = call("create", "a", "--props", json.dumps({"token": secret}))

    assert ended.code == 4
    assert secret not in ended.err
    assert not root.exists()


def test_an_existing_run_is_refused_with_a_hint(call: Call, root: Path) -> None:
    new_run(root, "a")

    ended = call("create", "a")

    assert "[run_exists]" in ended.err
    assert "hint: `freehold show RUN`" in ended.err


def test_an_empty_root_is_an_empty_table_and_an_empty_document(call: Call, root: Path) -> None:
    root.mkdir()

    code, out, err = call("list")

    assert (code, out) == (0, "ID  STATUS  EVENTS  UPDATED  PROPS\n")
    assert err == f"no runs in {root}; --root or $FREEHOLD_ROOT names another folder\n"
    assert call("list", "--json").document == []


def test_list_with_check_looks_at_files_that_have_not_changed(call: Call, root: Path) -> None:
    call("create", "a")
    path = root / "a.sqlite"
    write(root / ".host.sqlite", "UPDATE known SET events = 77")

    assert call("list", "--json").document[0]["events"] == 77  # what is known, where the file is what it was
    assert call("list", "--check", "--json").document[0]["events"] == 1
    path.write_bytes(b"no database")
    for words in ([], ["--check"]):
        assert call("list", *words, "--json").document[0]["error"]["code"] == "not_a_run"


def test_list_shows_each_run_in_one_line(call: Call, root: Path) -> None:
    new_run(root, "b")
    finish(root, "a", "failed")

    heading, first, second = call("list").out.splitlines()

    assert heading.split() == ["ID", "STATUS", "EVENTS", "UPDATED", "PROPS"]
    assert first.split()[:3] == ["a", "failed", "2"]
    assert second.split()[:3] == ["b", "created", "1"]
    updated = datetime.fromisoformat(second.split()[3])
    assert updated == freehold.view(root / "b.sqlite").info.updated
    assert updated.tzinfo == UTC
    assert second.endswith('{"colour": "blue"}')


def test_list_is_as_wide_as_it_needs_where_no_terminal_is(call: Call, root: Path) -> None:
    new_run(root, "a" * 128)

    assert len(call("list").out.splitlines()) == 2


def test_list_cuts_long_properties_for_people_only(call: Call, root: Path) -> None:
    new_run(root, "a", json.dumps({"text": "x" * 500}, separators=(",", ":")))

    assert len(call("list").out.splitlines()[1]) < 150
    assert call("list").out.rstrip().endswith("...")
    assert call("list", "--json").document[0]["props"] == {"text": "x" * 500}


def test_list_takes_nothing_for_markup(call: Call, root: Path) -> None:
    new_run(root, "a", '{"text":"[red]x[/red] :smile: [/]"}')

    assert '{"text": "[red]x[/red] :smile: [/]"}' in call("list").out


def test_list_shows_the_runs_of_one_status(call: Call, root: Path) -> None:
    new_run(root, "a")
    for status in ("failed", "completed"):
        finish(root, status, status)

    assert [row["id"] for row in call("list", "--status", "failed", "--json").document] == ["failed"]
    assert [row["id"] for row in call("list", "--status", "created", "--json").document] == ["a"]
    assert call("list", "--status", "cancelled", "--json").document == []


def test_where_no_run_has_the_status_that_is_said_and_not_that_there_are_none(call: Call, root: Path) -> None:
    new_run(root, "a")

    assert call("list", "--status", "running").err == f"no run of status running in {root}\n"
    assert call("list", "--status", "running", "--json").document == []
    (root / "a.sqlite").unlink()
    assert call("list", "--status", "running").err == f"no runs in {root}; --root or $FREEHOLD_ROOT names another folder\n"


def test_every_time_ends_in_z_as_in_a_history(call: Call, root: Path) -> None:
    new_run(root, "a")
    (event,) = call("history", "a", "--json").document["events"]

    for document in (call("list", "--json").document[0], call("show", "a", "--json").document):
        assert document["created"] == event["time"]
        assert (document["updated"][-1], datetime.fromisoformat(document["updated"]).tzinfo) == ("Z", UTC)


def test_show_names_the_owner_or_nobody(call: Call, root: Path) -> None:
    call("create", "a")
    nobody = call("show", "a"), call("show", "a", "--json").document
    with owns(root, "a") as process:
        somebody = call("show", "a"), call("show", "a", "--json").document

    assert "\nowner       -\n" in nobody[0].out
    assert nobody[1]["owner"] is None
    held = somebody[1]["owner"]
    assert (held["pid"], held["hostname"], held["since"][-1]) == (process.pid, os.uname().nodename, "Z")
    assert f"\nowner       pid {held['pid']} on {held['hostname']} since {held['since']}\n" in somebody[0].out


def test_list_shows_a_file_that_cannot_be_read_whatever_status_is_asked_for(call: Call, root: Path) -> None:
    new_run(root, "a")
    (root / "b.sqlite").write_bytes(b"not a run")

    assert [row["id"] for row in call("list", "--status", "failed", "--json").document] == ["b"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_root_that_may_not_be_read_is_refused_as_itself(call: Call, root: Path) -> None:
    root.mkdir(mode=0o300)

    ended = call("list")

    assert (ended.code, ended.out) == (4, "")
    assert "[no_permission]" in ended.err


def test_bad_files_are_listed_beside_the_good_ones_and_the_gravest_is_the_exit_code(call: Call, root: Path) -> None:
    for run_id in ("a", "c"):
        new_run(root, run_id)
    (root / "d.sqlite").write_text("not a run", encoding="utf-8")
    assert call("list").code == 4
    forge(new_run(root, "b"), BROKEN_HASH)

    ended = call("list", "--status", "created")
    rows = call("list", "--json").document

    assert ended.code == 5
    assert [line.split()[:2] for line in ended.out.splitlines()[1:]] == [
        ["a", "created"],
        ["b", "[damaged]"],
        ["c", "created"],
        ["d", "[not_a_run]"],
    ]
    assert [line.split()[1] for line in ended.err.splitlines() if "hint" not in line] == ["b:", "d:"]
    assert [(row["id"], row["exit_code"], row["error"] and row["error"]["code"]) for row in rows] == [
        ("a", 0, None),
        ("b", 5, "damaged"),
        ("c", 0, None),
        ("d", 4, "not_a_run"),
    ]


def test_show_says_what_a_run_says_of_itself(call: Call, root: Path) -> None:
    finish(root, "a", "failed")

    ended = call("show", "a")
    document = call("show", "a", "--json").document

    # The run has failed; showing it has not.
    assert ended.code == 0
    lines = dict(line.split(maxsplit=1) for line in ended.out.splitlines() if not line.startswith("stop"))
    assert (lines["id"], lines["status"], lines["events"], lines["workflow"]) == ("a", "failed", "2", "-")
    assert lines["path"] == f"{root}/a.sqlite"
    assert lines["created"].endswith("Z")
    assert "stop code   done\n" in ended.out
    assert document["path"] == f"{root}/a.sqlite"
    assert (document["status"], document["stop_code"], document["exit_code"]) == ("failed", "done", 0)


def test_show_prints_no_control_character_of_a_value(call: Call, root: Path) -> None:
    with freehold.open(root) as host:
        host.create("a", props={"text": "\x1b[31m\x9b\u202e\x7f\n"}, project="p\x9b\u202e").close()

    for words in (["show", "a"], ["list"], ["show", "a", "--json"], ["list", "--json"]):
        out = call(*words).out
        assert out.replace("\n", "").isprintable()
        assert "\\u009b\\u202e" in out


def test_delete_removes_a_run_and_nothing_else(call: Call, root: Path) -> None:
    for run_id in ("a", "b", "c"):
        new_run(root, run_id)

    assert call("delete", "a", "--yes") == (0, "", f"deleted {root}/a.sqlite\n")
    assert call("delete", "--yes", "b", "--json").document == {"id": "b", "path": f"{root}/b.sqlite", "deleted": True, "exit_code": 0}
    assert [path.name for path in root.iterdir()] == ["c.sqlite"]


def test_delete_without_a_terminal_says_what_to_do_and_deletes_nothing(call: Call, root: Path) -> None:
    new_run(root, "a")

    ended = call("delete", "a")

    assert ended == (4, "", "freehold: there is no terminal to ask on: say --yes to delete the run; nothing was deleted [refused]\n")
    assert (root / "a.sqlite").exists()


def test_nobody_is_asked_about_a_run_that_is_not_there(call: Call) -> None:
    assert "[run_not_found]" in call("delete", "a").err


def test_delete_takes_a_damaged_run_and_no_file_of_somebody_else(call: Call, root: Path) -> None:
    forge(new_run(root, "a"), BROKEN_HASH)
    (root / "notes.sqlite").write_text("not a run", encoding="utf-8")

    assert call("delete", "a", "--yes").code == 0
    assert call("delete", "notes", "--yes").code == 4
    assert [path.name for path in root.iterdir()] == ["notes.sqlite"]


@pytest.mark.parametrize("props", ['{"a": 1, "a": 2}', '{"a": 1, "\\u0061": 1}', '{"in": [{"b": {}, "b": {}}]}', '{"$$x": 1, "$$x": 2}'])
def test_properties_with_a_key_twice_are_refused(call: Call, root: Path, props: str) -> None:
    ended = call("create", "a", "--props", props)

    assert (ended.code, ended.out, root.exists()) == (4, "", False)
    assert ended.err == "freehold: an object of --props has the same key twice; nothing was created [bad_option]\n"


def test_properties_with_a_long_number_and_many_levels_are_as_they_are(call: Call) -> None:
    props = '{"n": ' + "9" * 4_000 + ', "deep": ' + "[" * 98 + "]" * 98 + "}"

    assert call("create", "a", "--props", props).code == 0
