"""The program among others: pipes that close, terminals that ask and are interrupted, streams that are not there."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from folder import run_files
from program import COMMAND, environment, run_program
from runfile import new_run

import freehold


@pytest.fixture(scope="module")
def long_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a run "long" whose history (half a megabyte) does not fit into a pipe that nobody reads."""
    root = tmp_path_factory.mktemp("long")

    def fill(tx: freehold.Transaction) -> None:
        for number in range(2_000):
            tx.append("line", {"number": number, "text": "x" * 200})

    with freehold.open(root) as host, host.create("long") as run:
        run.transact(fill)
    return root


def start(
    *words: str, stdin: int = subprocess.DEVNULL, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE, **more: str
) -> subprocess.Popen[str]:
    """Start the program."""
    return subprocess.Popen([*COMMAND, *words], stdin=stdin, stdout=stdout, stderr=stderr, text=True, env=environment(**more))


class Unread:
    """A pipe that nobody reads."""

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe()

    def fill(self) -> None:
        """Leave no room in it."""
        os.set_blocking(self.writing, False)
        while self._takes():
            continue
        os.set_blocking(self.writing, True)

    def _takes(self) -> bool:
        try:
            return os.write(self.writing, b"x" * 4096) > 0
        except BlockingIOError:
            return False

    def wait_until_full(self) -> None:
        """Wait until whoever writes into it can write no more."""
        while select.select([], [self.writing], [], 0)[1]:
            continue

    def read(self) -> bytes:
        """Read what is there, or comes first."""
        return os.read(self._reading, 65_536)

    def close(self) -> None:
        """Close both ends."""
        os.close(self.writing)
        os.close(self._reading)


@pytest.fixture
def unread() -> Iterator[Unread]:
    """Return a pipe that nobody reads."""
    made = Unread()
    yield made
    made.close()


class Terminal:
    """A pseudo terminal: what the program writes to it, and a keyboard."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        self.seen = ""

    def read_until(self, text: str) -> None:
        """Read until *text* has been shown."""
        while text not in self.seen:
            self.seen += os.read(self.master, 4096).decode()

    def read_all(self) -> str:
        """Read what is left, once the program has ended."""
        os.close(self.slave)
        self.slave = -1
        try:
            while part := os.read(self.master, 4096):
                self.seen += part.decode()
        except OSError:  # Linux says so when the last one has left the terminal
            return self.seen
        return self.seen

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.master, text.encode())

    def close(self) -> None:
        """Unplug it."""
        for fd in (self.master, self.slave):
            if fd >= 0:
                os.close(fd)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """Return a terminal."""
    made = Terminal()
    yield made
    made.close()


@pytest.mark.parametrize("flag", [[], ["--json"]], ids=["text", "json"])
def test_a_reader_that_has_seen_enough_ends_it_quietly(long_root: Path, flag: list[str]) -> None:
    process = start("--root", str(long_root), "history", "long", *flag)
    assert process.stdout is not None
    assert process.stderr is not None

    first = process.stdout.readline()
    process.stdout.close()

    assert first
    assert process.stderr.read() == ""
    assert process.wait(50) == 141
    process.stderr.close()


def test_a_shell_sees_what_it_expects_of_a_broken_pipe(long_root: Path) -> None:
    script = f'set -o pipefail; {" ".join(COMMAND)} --root "$1" history long | head -n 1; echo "${{PIPESTATUS[@]}}"'
    done = subprocess.run(
        ["bash", "-c", script, "sh", str(long_root)], capture_output=True, text=True, env=environment(), check=True, timeout=50
    )

    assert done.stdout.splitlines()[1:] == ["141 0"]
    assert done.stderr == ""


def test_a_reader_that_is_gone_before_the_first_word_ends_it_quietly(root: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = start("--root", str(root), "list", stdout=writing)
    os.close(writing)

    assert process.communicate(timeout=50)[1] == ""
    assert process.returncode == 141


def test_ctrl_c_ends_a_history_that_nobody_reads(long_root: Path, unread: Unread) -> None:
    with start("--root", str(long_root), "history", "long", stdout=unread.writing) as process:
        unread.wait_until_full()

        process.send_signal(signal.SIGINT)

        _, err = process.communicate(timeout=50)
        assert process.returncode == 130
        assert err == "freehold: interrupted [interrupted]\n"


def test_after_ctrl_c_not_even_the_last_flush_waits_for_the_reader(unread: Unread) -> None:
    program = (
        "import sys, click\nfrom freehold.cli import cli, main\n"
        "@cli.command()\ndef wait():\n    sys.stdout.write('more')\n    raise KeyboardInterrupt\n"
        "sys.exit(main(['wait']))"
    )
    unread.fill()

    done = subprocess.run([sys.executable, "-c", program], stdout=unread.writing, env=environment(), check=False, timeout=50)

    assert done.returncode == 130


def test_after_ctrl_c_no_document_waits_for_a_reader_who_has_stopped_reading(root: Path, unread: Unread) -> None:
    new_run(root, "a")
    with start("--root", str(root), "history", "a", "--follow", "--json", stdout=unread.writing) as process:
        assert unread.read().startswith(b'{"seq": 1, ')
        unread.fill()

        process.send_signal(signal.SIGINT)

        assert process.communicate(timeout=50)[1] == "freehold: interrupted [interrupted]\n"
        assert process.returncode == 130


def test_ctrl_c_that_is_to_be_ignored_is_ignored(long_root: Path) -> None:
    script = f"""trap "" INT; exec {" ".join(COMMAND)} --root "$1" --json history long"""
    with subprocess.Popen(["bash", "-c", script, "sh", str(long_root)], stdout=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None
        first = os.read(process.stdout.fileno(), 1)

        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=50)

    assert process.returncode == 0
    assert len(json.loads(first + out)["events"]) == 2_001


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_ctrl_c_ends_a_document_between_two_events(long_root: Path, unbuffered: str) -> None:
    with start("--root", str(long_root), "--json", "history", "long", PYTHONUNBUFFERED=unbuffered) as process:
        assert process.stdout is not None
        first = os.read(process.stdout.fileno(), 1).decode()

        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=50)

    document = json.loads(first + out)
    assert process.returncode == 130
    assert (document["exit_code"], document["error"]["code"]) == (130, "interrupted")
    assert len(document["events"]) < 2_001
    assert err == "freehold: interrupted [interrupted]\n"


def test_pressed_again_ctrl_c_ends_a_document_at_once(long_root: Path, unread: Unread) -> None:
    with start("--root", str(long_root), "--json", "history", "long", stdout=unread.writing) as process:
        unread.wait_until_full()

        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        err = None
        while err is None:
            process.send_signal(signal.SIGINT)
            try:
                _, err = process.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                continue  # it came before the first was seen, and they counted as one

        assert process.returncode == 130
        # Pressed once more while it is being said, it is said again.
        assert set(err.splitlines()) == {"freehold: interrupted [interrupted]"}


@pytest.mark.parametrize(("answer", "code"), [("Yes\n", 0), ("\n", 4), ("\x04", 4)], ids=["yes", "enter", "end"])
def test_delete_asks_on_a_terminal(root: Path, terminal: Terminal, answer: str, code: int) -> None:
    path = Path(new_run(root, "a").file)

    with start("--root", str(root), "delete", "a", "--json", stdin=terminal.slave, stderr=terminal.slave) as process:
        terminal.read_until(f"Delete {path} for good? [y/N] ")
        terminal.type(answer)
        out, _ = process.communicate(timeout=50)

    assert process.returncode == code
    assert json.loads(out)["exit_code"] == code
    assert path.exists() == (code != 0)


def test_ctrl_c_at_the_question_deletes_nothing(root: Path, terminal: Terminal) -> None:
    path = Path(new_run(root, "a").file)

    with start("--root", str(root), "--json", "delete", "a", stdin=terminal.slave, stderr=terminal.slave) as process:
        terminal.read_until("[y/N] ")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=50)

    assert process.returncode == 130
    assert json.loads(out)["exit_code"] == 130
    assert path.exists()
    assert "Traceback" not in terminal.read_all()


def test_a_run_is_not_owned_while_somebody_thinks_about_deleting_it(root: Path, terminal: Terminal) -> None:
    new_run(root, "a")

    with start("--root", str(root), "delete", "a", stdin=terminal.slave, stderr=terminal.slave) as process:
        terminal.read_until("[y/N] ")
        with freehold.open(root) as host, host.open("a") as run:
            run.append("meanwhile")
        terminal.type("n\n")

    assert process.returncode == 4


def test_progress_is_shown_on_a_terminal_and_never_among_the_data(long_root: Path, terminal: Terminal) -> None:
    with start("--root", str(long_root), "verify", "long", stderr=terminal.slave) as process:
        out, _ = process.communicate(timeout=50)

    assert process.returncode == 0
    assert out == "RUN   FILE\nlong  verified\n"
    assert "verifying long" in terminal.read_all()


def test_a_table_on_a_terminal_fits_it(root: Path, terminal: Terminal) -> None:
    with freehold.open(root) as host:
        host.create("a", props={"text": "[red]" + "x" * 200}).close()

    with start("--root", str(root), "list", stdout=terminal.slave) as process:
        process.wait(50)

    shown = terminal.read_all()
    assert "\x1b[1m" in shown
    assert "[red]" in shown
    assert [len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= 80 for line in shown.splitlines()] == [True, True]


def test_on_a_terminal_an_id_is_folded_and_not_cut(root: Path, terminal: Terminal) -> None:
    new_run(root, "x" * 100)

    with start("--root", str(root), "list", stdout=terminal.slave) as process:
        process.wait(50)

    assert terminal.read_all().count("x") == 100


def test_files_and_changes_have_colours_and_totals_on_a_terminal(root: Path, filled: freehold.RunView, terminal: Terminal) -> None:
    for words in (["files", "a", "-R"], ["diff", "a", "1"]):
        with start("--root", str(root), *words, stdout=terminal.slave) as process:
            assert process.wait(50) == 0

    shown = terminal.read_all()
    for styled in ("\x1b[1mMODE", "\x1b[34mdrwxr-xr-x", "\x1b[36mlrwxrwxrwx", "\x1b[32mA  docs/guide.md\x1b[0m"):
        assert styled in shown
    assert "link -> docs" in shown
    assert "2 directories, 3 files, 1 link; 275 bytes" in shown


def test_whoever_wants_no_colours_gets_none(root: Path, filled: freehold.RunView, terminal: Terminal) -> None:
    for words, name, value in (
        (["diff", "a", "1"], "NO_COLOR", "1"),
        (["diff", "a", "1"], "TERM", "dumb"),
        (["files", "a"], "NO_COLOR", "1"),
    ):
        with subprocess.Popen([*COMMAND, "--root", str(root), *words], stdout=terminal.slave, env=environment(**{name: value})) as process:
            assert process.wait(50) == 0

    assert "\x1b[3" not in terminal.read_all()


def test_on_a_terminal_the_lines_of_a_file_do_nothing_to_it(root: Path, filled: freehold.RunView, terminal: Terminal) -> None:
    with freehold.open(root) as host, host.open("a") as run:
        run.publish("odd", lambda files: files.write_text("odd", "\x1b]0;title\x07\tx\r\n"))

    with start("--root", str(root), "diff", "a", "2", "--text", stdout=terminal.slave) as process:
        assert process.wait(50) == 0

    shown = terminal.read_all()
    assert "\x1b[32m+\\u001b]0;title\\u0007\tx\\r\x1b[0m" in shown
    assert "\x1b]" not in shown
    assert "+\x1b]0;title\x07\tx\n" in run_program("--root", str(root), "diff", "a", "2", "--text").out  # universal line ends


def test_a_reader_that_has_seen_enough_of_a_file_ends_it_quietly(root: Path, filled: freehold.RunView) -> None:
    with freehold.open(root) as host, host.open("a") as run:
        run.publish("large", lambda files: files.write_bytes("large", bytes(2**20)))

    with start("--root", str(root), "cat", "a", "large") as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == "\0"
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""

    assert process.returncode == 141


def test_a_file_that_the_output_does_not_take_is_said_to(root: Path, filled: freehold.RunView) -> None:
    with (
        Path("/dev/full").open("w", encoding="utf-8") as full,
        start("--root", str(root), "cat", "a", "run.sh", stdout=full.fileno()) as process,
    ):
        _, err = process.communicate(timeout=50)

    assert process.returncode == 6
    assert "No space left on device" in err


def test_elsewhere_there_are_no_colours_even_if_they_are_forced(root: Path) -> None:
    with freehold.open(root) as host, host.create("a") as run:
        run.publish("file", lambda files: files.write_text("a", "a\n"))

    for words in (["list"], ["--help"], ["files", "a"], ["diff", "a", "1", "--text"], ["history", "a"]):
        ended = run_program("--root", str(root), *words, FORCE_COLOR="1", TTY_COMPATIBLE="1", CLICOLOR_FORCE="1")
        assert "\x1b" not in ended.out + ended.err


def test_an_output_that_takes_nothing_is_said_to(root: Path) -> None:
    new_run(root, "a")

    with Path("/dev/full").open("w", encoding="utf-8") as full, start("--root", str(root), "show", "a", stdout=full.fileno()) as process:
        _, err = process.communicate(timeout=50)

    assert process.returncode == 6
    assert err == "freehold: the output could not be written (No space left on device) [unavailable]\n"


def test_closed_streams_lead_nowhere_and_never_into_a_run_file(root: Path) -> None:
    script = f'{" ".join(COMMAND)} --root "$1" "$2" a <&- >&- 2>&-'

    for command, code in (("create", 0), ("create", 4), ("verify", 0)):
        assert (
            subprocess.run(["bash", "-c", script, "sh", str(root), command], env=environment(), check=False, timeout=50).returncode == code
        )
    assert run_files(root) == ["a.sqlite"]


def closed(root: Path, redirection: str, *words: str) -> subprocess.CompletedProcess[str]:
    script = f'{" ".join(COMMAND)} --root "$@" {redirection}'
    return subprocess.run(
        ["bash", "-c", script, "sh", str(root), *words], env=environment(), capture_output=True, text=True, check=False, timeout=50
    )


def test_a_closed_standard_input_is_not_an_empty_one(root: Path) -> None:
    with freehold.open(root) as host, host.create("a") as run:
        run.publish("start", lambda files: files.write_text("f", "there"))
        before = run.info.events
    ended = closed(root, "<&-", "put", "a", "f")

    assert (ended.returncode, ended.stderr) == (4, "freehold: standard input: Bad file descriptor\n")
    with freehold.open(root) as host, host.open("a") as run:
        assert (run.files.read_text("f"), run.info.events) == ("there", before)


@pytest.mark.parametrize("how", [[], ["--json"]])
def test_content_that_nobody_takes_is_said_not_to_be_written(root: Path, how: list[str]) -> None:
    with freehold.open(root) as host, host.create("a") as run:
        run.publish("start", lambda files: files.write_text("f", "there"))
    ended = closed(root, ">&-", "cat", "a", "f", *how)

    assert ended.returncode == 6
    assert "the output could not be written (Bad file descriptor)" in ended.stderr


def test_nobody_is_followed_where_nobody_would_see_it(root: Path) -> None:
    new_run(root, "a")
    ended = closed(root, ">&-", "history", "a", "--follow")

    assert ended.returncode == 6
    assert "the output could not be written (Bad file descriptor)" in ended.stderr


def test_characters_that_the_output_cannot_say_are_written_as_escapes(tmp_path: Path) -> None:
    ended = run_program("--root", str(tmp_path / "rünen"), "create", "a", PYTHONIOENCODING="ascii")

    assert (ended.code, ended.err) == (0, "")
    assert "r\\xfcnen" in ended.out
