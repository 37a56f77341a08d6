"""What crosses between two processes comes out as it went in, or is refused by name; nothing that came is ever quoted."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from freehold.schema import messages, operations, wire
from freehold.schema.changes import Change
from freehold.schema.errors import CODES, Damaged, Error, Holder, OwnedElsewhere, Refused, StorageFailed
from freehold.schema.limits import APPLY_BYTES_MAX, APPLY_OPERATIONS_MAX, PATH_BYTES_MAX, REPLY_FRAME_BYTES_MAX, REQUEST_FRAME_BYTES_MAX
from freehold.schema.messages import Append, KeepObjects, Message, ReadRun, ShowTree
from freehold.schema.repeated import Repeated
from freehold.schema.rows import EventRow, PackedObject, RunRow, Written
from freehold.schema.wire import HEAD_BYTES, Request

H, U = bytes(range(32)), bytes(16)
RUN = RunRow("a", "p", None, None, "{}", "failed", "host", "tired", None, 3, 1, 9, 5, 6)
EVENT = EventRow(2, U, "note", "n\x00☃", None, None, None, None, '{"$object":5}', H, H, 7, H, b'"abc"')
WRITTEN = Written(2, U, "note", "n", 1, '"x"', H, 7, H)
PIECE = PackedObject(H, 0, 3, 0, b"abc")
ANSWERS: dict[type[Message], list[Any]] = {
    messages.ReadRun: [(RUN, 7)],
    messages.ReadPage: [([EVENT, EVENT], 500), ([], None)],
    messages.ReadEvent: [EVENT],
    messages.FindId: [5, None],
    messages.FindTime: [0, 2**62],
    messages.ReadRoot: [H, None],
    messages.FindRoot: [[], [H, H]],
    messages.ReadObjects: [[PIECE, None], []],
    messages.ShowTree: [{"name": "runs", "children": [{"name": "a", "doing": None}]}],
    messages.Append: [WRITTEN],
    messages.ReadChanges: [[Change("b", "renamed", "a", "b"), Change("c", "added", None, "c")], [], None],
    messages.WaitBeyond: [7, None],
    messages.KeepObjects: [None],
    messages.Apply: [[WRITTEN, 3, None], [], Repeated("[[2,null],[]]", durable=True)],
    messages.PublishOn: [WRITTEN, Repeated("[[2,null],[[0]]]", durable=False)],
}


def body(frame: bytes) -> bytes:
    assert wire.body_length(frame[:HEAD_BYTES], 2**31) == len(frame) - HEAD_BYTES
    return frame[HEAD_BYTES:]


def crossed(error: BaseException) -> Error:
    _, told = wire.decode_reply(body(wire.encode_error(error)), ReadRun)
    assert told is not None
    return told


def test_every_message_that_may_be_sent_has_a_sample_of_its_answer() -> None:
    assert set(ANSWERS) == set(wire.SENDABLE)


@pytest.mark.parametrize("kind", ANSWERS)
def test_every_answer_comes_out_as_it_went_in(kind: type[Message]) -> None:
    for value in ANSWERS[kind]:
        found = wire.decode_reply(body(wire.encode_value(value)), kind)
        assert found == (value, None)
        assert type(found[0]) is type(value)


def test_rows_come_out_as_rows() -> None:
    (rows, _), _ = wire.decode_reply(body(wire.encode_value(([EVENT], None))), messages.ReadPage)

    assert rows[0].text == '"abc"'


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_of_another_kind_is_not_taken(kind: type[Message]) -> None:
    with pytest.raises(Refused) as caught:
        wire.decode_reply(body(wire.encode_value({"SECRET": ["SECRET"]} if kind is not ShowTree else "SECRET")), kind)
    assert caught.value.code == "malformed_frame"
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("timeout", [None, 0.0, 3.5])
def test_a_request_comes_out_as_it_went_in(timeout: float | None) -> None:
    for message in (Append("n", '"x"', "r", H), KeepObjects((PIECE,), ahead=True), messages.ReadPage(7, "n", reverse=True)):
        request = Request(message, "a", (1, 2**63), timeout)
        assert wire.decode_request(body(wire.encode_request(request))) == request


def test_a_picture_of_the_host_is_asked_without_a_run() -> None:
    assert wire.decode_request(body(wire.encode_request(Request(ShowTree())))) == Request(ShowTree())


def test_what_is_not_in_the_table_is_not_sent() -> None:
    for message in (messages.Settle("failed", "x"), messages.Commit(), messages.Unstage((H,)), object()):
        with pytest.raises(Refused) as caught:
            wire.encode_request(Request(message, "a", (1, 2)))
        assert caught.value.code == "refused"


FORGED: dict[str, Any] = {
    "nothing": None,
    "a list": [1],
    "no kind": {"a": 1},
    "another kind": {"type": "reply"},
    "no message": {"type": "request", "run": "a", "inode": [1, 2]},
    "a message that is not sent": {"type": "request", "message": {"type": "Settle", "status": "failed"}, "run": "a", "inode": [1, 2]},
    "a message of no kind": {"type": "request", "message": {"type": "SECRET"}, "run": "a", "inode": [1, 2]},
    "a member more in a message": {"type": "request", "message": {"type": "ReadRun", "SECRET": 1}, "run": "a", "inode": [1, 2]},
    "a member more in an operation": {
        "type": "request",
        "message": {"type": "Apply", "operations": [{"type": "BeginExecution", "SECRET": 1}]},
        "run": "a",
        "inode": [1, 2],
    },
    "an operation of no kind": {
        "type": "request",
        "message": {"type": "Apply", "operations": [{"type": "SECRET"}]},
        "run": "a",
        "inode": [1, 2],
    },
    "a member more": {"type": "request", "message": {"type": "ReadRun"}, "run": "a", "inode": [1, 2], "SECRET": 1},
    "a member of another type": {"type": "request", "message": {"type": "ReadEvent", "seq": "SECRET"}, "run": "a", "inode": [1, 2]},
    "no run": {"type": "request", "message": {"type": "ReadRun"}, "inode": [1, 2]},
    "no inode": {"type": "request", "message": {"type": "ReadRun"}, "run": "a"},
    "a run for the whole host": {"type": "request", "message": {"type": "ShowTree"}, "run": "a", "inode": [1, 2]},
    "a time before now": {"type": "request", "message": {"type": "ShowTree"}, "timeout": -1.0},
    "no end of time": {"type": "request", "message": {"type": "ShowTree"}, "timeout": math.inf},
    "no time": {"type": "request", "message": {"type": "ShowTree"}, "timeout": math.nan},
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_request_is_refused_and_not_quoted(name: str) -> None:
    with pytest.raises(Refused) as caught:
        wire.decode_request(msgspec.msgpack.encode(FORGED[name]))
    assert caught.value.code == "malformed_frame"
    assert "SECRET" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None  # the decoder's own text quotes what it could not read


def test_whatever_bytes_come_are_a_request_or_are_refused(seed: int) -> None:
    dice, told = random.Random(seed), []
    good = body(wire.encode_request(Request(Append("SECRET", '{"a":[1,2,3]}', "r", H), "a", (1, 2), 3.0)))
    for _ in range(2000):
        raw = bytearray(good if dice.random() < 0.8 else dice.randbytes(dice.randrange(64)))
        for _ in range(dice.randrange(4)):
            if raw:
                raw[dice.randrange(len(raw))] = dice.randrange(256)
        del raw[dice.randrange(len(raw) + 1) if dice.random() < 0.2 else len(raw) :]
        for decode in (wire.decode_request, wire.check_hello, lambda body: wire.decode_reply(body, ReadRun)):
            try:
                decode(bytes(raw))
            except Refused as error:
                told.append((error.code, str(error)))
    assert {code for code, _ in told} <= {"malformed_frame", "other_protocol"}
    assert all("SECRET" not in text for _, text in told)


def test_what_is_too_deep_to_read_is_refused() -> None:
    with pytest.raises(Refused):
        wire.decode_request(b"\x91" * 100_000)


# Greeting


def test_both_sides_say_who_they_are() -> None:
    wire.check_hello(body(wire.encode_hello()))
    with pytest.raises(Refused) as caught:
        wire.check_hello(msgspec.msgpack.encode({"type": "hello", "protocol": 2}))
    assert (caught.value.code, caught.value.details) == ("other_protocol", {"ours": 1, "theirs": 2})


def test_who_is_refused_instead_of_greeted_is_told_why() -> None:
    with pytest.raises(Error) as caught:
        wire.check_hello(body(wire.encode_error(CODES["too_many_connections"]("full", code="too_many_connections"))))
    assert caught.value.code == "too_many_connections"


# Sizes


def test_a_frame_is_as_long_as_it_may_be_and_no_longer() -> None:
    assert wire.frame(bytes(10), 10) == b"\x00\x00\x00\x0a" + bytes(10)
    for call in (lambda: wire.frame(bytes(11), 10), lambda: wire.body_length(b"\x00\x00\x00\x0b", 10)):
        with pytest.raises(Refused) as caught:
            call()
        assert (caught.value.code, caught.value.details) == ("frame_too_large", {"bytes": 11, "bytes_max": 10})


def test_a_request_or_an_answer_that_is_too_large_is_not_sent() -> None:
    with pytest.raises(Refused, match=str(REQUEST_FRAME_BYTES_MAX)):
        wire.encode_request(Request(KeepObjects((PackedObject(H, 0, 0, 0, bytes(REQUEST_FRAME_BYTES_MAX)),)), "a", (1, 2)))
    with pytest.raises(Refused, match=str(REPLY_FRAME_BYTES_MAX)):
        wire.encode_value(bytes(REPLY_FRAME_BYTES_MAX))


def test_the_largest_transaction_as_data_crosses() -> None:
    # A character takes up to four bytes: what is counted is what crosses.
    char, path = "\U0001f600", "p" * PATH_BYTES_MAX
    record = f'"{char * (APPLY_BYTES_MAX // 4 - 2 * APPLY_OPERATIONS_MAX)}"'
    steps: list[operations.Operation] = [operations.Rename(path, path)] * (APPLY_OPERATIONS_MAX - 1)
    steps.append(operations.Append(char * 256, record))
    assert operations.size_of(steps) == len(record.encode()) <= APPLY_BYTES_MAX
    request = Request(messages.Apply(tuple(steps), "r" * 128, H), "a" * 128, (1, 2))

    assert wire.decode_request(body(wire.encode_request(request))) == request


def test_what_cannot_be_written_down_is_not_sent() -> None:
    for message in (Append("\ud800", "1"), messages.ReadEvent(2**70)):
        with pytest.raises(Refused) as caught:
            wire.encode_request(Request(message, "a", (1, 2)))
        assert caught.value.code == "malformed_frame"


# Errors


@pytest.mark.parametrize("code", CODES)
def test_an_error_comes_out_as_itself(code: str) -> None:
    for executed in ("no", "yes", "unknown"):
        error = CODES[code](f"what {code} says", code=code, executed=executed, run="a", number=7, many=[1, "x", None])
        told = crossed(error)
        assert type(told) is type(error)
        assert told.record() == error.record()
        assert (told.retryable, told.executed, told.details) == (error.retryable, executed, error.details)


def test_the_holder_of_a_run_comes_out_as_one() -> None:
    holder = Holder(7, "here", datetime(2024, 1, 2, tzinfo=UTC))
    told = crossed(OwnedElsewhere("held", holder=holder))

    assert isinstance(told, OwnedElsewhere)
    assert told.holder == holder


def test_causes_come_along_to_the_depth_that_errors_are_told_in() -> None:
    error: Error = Damaged("four")
    for text in ("three", "two", "one"):
        outer = StorageFailed(text, phase="begin")
        outer.__cause__ = error
        error = outer
    texts = []
    told: BaseException | None = crossed(error)
    while told is not None:
        texts.append(str(told))
        told = told.__cause__

    assert texts == ["one", "two", "three"]


def test_whoever_sends_more_causes_is_not_followed() -> None:
    record: dict[str, Any] = {"error": "Error", "code": "error", "message": "last"}
    for _ in range(200):
        record = {"error": "Error", "code": "error", "message": "m", "cause": record}
    _, told = wire.decode_reply(msgspec.msgpack.encode({"type": "failure", "error": record}), ReadRun)

    depth = 0
    seen: BaseException | None = told
    while seen is not None:
        seen, depth = seen.__cause__, depth + 1
    assert depth == 3


def test_of_an_exception_that_is_not_ours_only_its_type_is_told() -> None:
    frame = wire.encode_error(ValueError("SECRET"))
    told = crossed(ValueError("SECRET"))

    assert b"SECRET" not in frame
    assert (told.code, told.executed) == ("crashed", "no")
    assert "ValueError" in str(told)


def test_an_error_whose_details_cannot_be_written_down_crosses_without_them() -> None:
    for details in ({"path": "\ud800"}, {"number": 2**70}):
        told = crossed(Refused("what \ud800 it says", code="bad_name", **details))
        assert (told.code, told.details) == ("bad_name", {})


def test_a_detail_cannot_pass_for_the_error_itself() -> None:
    names = {"message": "SECRET", "code": "run_ended", "executed": "yes", "self": 1, "kept": 2}
    record = {"error": "Refused", "code": "bad_name", "message": "m", "executed": "no", "details": names}
    _, told = wire.decode_reply(msgspec.msgpack.encode({"type": "failure", "error": record}), ReadRun)

    assert told is not None
    assert (type(told), told.code, told.executed, told.details) == (Refused, "bad_name", "no", {"kept": 2})


def test_an_error_of_a_code_that_this_version_does_not_know_is_an_error() -> None:
    record = {"error": "Refused", "code": "of_tomorrow", "message": "m", "executed": "unknown"}
    _, told = wire.decode_reply(msgspec.msgpack.encode({"type": "failure", "error": record}), ReadRun)

    assert told is not None
    assert (type(told), str(told), told.executed) == (Error, "m", "unknown")
