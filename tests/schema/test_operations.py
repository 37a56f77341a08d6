"""Operations as the owner gets them, from whoever: each is what it says it is, or is refused by its index."""

from __future__ import annotations

import pprint
from typing import Any, get_args

import msgspec
import pytest

from freehold.schema import operations as op
from freehold.schema.errors import Error, Refused
from freehold.schema.messages import ReadRun
from freehold.schema.operations import KINDS, Operation, checked, digest_of, size_of
from freehold.schema.secrets import SecretFilter

SECRETS = SecretFilter({"token": "swordfish-1"})
SAMPLES: dict[Any, Any] = {str: "SECRET", bytes: b"SECRET", int: 0o755, bool: True}


def sample(kind: Any) -> Any:
    return kind(*(SAMPLES.get(field.type) for field in msgspec.structs.fields(kind)))


def test_the_union_names_every_kind() -> None:
    assert set(get_args(Operation)) == KINDS


@pytest.mark.parametrize("kind", sorted(KINDS, key=str))
def test_every_operation_comes_back_as_it_was_and_shows_nothing(kind: Any) -> None:
    operation = sample(kind)
    for encode, decode in ((msgspec.msgpack.encode, msgspec.msgpack.decode), (msgspec.json.encode, msgspec.json.decode)):
        assert decode(encode(operation), type=Operation) == operation
    assert f"{operation!r} {pprint.pformat([operation])} {operation.__rich_repr__()}" == f"<{kind.__name__}> [<{kind.__name__}>] []"
    with pytest.raises(AttributeError):
        operation.path = "other"


def test_what_is_right_comes_back_equal() -> None:
    steps = (
        op.Append("n", '{"b":1,"a":{"$bytes":"AA=="}}'),
        op.BeginExecution(),
        op.Settle("failed", None, 3),
        op.Settle("failed", None, bytes(16)),
        op.Settle("failed", None, None, 0),
        op.Settle("failed", "code"),
        *(kind("a", "b") for kind in (op.Symlink, op.Rename, op.Copy)),
        *(kind("a/b") for kind in (op.Touch, op.Mkdir, op.Remove, op.Rmdir, op.Rmtree)),
        op.Chmod("a", 0o600),
        op.WriteBytes("a", b"\xff\x00"),
    )

    assert checked(list(steps), SECRETS) == steps
    assert size_of(steps) == len('{"b":1,"a":{"$bytes":"AA=="}}') + 2


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (op.Append("", "1"), "bad_name"),
        (op.Append("n", "no json"), "malformed_record"),
        (op.Append("n", 1), "bad_option"),  # type: ignore[arg-type]
        (op.Append("n", '"swordfish-1"'), "secret_refused"),
        (op.Append("swordfish-1", "1"), "secret_refused"),
        (op.Settle("failed", "swordfish-1"), "secret_refused"),
        (op.Settle("gone"), "bad_option"),
        (op.Settle("failed", None, 2**63), "bad_option"),
        (op.Settle("failed", None, None, 1), "bad_option"),
        (op.WriteBytes("a", "c3dvcmRmaXNo"), "bad_option"),  # type: ignore[arg-type]
        (op.WriteBytes("/a", b""), "bad_path"),
        (op.Rename("a", "../b"), "bad_path"),
        (op.Copy("..", "b"), "bad_path"),
        (op.Copy("a", "swordfish-1"), "secret_refused"),
        (op.Mkdir("swordfish-1/a"), "secret_refused"),
        (op.Symlink("a", "swordfish-1"), "secret_refused"),
        (op.Chmod("a", "0o600"), "bad_option"),  # type: ignore[arg-type]
        (object(), "bad_option"),
        (ReadRun(), "bad_option"),
    ],
)
def test_what_is_wrong_is_refused_by_its_index(wrong: Any, code: str) -> None:
    with pytest.raises(Error) as caught:
        checked([op.BeginExecution(), wrong], SECRETS)

    assert (caught.value.code, caught.value.details["operation"]) == (code, 1)
    assert str(caught.value).startswith("operation 1: ")
    assert "swordfish" not in f"{caught.value}{caught.value.details}"


def test_removing_and_reading_a_path_with_a_secret_stores_nothing_of_it() -> None:
    steps = (op.Remove("swordfish-1"), op.Rename("swordfish-1", "a"), op.Copy("swordfish-1", "b"))

    assert checked(steps, SECRETS) == steps


def test_an_index_that_is_named_stays() -> None:
    error = op.named(op.named(Refused("no"), 3), 5)

    assert (str(error), error.details) == ("operation 3: no", {"operation": 3})


def test_a_digest_stands_for_what_is_done_and_not_for_the_order_of_keys() -> None:
    one = digest_of([op.Append("n", '{"a":1,"b":2}'), op.WriteBytes("p", b"1")])

    assert one == digest_of([op.Append("n", '{"b":2,"a":1}'), op.WriteBytes("p", b"1")])
    others: list[list[Operation]] = [
        [op.WriteBytes("p", b"1"), op.Append("n", '{"a":1,"b":2}')],
        [op.Append("n", '{"a":1,"b":3}'), op.WriteBytes("p", b"1")],
        [op.Append("n", '{"a":1,"b":2}'), op.WriteBytes("p", b"2")],
        [op.Append("n", '{"a":1,"b":2}')],
        [],
    ]
    assert len({one, *map(digest_of, others)}) == 6
