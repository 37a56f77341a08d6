"""The contract: every message goes out and comes back as it was, as one union, and shows nothing that it carries."""

from __future__ import annotations

import pprint
from typing import Any, Union, get_type_hints

import msgspec
import pytest

from freehold.schema import messages, operations
from freehold.schema.messages import Message
from freehold.schema.operations import Operation
from freehold.schema.rows import PackedObject

KINDS = sorted(Message.__subclasses__(), key=lambda kind: kind.__name__)
SAMPLES: dict[Any, list[Any]] = {
    str: ["SECRET", "", "naïve ☃\x00"],
    str | None: ["SECRET", None],
    bytes: [b"SECRET", b"", bytes(range(256))],
    bytes | None: [b"SECRET", None],
    int: [0, -1, 2**63 - 1],
    int | None: [7, None],
    float: [5.0, 0.25],
    tuple[bytes, ...]: [(b"SECRET", b""), ()],
    tuple[str, ...]: [("SECRET", ""), ()],
    tuple[PackedObject, ...]: [(PackedObject(b"SECRET", 0, 6, 0, b"SECRET"),), ()],
    bool: [True, False],
    tuple[Operation, ...]: [(operations.Append("SECRET", "1"), operations.WriteBytes("p", b"SECRET"), operations.BeginExecution()), ()],
}
DECODERS = [(msgspec.json.encode, msgspec.json.Decoder), (msgspec.msgpack.encode, msgspec.msgpack.Decoder)]
UNION: Any = Union.__getitem__(tuple(KINDS))  # made at run time


def fields(kind: type[Message]) -> dict[str, Any]:
    hints = get_type_hints(kind, vars(messages))
    return {name: hints[name] for name in kind.__struct_fields__}


def samples(kind: type[Message]) -> list[Message]:
    """Return one message with the first sample in every field, then every other sample in its field."""
    first = {name: SAMPLES[hint][0] for name, hint in fields(kind).items()}
    return [kind(**first)] + [kind(**first | {name: value}) for name, hint in fields(kind).items() for value in SAMPLES[hint][1:]]


def test_every_struct_of_the_module_is_a_message() -> None:
    structs = {name for name, kind in vars(messages).items() if isinstance(kind, type) and issubclass(kind, msgspec.Struct)}

    assert structs == {kind.__name__ for kind in KINDS} | {"Message"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("encode", "decoder"), DECODERS)
def test_every_message_comes_back_as_it_was(kind: type[Message], encode: Any, decoder: Any) -> None:
    for message in samples(kind):
        found = decoder(UNION).decode(encode(message))
        assert (type(found), found) == (kind, message)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if fields(kind)])
def test_a_message_with_a_member_of_another_type_is_not_taken(kind: type[Message]) -> None:
    name = next(iter(fields(kind)))
    forged = msgspec.json.encode(msgspec.to_builtins(samples(kind)[0]) | {name: {"a": 1}})

    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(forged, type=UNION)


def test_a_message_of_no_kind_is_not_taken() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"type":"Message"}', type=UNION)


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_shows_its_kind_and_nothing_that_it_carries(kind: type[Message]) -> None:
    for message in samples(kind):
        shown = f"{message!r} {message} {pprint.pformat([message])} {message.__rich_repr__()}"
        assert shown == f"<{kind.__name__}> <{kind.__name__}> [<{kind.__name__}>] []"


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_cannot_be_changed(kind: type[Message]) -> None:
    message = samples(kind)[0]
    for name in fields(kind):
        with pytest.raises(AttributeError):
            setattr(message, name, None)

    assert message == samples(kind)[0]


def test_what_writes_says_so() -> None:
    writing = {"Append", "Apply", "BeginExecution", "BeginStep", "EndStep", "KeepObjects", "Publish", "PublishOn", "Settle", "Unstage"}

    assert {kind.__name__ for kind in KINDS if kind.writes} == writing
