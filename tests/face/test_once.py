"""A durable step: done once in the life of a run, by one runner at a time, and everybody gets what the journal holds."""

from __future__ import annotations

import dataclasses
import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextvars import copy_context
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, Self, TypedDict

import msgspec
import pytest
from faulty import EIO, FULL, Disk, put_on
from turns import Busy, owner, senders, store, until, waiting

import freehold
from freehold import (
    DeadlineExceeded,
    Done,
    Error,
    Host,
    InsideTransaction,
    LeaseClosed,
    Refused,
    Run,
    StepInfo,
    StorageFailed,
    ValueRefused,
)
from freehold.actors.claims import Claims
from freehold.current import claim_inside
from freehold.schema.limits import VALUE_BYTES_MAX

BIG = VALUE_BYTES_MAX


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
        yield run
    freehold.view(host.root / "a.sqlite").verify()


class Counted:
    """A function that counts how often it is done, and does what it is told."""

    def __init__(self, do: Callable[..., Any] = lambda *_: None) -> None:
        self.do = do
        self.calls: list[StepInfo] = []

    def __call__(self, *arguments: Any) -> Any:
        self.calls.append(freehold.current_step())
        return self.do(*arguments)


def fail(error: BaseException) -> Any:
    raise error


def refused(code: str, call: Callable[[], object]) -> Refused:
    with pytest.raises(Refused) as caught:
        call()
    assert caught.value.code == code
    return caught.value


def steps(run: Run) -> list[tuple[str | None, int | None, str | None]]:
    return [(event.name, event.attempt, event.outcome) for event in run.history() if event.kind == "step"]


def claims(host: Host, run: Run) -> Claims:
    return owner(host, run)._seat.claims


# Once


def test_a_step_is_done_once_and_answers_for_ever(host: Host, run: Run) -> None:
    work = Counted(lambda text: {"said": text, "pair": (1, {2})})
    first = run.once("greet", work, "hello")

    assert first == {"said": "hello", "pair": (1, {2})} == run.once("greet", work, "hello")
    assert len(work.calls) == 1
    assert steps(run) == [("greet", 1, "ok")]
    host.close()
    with freehold.open(host.root) as later, later.open("a") as again:
        assert again.once("greet", work, "hello") == first
    assert len(work.calls) == 1


def test_what_is_handed_on_is_what_the_journal_holds_and_nobodys_own_object(run: Run) -> None:
    mine: dict[str, Any] = {"members": [1]}
    first = run.once("x", lambda: mine)
    mine["members"].append(2)
    first["members"].append(3)

    assert run.once("x", lambda: mine) == {"members": [1]}


class Approval(msgspec.Struct):
    """A Struct."""

    approved: bool
    at: datetime


@dataclasses.dataclass
class Point:
    """A dataclass."""

    x: int


class Colour(Enum):
    """An enum."""

    RED = "red"


class Row(TypedDict):
    """A dict with known keys."""

    a: int


NOW = datetime(2026, 1, 2, tzinfo=UTC)


def approve() -> Approval:
    return Approval(True, NOW)


def points() -> list[Point]:
    return [Point(1), Point(2)]


def colour() -> Colour:
    return Colour.RED


def row() -> Row:
    return {"a": 1}


@pytest.mark.parametrize("fn", [approve, points, colour, row], ids=lambda fn: str(fn.__name__))
def test_a_typed_result_comes_back_by_its_annotation_the_first_time_too(run: Run, fn: Callable[[], Any]) -> None:
    first, again = run.once("x", fn), run.once("x", fn)

    assert first == fn() == again
    assert type(first) is type(fn()) is type(again)
    if fn is not colour:
        assert first is not again


def test_without_an_annotation_a_struct_comes_back_as_plain_values_both_times(run: Run) -> None:
    plain = {"approved": True, "at": NOW}
    fn: Callable[[], object] = lambda: approve()  # noqa: E731, PLW0108 - without its annotation

    assert [run.once("x", fn), run.once("x", fn)] == [plain, plain]


def test_a_result_that_is_not_what_its_annotation_says_fails_the_step_once(run: Run) -> None:
    calls: list[int] = []

    def wrong() -> Approval:
        calls.append(1)
        return {"approved": "SECRET"}  # type: ignore[return-value]

    for _ in range(2):
        error = refused("value_refused", lambda: run.once("x", wrong))
        assert error.details["type"] == "Approval"
        assert "SECRET" not in str(error)
    assert (len(calls), steps(run)) == (1, [("x", 1, "failed")])


def test_an_annotation_that_has_changed_leaves_the_outcome_as_it_is(run: Run) -> None:
    run.once("x", lambda: {"approved": True})
    refused("value_refused", lambda: run.once("x", approve))

    assert run.once("x", lambda: None) == {"approved": True}


def test_a_step_knows_who_it_is(host: Host, run: Run) -> None:
    work = Counted(lambda: fail(ValueError("no")) if len(work.calls) == 1 else None)
    with pytest.raises(ValueError, match="no"):
        run.once("charge", work)
    run.once("charge", work)
    run.once("other", other := Counted())
    with host.create("b") as elsewhere:
        elsewhere.once("charge", elsewhere_too := Counted())

    first, second = work.calls
    assert (first.name, first.attempt, second.attempt) == ("charge", 1, 2)
    assert first.idempotency_key == second.idempotency_key
    assert len({first.idempotency_key, other.calls[0].idempotency_key, elsewhere_too.calls[0].idempotency_key}) == 3
    refused("no_step", freehold.current_step)


def test_a_run_that_was_created_again_is_another_one_to_the_world(host: Host) -> None:
    keys = []
    for _ in range(2):
        with host.create("again") as run:
            run.once("charge", work := Counted())
        host.delete("again")
        keys.append(work.calls[0].idempotency_key)

    assert keys[0] != keys[1]


def test_a_thread_that_outlives_the_step_is_in_none(run: Run) -> None:
    contexts = []
    run.once("x", lambda: contexts.append(copy_context()))

    refused("no_step", lambda: contexts[0].run(freehold.current_step))
    assert contexts[0].run(run.once, "x", fail, ValueError()) is None


def test_a_step_that_is_over_is_around_nobody(run: Run) -> None:
    contexts = []

    def outer() -> None:
        contexts.append(copy_context())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.once("outer", outer)
    claim = contexts[0].run(claim_inside)

    assert claim.outer == ()


# Input


def test_one_key_is_one_piece_of_work(run: Run) -> None:
    assert run.once("x", dict, a=1, b=[2]) == {"a": 1, "b": [2]}
    assert run.once("x", dict, b=[2], a=1) == {"a": 1, "b": [2]}
    before = run.info.events
    for call in (lambda: run.once("x", dict, a=2, b=[2]), lambda: run.once("x", dict, [("a", 1)])):
        error = refused("input_changed", call)
        assert "'x'" in str(error)
        assert error.details["recorded"] != error.details["asked"]

    assert run.info.events == before


def test_changed_input_is_refused_after_a_failed_attempt_too(run: Run) -> None:
    with pytest.raises(ValueError, match="no"):
        run.once("x", lambda _: fail(ValueError("no")), 1)
    refused("input_changed", lambda: run.once("x", Counted(), 2))

    assert run.once("x", lambda one: one, 1) == 1


def test_arguments_that_are_no_values_are_not_compared(run: Run) -> None:
    assert run.once("x", lambda _: 7, object()) == 7
    assert run.once("x", lambda _: 8, object()) == 7
    assert run.once("x", lambda _: 8, 1) == 7
    assert next(iter(run.history(name="x"))).data == {"input": None, "result": 7}


def test_an_argument_whose_code_fails_is_no_value(run: Run) -> None:
    @dataclasses.dataclass
    class Odd:
        a: int

        def __getattribute__(self, name: str) -> Any:
            return fail(ZeroDivisionError()) if name == "a" else object.__getattribute__(self, name)

    assert run.once("x", lambda _: 7, Odd(1)) == 7


# Failed attempts


class CodedError(Exception):
    """One whose constructor is its own."""

    def __init__(self, code: int, detail: str) -> None:
        self.code = code
        self.detail = detail


def test_an_exception_is_recorded_and_comes_back_as_itself_and_the_next_call_tries_again(run: Run) -> None:
    mine = CodedError(7, "disk")
    with pytest.raises(CodedError) as caught:
        run.once("x", lambda: fail(mine))
    assert caught.value is mine
    assert steps(run) == [("x", 1, "failed")]
    failure = next(iter(run.history(name="x"))).data["failure"]
    assert failure["type"].endswith("CodedError")
    assert failure["details"] == {"code": 7, "detail": "disk"}
    assert "once.py" not in failure["traceback"].replace("test_once.py", "")
    assert run.once("x", lambda: "done") == "done"

    assert steps(run) == [("x", 1, "failed"), ("x", 2, "ok")]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_who_is_interrupted_leaves_nothing_and_gives_the_step_back(run: Run, kind: type[BaseException]) -> None:
    with pytest.raises(kind):
        run.once("x", lambda: fail(kind()))
    assert steps(run) == []

    assert run.once("x", Counted(lambda: 1)) == 1


def test_what_would_have_to_be_awaited_is_refused(run: Run) -> None:
    async def wait() -> int:
        return 1

    refused("awaitable_refused", lambda: run.once("x", wait))
    assert steps(run) == []
    refused("awaitable_refused", lambda: run.once("x", lambda: wait()))  # noqa: PLW0108 - it is no coroutine function itself
    assert steps(run) == [("x", 1, "failed")]
    assert run.once("x", lambda: 1) == 1


@pytest.mark.parametrize("key", ["", "x" * 129, "a\n", "a\ud800", 7, None])
def test_a_key_is_text_of_1_to_128_characters(run: Run, key: Any) -> None:
    refused("bad_name", lambda: run.once(key, Counted()))
    assert run.once("é" * 128, lambda: 1) == 1


def test_what_is_no_function_is_refused(run: Run) -> None:
    refused("bad_option", lambda: run.once("x", 7))  # type: ignore[arg-type]
    assert steps(run) == []


# Where it may be called


def test_inside_a_turn_of_the_same_run_it_is_refused(run: Run) -> None:
    with pytest.raises(InsideTransaction):
        run.transact(lambda _tx: run.once("x", Counted()))
    with run.transaction(), pytest.raises(InsideTransaction):
        run.once("x", Counted())
    assert steps(run) == []

    assert run.once("x", lambda: run.append("inside").name) == "inside"


def test_a_step_may_do_another_but_not_itself(run: Run) -> None:
    assert run.once("outer", lambda: [run.once("inner", lambda: freehold.current_step().name), freehold.current_step().name]) == [
        "inner",
        "outer",
    ]
    error = refused("ask_cycle", lambda: run.once("x", lambda: run.once("x", lambda: 1)))
    assert "'x'" in str(error)
    assert steps(run)[-1] == ("x", 1, "failed")


def test_a_step_is_not_asked_for_from_inside_itself_by_another_lease_or_thread(host: Host, run: Run) -> None:
    def by_a_thread() -> object:
        found: list[object] = []
        thread = threading.Thread(target=copy_context().run, args=(lambda: found.append(caught()),))
        thread.start()
        thread.join()
        return found[0]

    def caught() -> str:
        with host.open("a") as other:
            return refused("ask_cycle", lambda: other.once("x", Counted())).code

    assert run.once("x", by_a_thread) == "ask_cycle"


def test_the_same_key_of_another_run_is_another_step(host: Host, run: Run) -> None:
    with host.create("b") as other:
        assert run.once("x", lambda: other.once("x", lambda: 7)) == 7


def test_two_steps_that_would_wait_for_each_other_do_not(run: Run) -> None:
    both = threading.Barrier(2, timeout=20)
    errors: list[str] = []

    def take(one: str, other: str) -> None:
        def inside() -> None:
            both.wait()
            run.once(other, lambda: None)

        try:
            run.once(one, inside)
        except Refused as error:
            errors.append(error.code)

    with senders(2) as go:
        for future in [go(take, "a", "b"), go(take, "b", "a")]:
            future.result(20)

    assert errors == ["ask_cycle"]
    assert {name for name, _, outcome in steps(run) if outcome == "ok"} == {"a", "b"}


# One runner at a time


def test_sixteen_threads_that_ask_for_one_step_do_it_once(run: Run) -> None:
    gate = threading.Event()
    work = Counted(lambda: gate.wait(20) and len(work.calls))
    with senders(16) as go:
        asked = [go(run.once, "x", work) for _ in range(16)]
        until(lambda: work.calls)
        gate.set()
        assert [future.result(20) for future in asked] == [1] * 16
    assert steps(run) == [("x", 1, "ok")]


def test_a_failed_attempt_lets_the_next_one_try(run: Run) -> None:
    work = Counted(lambda: fail(ValueError("no")) if len(work.calls) < 8 else len(work.calls))
    with senders(16) as go:
        asked: list[Future[Any]] = [go(run.once, "x", work) for _ in range(16)]
        errors = [future.exception(20) for future in asked]

    assert sum(type(error) is ValueError for error in errors) == 7
    assert {future.result() for future, error in zip(asked, errors, strict=True) if error is None} == {8}
    assert steps(run) == [*(("x", number, "failed") for number in range(1, 8)), ("x", 8, "ok")]


class Holding:
    """Somebody who is inside a step until the block ends."""

    def __init__(self, run: Run, key: str = "x") -> None:
        self.inside, self.go = threading.Event(), threading.Event()
        self.outcome: list[object] = []
        self._thread = threading.Thread(target=self._hold, args=(run, key))

    def _hold(self, run: Run, key: str) -> None:
        def work() -> str:
            self.inside.set()
            assert self.go.wait(20)
            return "theirs"

        try:
            self.outcome.append(run.once(key, work))
        except Error as error:
            self.outcome.append(error)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self.inside.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self.go.set()
        self._thread.join(20)


def test_who_waits_for_a_step_holds_up_nobody_else(host: Host, run: Run) -> None:
    with senders(1) as go, Holding(run) as holding:
        waits = go(run.once, "x", Counted())
        until(lambda: claims(host, run)._waiting)
        assert run.append("meanwhile").seq == 2
        assert run.once("y", lambda: 1) == 1
        holding.go.set()
        assert waits.result(20) == "theirs"


def test_a_deadline_ends_the_wait_and_nothing_was_done(run: Run) -> None:
    with Holding(run):
        for call in (lambda: _within(0.2, run, "x"), lambda: run.options(timeout=0.2).once("x", Counted())):
            with pytest.raises(DeadlineExceeded) as caught:
                call()
            assert caught.value.executed == "no"
    assert run.once("x", Counted()) == "theirs"


def _within(seconds: float, run: Run, key: str) -> object:
    with freehold.fail_after(seconds):
        return run.once(key, Counted())


def test_without_a_deadline_one_waits_as_long_as_the_step_takes(host: Host, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.actors.waiting.WAIT_BEYOND_S", 0.05)
    with senders(1) as go, Holding(run) as holding:
        waits = go(run.once, "x", Counted())
        answered: list[object] = []
        monkeypatch.setattr(Claims, "ask_again", _counting(Claims.ask_again, answered))
        until(lambda: len(answered) > 5)
        assert not waits.done()
        holding.go.set()
        assert waits.result(20) == "theirs"


def _counting(real: Callable[..., None], calls: list[object]) -> Callable[..., None]:
    def counted(*arguments: Any) -> None:
        calls.append(arguments)
        real(*arguments)

    return counted


def test_a_lease_that_is_closed_gives_its_steps_back(host: Host, run: Run) -> None:
    other = host.open("a")
    with Holding(other) as holding:
        with senders(1) as go:
            waits = go(run.once, "x", lambda: "mine")
            until(lambda: claims(host, run)._waiting)
            other.close()
            assert waits.result(5) == "mine"  # before it would ask again by itself
        holding.go.set()
        holding._thread.join(20)
        assert type(holding.outcome[0]) is LeaseClosed
    assert steps(run) == [("x", 1, "ok")]


def test_a_runner_whose_claim_has_gone_records_nothing(host: Host, run: Run) -> None:
    with Holding(run) as holding:
        (held,) = claims(host, run)._held.values()
        run._ref.mailbox.post(held.claim)
        assert run.once("x", lambda: "mine") == "mine"
    (error,) = holding.outcome
    assert isinstance(error, Refused)
    assert (error.code, error.executed) == ("claim_lost", "no")

    assert steps(run) == [("x", 1, "ok")]
    assert run.once("x", Counted()) == "mine"


def test_who_is_collected_in_the_middle_gives_the_step_back(host: Host, run: Run) -> None:
    def begun() -> Any:
        from freehold.once import Once, Rule

        options: Any = {"secrets": run._secrets, "rule": Rule(), "timeout": None, "durable": True}
        step: Any = Once("x", Counted(), (), {}, **options)
        step.claim.hold = run._ref.mailbox.hold(step, step.claim)
        step._ask = lambda message, *_, **__: run._ref.call(message, run._lease, claim=step.claim)
        assert step._begin().attempt == 1
        step._ask = None

    begun()
    gc.collect()

    with freehold.fail_after(5):
        assert run.once("x", lambda: 1) == 1
    until(lambda: not claims(host, run)._held)


def test_the_host_that_closes_ends_every_wait(host: Host, run: Run) -> None:
    with senders(1) as go, Holding(run) as holding:
        waits = go(run.once, "x", Counted())
        until(lambda: claims(host, run)._waiting)
        closing = threading.Thread(target=host.close)
        closing.start()
        error = waits.exception(20)
        assert isinstance(error, Error)
        holding.go.set()
        closing.join(20)
    assert isinstance(holding.outcome[0], Error)
    with freehold.open(host.root) as later, later.open("a") as again:
        assert steps(again) == []


def test_a_claim_outlives_a_reopening_by_its_own_host(host: Host, run: Run, disk: Disk) -> None:
    with Holding(run) as holding:
        disk.arm("sync", code=EIO)
        with pytest.raises(StorageFailed):
            run.append("lost")
        disk.heal()
        until(lambda: run.append("after the reopening"))
        with senders(1) as go:
            waits = go(run.once, "x", Counted())
            until(lambda: claims(host, run)._waiting)
            holding.go.set()
            assert waits.result(20) == "theirs"
    assert holding.outcome == ["theirs"]
    assert steps(run) == [("x", 1, "ok")]


def test_a_question_that_was_taken_up_and_not_answered_has_done_nothing(run: Run, disk: Disk) -> None:
    work = Counted()
    with senders(2) as go, disk.hold() as held:
        with Busy(run) as busy:
            append, asked = go(run.append, "beside"), go(run.options(timeout=0.5).once, "x", work)
            waiting(run, 2)
            busy.release()
            assert held.reached.wait(20)
            error = asked.exception(20)
        held.release()
        append.result(20)

    assert isinstance(error, DeadlineExceeded)
    assert (error.executed, work.calls, steps(run)) == ("no", [], [])
    assert run.once("x", lambda: 1) == 1


# What can and cannot be kept


@pytest.mark.parametrize(
    ("value", "path", "code"),
    [
        ({"summary": object()}, "$.summary", "value_refused"),
        ({"a": [1, {2, len}]}, "$.a[1][*]", "value_refused"),
        ([[]], None, None),
        ("\ud800", "$", "value_refused"),
        ("x" * (BIG - 3), None, None),
        ("x" * (BIG - 2), None, None),
        ("x" * (BIG - 1), "$", "value_too_large"),
    ],
    ids=["object", "function in a set", "lists", "surrogate", "L-1", "L", "L+1"],
)
def test_a_result_that_cannot_be_kept_fails_the_step_once(run: Run, value: Any, path: str | None, code: str | None) -> None:
    work = Counted(lambda: value)
    if code is None:
        assert run.once("x", work) == value == run.once("x", work)
        assert steps(run) == [("x", 1, "ok")]
        return
    said = set()
    for _ in range(3):
        error = refused(code, lambda: run.once("x", work))
        assert isinstance(error, ValueRefused)
        assert (error.executed, error.details["path"]) == ("yes", path)
        said.add(str(error))
    assert len(said) == len(work.calls) == 1
    assert steps(run) == [("x", 1, "failed")]
    assert run.once("y", lambda: 1) == 1


def test_a_result_whose_own_code_fails_is_one_that_cannot_be_kept(run: Run) -> None:
    @dataclasses.dataclass
    class Odd:
        a: int

        def __getattribute__(self, name: str) -> Any:
            return fail(ZeroDivisionError("SECRET")) if name == "a" else object.__getattribute__(self, name)

    for _ in range(2):
        error = refused("value_refused", lambda: run.once("x", lambda: Odd(1)))
        assert "SECRET" not in str(error)
        assert error.__context__ is None
    assert steps(run) == [("x", 1, "failed")]


def test_a_full_disk_keeps_no_outcome_and_lets_the_next_one_try(run: Run, disk: Disk) -> None:
    work = Counted(lambda: disk.arm("write", code=FULL, sticky=True, until_closed=True) if len(work.calls) == 1 else "done")
    with pytest.raises(StorageFailed) as caught:
        run.once("x", work)
    assert caught.value.executed == "no"
    disk.heal()

    assert run.once("x", work) == "done"
    assert len(work.calls) == 2
    assert steps(run) == [("x", 1, "ok")]


def test_a_failed_attempt_that_cannot_be_recorded_is_told_with_what_it_failed_with(run: Run, disk: Disk) -> None:
    def work() -> None:
        disk.arm("write", code=FULL, sticky=True, until_closed=True)
        raise ValueError("mine")

    with pytest.raises(StorageFailed) as caught:
        run.once("x", work)
    disk.heal()

    assert type(caught.value.__cause__) is ValueError
    assert steps(run) == []


def test_a_step_that_does_not_wait_for_the_disk_is_made_durable_by_one_that_does(run: Run) -> None:
    hasty = run.options(durable=False)
    hasty.once("x", lambda: 1)
    hasty.once("x", lambda: 1)

    assert run.once("x", lambda: 2) == 1


# Steps that touch the world


def left(run: Run, rule: str = "park", **options: Any) -> None:
    """Leave a step of which nobody knows how it ended."""
    with pytest.raises(KeyboardInterrupt):
        run.options(unknown=rule, **options).once("x", lambda _: fail(KeyboardInterrupt()), 1)  # type: ignore[arg-type]


def test_an_intent_is_in_the_journal_before_the_step_begins(run: Run) -> None:
    def look(_: int) -> list[Any]:
        return [event.data for event in run.history(name="x")]

    (intent,) = run.options(unknown="park").once("x", look, 1)

    assert list(intent) == ["input", "policy", "key"]
    assert steps(run) == [("x", 1, None), ("x", 1, "ok")]


@pytest.mark.parametrize(("rule", "waits"), [("park", True), (None, False)])
def test_an_intent_waits_for_the_disk_whatever_the_lease_does(run: Run, disk: Disk, rule: Any, waits: bool) -> None:
    hasty = run.options(durable=False, unknown=rule)
    hasty.append("before")
    before = disk.syncs

    assert (hasty.once("x", lambda: disk.syncs) > before) == waits


@pytest.mark.parametrize("asked", [None, "park"])
def test_a_parked_step_waits_for_somebody_who_has_looked(run: Run, asked: Any) -> None:
    left(run)
    before = run.info.events
    error = refused("step_unknown", lambda: run.options(unknown=asked).once("x", Counted(), 1))
    assert (error.details["attempt"], error.details["event"]) == (1, 2)
    assert run.info.events == before

    assert run.options(unknown="repeat").once("x", Counted(lambda _: "again"), 1) == "again"
    assert steps(run)[-1] == ("x", 2, "ok")


@pytest.mark.parametrize(("said", "result"), [(True, None), (Done("receipt 7"), "receipt 7")])
def test_what_a_probe_finds_done_is_not_done_again(run: Run, said: Any, result: Any) -> None:
    left(run, "probe", probe=Counted())
    probe, work = Counted(lambda _: said), Counted()
    key = next(iter(run.history(name="x"))).data["key"]

    assert run.options(unknown="probe", probe=probe).once("x", work, 1) == result == run.once("x", work, 1)
    assert probe.calls == [StepInfo("x", 1, key)]
    assert work.calls == []
    assert steps(run) == [("x", 1, None), ("x", 1, "ok")]


def test_what_a_probe_finds_not_done_is_done(run: Run) -> None:
    left(run)
    probe, work = Counted(lambda _: False), Counted(lambda _: "done")

    assert run.options(unknown="probe", probe=probe).once("x", work, 1) == "done"
    assert (len(probe.calls), [info.attempt for info in work.calls]) == (1, [2])
    assert steps(run) == [("x", 1, None), ("x", 1, "failed"), ("x", 2, None), ("x", 2, "ok")]
    assert [event.data.get("failure", {}).get("type") for event in run.history(name="x")][1] == "freehold.NotDone"


def test_a_probe_that_says_something_else_or_fails_decides_nothing(run: Run) -> None:
    left(run)
    for probe in (lambda _: None, lambda _: 1, lambda _: "yes"):
        refused("bad_option", lambda probe=probe: run.options(unknown="probe", probe=probe).once("x", Counted(), 1))  # type: ignore[misc]
    with pytest.raises(ValueError, match="mine"):
        run.options(unknown="probe", probe=lambda _: fail(ValueError("mine"))).once("x", Counted(), 1)

    async def wait(_: int) -> bool:
        return True

    refused("awaitable_refused", lambda: run.options(unknown="probe", probe=wait).once("x", Counted(), 1))
    assert steps(run) == [("x", 1, None)]
    refused("step_unknown", lambda: run.once("x", Counted(), 1))


def test_a_probe_runs_alone_too(run: Run) -> None:
    left(run)
    probe = Counted(lambda _: len(probe.calls) == 1)
    with senders(8) as go:
        asked = [go(run.options(unknown="probe", probe=probe).once, "x", Counted(), 1) for _ in range(8)]
        assert [future.result(20) for future in asked] == [None] * 8
    assert len(probe.calls) == 1


def test_a_probe_whose_null_does_not_fit_the_annotation_is_none(run: Run) -> None:
    def typed(_: int) -> Approval:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.options(unknown="park").once("x", typed, 1)
    probing = run.options(unknown="probe", probe=lambda _: True)

    assert probing.once("x", typed, 1) is None
    assert run.once("x", typed, 1) is None


@pytest.mark.parametrize(
    "options",
    [
        {"unknown": "guess"},
        {"unknown": 7},
        {"unknown": ["park"]},
        {"unknown": "probe"},
        {"unknown": "probe", "probe": 7},
        {"unknown": "park", "probe": len},
        {"probe": len},
        {"probe": 7},
    ],
    ids=str,
)
def test_a_rule_that_is_none_is_refused(run: Run, options: dict[str, Any]) -> None:
    refused("bad_option", lambda: run.options(**options))


# Secrets


def test_no_declared_secret_is_kept_of_a_step(host: Host, tmp_path: Path) -> None:
    secret = "S3CR_canary"
    with freehold.open(tmp_path / "careful", secrets={"word": secret}) as careful, careful.create("a") as run:
        refused("secret_refused", lambda: run.once(f"key {secret}", Counted()))
        with pytest.raises(ValueError, match=secret):
            run.once("raises", lambda _: fail(ValueError(secret)), secret)
        for _ in range(2):
            error = refused("secret_refused", lambda: run.once("returns", lambda: {"token": secret}))
            assert error.details["path"] == "$.token"
            assert secret not in str(error)
        assert run.once("takes", lambda given: len(given), secret) == len(secret)  # noqa: PLW0108 - it takes one
        told = [event.data for event in run.history() if event.kind == "step"]
    assert [record["input"] is None for record in told] == [True, False, True]
    assert secret not in str(told)
    assert all(secret.encode() not in file.read_bytes() for file in (tmp_path / "careful").iterdir() if file.is_file())


def test_a_shape_is_refused_masked_or_allowed_as_told(tmp_path: Path) -> None:
    token = "AKIAIOSFODNN7EXAMPLE"
    expected = {"refuse": None, "mask": "***", "allow": token}
    for rule, result in expected.items():
        with freehold.open(tmp_path / rule, on_secret_shape=rule) as host, host.create("a") as run:  # type: ignore[arg-type]
            if result is None:
                refused("secret_refused", lambda run=run: run.once("x", lambda: token))  # type: ignore[misc]
            else:
                assert run.once("x", lambda: token) == result == run.once("x", lambda: "")


def test_a_turn_that_is_under_way_does_not_hold_up_what_a_step_does(run: Run) -> None:
    with senders(1) as go:
        with Busy(run):
            waits = go(run.once, "x", lambda: 1)
        assert waits.result(20) == 1


def test_a_plain_step_writes_one_transaction(host: Host, run: Run) -> None:
    before = store(host, run).committed_head.seq, run.info.txn
    run.once("x", lambda: 1)
    run.once("x", lambda: 1)

    assert (store(host, run).committed_head.seq, run.info.txn) == (before[0] + 1, before[1] + 1)
