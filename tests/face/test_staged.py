"""A publish from one's own thread stands beside all others: it comes to whatever they have published, or says which paths they changed."""

# mypy: disable-error-code="func-returns-value"
# A lambda that does several things is a tuple of what they return.
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from published import astray, contents, publishes, staged
from turns import senders

import freehold
from freehold import Conflict, Host, LeaseClosed, PathRefused, Refused, Run
from freehold.files import Files
from freehold.schema.errors import Unavailable
from freehold.schema.limits import PIECES_BYTES_MAX, PUBLISH_TRIES_MAX
from freehold.schema.messages import Append, KeepObjects, PublishOn
from freehold.staged import Staging

Work = Callable[[Files], Any]
THREADS = 6


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path, timeout=60) as host:
        yield host


@pytest.fixture(params=["in one turn", "by messages"])
def run(host: Host, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """A run whose blocks are published as its owner's process does it, or as every other one does."""
    if request.param == "by messages":
        monkeypatch.setattr("freehold.run.Staging", lambda ask, _send, *rest, **how: Staging(ask, None, *rest, **how))
    with host.create("a") as run:
        run.publish("start", start)
        yield run


def start(files: Files) -> None:
    for path, content in (("a", "1"), ("b", "2"), ("d/f", "3"), ("d/e/g", "4")):
        if "/" in path:
            files.mkdir(path.rpartition("/")[0], parents=True, exist_ok=True)
        files.write_text(path, content)


def refused(call: Callable[..., Any], *given: Any) -> None:
    with pytest.raises(PathRefused):
        call(*given)


def noise(seed: int, size: int = PIECES_BYTES_MAX + 200_000) -> bytes:
    import random

    return random.Random(seed).randbytes(size)


def test_a_block_is_published_at_its_end_in_one_turn(run: Run) -> None:
    before = run.info
    with run.publish("block") as files:
        files.write_text("new", "5")
        assert files.read_text("new") == "5"
        assert not run.files.exists("new")
        with pytest.raises(Refused):
            _ = files.effect

    effect = files.effect
    assert run.info.events == before.events + 1
    assert run.info.txn - before.txn in (1, 2)  # by messages, what was written goes ahead
    assert (effect.name, effect.data, effect.value, effect.root) == ("block", {"changes": 1}, None, run.files.root)
    assert run.files.read_text("new") == "5"
    run.verify()


def test_threads_on_disjoint_paths_all_succeed_and_the_result_is_the_union(run: Run) -> None:
    together = threading.Barrier(THREADS, timeout=30)

    def work(number: int) -> None:
        with run.publish(f"block {number}") as files:
            files.mkdir(f"own {number}")
            together.wait()
            files.write_bytes(f"own {number}/big", noise(number))
            files.write_text(f"d/e/{number}", "in one folder")
            files.write_text("d/f", "3") if number == 0 else None
            together.wait()

    with senders(THREADS) as go:
        for done in [go(work, number) for number in range(THREADS)]:
            done.result()

    found = contents(run.files)
    assert {name for name, _ in publishes(run)} == {"start", *(f"block {number}" for number in range(THREADS))}
    assert [found[f"own {number}/big"] == noise(number) for number in range(THREADS)] == [True] * THREADS
    assert len(found) == 6 + 3 * THREADS
    assert astray(run) == 0
    run.verify()


def test_of_threads_on_one_path_one_succeeds_and_the_others_meet_a_conflict(run: Run) -> None:
    together = threading.Barrier(THREADS, timeout=30)

    def work(number: int) -> list[str]:
        try:
            with run.publish("count") as files:
                files.write_text("a", str(int(files.read_text("a")) + 1))
                together.wait()
        except Conflict as conflict:
            return list(conflict.details["paths"])
        return []

    with senders(THREADS) as go:
        told = [done.result() for done in [go(work, number) for number in range(THREADS)]]

    assert sorted(told) == [[]] + [["a"]] * (THREADS - 1)
    assert run.files.read_text("a") == "2"
    assert len(publishes(run)) == 2


def test_whoever_tries_again_after_each_conflict_loses_no_count(run: Run) -> None:
    def add() -> None:
        while True:
            try:
                with run.publish("count") as files:
                    files.write_text("a", str(int(files.read_text("a")) + 1))
            except Conflict:
                continue
            return

    with senders(4) as go:
        for done in [go(lambda: [add() for _ in range(5)]) for _ in range(4)]:
            done.result()

    assert run.files.read_text("a") == "21"


@pytest.mark.parametrize(
    ("theirs", "mine", "paths"),
    [
        (lambda files: files.write_text("a", "x"), lambda files: files.read_text("a"), ["a"]),
        (lambda files: files.write_text("a", "x"), lambda files: files.write_text("a", "y"), ["a"]),
        (lambda files: files.write_text("a", "x"), lambda files: files.write_text("b", "y"), []),
        (lambda files: files.write_text("a", "x"), lambda files: files.exists("a"), ["a"]),
        (lambda files: files.write_text("new", "x"), lambda files: files.exists("new"), ["new"]),
        (lambda files: files.write_text("d/new", "x"), lambda files: list(files.iterdir("d")), ["d"]),
        (lambda files: files.write_text("d/e/g", "x"), lambda files: list(files.iterdir("d")), []),
        (lambda files: files.write_text("d/e/new", "x"), lambda files: list(files.iterdir("d")), []),
        (lambda files: files.write_text("d/e/new", "x"), lambda files: list(files.walk("d")), ["d/e"]),
        (lambda files: files.write_text("d/e/new", "x"), lambda files: list(files.glob("d/*/g")), ["d/e"]),
        (lambda files: files.write_text("d/e/g", "x"), lambda files: files.rename("d", "z"), ["d"]),
        (lambda files: files.write_text("d/e/g", "x"), lambda files: files.copy("d", "z"), ["d"]),
        (lambda files: files.chmod("a", 0o600), lambda files: files.stat("a"), ["a"]),
        (lambda files: files.write_text("NEW", "x"), lambda files: files.write_text("new", "y"), ["new"]),
        (lambda files: files.rmtree("d"), lambda files: files.write_text("d/new", "y"), ["d/new"]),
        (lambda files: files.write_text("d/f", "x"), lambda files: files.open("d/f").close(), ["d/f"]),
        (lambda files: (files.write_text("a", "x"), files.write_text("a", "1")), lambda files: files.read_text("a"), []),
        (lambda files: (files.rmtree("d/e"), files.symlink("d/e", "..")), lambda files: files.exists("d/e/a"), ["d/e/a"]),
        (lambda files: files.remove("a"), lambda files: refused(files.write_text, "A", ""), ["a"]),
        (lambda files: files.write_text("d/e/new", "x"), lambda files: files.root, ["."]),
    ],
)
def test_a_conflict_is_on_the_paths_that_were_read_or_written_and_have_changed(
    run: Run, theirs: Work, mine: Work, paths: list[str]
) -> None:
    def block() -> None:
        with run.publish("mine") as files:
            mine(files)
            files.mkdir("mine")
            run.publish("theirs", theirs)

    if not paths:
        block()
        assert run.files.is_dir("mine")
    else:
        with pytest.raises(Conflict) as caught:
            block()
        assert (caught.value.details["paths"], caught.value.executed) == (paths, "no")
        assert all(path in str(caught.value) for path in paths)
        assert not run.files.exists("mine")
    assert [name for name, _ in publishes(run)] == ["start", "theirs", "mine"][: 2 + (not paths)]
    run.verify()


def test_a_long_list_of_conflicts_is_told_by_its_beginning(run: Run) -> None:
    run.publish("many", lambda files: [files.write_text(f"f{number:02}", "") for number in range(30)])
    with pytest.raises(Conflict) as caught, run.publish("mine") as files:
        for number in range(30):
            files.read_text(f"f{number:02}")
        run.publish("theirs", lambda others: [others.write_text(f"f{number:02}", "x") for number in range(30)])

    assert str(caught.value).startswith("f00, f01, ")
    assert " and 20 more" in str(caught.value)
    assert len(caught.value.details["paths"]) == 30


def test_the_changes_of_a_merged_block_are_its_own_and_the_root_holds_both(run: Run) -> None:
    with run.publish("mine") as files:
        files.write_text("mine", "1")
        files.write_text("d/mine", "2")
        theirs = run.publish("theirs", lambda others: (others.write_text("d/theirs", "3"), others.chmod("d", 0o700)))

    assert [change.path for change in files.effect.changes] == ["d/mine", "mine"]
    assert files.effect.changes == run.diff(theirs, files.effect)
    assert files.effect.data == {"changes": 2}
    assert {"mine", "d/mine", "d/theirs"} < contents(run.files).keys()
    assert run.files.stat("d").st_mode == 0o40700
    run.verify()


def test_objects_written_ahead_are_listed_until_they_are_published(run: Run) -> None:
    with run.publish("ahead") as files:
        files.write_bytes("big", noise(1))
        assert staged(run) > 0
        run.verify()
    assert staged(run) == 0
    assert run.files.read_bytes("big") == noise(1)
    run.verify()


def test_an_abandoned_block_leaves_the_root_and_a_later_one_takes_up_what_it_wrote_ahead(run: Run) -> None:
    before, events = run.files.root, run.info.events
    with pytest.raises(ZeroDivisionError), run.publish("lost") as files:
        files.write_bytes("big", noise(1))
        raise ZeroDivisionError
    left = staged(run)
    assert left > 0
    assert (run.files.root, run.info.events) == (before, events)
    with pytest.raises(Refused):
        _ = files.effect
    run.verify()

    with run.publish("kept") as files:
        files.write_bytes("again", noise(1))
    assert staged(run) == 0
    assert run.files.read_bytes("again") == noise(1)
    run.verify()


def test_what_was_written_ahead_is_not_listed_any_more_once_a_function_has_published_it(run: Run) -> None:
    with pytest.raises(ZeroDivisionError), run.publish("lost") as files:
        files.write_bytes("big", noise(1))
        raise ZeroDivisionError
    run.publish("kept", lambda files: files.write_bytes("big", noise(1)))

    assert staged(run) == 0
    run.verify()


def test_a_conflict_leaves_what_was_written_ahead_to_the_next_try(run: Run, request: pytest.FixtureRequest) -> None:
    for number in range(2):
        try:
            with run.publish("try") as files:
                files.read_text("a")
                files.write_bytes("big", noise(1))
                if number == 0:
                    run.publish("theirs", lambda others: others.write_text("a", "x"))
        except Conflict:
            assert number == 0
            assert staged(run) > 0
    # By messages, the directory that the first try would have published has gone ahead too, and nobody takes that up.
    assert staged(run) == (request.node.callspec.params["run"] == "by messages")
    assert run.files.read_bytes("big") == noise(1)
    run.verify()


@pytest.mark.parametrize(
    ("work", "record"),
    [
        (lambda files: files.read_text("none"), {"failed": "FileNotFoundError", "errno": "ENOENT", "path": "none"}),
        (lambda files: files.write_text("A", ""), {"failed": "PathRefused", "errno": None, "path": None}),
        (lambda files: files.rename("d", "d/e/x"), {"failed": "OSError", "errno": "EINVAL", "path": "d"}),
    ],
)
def test_a_file_error_that_leaves_the_block_is_recorded_and_changes_nothing(run: Run, work: Work, record: dict[str, Any]) -> None:
    before = contents(run.files)
    with pytest.raises((OSError, PathRefused)), run.publish("lost", request_id="r") as files:
        files.write_text("new", "5")
        work(files)

    assert publishes(run)[-1] == ("lost", record)
    assert contents(run.files) == before
    with run.publish("lost", request_id="r") as files:
        files.write_text("new", "5")
    assert run.files.read_text("new") == "5"


def test_a_path_that_is_too_deep_only_at_the_end_is_a_failed_publish_too(run: Run) -> None:
    def deepen(files: Files) -> None:
        files.mkdir("/".join("x" * 200), parents=True)
        files.mkdir("/".join("y" * 100), parents=True)
        files.rename("x", "/".join("y" * 100) + "/x")

    with pytest.raises(PathRefused):
        run.publish("function", deepen)
    with pytest.raises(PathRefused), run.publish("block") as files:
        deepen(files)

    record = {"failed": "PathRefused", "errno": None, "path": None}
    assert publishes(run)[1:] == [("function", record), ("block", record)]
    assert not run.files.exists("y")


def test_a_repeated_request_returns_the_first_effect_and_changes_nothing(run: Run) -> None:
    effects = []
    for content in ("first", "second"):
        with run.publish("once", request_id="r") as files:
            files.write_text("new", content)
        effects.append(files.effect)
    run.publish("theirs", lambda others: others.write_text("a", "x"))
    by_function = run.publish("once", lambda files: files.write_text("new", "third"), request_id="r")

    assert effects[0] == effects[1] == by_function
    assert [list(effect.changes) for effect in effects] == [list(by_function.changes)] * 2
    assert run.files.read_text("new") == "first"
    with pytest.raises(Refused) as caught, run.publish("another", request_id="r") as files:
        files.write_text("new", "fourth")
    assert caught.value.code == "request_conflict"


def test_a_repeated_request_is_answered_though_its_paths_have_changed(run: Run) -> None:
    with run.publish("once", request_id="r") as first:
        first.write_text("a", "mine")
    run.publish("theirs", lambda others: others.write_text("a", "x"))
    with run.publish("once", request_id="r") as again:
        again.write_text("a", "mine")
        run.publish("theirs", lambda others: others.write_text("a", "y"))

    assert again.effect == first.effect
    assert run.files.read_text("a") == "y"


@pytest.mark.parametrize(
    "work",
    [
        lambda files: files.remove("a"),
        lambda files: files.rename("b", "moved"),
        lambda files: [files.mkdir("x" * 200), files.rename("d", "x" * 200 + "/d")],
    ],
    ids=["removed", "renamed", "made"],
)
def test_a_repeated_request_is_answered_though_what_it_did_is_in_its_way(run: Run, work: Work) -> None:
    with run.publish("once", request_id="r") as first:
        work(first)
    before = run.info.events, contents(run.files)
    with run.publish("once", request_id="r") as again:
        work(again)

    assert (again.effect, list(again.effect.changes)) == (first.effect, list(first.effect.changes))
    assert (run.info.events, contents(run.files)) == before


def test_an_error_in_a_repetition_that_is_no_file_error_of_its_own_is_let_out(run: Run) -> None:
    with run.publish("once", request_id="r") as files:
        files.remove("a")
    before = run.info.events
    for error in (ZeroDivisionError(), FileNotFoundError(2, "not one of these files")):
        with pytest.raises(type(error)), run.publish("once", request_id="r"):
            raise error

    assert run.info.events == before


def test_a_file_error_under_the_request_id_of_another_piece_of_work_is_no_repetition(run: Run) -> None:
    with run.publish("once", request_id="r") as files:
        files.remove("a")
    before = run.info.events
    with pytest.raises(Refused) as caught, run.publish("another", request_id="r") as files:
        files.remove("a")

    assert (caught.value.code, run.info.events) == ("request_conflict", before)


@pytest.mark.parametrize("wrong", [{"request_id": ""}, {"request_id": 7}])
def test_what_cannot_be_published_is_refused_before_the_block(run: Run, wrong: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        run.publish("x", **wrong)
    with pytest.raises(Refused):
        run.publish("")


def test_a_block_of_a_closed_lease_is_refused_and_one_that_is_open_publishes_nothing(host: Host, run: Run) -> None:
    lease = host.open("a")
    with pytest.raises(LeaseClosed), lease.publish("lost") as files:
        files.write_text("new", "5")
        lease.close()
    with pytest.raises(LeaseClosed):
        lease.publish("lost")

    assert not run.files.exists("new")
    assert len(publishes(run)) == 1


def test_a_block_that_ends_in_another_thread_is_refused_and_publishes_nothing(run: Run) -> None:
    block = run.publish("lost")
    files = block.__enter__()
    files.write_text("new", "5")
    codes = []

    def end() -> None:
        with pytest.raises(Refused) as caught:
            block.__exit__(None, None, None)
        codes.append(caught.value.code)

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()

    assert codes == ["transaction_over"]
    assert (run.files.exists("new"), len(publishes(run))) == (False, 1)


def test_blocks_of_one_thread_stand_beside_each_other(run: Run) -> None:
    with run.publish("outer") as outer:
        outer.write_text("outer", "1")
        with run.publish("inner") as inner:
            inner.write_text("inner", "2")
            assert not inner.exists("outer")
        assert "inner" in contents(run.files)

    assert run.files.read_text("outer") + run.files.read_text("inner") == "12"
    run.verify()


@pytest.fixture
def elsewhere(host: Host) -> Iterator[Run]:
    """A run on which everything that a block asks can be watched."""
    with host.create("b") as run:
        run.publish("start", start)
        yield run


def staging(run: Run, ask: Callable[[Any], Any], request_id: str | None = None, name: str = "mine") -> Staging:
    """Return a block that has nothing but messages."""
    return Staging(ask, None, run._effect_again, name, run._secrets, str(run.path.parent), request_id)


def test_by_messages_it_publishes_on_the_root_that_each_try_has_met(elsewhere: Run) -> None:
    asked: list[str] = []

    def ask(message: Any) -> Any:
        asked.append(type(message).__name__)
        if isinstance(message, PublishOn) and asked.count("PublishOn") <= 3:
            elsewhere.publish("theirs", lambda files: files.write_text(f"theirs {asked.count('PublishOn')}", "x"))
        return elsewhere._ask(message)

    with staging(elsewhere, ask) as files:
        files.write_bytes("mine", noise(7, 5_000))

    assert asked.count("PublishOn") == 4
    assert [change.path for change in files.effect.changes] == ["mine"]
    assert {"mine", "theirs 1", "theirs 2", "theirs 3"} < contents(elsewhere.files).keys()
    assert [name for name, _ in publishes(elsewhere)] == ["start", "theirs", "theirs", "theirs", "mine"]
    assert (astray(elsewhere), files.effect.durable, files.effect.root) == (0, True, elsewhere.files.root)
    elsewhere.verify()


def test_by_messages_it_gives_up_after_so_many_tries_and_has_published_nothing(elsewhere: Run) -> None:
    tries = 0

    def ask(message: Any) -> Any:
        nonlocal tries
        if isinstance(message, PublishOn):
            tries += 1
            elsewhere.publish("theirs", lambda files: files.write_text("theirs", str(tries)))
        return elsewhere._ask(message)

    with pytest.raises(Unavailable) as caught, staging(elsewhere, ask) as files:
        files.write_text("mine", "1")

    assert (caught.value.code, caught.value.executed, caught.value.retryable) == ("root_keeps_moving", "no", True)
    assert tries == PUBLISH_TRIES_MAX
    assert not elsewhere.files.exists("mine")
    elsewhere.verify()


def test_by_messages_a_conflict_that_comes_between_two_tries_is_one(elsewhere: Run) -> None:
    tries = 0

    def ask(message: Any) -> Any:
        nonlocal tries
        if isinstance(message, PublishOn):
            tries += 1
            elsewhere.publish("theirs", lambda files: files.write_text("b" if tries == 1 else "a", "theirs"))
        return elsewhere._ask(message)

    with pytest.raises(Conflict) as caught, staging(elsewhere, ask) as files:
        files.write_text("a", "mine")

    assert (caught.value.details["paths"], tries) == (["a"], 2)
    assert elsewhere.files.read_text("a") == "theirs"


def test_by_messages_its_request_is_the_same_as_in_the_owners_process(elsewhere: Run) -> None:
    with staging(elsewhere, elsewhere._ask, "r") as first:
        first.write_text("new", "1")
    with elsewhere.publish("mine", request_id="r") as here:
        here.write_text("new", "2")
    again = elsewhere.publish("mine", lambda files: files.write_text("new", "3"), request_id="r")
    function = elsewhere.publish("other", lambda files: [files.write_text("other", "1"), 7][1], request_id="s")
    with staging(elsewhere, elsewhere._ask, "s", "other") as block:
        block.write_text("other", "2")

    assert first.effect == here.effect == again
    assert [list(effect.changes) for effect in (here.effect, again)] == [list(first.effect.changes)] * 2
    assert (block.effect.seq, getattr(block.effect, "value", None)) == (function.seq, 7)
    assert [name for name, _ in publishes(elsewhere)] == ["start", "mine", "other"]


def test_by_messages_nothing_but_messages_of_these_kinds_is_asked(elsewhere: Run) -> None:
    from freehold.storage.reads import READS

    asked: set[type] = set()

    def ask(message: Any) -> Any:
        asked.add(type(message))
        assert not isinstance(message, KeepObjects) or message.ahead
        return elsewhere._ask(message)

    with staging(elsewhere, ask) as files:
        files.write_bytes("big", noise(1))
        elsewhere.publish("theirs", lambda others: others.write_bytes("theirs", noise(2)))
    with pytest.raises(FileNotFoundError), staging(elsewhere, ask) as files:
        files.read_text("none")

    assert asked - READS.keys() == {KeepObjects, PublishOn}
    assert publishes(elsewhere)[-1][1] == {"failed": "FileNotFoundError", "errno": "ENOENT", "path": "none"}


def test_a_publish_on_another_root_than_the_current_one_changes_nothing(elsewhere: Run) -> None:
    before, now = elsewhere.info, bytes.fromhex(elsewhere.files.root)
    for base, root, code in ((bytes(32), None, "root_moved"), (bytes(32), b"x", "root_moved"), (None, b"x", "bad_option")):
        with pytest.raises(Refused) as caught:
            elsewhere._ask(PublishOn("lost", "{}", base, root))
        assert (caught.value.code, caught.value.executed) == (code, "no")
    assert (elsewhere.info.events, elsewhere.info.txn) == (before.events, before.txn)

    written = elsewhere._ask(PublishOn("empty", '{"changes":0}', now, None))
    assert (written.seq, written.kind, written.root_hash) == (before.events + 1, "publish", now)
    assert elsewhere._ask(Append("on", "null")).seq == before.events + 2
    elsewhere.verify()
