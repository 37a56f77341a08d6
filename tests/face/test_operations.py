"""A transaction as data does what the same calls do in a callable, in one turn, all of it or nothing."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from published import contents, staged
from turns import names, senders

import freehold
from freehold import Error, Event, Host, PathRefused, Refused, Run, RunEnded, Transaction, ValueRefused
from freehold import operations as op
from freehold.schema.limits import APPLY_OPERATIONS_MAX, PIECES_BYTES_MAX
from freehold.schema.operations import Mkdir, Operation, WriteBytes


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path, timeout=30, secrets={"token": "swordfish-1"}) as host:
        yield host


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a") as run:
        yield run


def journal(run: Run) -> list[tuple[Any, ...]]:
    return [(event.kind, event.name, event.data, event.execution, event.root) for event in run.history(after=1)]


STEPS: list[tuple[Operation, Callable[[Transaction], object]]] = [
    (op.append("note", {"b": 1, "a": b"1", "c": (1, 2)}), lambda tx: tx.append("note", {"b": 1, "a": b"1", "c": (1, 2)})),
    (op.mkdir("d/e", parents=True), lambda tx: tx.files.mkdir("d/e", parents=True)),
    (op.write_bytes("d/big", bytes(200_000)), lambda tx: tx.files.write_bytes("d/big", bytes(200_000))),
    (op.write_text("d/text", "naïve\r\n"), lambda tx: tx.files.write_text("d/text", "naïve\r\n")),
    (op.append("named", "by this"), lambda tx: tx.append("named", "by this")),
    (op.touch("d/empty"), lambda tx: tx.files.touch("d/empty")),
    (op.symlink("d/link", "text"), lambda tx: tx.files.symlink("d/link", "text")),
    (op.begin_execution(), lambda tx: tx.begin_execution()),
    (op.copy("d", "copy"), lambda tx: tx.files.copy("d", "copy")),
    (op.rename("copy/text", "moved"), lambda tx: tx.files.rename("copy/text", "moved")),
    (op.chmod("moved", 0o600), lambda tx: tx.files.chmod("moved", 0o600)),
    (op.remove("d/link"), lambda tx: tx.files.remove("d/link")),
    (op.rmdir("d/e"), lambda tx: tx.files.rmdir("d/e")),
    (op.settle("failed", event=2), lambda tx: tx.settle("failed", event=2)),
    (op.rmtree("copy"), lambda tx: tx.files.rmtree("copy")),
    (op.mkdir("d", exist_ok=True), lambda tx: tx.files.mkdir("d", exist_ok=True)),
]


def test_it_leaves_the_very_journal_and_files_that_the_same_calls_leave(host: Host, run: Run) -> None:
    other = host.create("b")
    results = run.apply([operation for operation, _ in STEPS])
    made = other.transact(lambda tx: [call(tx) for _, call in STEPS])

    assert journal(run) == journal(other)
    assert contents(run.files) == contents(other.files)
    assert run.info.txn == other.info.txn
    assert [_plain(result) for result in results] == [_plain(each) for each in made]
    assert staged(run) == 0
    run.verify()
    other.close()


def _plain(result: object) -> object:
    return (result.seq, result.kind, result.data, result.durable) if isinstance(result, Event) else result


def test_nothing_to_do_is_done(run: Run) -> None:
    before = run.info.txn

    assert run.apply([]) == []
    assert run.info.txn == before


@pytest.mark.parametrize(
    ("last", "kind", "number"),
    [
        (op.remove("none"), FileNotFoundError, 2),
        (op.mkdir("d"), FileExistsError, 17),
        (op.write_bytes("d", b""), IsADirectoryError, 21),
        (op.rmdir("d"), OSError, 39),
        (op.rmtree("d/f"), NotADirectoryError, 20),
        (op.touch("d/f", exist_ok=False), FileExistsError, 17),
        (op.chmod("d/f", 0o10000), OSError, 22),
    ],
)
def test_a_file_error_is_pythons_own_names_its_operation_and_undoes_all(
    run: Run, last: Operation, kind: type[OSError], number: int
) -> None:
    before = run.info
    with pytest.raises(kind) as caught:
        run.apply([op.append("lost"), op.mkdir("d"), op.write_bytes("d/f", b"1"), op.append("lost too"), last])

    assert caught.value.errno == number
    assert isinstance(cause := caught.value.__cause__, Refused)
    assert (cause.code, cause.details["operation"], cause.executed) == ("file_error", 4, "no")
    assert caught.value.__notes__ == ["operation 4 of this transaction; all of it was undone"]
    assert (run.info.events, run.info.txn, contents(run.files)) == (before.events, before.txn, {})
    run.append("on")
    run.verify()


def test_every_other_error_names_its_operation_too(run: Run) -> None:
    run.apply([op.begin_execution(), op.settle("completed")])
    before = run.info
    with pytest.raises(RunEnded) as ended:
        run.apply([op.append("lost"), op.begin_execution()])
    with pytest.raises(Refused) as unknown:
        run.apply([op.append("lost"), op.settle("failed", event=99)])
    with pytest.raises(PathRefused) as twin:
        run.apply([op.touch("a"), op.touch("A")])

    assert [each.value.details["operation"] for each in (ended, unknown, twin)] == [1, 1, 1]
    assert [str(each.value).startswith("operation 1: ") for each in (ended, unknown, twin)] == [True] * 3
    assert (run.info.events, run.info.txn) == (before.events, before.txn)


@pytest.mark.parametrize("given", [{"result": 0}, {"event": 3}])
def test_an_end_may_have_a_reason_from_the_same_operations(run: Run, given: dict[str, Any]) -> None:
    run.apply([op.begin_execution()])
    reason, settled = run.apply([op.append("because"), op.settle("failed", **given)])

    assert isinstance(reason, Event)
    assert isinstance(settled, Event)
    assert settled.data["reason"] == reason.seq == run.info.stop_event
    run.verify()


def test_an_event_of_another_run_is_no_reason(host: Host, run: Run) -> None:
    with host.create("b") as other:
        theirs = other.append("theirs")
    mine = run.append("mine")
    run.apply([op.begin_execution()])
    assert theirs.seq == mine.seq
    with pytest.raises(Refused) as caught:
        run.apply([op.settle("failed", event=theirs)])
    assert (caught.value.code, run.info.status) == ("unknown_event", "running")

    run.apply([op.settle("failed", event=mine)])
    assert run.info.stop_event == mine.seq


@pytest.mark.parametrize(
    "wrong",
    [
        [op.settle("failed", result=0)],
        [op.begin_execution(), op.settle("failed", result=0)],
        [op.append("x"), op.settle("failed", result=1)],
        [op.append("x"), op.settle("failed", result=-1)],
        [op.append("x"), op.settle("failed", result=0, event=2)],
        [op.append("x"), op.settle("failed", result=0, code="y")],
        [op.settle("failed", event=0)],
        [op.settle("running")],
        [op.settle("failed", code="")],
        [op.append("x"), "append"],
        [op.append("x"), None],
        [WriteBytes("a", "text")],  # type: ignore[arg-type]
        [Mkdir("a", parents="yes")],  # type: ignore[arg-type]
        [WriteBytes("../a", b"")],
        "append",
        None,
        [op.append("x")] * (APPLY_OPERATIONS_MAX + 1),
        [op.write_bytes("a", bytes(9 * 1024 * 1024))] * 2,
        [op.append("x", "swordfish-1")],
        [op.append("swordfish-1")],
        [op.touch("swordfish-1")],
        [op.rename("a", "swordfish-1")],
        [op.symlink("a", "swordfish-1")],
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_sent(host: Host, run: Run, wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def sent(*_: object, **__: object) -> None:
        raise AssertionError("it was sent")

    before = run.info
    with monkeypatch.context() as patched:
        patched.setattr(Run, "_ask", sent)
        with pytest.raises(Refused) as caught:
            run.apply(wrong)

    assert "swordfish" not in f"{caught.value} {caught.value.details}"
    assert run.info.txn == before.txn
    run.apply([op.append("on")])


def test_what_no_operation_can_be_is_refused_where_it_is_made() -> None:
    makers: list[Callable[[], object]] = [
        lambda: op.append(""),
        lambda: op.append("x", object()),
        lambda: op.write_bytes("/a", b""),
        lambda: op.rename("a", ".."),
        lambda: op.settle("failed", event=True),
    ]
    for make in makers:
        with pytest.raises(Refused):
            make()


def test_an_operation_holds_the_value_of_its_making_and_shows_nothing_of_it() -> None:
    data = {"SECRET": [1]}
    operation = op.append("note", data)
    data["SECRET"].append(2)

    assert operation == op.append("note", {"SECRET": [1]})
    assert [repr(each) for each in (operation, op.write_bytes("p", b"SECRET"))] == ["<Append>", "<WriteBytes>"]
    assert operation.__rich_repr__() == []


def test_operations_can_be_sent_as_they_are() -> None:
    steps = tuple(operation for operation, _ in STEPS)
    for encode, decode in ((msgspec.msgpack.encode, msgspec.msgpack.decode), (msgspec.json.encode, msgspec.json.decode)):
        assert decode(encode(steps), type=tuple[Operation, ...]) == steps


def test_a_masked_value_is_what_the_call_and_its_repetition_hand_on(tmp_path: Path) -> None:
    key = "AKIA" + "ABCDEFGHIJKLMNOP"
    with freehold.open(tmp_path / "masked", on_secret_shape="mask") as host, host.create("a") as run:
        (event,) = run.apply([op.append("x", {"key": key})], request_id="r")
        again = run.apply([op.append("x", {"key": key})], request_id="r")

        assert isinstance(event, Event)
        assert event.data == {"key": "***"}
        assert again == [event]


def test_the_same_request_id_returns_the_same_results_and_changes_nothing(host: Host, run: Run) -> None:
    steps = [op.append("x", {"a": 1, "b": 2}), op.begin_execution(), op.write_text("f", "1"), op.settle("failed", code="stopped")]
    first = run.apply(steps, request_id="r")
    before = run.info
    with host.open("a") as other:
        again = other.apply([op.append("x", {"b": 2, "a": 1}), *steps[1:]], request_id="r")

    assert first == again == [first[0], 1, None, None]
    assert (run.info.events, run.info.txn) == (before.events, before.txn)
    for wrong in ([*steps, op.append("y")], steps[:1]):
        with pytest.raises(Refused) as caught:
            run.apply(wrong, request_id="r")
        assert caught.value.code == "request_conflict"
    assert run.info.txn == before.txn


def test_a_transaction_that_failed_under_its_request_id_may_run_again(run: Run) -> None:
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            run.apply([op.append("x"), op.remove("f")], request_id="r")
    run.publish("f", lambda files: files.touch("f"))

    assert len(run.apply([op.append("x"), op.remove("f")], request_id="r")) == 2
    assert names(run) == ["x"]


def test_eight_threads_with_one_request_id_carry_it_out_once(run: Run) -> None:
    with senders(8) as go:
        results = [done.result() for done in [go(run.apply, [op.append("x"), op.touch("f")], request_id="r") for _ in range(8)]]

    assert names(run) == ["x"]
    assert all(each == results[0] for each in results)


def test_the_longest_one_is_remembered(run: Run) -> None:
    steps: Sequence[Operation] = [op.append("n") for _ in range(APPLY_OPERATIONS_MAX)]
    first = run.apply(steps, request_id="r")

    assert run.apply(steps, request_id="r") == first
    assert run.info.events == 1 + APPLY_OPERATIONS_MAX
    run.verify()


def test_threads_that_move_things_as_data_lose_none(run: Run) -> None:
    run.apply([op.mkdir(name) for name in ("from", "to")] + [op.touch(f"from/{number}") for number in range(12)])
    together = threading.Barrier(4, timeout=30)

    def move(_: int) -> int:
        together.wait()
        moved = 0
        for number in range(12):
            try:
                run.apply([op.append("moved", number), op.rename(f"from/{number}", f"to/{number}")])
            except FileNotFoundError:
                continue
            moved += 1
        return moved

    with senders(4) as go:
        assert sum(done.result() for done in [go(move, number) for number in range(4)]) == 12

    assert sorted(event.data for event in run.history(name="moved")) == list(range(12))
    assert len(list(run.files.iterdir("to"))) == 12
    run.verify()


def test_too_large_a_value_says_how_large_it_is(run: Run) -> None:
    with pytest.raises(ValueRefused) as caught:
        run.apply([op.write_bytes("a", bytes(9 * 1024 * 1024))] * 2)

    assert (caught.value.code, caught.value.details) == ("value_too_large", {"size": 18 * 1024 * 1024, "limit": 16 * 1024 * 1024})


def test_it_is_refused_inside_a_transaction_of_the_run(run: Run) -> None:
    def inside(_tx: Transaction) -> str:
        with pytest.raises(Error) as caught:
            run.apply([op.append("x")])
        return caught.value.code

    assert run.transact(inside) == "inside_transaction"
    assert names(run) == []


def test_what_was_written_ahead_is_not_listed_any_more_once_operations_have_published_it(run: Run) -> None:
    content = random.Random(7).randbytes(PIECES_BYTES_MAX + 100_000)
    with pytest.raises(ZeroDivisionError), run.publish("lost") as files:
        files.write_bytes("big", content)
        raise ZeroDivisionError
    assert staged(run) > 0
    run.apply([op.write_bytes("big", content)])

    assert staged(run) == 0
    run.verify()


@pytest.mark.parametrize("request_id", ["", 7, "a\nb", "x" * 129, "swordfish-1"])
def test_a_wrong_request_id_is_refused(run: Run, request_id: Any) -> None:
    before = run.info.txn
    with pytest.raises(Refused) as caught:
        run.apply([op.append("x")], request_id=request_id)

    assert caught.value.code in ("bad_request_id", "secret_refused")
    assert run.info.txn == before
