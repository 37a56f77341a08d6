"""--timeout says how long an owner that does not answer is waited for, and --request-id makes it safe to ask again."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest
from caller import owner
from program import COMMAND, Call, Ended, environment

import freehold
from freehold.actors.deadline import monotonic
from freehold.schema.limits import ASK_TIMEOUT_S

HINT = "  hint: --timeout SECONDS waits longer, and with the same --request-id it is never done twice.\n"


@pytest.fixture(autouse=True)
def _run(root: Path) -> None:
    with freehold.open(root) as host:
        host.create("a").close()


@pytest.mark.parametrize(
    "words", ["append a x 1", "put a f /dev/null", "rm a f", "mv a f g", "import a .", "restore a 1"], ids=lambda words: words.split()[0]
)
def test_an_owner_that_hangs_is_waited_for_so_long(
    call: Call, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with owner(root) as other:
        other.stop()
        begun = monotonic()
        ended = call(*words.split(), "--timeout", "0.3")
        taken = monotonic() - begun
        other.go_on()
        other.end()

    assert (ended.code, ended.out) == (6, "")
    assert "the time for this request to a is up" in ended.err
    assert ended.err.endswith(" [deadline_exceeded]\n" + HINT)
    assert 0.3 <= taken < ASK_TIMEOUT_S / 2
    assert freehold.view(root / "a.sqlite").info.events == 1


def test_what_hung_is_asked_again_with_its_request_id_and_done_once(call: Call, root: Path) -> None:
    words = ["append", "a", "x", "1", "--request-id", "r"]
    with owner(root) as other:
        other.do("after(store.Store, 'commit')")  # it dies over the next one, after its COMMIT
        lost = call(*words, "--json")
        again = call(*words)

    assert (lost.code, lost.document["code"], lost.document["executed"]) == (6, "no_answer", "unknown")
    assert (again.code, again.out.split()[0]) == (0, "2")
    assert freehold.view(root / "a.sqlite").info.events == 2


def test_it_may_stand_before_the_command_too_and_the_commands_own_counts(call: Call, root: Path) -> None:
    with owner(root) as other:
        other.stop()
        begun = monotonic()
        ended = [
            call("--timeout", first, "append", "a", "x", "1", *then).code for first, then in (("0.1", []), ("50", ["--timeout", "0.1"]))
        ]
        assert monotonic() - begun < 20

    assert ended == [6, 6]


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "soon", "", "1s"])
def test_what_is_no_time_is_a_wrong_command_line(call: Call, root: Path, value: str) -> None:
    ended = call("append", "a", "x", f"--timeout={value}")

    assert (ended.code, "--timeout" in ended.err, freehold.view(root / "a.sqlite").info.events) == (64, True, 1)


def slow_put(root: Path) -> Ended:
    """Put what comes in two parts, longer apart than the time that is allowed."""
    command = [*COMMAND, "--root", str(root), "put", "a", "f", "--timeout", "0.5"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=environment(), **pipes) as process:  # type: ignore[call-overload]
        assert process.stdin is not None
        threading.Event().wait(1.2)
        process.stdin.write("one ")
        process.stdin.flush()
        threading.Event().wait(1.2)
        out, err = process.communicate("two", timeout=50)
    return Ended(process.returncode, out, err)


@pytest.mark.parametrize("owned", [False, True], ids=["nobody owns it", "another process owns it"])
def test_the_time_that_an_input_takes_is_not_counted(root: Path, owned: bool) -> None:
    if owned:
        with owner(root) as other:
            ended = slow_put(root)
            other.end()
    else:
        ended = slow_put(root)

    assert ended == (0, "A  f\n", "")
    assert freehold.view(root / "a.sqlite").files.read_text("f") == "one two"
