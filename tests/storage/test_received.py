"""What came from another process is held against every rule that its sender should have kept; a pure function a message."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from freehold.schema import messages, operations
from freehold.schema.errors import Error
from freehold.schema.hashes import ObjectKind, object_hash, request_digest
from freehold.schema.index import make_index
from freehold.schema.limits import (
    APPLY_BYTES_MAX,
    APPLY_OPERATIONS_MAX,
    CHUNK_BYTES,
    COUNT_MAX,
    REQUEST_HASHES_MAX,
    REQUEST_OBJECTS_MAX,
    SKIPPED_LISTED_MAX,
)
from freehold.schema.messages import (
    Append,
    Apply,
    FindId,
    FindRoot,
    FindTime,
    KeepObjects,
    Message,
    PublishOn,
    ReadChanges,
    ReadEvent,
    ReadObjects,
    ReadPage,
    ReadRoot,
    WaitBeyond,
)
from freehold.schema.nodes import Directory, File, Link, make_node
from freehold.schema.roots import EMPTY_ROOT, EMPTY_TREE, make_object, make_root
from freehold.schema.rows import PackedObject
from freehold.schema.secrets import SecretFilter
from freehold.schema.wire import SENDABLE
from freehold.storage.objects import packed
from freehold.storage.reads import READS
from freehold.storage.received import CHECKS, checked

H = bytes(32)
FREE = SecretFilter()
SECRETS = SecretFilter({"pass": "hunter22"})
CHUNK = make_object(ObjectKind.CHUNK, b"x" * 9000)
PIECES = {
    "a chunk": CHUNK,
    "a chunk of nothing": make_object(ObjectKind.CHUNK, b""),
    "the longest chunk": make_object(ObjectKind.CHUNK, bytes(CHUNK_BYTES)),
    "a directory": make_node(0, [Link("a", "b")]),
    "the empty directory": EMPTY_TREE,
    "an index": make_index(0, 2 * CHUNK_BYTES, [H, H]),
    "a root": EMPTY_ROOT,
}


def refusal(message: Message, secrets: SecretFilter = FREE) -> str:
    with pytest.raises(Error) as caught:
        checked(message, secrets)
    assert "hunter22" not in str(caught.value.record())
    return caught.value.code


def kept(row: PackedObject) -> KeepObjects:
    return KeepObjects((row,), ahead=True)


def test_every_message_that_may_be_sent_is_checked_and_every_read_may_be_sent() -> None:
    assert set(CHECKS) == set(SENDABLE)
    assert set(READS) <= set(SENDABLE)


def test_what_no_other_process_may_ask_is_refused() -> None:
    for message in (messages.Settle("failed", "x"), messages.Publish("n", "{}"), messages.OpenLease(), messages.Retire()):
        assert refusal(message) == "malformed_frame"


# A note


@pytest.mark.parametrize("record", ["1", "null", '"x"', '{"a":[1,{"$bytes":"aGk="}]}', '{"b":1,"a":2}'])
def test_a_note_as_a_lease_would_send_it_is_taken_as_it_is(record: str) -> None:
    assert checked(Append("name", record), FREE) == Append("name", record)


@pytest.mark.parametrize(
    "record", ["", "{", " 1", "1 ", '{"a": 1}', '{"a":1,"a":1}', "NaN", '{"$bytes":"!"}', '{"$object":5}', "[" * 200, '"\\u0041"', "01"]
)
def test_a_record_that_is_not_the_one_text_of_a_value_is_refused(record: str) -> None:
    assert refusal(Append("name", record)) == "malformed_frame"


@pytest.mark.parametrize("name", ["", "x" * 257, "a\nb", "\x00", "\x7f"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    assert refusal(Append(name, "1")) == "bad_name"


@pytest.mark.parametrize("request_id", ["", "x" * 129, "a\x00b"])
def test_a_request_id_that_is_none_is_refused(request_id: str) -> None:
    assert refusal(Append("n", "1", request_id, H)) == "bad_request_id"


def test_the_secrets_of_the_owners_host_are_kept_out_whatever_the_senders_were() -> None:
    for message in (Append("hunter22", "1"), Append("n", '"hunter22"'), Append("n", "1", "hunter22", H), Append("n", '{"hunter22":1}')):
        assert refusal(message, SECRETS) == "secret_refused"
        assert checked(message, FREE).name == message.name  # type: ignore[attr-defined]


def test_a_credential_is_treated_as_the_owners_host_says() -> None:
    token = "ghp_" + "a1B2" * 9
    message = Append("n", f'"{token}"', "r", H)
    masked: Any = checked(message, SecretFilter(on_secret_shape="mask"))

    assert refusal(message) == "secret_refused"
    assert checked(message, SecretFilter(on_secret_shape="allow")).record == message.record  # type: ignore[attr-defined]
    assert token not in masked.record
    assert masked.digest == request_digest("append", "n", masked.record)


def test_a_digest_that_stands_for_something_else_is_made_anew() -> None:
    right = request_digest("append", "n", '{"a":2,"b":1}')

    assert checked(Append("n", '{"b":1,"a":2}', "r", H), FREE) == Append("n", '{"b":1,"a":2}', "r", right)
    assert checked(Append("n", '{"b":1,"a":2}', None, H), FREE) == Append("n", '{"b":1,"a":2}')


def test_whether_an_answer_waits_for_the_disk_is_the_senders_to_say() -> None:
    for durable in (True, False):
        assert checked(Append("n", "1", durable=durable), FREE) == Append("n", "1", durable=durable)


def test_a_note_makes_no_root_current() -> None:
    assert refusal(Append("n", "1", root=EMPTY_ROOT.data)) == "malformed_frame"


# A transaction as data

STEPS = (operations.Append("n", '{"b":1,"a":2}'), operations.WriteBytes("p", b"x"), operations.Settle("failed", result=0))
BAD_STEPS: dict[str, tuple[Any, str]] = {
    "no name": (operations.Append("", "1"), "bad_name"),
    "a record that is none": (operations.Append("n", "{"), "malformed_frame"),
    "a path that leads out": (operations.Mkdir("../x"), "bad_path"),
    "a name that is not portable": (operations.Touch("CON"), "bad_path"),
    "a result that is none": (operations.Settle("failed", result=0), "bad_option"),
    "a status that ends nothing": (operations.Settle("x"), "bad_option"),
    "an event that is none": (operations.Settle("failed", event=0), "bad_option"),
}


def test_a_transaction_as_data_is_taken_as_a_lease_would_have_sent_it() -> None:
    assert checked(Apply(STEPS), FREE) == Apply(STEPS)
    assert checked(Apply((), durable=False), FREE) == Apply((), durable=False)


@pytest.mark.parametrize("name", BAD_STEPS)
def test_an_operation_that_no_lease_would_have_sent_is_refused(name: str) -> None:
    step, code = BAD_STEPS[name]
    assert refusal(Apply((step,))) == code
    assert refusal(Apply((operations.BeginExecution(), step))) == code


def test_the_digest_of_a_transaction_as_data_is_made_anew() -> None:
    right = operations.digest_of(STEPS)

    assert checked(Apply(STEPS, "r", H), FREE) == Apply(STEPS, "r", right)
    assert checked(Apply(STEPS, None, H), FREE) == Apply(STEPS)
    assert refusal(Apply(STEPS, "", H)) == "bad_request_id"


def test_no_secret_of_the_owners_host_comes_in_with_an_operation() -> None:
    for step in (
        operations.Append("hunter22", "1"),
        operations.Append("n", '"hunter22"'),
        operations.Mkdir("a/hunter22"),
        operations.Rename("a", "hunter22"),
        operations.Symlink("a", "hunter22"),
        operations.Settle("failed", code="hunter22"),
    ):
        assert refusal(Apply((step,)), SECRETS) == "secret_refused"
        assert checked(Apply((step,)), FREE) == Apply((step,))
    assert refusal(Apply((), "hunter22", H), SECRETS) == "secret_refused"


def test_what_a_transaction_as_data_carries_is_bounded() -> None:
    assert refusal(Apply((operations.BeginExecution(),) * (APPLY_OPERATIONS_MAX + 1))) == "bad_option"
    assert refusal(Apply((operations.WriteBytes("p", bytes(APPLY_BYTES_MAX)), operations.Append("n", "1")))) == "value_too_large"


# A publish

ROOT = make_root(H, 1, 2, 1)
CHANGED = '{"changes":3}'
FAILED = '{"failed":"FileNotFoundError","errno":"ENOENT","path":"a"}'
SKIPPED = '{"changes":1,"skipped":[["a/b","fifo"],[null,"secret"]],"more":2}'


@pytest.mark.parametrize(
    "message",
    [
        PublishOn("n", CHANGED, H, ROOT.data),
        PublishOn("n", SKIPPED, H, ROOT.data, "r", "import", (".", "*.pyc")),
        PublishOn("n", '{"changes":0}', H, None, "r", durable=False),
        PublishOn("n", '{"changes":0}', ROOT.hash, ROOT.data),
        PublishOn("n", FAILED, None, None),
        PublishOn("n", '{"failed":"PathRefused","errno":null,"path":null}', None, None),
    ],
)
def test_a_publish_as_a_lease_would_send_it_is_taken_as_it_is(message: PublishOn) -> None:
    assert checked(message, FREE) == message


BAD_RECORDS = [
    "", "1", "{", "{}", '{"changes":0}', '{"changes":-1}', '{"changes":true}', '{"changes": 3}', '{"changes":3,"more":1}', FAILED,
    '{"changes":1,"skipped":[["a","of tomorrow"]],"more":0}', '{"changes":1,"skipped":[["a"]],"more":0}', '{"changes":1,"changes":1}',
    '{"more":0,"skipped":[],"changes":1}', '{"changes":1,"skipped":[],"more":-1}', '{"changes":99999999999999999999}',
]  # fmt: skip


@pytest.mark.parametrize("record", BAD_RECORDS)
def test_a_record_that_is_not_one_of_a_publish_is_refused(record: str) -> None:
    assert refusal(PublishOn("n", record, H, ROOT.data)) == "malformed_frame"


def test_a_record_says_of_its_publish_whether_anything_was_changed() -> None:
    for root in (None, ROOT.data):
        assert refusal(PublishOn("n", CHANGED, ROOT.hash, root)) == "malformed_frame"
    assert refusal(PublishOn("n", FAILED, H, ROOT.data)) == "malformed_frame"


def test_what_a_record_lists_is_bounded() -> None:
    many = ",".join(['["a","fifo"]'] * (SKIPPED_LISTED_MAX + 1))
    assert refusal(PublishOn("n", f'{{"changes":1,"skipped":[{many}],"more":0}}', H, ROOT.data)) == "frame_too_large"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"name": ""}, "bad_name"),
        ({"base": b"x"}, "malformed_frame"),
        ({"root": b"x"}, "malformed_frame"),
        ({"root": msgspec.msgpack.encode([1, b"", 0, 0, 0, 0])}, "malformed_frame"),
        ({"kind": "append"}, "malformed_frame"),
        ({"request_id": "a\x00"}, "bad_request_id"),
    ],
)
def test_a_publish_that_no_lease_would_have_sent_is_refused(change: dict[str, Any], code: str) -> None:
    assert refusal(msgspec.structs.replace(PublishOn("n", CHANGED, H, ROOT.data), **change)) == code


def test_no_secret_of_the_owners_host_comes_in_with_a_publish() -> None:
    for message in (PublishOn("hunter22", CHANGED, H, ROOT.data), PublishOn("n", CHANGED, H, ROOT.data, "hunter22")):
        assert refusal(message, SECRETS) == "secret_refused"
        assert checked(message, FREE) == message


@pytest.mark.parametrize("record", [FAILED.replace('"a"', '"a/hunter22"'), SKIPPED.replace("a/b", "hunter22")])
def test_a_path_that_tells_a_secret_of_the_owners_host_is_not_told_in_a_record(record: str) -> None:
    message = PublishOn("n", record, *((None, None) if "failed" in record else (H, ROOT.data)))
    kept = checked(message, SECRETS)
    assert isinstance(kept, PublishOn)
    assert kept.record == record.replace('"a/hunter22"', "null").replace('"hunter22"', "null")
    assert checked(message, FREE) == message


@pytest.mark.parametrize(
    "items", [(File("hunter22", 0o644, 1, b"x"),), (Link("l", "to/hunter22"),), (Directory("hunter22", 0o755, EMPTY_TREE.hash, 0, 0, 0),)]
)
def test_no_piece_that_tells_a_secret_of_the_owners_host_is_kept_ahead_of_its_publish(items: tuple[Any, ...]) -> None:
    message = KeepObjects((packed(make_node(0, items)),), ahead=True)
    assert refusal(message, SECRETS) == "secret_refused"
    assert checked(message, FREE) is message


# Pieces


@pytest.mark.parametrize("name", PIECES)
def test_a_piece_in_its_one_form_is_taken(name: str) -> None:
    message = kept(packed(PIECES[name]))

    assert checked(message, FREE) is message


def test_pieces_come_ahead_of_their_publish_and_never_otherwise() -> None:
    assert refusal(KeepObjects((packed(CHUNK),))) == "malformed_frame"


def forged(kind: int, data: bytes) -> PackedObject:
    return PackedObject(object_hash(ObjectKind(kind), data), kind, len(data), 0, data)


NOT_PIECES = {
    "another hash": packed(CHUNK)._replace(hash=H),
    "a hash of no length": packed(CHUNK)._replace(hash=b""),
    "a hash of another kind": packed(EMPTY_TREE)._replace(kind=0),
    "of no kind": packed(CHUNK)._replace(kind=5),
    "of a kind below all": packed(CHUNK)._replace(kind=-1),
    "of no codec": packed(CHUNK)._replace(codec=2),
    "another size": packed(CHUNK)._replace(size=8999),
    "a size below none": packed(CHUNK)._replace(size=-1),
    "a size that is not in its frame": packed(make_object(ObjectKind.CHUNK, bytes(9000)))._replace(size=2**40),
    "not packed": packed(CHUNK)._replace(data=b"x" * 20),
    "a chunk that is too long": forged(0, bytes(CHUNK_BYTES + 1)),
    "a value": forged(4, b'"x"'),
    "a directory that is none": forged(1, b"\x92\x00"),
    "a directory in another form": forged(1, b"\x92\xcc\x00\x90"),
    "an index that is none": forged(2, msgspec.msgpack.encode([0, 5, []])),
    "a root that is none": forged(3, msgspec.msgpack.encode([1, b"", 0, 0, 0, 0])),
    "a root of tomorrow": forged(3, msgspec.msgpack.encode([2, H, 0, 0, 0, 0])),
}


@pytest.mark.parametrize("name", NOT_PIECES)
def test_a_piece_that_is_not_what_it_says_is_refused(name: str) -> None:
    assert refusal(kept(NOT_PIECES[name])) == "malformed_frame"
    assert refusal(KeepObjects((packed(CHUNK), NOT_PIECES[name]), ahead=True)) == "malformed_frame"


def test_what_would_unpack_to_more_than_a_piece_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.storage.received.plain", lambda *_: pytest.fail("it was unpacked"))

    assert refusal(kept(packed(make_object(ObjectKind.CHUNK, bytes(16 * 1024 * 1024))))) == "malformed_frame"


def test_the_number_of_pieces_is_bounded() -> None:
    row = packed(EMPTY_TREE)
    assert refusal(KeepObjects((row,) * (REQUEST_OBJECTS_MAX + 1), ahead=True)) == "frame_too_large"


# Reads

GOOD = [
    ReadPage(0), ReadPage(COUNT_MAX + 1, "n", reverse=True), ReadEvent(1), FindId(bytes(16)), FindTime(-5), FindTime(2**60), ReadRoot(),
    ReadRoot(3), FindRoot(H, b"\xff" * 32), ReadObjects((H,) * REQUEST_HASHES_MAX), ReadObjects(()),
    messages.ReadRun(), messages.ShowTree(), ReadChanges(H, H), WaitBeyond(0), WaitBeyond(COUNT_MAX), WaitBeyond(1, "running", bytes(16)),
]  # fmt: skip
BAD = [
    ReadPage(-1), ReadPage(2**63), ReadEvent(-1), ReadEvent(2**64 - 1), FindId(b""), FindId(H), FindTime(2**63), ReadRoot(2**63),
    FindRoot(H, b""), FindRoot(b"x", H), ReadObjects((H, b"x")),
    ReadChanges(H, b""), ReadChanges(b"x", H), WaitBeyond(-1), WaitBeyond(2**63), WaitBeyond(1, "SECRET"), WaitBeyond(1, None, b"1"),
]  # fmt: skip


@pytest.mark.parametrize("message", GOOD)
def test_a_question_within_its_bounds_is_taken_as_it_is(message: Message) -> None:
    assert checked(message, FREE) is message


@pytest.mark.parametrize("message", BAD)
def test_a_question_beyond_every_bound_is_refused(message: Message) -> None:
    assert refusal(message) == "malformed_frame"


def test_a_page_of_no_name_is_refused() -> None:
    assert refusal(ReadPage(0, "a\n")) == "bad_name"


def test_no_more_is_asked_for_at_once_than_one_answer_holds() -> None:
    assert refusal(ReadObjects((H,) * (REQUEST_HASHES_MAX + 1))) == "frame_too_large"
