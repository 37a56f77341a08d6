"""A publish by a function: files, root and event together or not at all; what was undone is not seen by whoever comes next."""

# mypy: disable-error-code="func-returns-value"
# A lambda that does several things is a tuple of what they return.
from __future__ import annotations

import errno
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from faulty import FULL, Disk, put_on
from hypothesis import given, settings
from hypothesis import strategies as st
from published import contents, objects, publishes
from turns import names

import freehold
from freehold import Conflict, Crashed, DeadlineExceeded, Effect, Error, Host, Refused, Run
from freehold.files import Files

Work = Callable[[Files], Any]


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def host(tmp_path: Path, disk: Disk) -> Iterator[Host]:
    with freehold.open(tmp_path, timeout=20) as host:
        put_on(disk, host)
        yield host


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a") as run:
        run.publish("start", start)
        yield run


def start(files: Files) -> None:
    files.mkdir("d/e", parents=True)
    files.write_text("d/f", "0")
    for number in range(130):
        files.write_text(f"d/e/{number:03}", "0")


def change(files: Files) -> None:
    """Change so much that new nodes of every level come to be."""
    files.write_text("d/f", "1")
    for number in range(0, 130, 7):
        files.write_text(f"d/e/{number:03}", "1")
    files.write_text("d/e/new", "1")
    files.write_bytes("big", bytes(range(256)) * 600)
    files.rename("d", "moved")


def test_a_publish_is_one_event_with_the_new_root(run: Run) -> None:
    before = run.info
    effect = run.publish("change", change)

    assert (run.info.events, run.info.txn) == (before.events + 1, before.txn + 1)
    assert (effect.root, run.files.root) == (run.files.root, effect.root)
    assert run.files.read_text("moved/e/007") == "1"
    run.verify()


def close_over_a_directory(files: Files) -> None:
    with files.open("n", "w"):
        files.mkdir("n")


def close_beside_a_twin(files: Files) -> None:
    with files.open("n", "w"):
        files.write_text("N", "")


def use(file: Any, call: Callable[[Any], object]) -> None:
    with file:
        call(file)


@pytest.mark.parametrize("mode", ["r", "rb", "w", "wb", "r+", "r+b", "unbuffered"])
@pytest.mark.parametrize(
    "call",
    [
        lambda file, _is_text: file.read(),
        lambda file, _is_text: file.readline(),
        lambda file, _is_text: file.readlines(),
        lambda file, _is_text: next(file),
        lambda file, _is_text: file.readinto(bytearray(1)),
        lambda file, _is_text: file.read1(),
        lambda file, is_text: file.write("x" if is_text else b"x"),
        lambda file, is_text: file.writelines(["x" if is_text else b"x"]),
        lambda file, _is_text: file.truncate(),
        lambda file, _is_text: file.truncate(2**44 + 1),
        lambda file, _is_text: file.fileno(),
        lambda file, _is_text: file.seek(-1),
        lambda file, _is_text: file.seek(1, 1),
        lambda file, _is_text: file.seek(2**44 + 1),
        lambda file, _is_text: (next(file), file.tell()),
        lambda file, _is_text: (file.readline(), file.reconfigure(encoding="utf-16")),
    ],
)
def test_a_file_error_of_an_open_file_is_recorded_too(run: Run, call: Callable[[Any, bool], object], mode: str) -> None:
    run.publish("start", lambda files: files.write_text("f", "one\ntwo\n"))

    def work(files: Files) -> None:
        file = files.open("f", *("rb", 0) if mode == "unbuffered" else (mode,))
        use(file, lambda file: call(file, "b" not in mode and mode != "unbuffered"))

    expected: tuple[str, str | None] = ("start", None)
    with suppress(AttributeError, StopIteration, ValueError, OSError):  # some calls are refused here; what is recorded then is compared
        try:
            run.publish("used", work)
            expected = ("used", None)
        except OSError as error:
            expected = ("used", type(error).__name__)
            raise
    name, record = publishes(run)[-1]
    assert (name, record.get("failed")) == expected


@pytest.mark.parametrize(
    ("work", "failed", "number", "path"),
    [
        (lambda files: files.read_text("none"), "FileNotFoundError", "ENOENT", "none"),
        (lambda files: files.open("none"), "FileNotFoundError", "ENOENT", "none"),
        (lambda files: files.mkdir("d"), "FileExistsError", "EEXIST", "d"),
        (lambda files: files.read_text("d"), "IsADirectoryError", "EISDIR", "d"),
        (lambda files: list(files.iterdir("d/f")), "NotADirectoryError", "ENOTDIR", "d/f"),
        (lambda files: files.rmdir("d"), "OSError", "ENOTEMPTY", "d"),
        (lambda files: files.rename("d", "d/x/y"), "FileNotFoundError", "ENOENT", "d/x/y"),
        (lambda files: files.rename("d", "d/x"), "OSError", "EINVAL", "d"),
        (lambda files: (files.symlink("l", "l"), files.read_text("l")), "OSError", "ELOOP", "l"),
        (lambda files: files.chmod("d", 0o7777), "OSError", "EINVAL", "d"),
        (close_over_a_directory, "FileExistsError", "EEXIST", "n"),
        (close_beside_a_twin, "PathRefused", None, None),
        (lambda files: use(files.open("d/f", "rb"), lambda file: file.seek(-1)), "OSError", "EINVAL", "d/f"),
        (lambda files: use(files.open("n", "wb"), lambda file: file.truncate(2**44 + 1)), "OSError", "EFBIG", "n"),
        (lambda files: files.read_text("../x"), "PathRefused", None, None),
        (lambda files: files.write_text("D", ""), "PathRefused", None, None),
        (lambda files: files.symlink("l", ""), "PathRefused", None, None),
        (lambda files: list(files.glob("/x")), "PathRefused", None, None),
        (lambda files: (files.symlink("l", ".."), files.write_text("l/x", "")), "PathRefused", None, None),
    ],
)
def test_a_file_error_that_is_let_out_is_recorded_and_changes_nothing(
    run: Run, work: Work, failed: str, number: str | None, path: str | None
) -> None:
    before, root, events = contents(run.files), run.files.root, run.info.events

    def change_and_fail(files: Files) -> None:
        change(files)
        files.rename("moved", "d")
        work(files)

    with pytest.raises((OSError, freehold.PathRefused)) as caught:
        run.publish("lost", change_and_fail, request_id="once")

    assert type(caught.value).__name__ == failed
    assert (contents(run.files), run.files.root, run.info.events) == (before, root, events + 1)
    event = next(run.history(reverse=True))
    assert (event.kind, event.name, event.root) == ("publish", "lost", root)
    assert event.data == {"failed": failed, "errno": number, "path": path}
    assert len(run.publish("kept", lambda _files: None, request_id="kept").changes) == 0
    run.verify()


@pytest.mark.parametrize("fail", [lambda files: files.read_text("none"), lambda _files: 1 / 0])
def test_a_publish_that_is_undone_leaves_no_object(run: Run, fail: Work) -> None:
    before = objects(run)
    with pytest.raises((FileNotFoundError, ZeroDivisionError)):
        run.publish("lost", lambda files: (files.write_bytes("big", random.Random(1).randbytes(3_000_000)), files.root, fail(files)))

    assert objects(run) == before


def test_a_failed_publish_is_tried_again_under_its_request_id(run: Run) -> None:
    with pytest.raises(FileNotFoundError):
        run.publish("p", lambda files: files.read_text("none"), request_id="once")
    effect = run.publish("p", lambda files: files.write_text("none", "there"), request_id="once")

    assert run.files.read_text("none") == "there"
    assert run.publish("p", change, request_id="once").seq == effect.seq


def test_the_first_of_several_file_errors_is_known_when_it_is_let_out_last(run: Run) -> None:
    def work(files: Files) -> None:
        errors = []
        for path in ("first", "second", "d/f/third"):
            try:
                files.read_text(path)
            except OSError as error:
                errors.append(error)
        raise errors[0]

    with pytest.raises(FileNotFoundError):
        run.publish("lost", work)
    assert publishes(run)[-1] == ("lost", {"failed": "FileNotFoundError", "errno": "ENOENT", "path": "first"})


@pytest.mark.parametrize(
    "fail",
    [
        lambda _files: 1 / 0,
        lambda _files: Path("/no such file").read_text(),
        lambda _files: (_ for _ in ()).throw(FileNotFoundError(errno.ENOENT, "theirs", "d")),
        lambda _files: (_ for _ in ()).throw(freehold.PathRefused("theirs")),
        lambda _files: (_ for _ in ()).throw(KeyboardInterrupt()),
        lambda files: files.write_bytes("x", "text"),
        lambda files: files.open("d/f", "q"),
        lambda files: files.write_text("x", "\udc80"),
    ],
)
def test_any_other_exception_undoes_all_and_is_not_recorded(run: Run, fail: Work) -> None:
    before, info = contents(run.files), run.info

    with pytest.raises(BaseException) as caught:
        run.publish("lost", lambda files: (change(files), fail(files)))

    assert not isinstance(caught.value, Error) or isinstance(caught.value, freehold.PathRefused)
    assert (contents(run.files), run.info.events, run.info.txn) == (before, info.events, info.txn)


def test_an_error_of_another_run_s_files_is_not_one_of_this_publish(host: Host, run: Run) -> None:
    with host.create("b") as other:
        with pytest.raises(FileNotFoundError):
            run.publish("lost", lambda _files: other.files.read_text("none"))
        with pytest.raises(FileNotFoundError):
            run.publish("lost", lambda _files: other.publish("inner", lambda files: files.read_text("none")))
        assert [name for name, _ in publishes(run)] == ["start"]
        assert publishes(other) == [("inner", {"failed": "FileNotFoundError", "errno": "ENOENT", "path": "none"})]


def test_what_would_have_to_be_awaited_is_refused(run: Run) -> None:
    async def work(_files: Files) -> None: ...

    with pytest.raises(Refused) as caught:
        run.publish("lost", work)
    with pytest.raises(Refused) as not_callable:
        run.publish("lost", 7)  # type: ignore[call-overload]

    assert (caught.value.code, not_callable.value.code) == ("awaitable_refused", "bad_option")
    assert [name for name, _ in publishes(run)] == ["start"]


def test_a_repeated_request_returns_the_first_effect_and_runs_nothing(run: Run) -> None:
    first: Effect[Any] = run.publish("once", lambda files: (change(files), "value")[1], request_id="r")
    run.publish("other", lambda files: files.write_text("x", "1"))
    again: Effect[Any] = run.publish("once", lambda _files: 1 / 0, request_id="r")

    assert (again, again.value, list(again.changes)) == (first, "value", list(first.changes))
    assert len(first.changes) > 18
    with pytest.raises(Refused) as caught:
        run.publish("another name", change, request_id="r")
    assert caught.value.code == "request_conflict"


def by_a_file_error(run: Run, _disk: Disk) -> None:
    with pytest.raises(FileNotFoundError):
        run.publish("undone", lambda files: (change(files), files.read_text("none")))


def by_an_exception(run: Run, _disk: Disk) -> None:
    with pytest.raises(ZeroDivisionError):
        run.publish("undone", lambda files: (change(files), 1 / 0))


def by_an_exception_in_a_turn(run: Run, _disk: Disk) -> None:
    with pytest.raises(ZeroDivisionError):
        run.transact(lambda tx: (change(tx.files), tx.append("undone"), 1 / 0))


def by_an_exception_in_a_block(run: Run, _disk: Disk) -> None:
    with pytest.raises(ZeroDivisionError), run.publish("undone") as files:
        change(files)
        raise ZeroDivisionError


def by_a_savepoint(run: Run, _disk: Disk) -> None:
    def work(tx: freehold.Transaction) -> None:
        with pytest.raises(ZeroDivisionError), tx.savepoint():
            change(tx.files)
            tx.append("undone")
            raise ZeroDivisionError

    run.transact(work)


def by_its_time(run: Run, _disk: Disk) -> None:
    with pytest.raises(DeadlineExceeded), run.transaction(timeout=0.05) as tx:
        change(tx.files)
        while True:
            tx.append("undone")


def by_a_conflict(run: Run, _disk: Disk) -> None:
    with pytest.raises(Conflict), run.publish("undone") as files:
        change(files)
        run.publish("other", lambda others: others.write_text("d/f", "other"))
    run.publish("back", lambda files: files.write_text("d/f", "0"))


def by_a_full_disk(run: Run, disk: Disk) -> None:
    disk.arm("write", code=FULL)
    with pytest.raises(Crashed) as caught:
        run.publish("undone", change)
    assert caught.value.executed == "no"
    disk.heal()


def by_a_failed_commit(run: Run, disk: Disk) -> None:
    disk.arm("sync")
    with pytest.raises(Crashed):
        run.publish("undone", change)
    disk.heal()


@pytest.mark.parametrize("again", ["function", "block", "turn"])
@pytest.mark.parametrize(
    "undo",
    [
        by_a_file_error,
        by_an_exception,
        by_an_exception_in_a_turn,
        by_an_exception_in_a_block,
        by_a_savepoint,
        by_its_time,
        by_a_conflict,
        by_a_full_disk,
        by_a_failed_commit,
    ],
)
def test_what_was_undone_is_not_seen_by_the_next_one(run: Run, disk: Disk, undo: Callable[[Run, Disk], None], again: str) -> None:
    before, root = contents(run.files), run.files.root
    undo(run, disk)
    assert (contents(run.files), run.files.root) == (before, root)
    assert "undone" not in names(run)

    seen = []

    def work(files: Files) -> None:
        seen.append((contents(files), files.root))
        change(files)  # the same once more: what the undone one had kept is not there to be relied on

    if again == "function":
        run.publish("next", work)
    elif again == "turn":
        run.transact(lambda tx: work(tx.files))
    else:
        with run.publish("next") as files:
            work(files)

    assert seen == [(before, root)]
    assert run.files.read_text("moved/e/007") == "1"
    run.verify()


paths = st.sampled_from(["a", "b", "d/f", "d/e/000", "d/e/new"])
edits = st.lists(st.tuples(paths, st.sampled_from([None, b"", b"1", b"x" * 200])), min_size=1, max_size=6)


@given(edits, st.randoms(use_true_random=False))
@settings(max_examples=8)
def test_any_order_of_the_same_edits_in_however_many_publishes_gives_the_same_root(
    tmp_path_factory: pytest.TempPathFactory, todo: list[tuple[str, bytes | None]], dice: Any
) -> None:
    last = list(dict(todo).items())
    with freehold.open(tmp_path_factory.mktemp("runs"), timeout=20) as host:
        roots = set()
        for name in ("a", "b"):
            dice.shuffle(last)
            with host.create(name) as run:
                run.publish("start", start)
                for path, content in last[:-1]:
                    run.publish("one", lambda files, path=path, content=content: edit(files, path, content))  # type: ignore[misc]
                with run.publish("rest") as files:
                    edit(files, *last[-1])
                roots.add(run.files.root)
        assert len(roots) == 1


def edit(files: Files, path: str, content: bytes | None) -> None:
    if content is not None:
        files.write_bytes(path, content)
    elif files.exists(path):
        files.remove(path)


def test_the_same_bytes_created_again_give_the_old_root_and_an_empty_diff(run: Run) -> None:
    first = run.publish("change", change)
    run.publish("away", lambda files: (files.rmtree("moved"), files.remove("big")))
    assert contents(run.files) == {}
    start_again = run.publish("again", lambda files: (start(files), change(files)))

    assert (start_again.root, list(run.diff(first, start_again))) == (first.root, [])


def test_names_that_fold_equal_are_refused_and_a_rename_of_case_only_is_possible(run: Run) -> None:
    with pytest.raises(freehold.PathRefused):
        run.publish("lost", lambda files: files.write_text("d/F", ""))
    effect = run.publish("case", lambda files: (files.rename("d/f", "d/F"), files.rename("d", "D")))

    assert run.files.read_text("D/F") == "0"
    assert effect.complete
    with pytest.raises(freehold.PathRefused):
        run.publish("lost", lambda files: files.mkdir("d"))
    run.verify()
