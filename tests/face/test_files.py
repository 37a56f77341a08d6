"""Files to read and to change have the names, results and errors of pathlib and os; what they refuse changes nothing."""

# mypy: disable-error-code="func-returns-value"
# A lambda that does several things is a tuple of what they return.
from __future__ import annotations

import errno
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from published import contents, objects, publishes

import freehold
from freehold import Host, PathRefused, Refused, Run, desk
from freehold.files import Files

SECRET = "correct-horse-battery"
Work = Callable[[Files], Any]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path, timeout=20, secrets={"key": SECRET}) as host:
        yield host


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a") as run:
        yield run


def fill(files: Files) -> None:
    files.mkdir("d/e", parents=True)
    files.write_text("d/f", "one\ntwo\n")
    files.write_bytes("big", bytes(200_000))
    files.symlink("l", "d")
    files.symlink("out", "../x")
    files.chmod("d/f", 0o600)


def test_reading_says_what_is_there_inside_a_publish_and_after_it(run: Run) -> None:
    seen = []

    def look(files: freehold.files.ReadFiles) -> None:
        seen.append(
            (
                list(files.iterdir()),
                list(files.iterdir("l")),
                list(files.walk()),
                list(files.glob("**/f")),
                files.read_bytes("l/f"),
                files.read_text(PurePosixPath("d", "f")),
                [files.exists(path) for path in ("d", "l/f", "none", "none/x", "out", "d/f/x")],
                [files.is_file("l/f"), files.is_dir("l"), files.is_symlink("l"), files.is_file("l"), files.is_symlink("out")],
                [oct(files.stat(path).st_mode) for path in ("d", "d/f", "l")],
                files.stat("l", follow_symlinks=False),
                files.stat("big").st_size,
                files.readlink("l"),
                files.exists("out", follow_symlinks=False),
                files.root,
            )
        )

    def work(files: Files) -> None:
        fill(files)
        look(files)

    effect = run.publish("files", work)
    look(run.files)
    look(run.snapshot(effect))
    look(freehold.view(run.path).files)

    assert seen == [seen[0]] * 4
    assert seen[0][:9] == (
        ["big", "d", "l", "out"],
        ["l/e", "l/f"],
        [(".", ["d"], ["big", "l", "out"]), ("d", ["e"], ["f"]), ("d/e", [], [])],
        ["d/f"],
        b"one\ntwo\n",
        "one\ntwo\n",
        [True, True, False, False, False, False],
        [True, True, True, False, True],
        ["0o40755", "0o100600", "0o40755"],
    )
    assert seen[0][9:] == ((0o120777, 1), 200_000, "d", True, effect.root)


def test_text_is_written_and_read_as_pathlib_does(run: Run, tmp_path: Path) -> None:
    real = tmp_path / "real"
    for how in ({}, {"newline": "\r\n"}, {"newline": ""}, {"encoding": "utf-16"}, {"encoding": "ascii", "errors": "replace"}):
        real.write_text("ä\nb\r\nc", **how)
        run.publish("text", lambda files, how=how: files.write_text("f", "ä\nb\r\nc", **how))  # type: ignore[misc]
        assert run.files.read_bytes("f") == real.read_bytes()
        reading = {name: value for name, value in how.items() if name != "newline"}
        assert run.files.read_text("f", **reading) == real.read_text(**reading)


def test_open_reads_in_pieces_and_goes_on_after_the_root_has_changed(run: Run) -> None:
    run.publish("files", fill)
    with run.files.open("big", "rb") as file, run.files.open("d/f") as text, freehold.view(run.path).files.open("l/f") as lines:
        assert file.read(10) == bytes(10)
        run.publish("files", lambda files: (files.rmtree("d"), files.write_bytes("big", b"")))
        assert len(file.read()) == 199_990
        assert text.read() == "".join(lines) == "one\ntwo\n"
    with pytest.raises(OSError, match="d/f") as caught:
        run.files.open("d/f", "r+")
    assert caught.value.errno == errno.EROFS


def test_what_was_written_is_there_from_the_close_on_and_a_block_that_fails_discards(run: Run) -> None:
    def work(files: Files) -> None:
        with files.open("new", "x") as file:
            file.write("text")
            assert not files.exists("new")
        assert files.read_text("new") == "text"
        with pytest.raises(ZeroDivisionError), files.open("new", "a") as file:
            file.write("lost")
            raise ZeroDivisionError
        with files.open("new", "r+b") as one, files.open("new", "ab") as other:
            other.write(b" and more")
            other.flush()
            assert one.read() == b"text and more"

    run.publish("files", work)
    assert contents(run.files) == {"new": b"text and more"}


@pytest.mark.parametrize(
    "path", ["", "/etc/x", "..", "a/../x", "../x", "C:\\x", "a\\..\\x", "con", "d/NUL.txt", "a\nb", "x.", "e\u0301", 7, b"x"]
)
@pytest.mark.parametrize(
    "call",
    [
        lambda files, path: files.read_bytes(path),
        lambda files, path: files.open(path),
        lambda files, path: files.exists(path),
        lambda files, path: list(files.iterdir(path)),
        lambda files, path: files.write_text(path, ""),
        lambda files, path: files.open(path, "w"),
        lambda files, path: files.mkdir(path, parents=True),
        lambda files, path: files.symlink(path, "d"),
        lambda files, path: files.rename("d", path),
        lambda files, path: files.copy("d", path),
        lambda files, path: files.rmtree(path),
    ],
)
def test_a_path_that_no_workspace_has_is_refused(run: Run, call: Callable[[Files, Any], Any], path: Any) -> None:
    run.publish("files", fill)
    before = contents(run.files)

    with pytest.raises(PathRefused) as caught:
        run.publish("lost", lambda files: call(files, path))

    assert caught.value.code == "bad_path"
    assert contents(run.files) == before
    assert publishes(run)[-1] == ("lost", {"failed": "PathRefused", "errno": None, "path": None})


@pytest.mark.parametrize(
    "work",
    [
        lambda files: files.write_text(SECRET, ""),
        lambda files: files.write_text(f"d/{SECRET}.txt", ""),
        lambda files: files.mkdir(f"d/{SECRET}/x", parents=True),
        lambda files: files.rename("d", SECRET),
        lambda files: files.copy("d/f", SECRET),
        lambda files: files.symlink("link", SECRET),
        lambda files: files.symlink("link", PurePosixPath("..", SECRET)),
        lambda files: files.symlink(SECRET, "d"),
        lambda files: files.open(SECRET, "w"),
        lambda files: files.touch(SECRET),
    ],
)
def test_a_declared_secret_is_refused_in_names_and_in_what_links_say(run: Run, work: Work) -> None:
    run.publish("files", fill)
    before, events = contents(run.files), run.info.events

    with pytest.raises(Refused) as caught:
        run.publish("lost", work)

    assert (caught.value.code, caught.value.details["secret"]) == ("secret_refused", "key")
    assert SECRET not in str(caught.value)
    assert (contents(run.files), run.info.events) == (before, events)
    assert SECRET.encode() not in run.path.read_bytes()


def test_a_name_that_was_there_before_its_secret_was_declared_can_be_taken_away(tmp_path: Path) -> None:
    with freehold.open(tmp_path / "other", timeout=20) as host, host.create("a") as run:
        run.publish("leak", lambda files: [files.mkdir(f"{number}/{SECRET}", parents=True) for number in range(4)])
    with freehold.open(tmp_path / "other", timeout=20, secrets={"key": SECRET}) as host, host.open("a") as run:
        with run.publish("clean") as files:
            files.chmod(f"0/{SECRET}", 0o700)
            files.rename(f"0/{SECRET}", "0/renamed")
            files.rmdir(f"1/{SECRET}")
            files.rmtree(f"2/{SECRET}")
            files.copy(f"3/{SECRET}", "3/copied")
            files.rmtree(f"3/{SECRET}")

        assert contents(run.files).keys() == {"0", "0/renamed", "1", "2", "3", "3/copied"}


@pytest.mark.parametrize("form", [SECRET, f"d/{SECRET}", f"{SECRET}/x"])
def test_a_secret_never_stands_in_the_record_of_a_failed_publish(run: Run, form: str) -> None:
    run.publish("files", fill)
    with pytest.raises(FileNotFoundError):
        run.publish("lost", lambda files: files.read_bytes(form))
    with pytest.raises(FileNotFoundError), run.publish("lost") as files:
        files.read_bytes(form)

    assert publishes(run)[1:] == [("lost", {"failed": "FileNotFoundError", "errno": "ENOENT", "path": None})] * 2
    assert not [file for file in run.path.parent.iterdir() if file.is_file() and SECRET.encode() in file.read_bytes()]


@pytest.mark.parametrize("target", [7, b"d", None, "", "a\0b"])
def test_a_link_says_text_and_nothing_else(run: Run, target: Any) -> None:
    with pytest.raises(PathRefused):
        run.publish("lost", lambda files: files.symlink("l", target))

    assert contents(run.files) == {}


def test_a_target_may_be_a_path(run: Run) -> None:
    run.publish("files", lambda files: files.symlink("l", PurePosixPath("d", "..", "f")))

    assert run.files.readlink("l") == "d/../f"


def use(files: Files) -> list[Callable[[], Any]]:
    """Return calls that would be answered, or change something, at any other time."""
    return [
        lambda: files.root,
        lambda: files.read_bytes("d/f"),
        lambda: files.exists("d"),
        lambda: files.open("d/f"),
        lambda: list(files.glob("*")),
        lambda: files.write_text("late", ""),
        lambda: files.rename("d", "late"),
    ]


@pytest.mark.parametrize("way", ["function", "block", "transaction", "turn"])
def test_files_that_are_kept_after_their_end_are_refused(run: Run, way: str) -> None:
    run.publish("files", fill)
    kept: list[Files] = []
    if way == "function":
        run.publish("kept", kept.append)
    elif way == "block":
        with run.publish("kept") as files:
            kept.append(files)
    elif way == "transaction":
        with run.transaction() as tx:
            kept.append(tx.files)
    else:
        run.transact(lambda tx: kept.append(tx.files))
    before, events = contents(run.files), run.info.events

    for call in use(kept[0]):
        with pytest.raises(Refused) as caught:
            call()
        assert caught.value.code == "transaction_over"
    assert (contents(run.files), run.info.events) == (before, events)


@pytest.mark.parametrize("way", ["function", "block", "transaction"])
def test_files_are_refused_in_another_thread_than_the_one_that_began(run: Run, way: str) -> None:
    run.publish("files", fill)
    before = contents(run.files)
    codes: list[str] = []

    def elsewhere(files: Files) -> None:
        def work() -> None:
            for call in use(files):
                with pytest.raises(Refused) as caught:
                    call()
                codes.append(caught.value.code)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    if way == "function":
        run.publish("used", elsewhere)
    elif way == "block":
        with run.publish("used") as files:
            elsewhere(files)
    else:
        with run.transaction() as tx:
            elsewhere(tx.files)

    assert codes == ["transaction_over"] * 7
    assert contents(run.files) == before


@pytest.mark.parametrize("size", [5, 300_000, 6_000_000], ids=["small", "chunks", "more than waits in memory"])
@pytest.mark.parametrize("way", ["function", "block", "savepoint", "block, used between publishes"])
def test_a_handle_that_is_used_after_its_end_gets_an_error_and_keeps_nothing(run: Run, way: str, size: int) -> None:
    run.publish("files", fill)
    handles: list[Any] = []
    if way == "function":
        run.publish("kept", lambda files: handles.append(files.open("d/f", "r+b")))
    elif way != "savepoint":
        with run.publish("kept") as files:
            handles.append(files.open("d/f", "r+b"))
    before, kept = contents(run.files), objects(run)

    def late(files: Files) -> None:
        files.write_text("beside", "1")
        use_late()

    def use_late() -> None:
        with pytest.raises((OSError, Refused)) as caught, handles.pop() as handle:
            handle.write(random.Random(1).randbytes(size))
        assert getattr(caught.value, "errno", None) == errno.ESTALE or getattr(caught.value, "code", "") == "transaction_over"

    if way == "savepoint":
        with run.transaction(timeout=30) as tx:
            with pytest.raises(ZeroDivisionError), tx.savepoint():
                handles.append(tx.files.open("d/f", "r+b"))
                raise ZeroDivisionError
            late(tx.files)
    elif way.endswith("between publishes"):
        use_late()
        run.publish("next", lambda files: files.write_text("beside", "1"))
    else:
        run.publish("next", late)

    assert contents(run.files) == before | {"beside": b"1"}
    # One node and one root for `beside`, and nothing of what the handle was given.
    assert objects(run) == kept + 2
    run.verify()


def test_what_shows_a_file_shows_no_content(run: Run) -> None:
    def work(files: Files) -> None:
        files.write_text("f", "zyxwvq")
        assert "zyxwvq" not in repr(files)
        for call in (lambda: files.mkdir("f"), lambda: files.read_bytes("f/x"), lambda: files.rmdir("f")):
            with pytest.raises(OSError, match="f") as caught:
                call()
            assert "zyxwvq" not in f"{caught.value!r} {caught.value}"

    effect = run.publish("files", work)
    assert "zyxwvq" not in f"{effect!r} {effect.changes!r} {run.files!r}"


def test_a_walk_of_files_that_are_changed_holds_no_more_than_may_be(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "ENTRIES_AT_ONCE_MAX", 3)
    run.publish("fill", fill)
    walked = run.publish("look", lambda files: list(files.walk())).value  # the top, d and d/e
    assert [path for path, _, _ in walked] == [".", "d", "d/e"]

    with pytest.raises(Refused) as caught:
        run.publish("look", lambda files: (files.mkdir("x"), files.walk()))
    assert caught.value.code == "too_many_entries"
    assert not run.files.exists("x")
