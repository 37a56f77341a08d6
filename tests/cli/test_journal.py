"""history prints the journal as it is read; verify checks each file and reports each."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from caller import owner
from program import COMMAND, Call, Ended, environment
from runfile import forge, new_run
from turns import until

import freehold
from freehold.files import Files
from freehold.schema.ids import check_run_id
from freehold.storage.path import resolve


@pytest.fixture
def written(root: Path) -> list[freehold.Event]:
    """Create a run "a" with three notes and return its events."""
    with freehold.open(root) as host, host.create("a") as run:
        run.append("greeting", {"text": "hello"})
        run.append("day", {"day": date(2026, 11, 23), "raw": b"\x00"})
        run.append("greeting", {"text": "again"})
        return list(run.history())


def seqs(out: str) -> list[int]:
    """Return the first column."""
    return [int(line.split()[0]) for line in out.splitlines()]


def test_history_prints_an_event_a_line(call: Call, written: list[freehold.Event]) -> None:
    ended = call("history", "a")

    assert (ended.code, ended.err) == (0, "")
    assert seqs(ended.out) == [1, 2, 3, 4]
    _seq, time, kind, name, data = ended.out.splitlines()[2].split(maxsplit=4)
    assert (time, kind, name) == (written[2].time.isoformat(timespec="milliseconds").replace("+00:00", "Z"), "note", "day")
    assert json.loads(data) == {"day": {"$date": "2026-11-23"}, "raw": {"$bytes": "AA=="}}


def test_history_is_one_document_with_everything_an_event_says(call: Call, written: list[freehold.Event]) -> None:
    document = call("history", "a", "--json").document

    assert (document["run"], document["error"], document["exit_code"]) == ("a", None, 0)
    assert [event["hash"] for event in document["events"]] == [event.hash for event in written]
    day, event = document["events"][2], written[2]
    assert day == {
        "seq": 3,
        "id": event.id,
        "time": event.time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "kind": "note",
        "name": "day",
        "data": {"day": {"$date": "2026-11-23"}, "raw": {"$bytes": "AA=="}},
        "execution": None,
        "outcome": None,
        "root": event.root,
        "hash": event.hash,
    }


def test_history_can_be_narrowed_and_turned_around(call: Call, written: list[freehold.Event]) -> None:
    assert seqs(call("history", "a", "--name", "greeting").out) == [2, 4]
    assert seqs(call("history", "a", "--reverse").out) == [4, 3, 2, 1]
    assert seqs(call("history", "a", "--after", "2", "--reverse").out) == [4, 3]
    assert seqs(call("history", "a", "--after", written[2].id).out) == [4]
    assert seqs(call("history", "a", "--after", "2020-01-01T00:00:00Z", "--name", "day").out) == [3]
    assert call("history", "a", "--after", "2200-01-01T00:00:00Z").out == ""


def publish(root: Path) -> None:
    """Publish on "a": something, nothing, and what fails, with a path and without one."""

    def two(files: Files) -> None:
        files.write_text("new.txt", "2")
        files.rename("run.sh", "go.sh")

    with freehold.open(root) as host, host.open("a") as run:
        run.publish("one", lambda files: files.write_text("new.txt", "1"))
        run.publish("two", two)
        run.publish("none", lambda files: files.write_text("new.txt", "2"))
        with pytest.raises(FileNotFoundError):
            run.publish("failed", lambda files: files.remove("gone"))
        with pytest.raises(freehold.PathRefused):
            run.publish("refused", lambda files: files.remove("../x"))
        run.append("note", {"changes": 3})


def test_a_publish_says_how_much_it_has_changed_or_what_it_has_failed_with(call: Call, root: Path, filled: freehold.RunView) -> None:
    publish(root)

    values = [line.split(maxsplit=4)[2:] for line in call("history", "a", "--after", "2").out.splitlines()]

    assert values == [
        ["publish", "one", "1 change"],
        ["publish", "two", "2 changes"],
        ["publish", "none", "0 changes"],
        ["publish", "failed", "failed: FileNotFoundError: gone"],
        ["publish", "refused", "failed: PathRefused"],
        ["note", "note", '{"changes":3}'],
    ]


def test_the_history_of_a_path_is_what_has_changed_it(call: Call, root: Path, filled: freehold.RunView) -> None:
    publish(root)

    assert seqs(call("history", "a", "new.txt").out) == [3, 4]
    assert seqs(call("history", "a", "run.sh", "--reverse").out) == [4, 2]
    assert seqs(call("history", "a", "go.sh").out) == seqs(call("history", "a", ".", "--after", "3").out) == [4]
    assert seqs(call("history", "a", "docs", "--name", "first").out) == [2]
    assert [event["seq"] for event in call("history", "a", "new.txt", "--json").document["events"]] == [3, 4]
    assert call("history", "a", "nowhere") == (0, "", "")
    assert "[bad_path]" in call("history", "a", "../x").err
    assert call("history", "a", "", "--json").code_in_document == 4


@pytest.mark.parametrize("words", [[], ["--reverse"]])
def test_a_history_shows_what_each_event_has_changed_when_it_is_asked_to(
    call: Call, root: Path, filled: freehold.RunView, words: list[str]
) -> None:
    def step(tx: freehold.Transaction) -> None:
        tx.files.rename("run.sh", "go.sh")
        tx.append("moved")

    with freehold.open(root) as host, host.open("a") as run:
        run.append("nothing")
        run.transact(step)
        run.publish("edit", lambda files: files.write_text("notes.md", "other"))

    ended, document = (
        call("history", "a", "--changes", "--after", "2", *words),
        call("history", "a", "--changes", "--json", *words).document,
    )

    lines = [line for line in ended.out.splitlines() if not line.startswith("        ")]
    beneath = [line.strip() for line in ended.out.splitlines() if line.startswith("        ")]
    order = -1 if words else 1
    assert seqs("\n".join(lines)) == [3, 4, 5][::order]
    assert beneath == ["R  run.sh -> go.sh", "A  notes.md"][::order]
    changed = {event["seq"]: [change["path"] for change in event["changes"]] for event in document["events"]}
    assert changed == {1: [], 2: [change.path for change in filled.diff(0, 2)], 3: [], 4: ["go.sh"], 5: ["notes.md"]}


def test_a_history_without_events_is_an_empty_list(call: Call, written: list[freehold.Event]) -> None:
    assert call("history", "a", "--name", "nobody", "--json").document == {"run": "a", "events": [], "error": None, "exit_code": 0}


@pytest.mark.parametrize("after", ["-5", "yesterday", "2026-11-23T12:00:00", "", "01939f7e-7c52-7b9a-8f0e-2f6d5f1c2a3b", "9" * 30])
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_what_is_no_moment_of_the_run_is_refused(call: Call, written: list[freehold.Event], after: str, as_json: bool) -> None:
    ended = call("history", "a", f"--after={after}", *(["--json"] if as_json else []))

    assert ended.code == 4
    assert "[bad_position]" in ended.err
    if as_json:
        assert ended.document["code"] == "bad_position"


def test_a_time_outside_of_all_years_is_refused(call: Call, written: list[freehold.Event]) -> None:
    assert "[bad_position]" in call("history", "a", "--after", "0001-01-01T00:00:00+14:00").err


def test_history_prints_no_control_character_of_a_name_or_value(call: Call, root: Path) -> None:
    with freehold.open(root) as host, host.create("a") as run:
        run.append("n\x9b31m\u202e", {"\x1b]0;title\x07": "\x9b\x7f\u2028\n\U000e0001"})

    for words in (["history", "a"], ["history", "a", "--json"]):
        out = call(*words).out
        assert out.replace("\n", "").isprintable()
        assert "\\u009b31m\\u202e" in out
    assert len(call("history", "a").out.splitlines()) == 2
    (event,) = call("history", "a", "--name", "n\x9b31m\u202e", "--json").document["events"]
    assert event["data"] == {"\x1b]0;title\x07": "\x9b\x7f\u2028\n\U000e0001"}


def test_events_before_an_unreadable_one_are_printed_and_the_document_is_ended(
    call: Call, root: Path, written: list[freehold.Event]
) -> None:
    forge(resolve(root, check_run_id("a")), """UPDATE event SET record = '{"$date":"hunter2"}' WHERE seq = 3""")

    text, document = call("history", "a"), call("history", "a", "--json")

    assert (text.code, seqs(text.out)) == (5, [1, 2])
    assert "[malformed_record]" in text.err
    assert (document.code, document.code_in_document) == (5, 5)
    assert [event["seq"] for event in document.document["events"]] == [1, 2]
    assert document.document["error"]["code"] == "malformed_record"
    assert "[malformed_record]" in document.err
    assert "hunter2" not in text.err + document.err + document.out


def test_verify_reports_every_run_and_ends_with_the_gravest_code(call: Call, root: Path, written: list[freehold.Event]) -> None:
    forge(resolve(root, check_run_id("a")), "UPDATE event SET name = 'other' WHERE seq = 2")
    new_run(root, "good")
    (root / "notes.sqlite").write_text("not a run", encoding="utf-8")
    runs = ["good", "a", "missing", "notes", "good"]

    text = call("verify", *runs, "--", "-x")
    rows = call("verify", "--json", *runs, "--", "-x").document

    assert text.code == 5
    assert [tuple(line.split()) for line in text.out.splitlines()] == [
        ("RUN", "FILE"),
        ("good", "verified"),
        ("a", "[damaged]"),
        ("missing", "[run_not_found]"),
        ("notes", "[not_a_run]"),
        ("good", "verified"),
        ("-x", "[bad_run_id]"),
    ]
    assert [line.split()[1] for line in text.err.splitlines() if "hint" not in line] == ["a:", "missing:", "notes:", "-x:"]
    assert [(row["run"], row["verified"], row["exit_code"]) for row in rows] == [
        ("good", True, 0),
        ("a", False, 5),
        ("missing", False, 4),
        ("notes", False, 4),
        ("good", True, 0),
        ("-x", False, 4),
    ]
    assert rows[1]["error"]["details"]["rule"] == "chain"


def test_verify_prints_no_control_character_of_an_argument(call: Call, root: Path) -> None:
    ended = call("verify", "\x9b\x1b[31m[red]:smile:")

    assert ended.code == 4
    for text in (ended.out, ended.err):
        assert text.replace("\n", "").isprintable()
        assert "\\u009b\\u001b[31m[red]:smile:" in text


def test_a_run_that_can_be_opened_and_is_broken_within_is_found_by_verify_alone(
    call: Call, root: Path, written: list[freehold.Event]
) -> None:
    forge(resolve(root, check_run_id("a")), "UPDATE event SET name = 'other' WHERE seq = 2")

    assert call("show", "a").code == 0
    assert call("verify", "a").code == 5


def test_after_a_document_ctrl_c_is_what_it_was_before(call: Call, written: list[freehold.Event]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert len(call("history", "a", "--json").document["events"]) == len(written)

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_no_second_document_follows_one_that_was_broken_off(
    call: Call, written: list[freehold.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_event: freehold.Event) -> None:
        raise KeyboardInterrupt  # pressed a second time

    monkeypatch.setattr("freehold.cli.journal.event_record", interrupt)
    ended = call("history", "a", "--json")

    assert ended.code == 130
    assert ended.out.startswith('{"run": "a", "events": [')
    assert "interrupted" not in ended.out


def test_a_history_shows_properties_as_deep_as_a_value_may_be(call: Call, root: Path) -> None:
    deep: Any = {}
    for _ in range(99):
        deep = {"a": deep}
    with freehold.open(root) as host:
        host.create("deep", props=deep).close()
    assert '{"a":' * 99 in call("history", "deep").out
    assert call("history", "deep", "--json").document["events"][0]["data"]["props"] == deep


COMPLETE = "run.transact(lambda tx: (tx.begin_execution(), tx.settle('completed')))"


class Follower:
    """The program that follows run "a", in a process of its own."""

    def __init__(self, root: Path, *words: str) -> None:
        command = [*COMMAND, "--root", str(root), "history", "a", "--follow", *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())

    def line(self) -> str:
        """Return the next line, when it has come."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def end(self) -> Ended:
        """Return how it ended."""
        out, err = self.process.communicate(timeout=50)
        return Ended(self.process.returncode, out, err)


@contextmanager
def follower(root: Path, *words: str) -> Iterator[Follower]:
    """Yield such a program; afterwards it is gone."""
    found = Follower(root, *words)
    try:
        yield found
    finally:
        found.process.kill()
        found.process.communicate(timeout=50)


def test_what_an_owner_in_another_process_appends_is_followed_line_by_line_to_the_end_of_the_run(root: Path) -> None:
    with owner(root) as other, follower(root) as text, follower(root, "--json") as documents:
        assert (seqs(text.line()), json.loads(documents.line())["seq"]) == ([1], 1)
        for number in range(2, 5):
            other.do(f"run.append('x', {number})")
            assert text.line().split()[0::2] == [str(number), "note", str(number)]
            assert json.loads(documents.line())["data"] == number
        other.do(COMPLETE)
        ended, last = text.end(), documents.end()
        other.end()

    assert (ended.code, seqs(ended.out), ended.err) == (0, [5, 6], "")
    assert (last.code, last.err) == (0, "")
    lines = [json.loads(line) for line in last.out.splitlines()]
    assert [line.get("seq") for line in lines] == [5, 6, None]
    assert lines[-1] == {"run": "a", "error": None, "exit_code": 0}


@pytest.mark.parametrize("how", [[], ["--json"]])
@pytest.mark.parametrize(("number", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")])
def test_a_signal_ends_a_follower_that_waits(root: Path, number: signal.Signals, code: int, word: str, how: list[str]) -> None:
    new_run(root, "a")
    with follower(root, *how) as waiting:
        assert waiting.line()
        waiting.process.send_signal(number)
        ended = waiting.end()

    assert (ended.code, ended.err) == (code, f"freehold: {word} [{word}]\n")
    if how:
        assert (ended.document["code"], ended.code_in_document) == (word, code)
    else:
        assert ended.out == ""


def test_a_follower_whose_reader_has_gone_ends_though_nothing_comes(root: Path) -> None:
    new_run(root, "a")
    script = f'set -o pipefail; {" ".join(COMMAND)} --root "$1" history a --follow | head -n 1; echo "${{PIPESTATUS[@]}}"'
    done = subprocess.run(
        ["bash", "-c", script, "sh", str(root)], capture_output=True, text=True, env=environment(), check=True, timeout=50
    )

    assert (done.stdout.splitlines()[1:], done.stderr) == (["141 0"], "")


def test_a_follower_ends_when_the_run_is_deleted(call: Call, root: Path) -> None:
    new_run(root, "a")
    with follower(root) as waiting:
        assert seqs(waiting.line()) == [1]
        until(lambda: call("delete", "a", "--yes").code == 0)  # while it looks, it is in use for a moment
        assert waiting.end() == (0, "", "")


def test_following_is_narrowed_as_a_history_is(call: Call, root: Path, filled: freehold.RunView) -> None:
    publish(root)
    with freehold.open(root) as host, host.open("a") as run:
        run.transact(lambda tx: (tx.begin_execution(), tx.settle("completed")))

    for words in ([], ["--name", "note"], ["new.txt"], ["docs", "--name", "first"], ["nowhere"], ["--after", "4"], ["--changes"]):
        assert call("history", "a", "--follow", *words) == call("history", "a", *words)
        *lines, last = map(json.loads, call("history", "a", "--follow", "--json", *words).out.splitlines())
        assert lines == call("history", "a", "--json", *words).document["events"]
        assert last == {"run": "a", "error": None, "exit_code": 0}


def test_an_error_is_the_last_line_of_what_is_followed(call: Call, root: Path, written: list[freehold.Event]) -> None:
    forge(resolve(root, check_run_id("a")), """UPDATE event SET record = '{"$date":"hunter2"}' WHERE seq = 3""")

    text, documents = call("history", "a", "--follow"), call("history", "a", "--follow", "--json")

    assert (text.code, seqs(text.out), documents.code) == (5, [1, 2], 5)
    lines = [json.loads(line) for line in documents.out.splitlines()]
    assert [line.get("seq") for line in lines] == [1, 2, None]
    assert (lines[-1]["code"], lines[-1]["exit_code"]) == ("malformed_record", 5)
    assert "hunter2" not in text.err + documents.err + documents.out


def test_ctrl_c_while_a_line_is_written_comes_after_it(call: Call, written: list[freehold.Event], monkeypatch: pytest.MonkeyPatch) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr("freehold.cli.journal.flush", lambda: signal.raise_signal(signal.SIGINT))

    ended = call("history", "a", "--follow", "--json")

    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert (ended.code, [line.get("seq") for line in lines], lines[-1]["exit_code"]) == (130, [1, None], 130)


def test_no_other_line_follows_one_that_was_broken_off(call: Call, written: list[freehold.Event], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt  # pressed a second time

    monkeypatch.setattr("freehold.cli.journal.flush", interrupt)
    ended = call("history", "a", "--follow", "--json")

    assert (ended.code, ended.out.count("\n")) == (130, 1)
    assert "interrupted" not in ended.out


def test_following_refuses_to_go_backwards(call: Call, written: list[freehold.Event]) -> None:
    ended = call("history", "a", "--follow", "--reverse")

    assert (ended.code, ended.out) == (4, "")
    assert ended.err == "freehold: --follow goes forward, and takes no --reverse; nothing was read [bad_option]\n"
