"""A lease: append, transact and requests; what comes back is what every later reader will get, and each request happens once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from folder import snapshot
from turns import names, owner, senders, settle

import freehold
from freehold import Host, Refused, RequestExpired, Run, Transaction, ValueRefused
from freehold.schema.limits import REPLY_BYTES_MAX, REQUEST_KEEP_S
from freehold.storage.clock import Clock


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path, timeout=20) as host:
        yield host


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a") as run:
        yield run


def test_an_appended_event_equals_the_one_that_is_read_back(host: Host, run: Run) -> None:
    written = run.append("greeting", {"text": "hello", "tags": ("a", b"b")})
    run.append("long", "x" * 50_000)
    host.close()
    with freehold.open(host.root) as again, again.open("a") as reader:
        _, read, long = reader.history()
    for name in ("seq", "id", "kind", "name", "data", "root", "hash", "time", "execution", "outcome"):
        assert getattr(read, name) == getattr(written, name), name
    assert read == written
    assert (read.seq, read.kind, read.name, read.data) == (2, "note", "greeting", {"text": "hello", "tags": ("a", b"b")})
    assert long.data == "x" * 50_000


def test_the_data_of_an_event_is_detached_from_the_callers_object(run: Run) -> None:
    mine: dict[str, Any] = {"members": [1, 2]}
    event = run.append("x", mine)
    mine["members"].append(3)
    mine["more"] = True
    assert event.data == {"members": [1, 2]} == next(iter(run.history(name="x"))).data
    event.data["members"].append(4)
    assert next(iter(run.history(name="x"))).data == {"members": [1, 2]}


def test_a_value_comes_back_as_every_later_reader_gets_it(run: Run) -> None:
    class Colour(str):
        __slots__ = ()

    event = run.append(Colour("name"), {"set": {1}, "text": Colour("blue")})
    assert type(event.name) is str
    assert type(event.data["text"]) is str
    assert event.data == next(iter(run.history(name="name"))).data


def test_a_text_that_says_other_things_of_itself_is_stored_as_it_is(host: Host, run: Run) -> None:
    class Liar(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "innocent"

    run.append(Liar("true name"), request_id=Liar("one"))
    run.transact(lambda tx: tx.append(Liar("true name")))
    assert names(run) == ["true name"] * 2
    assert run.append("true name", request_id="one").seq == 2
    with freehold.open(host.root / "other", secrets={"key": "true name"}) as careful, careful.create("a") as guarded:
        calls: list[Callable[[], object]] = [
            lambda: guarded.append(Liar("true name")),
            lambda: guarded.append("x", request_id=Liar("true name")),
        ]
        for call in calls:
            with pytest.raises(Refused) as caught:
                call()
            assert caught.value.code == "secret_refused"
        assert names(guarded) == []


def test_everything_of_a_transaction_is_kept_or_nothing(run: Run) -> None:
    events = run.transact(lambda tx: [tx.append("one"), tx.append("two")])
    assert [event.seq for event in events] == [2, 3]
    with pytest.raises(ZeroDivisionError):
        run.transact(lambda tx: [tx.append("lost"), tx.append("lost"), 1 / 0])
    assert names(run) == ["one", "two"]


def test_a_transaction_has_one_time(run: Run) -> None:
    first, second = run.transact(lambda tx: (tx.append("one"), (tx.append("two"), tx.now)))
    assert first.time == second[0].time
    assert abs((second[1] - first.time).total_seconds()) < 0.001


# Requests


def test_the_same_request_id_returns_the_same_event_and_adds_nothing(host: Host, run: Run) -> None:
    first = run.append("x", {"a": 1, "b": [2]}, request_id="one")
    again = run.append("x", {"b": [2], "a": 1}, request_id="one")
    assert again == first
    assert (again.data, again.name, again.time, again.id) == (first.data, first.name, first.time, first.id)
    assert names(run) == ["x"]
    host.close()
    with freehold.open(host.root) as later, later.open("a") as reader:
        assert reader.append("x", {"a": 1, "b": [2]}, request_id="one") == first


@pytest.mark.parametrize(("name", "data"), [("x", {"a": 2}), ("x", [1]), ("y", {"a": 1}), ("x", None)], ids=str)
def test_another_request_under_the_same_id_is_refused(run: Run, name: str, data: Any) -> None:
    run.append("x", {"a": 1}, request_id="one")
    calls: list[Callable[[], object]] = [
        lambda: run.append(name, data, request_id="one"),
        lambda: run.transact(lambda tx: tx.append("lost"), request_id="one"),
    ]
    for call in calls:
        with pytest.raises(Refused) as caught:
            call()
        assert (caught.value.code, caught.value.executed) == ("request_conflict", "no")
    assert names(run) == ["x"]


def test_a_repeated_append_returns_the_data_in_the_order_that_is_stored(run: Run) -> None:
    first = run.append("x", {"a": 1, "b": 2}, request_id="one")
    again = run.append("x", {"b": 2, "a": 1}, request_id="one")
    assert again == first
    assert list(again.data) == ["a", "b"]


def test_eight_threads_with_one_request_id_append_one_event(run: Run) -> None:
    with senders(8) as go:
        events = [call.result() for call in [go(run.append, "x", [1], request_id="one") for _ in range(8)]]
    assert len({event.hash for event in events}) == 1
    assert names(run) == ["x"]


def test_a_repeated_request_commits_nothing(run: Run) -> None:
    run.append("x", request_id="one")
    before = run.info.txn
    run.append("x", request_id="one")
    assert run.info.txn == before


def test_a_transaction_with_a_request_id_runs_once_and_returns_its_value_for_ever(host: Host, run: Run) -> None:
    ran: list[int] = []

    def work(tx: Transaction) -> Any:
        ran.append(1)
        first = tx.append("one", [1])
        return {"event": first, "pair": (first, [tx.append("two"), None]), "text": "x", "empty": ()}

    before = run.transact(work, request_id="one")
    host.close()
    with freehold.open(host.root) as again, again.open("a") as later:
        after = later.transact(work, request_id="one")
        assert names(later) == ["one", "two"]
    assert before == after
    assert type(after["pair"]) is tuple
    assert (after["event"].seq, after["pair"][1][0].name, after["event"].data) == (2, "two", [1])
    assert len(ran) == 1


def test_eight_threads_with_one_request_id_run_one_transaction(run: Run) -> None:
    with senders(8) as go:
        calls = [go(run.transact, lambda tx: tx.append("x").seq, request_id="one") for _ in range(8)]
        assert {call.result() for call in calls} == {2}
    assert names(run) == ["x"]


def test_a_transaction_that_failed_under_its_request_id_may_run_again(run: Run) -> None:
    with pytest.raises(ZeroDivisionError):
        run.transact(lambda tx: (tx.append("lost"), 1 / 0), request_id="one")
    assert run.transact(lambda tx: tx.append("kept").seq, request_id="one") == 2


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ({"summary": object()}, "value_refused"),
        ("x" * REPLY_BYTES_MAX, "value_too_large"),
        (["x" * 1000] * 70, "value_too_large"),
        ({1: "x"}, "value_refused"),
    ],
    ids=["object", "long", "many", "key"],
)
def test_a_reply_that_cannot_be_kept_is_refused_and_everything_is_undone(run: Run, value: Any, code: str) -> None:
    with pytest.raises(ValueRefused) as caught:
        run.transact(lambda tx: (tx.append("lost"), value)[1], request_id="one")
    assert (caught.value.code, caught.value.executed) == (code, "no")
    assert names(run) == []
    assert run.transact(lambda _tx: 1, request_id="one") == 1


def test_the_path_to_what_was_refused_in_a_reply_is_the_callers_own(run: Run) -> None:
    with pytest.raises(ValueRefused) as caught:
        run.transact(lambda tx: {"jobs": [tx.append("lost"), {"summary": object()}]}, request_id="one")
    assert caught.value.details["path"] == "$.jobs[1].summary"


def test_a_reply_just_under_the_limit_is_kept(run: Run) -> None:
    value = "x" * (REPLY_BYTES_MAX - len('["",[]]'))
    assert run.transact(lambda _tx: value, request_id="one") == value
    assert run.transact(lambda _tx: "", request_id="one") == value
    with pytest.raises(ValueRefused):
        run.transact(lambda _tx: value + "x", request_id="two")
    run.verify()


def test_a_deeply_nested_reply_is_kept_and_one_that_holds_itself_refused(run: Run) -> None:
    deep: Any = run.append("leaf")
    for _ in range(60):
        deep = [deep]
    assert run.transact(lambda _tx: deep, request_id="one") == run.transact(lambda _tx: 0, request_id="one") == deep
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(ValueRefused) as caught:
        run.transact(lambda _tx: ring, request_id="two")
    assert caught.value.code == "value_too_deep"


def test_an_event_that_is_not_in_the_journal_is_no_reply(host: Host, run: Run) -> None:
    with host.create("b") as other:
        foreign = other.append("x")
    run.append("x")

    def undone(tx: Transaction) -> object:
        with pytest.raises(ZeroDivisionError), tx.savepoint():
            event = tx.append("lost")
            raise ZeroDivisionError
        tx.append("in its place")
        return event

    for work in (lambda _tx: [foreign], undone):
        with pytest.raises(ValueRefused):
            run.transact(work, request_id="one")
    assert names(run) == ["x"]


def test_a_reply_is_dropped_after_thirty_days_and_the_request_never_runs_again(host: Host, run: Run) -> None:
    class Later(Clock):
        days = 0.0

        def now_ms(self) -> int:
            return super().now_ms() + int(self.days * 24 * 3600 * 1000)

    clock = Later()
    owner(host, run)._store.clock = clock
    assert run.transact(lambda tx: tx.append("x").seq, request_id="one") == 2
    event = run.append("y", request_id="append")

    clock.days = REQUEST_KEEP_S / 86400 - 1
    run.transact(lambda _tx: None, request_id="before")
    assert run.transact(lambda tx: tx.append("lost").seq, request_id="one") == 2

    clock.days = REQUEST_KEEP_S / 86400 + 1
    run.transact(lambda _tx: None, request_id="after")
    with pytest.raises(RequestExpired) as caught:
        run.transact(lambda tx: tx.append("lost"), request_id="one")
    assert caught.value.executed == "yes"
    assert run.append("y", request_id="append") == event
    assert names(run) == ["x", "y"]
    run.verify()


# Wrong calls

WRONG_NAMES: list[Any] = ["", "x" * 257, "a\x00b", "a\nb", "\ud800", None, 1, b"x", ["x"]]
WRONG_REQUEST_IDS: list[Any] = ["", "x" * 129, "a\x00b", "\udcff", 1, b"x"]


@pytest.mark.parametrize("name", WRONG_NAMES, ids=repr)
def test_a_wrong_name_is_refused(run: Run, name: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: run.append(name),
        lambda: run.transact(lambda tx: tx.append(name)),
        lambda: run.append(name, request_id="x"),
    ]
    for call in calls:
        with pytest.raises(Refused) as caught:
            call()
        assert caught.value.code == "bad_name"
    assert names(run) == []


@pytest.mark.parametrize("request_id", WRONG_REQUEST_IDS, ids=repr)
def test_a_wrong_request_id_is_refused(run: Run, request_id: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: run.append("x", request_id=request_id),
        lambda: run.transact(lambda _tx: None, request_id=request_id),
    ]
    for call in calls:
        with pytest.raises(Refused) as caught:
            call()
        assert caught.value.code == "bad_request_id"
    assert names(run) == []


@pytest.mark.parametrize("data", [object(), print, {1: 2}, {"a": [object()]}, 1 + 2j, range(3)], ids=lambda data: type(data).__name__)
def test_a_value_that_cannot_be_stored_is_refused(run: Run, data: Any) -> None:
    calls: list[Callable[[], object]] = [lambda: run.append("x", data), lambda: run.transact(lambda tx: tx.append("x", data))]
    for call in calls:
        with pytest.raises(ValueRefused) as caught:
            call()
        assert caught.value.code == "value_refused"
    assert names(run) == []
    assert run.append("y").seq == 2


def test_names_and_request_ids_of_the_greatest_length_are_taken(run: Run) -> None:
    run.append("x" * 256, request_id="y" * 128)
    assert names(run) == ["x" * 256]
    run.verify()


def test_a_refused_call_leaves_the_folder_as_it_was(host: Host, run: Run) -> None:
    run.append("x")
    settle(host)
    before = snapshot(host.root)
    calls: list[Callable[[], object]] = [
        lambda: run.append(""),
        lambda: run.append("x", object()),
        lambda: run.append("x", request_id=""),
    ]
    for call in calls:
        with pytest.raises(Refused):
            call()
    assert snapshot(host.root) == before


def test_a_secret_is_refused_wherever_it_would_be_stored(tmp_path: Path) -> None:
    secret = "open-sesame"
    with freehold.open(tmp_path, secrets={"word": secret}) as host:
        calls: list[Callable[[], object]] = [
            lambda: host.create(secret),
            lambda: host.create("a", project=secret),
            lambda: host.create("a", props={"x": secret}),
            lambda: host.ensure("a", props={secret: 1}),
        ]
        for call in calls:
            with pytest.raises(Refused) as caught:
                call()
            assert caught.value.code == "secret_refused"
            assert secret not in str(caught.value)
        assert list(tmp_path.iterdir()) == []
        with host.create("a") as run:
            run.transact(lambda tx: tx.begin_execution())
            insides: list[Callable[[], object]] = [
                lambda: run.append(secret),
                lambda: run.append("x", [secret]),
                lambda: run.append("x", request_id=secret),
                lambda: run.transact(lambda tx: tx.append(secret)),
                lambda: run.transact(lambda tx: tx.append("x", {"a": secret})),
                lambda: run.transact(lambda _tx: None, request_id=secret),
                lambda: run.transact(lambda _tx: secret, request_id="reply"),
                lambda: run.transact(lambda tx: tx.settle("failed", code=secret)),
            ]
            for inside in insides:
                with pytest.raises(Refused) as caught:
                    inside()
                assert caught.value.code == "secret_refused"
                assert secret not in str(caught.value)
            assert names(run) == []
    assert all(secret.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_a_masked_value_is_what_the_call_and_its_repetition_hand_on(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    with freehold.open(tmp_path, on_secret_shape="mask") as host, host.create("a") as run:
        event = run.append("x", {"token": token}, request_id="one")
        assert token not in repr(event.data)
        assert run.append("x", {"token": token}, request_id="one").data == event.data
        value = run.transact(lambda tx: [token, tx.append("y")], request_id="two")
        assert value[0] != token
        assert run.transact(lambda _tx: [], request_id="two") == value
    assert token.encode() not in (tmp_path / "a.sqlite").read_bytes()
