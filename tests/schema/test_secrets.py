"""No declared secret is ever stored or shown; what looks like a credential is refused, masked or allowed as told."""

from __future__ import annotations

import json
import shlex
import traceback
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from datetime import date
from decimal import Decimal
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.schema.errors import Refused, ValueRefused
from freehold.schema.secrets import SecretFilter
from freehold.schema.values import Sealed, seal

TOKEN = "S3CR_canary-42"
HARD = "pä\"ss'w\\ö/rd \t&+%"
AWS = "AKIAIOSFODNN7EXAMPLE"
URL = "https://oauth2:tok_ABC123@localhost:1/x.git"
HIDDEN = ("MIIE", "abc12345", "dXNlcjpwMQ")
DECLARED = SecretFilter({"DB_PASSWORD": TOKEN, "HARD": HARD})


def refused(call: Callable[[], object], path: str, *hidden: str, code: str = "secret_refused") -> Refused:
    """Return the refusal of *call* at *path*, in which nothing of *hidden* can be read."""
    with pytest.raises(Refused) as caught:
        call()
    error = caught.value
    assert error.code == code
    assert str(error).startswith(f"{path}: ")
    assert error.details["path"] == path
    assert error.__context__ is None
    for shown in (str(error), repr(error), str(error.record()), str(error.details), "".join(traceback.format_exception(error))):
        for secret in (*hidden, TOKEN, HARD, AWS, "tok_ABC123"):
            assert secret not in shown
    return error


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (TOKEN, "$"),
        ({"headers": [{"name": "Authorization", "value": f"Bearer {TOKEN}"}]}, "$.headers[0].value"),
        ({"env": {"DB_PASSWORD": TOKEN}}, "$.env.DB_PASSWORD"),
        ({"nested": {"a": [{"token": f"x{TOKEN}y"}]}}, "$.nested.a[0].token"),
        ({TOKEN: 1}, "$.*"),
        ({"a": {TOKEN: {"b": TOKEN}}}, "$.a.*"),
        ({"$x": TOKEN}, "$.*"),
        ({"a": (1, TOKEN)}, "$.a[1]"),
        ({"a": {TOKEN}}, "$.a[*]"),
        ({"a": frozenset({(1, TOKEN)})}, "$.a[*][1]"),
        ({"a": TOKEN.encode()}, "$.a"),
        ([b"ok", b"\x00\xff" + TOKEN.encode() + b"\xfe"], "$[1]"),
        ({"a": json.dumps({"b": TOKEN})}, "$.a"),
    ],
)
def test_a_declared_secret_is_refused_by_name_wherever_it_stands(value: object, path: str) -> None:
    for shape in ("refuse", "mask", "allow"):
        guard = SecretFilter({"DB_PASSWORD": TOKEN}, shape)
        error = refused(lambda guard=guard: guard.seal(value), path)  # type: ignore[misc]

        assert "'DB_PASSWORD'" in str(error)
        assert str(error).endswith("; nothing was changed")
        assert error.details["secret"] == "DB_PASSWORD"


@pytest.mark.parametrize(
    "write",
    [
        str,
        json.dumps,
        lambda secret: json.dumps(secret).replace("/", "\\/"),
        lambda secret: json.dumps(secret, ensure_ascii=False),
        lambda secret: json.dumps({"inner": json.dumps(secret)}),
        lambda secret: json.dumps({"inner": json.dumps(secret, ensure_ascii=False)}, ensure_ascii=False),
        lambda secret: quote(secret, safe=""),
        quote,
        quote_plus,
        shlex.quote,
        lambda secret: secret.replace("'", "'\\''"),
        lambda secret: f"\n{secret}\n",
    ],
)
def test_a_declared_secret_is_known_in_other_writings(write: Callable[[str], str]) -> None:
    written = write(HARD)

    refused(lambda: DECLARED.seal({"a": [written]}), "$.a[0]", written)
    refused(lambda: DECLARED.seal({"a": [written.encode()]}), "$.a[0]", written)
    refused(lambda: DECLARED.seal({written: 1}), "$.*", written)
    refused(lambda: DECLARED.check_text(written, "the event name"), "the event name", written)


plain = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=4).filter(lambda text: len(text.strip()) >= 4), plain)
def test_any_declared_text_is_found(secret: str, around: str) -> None:
    guard = SecretFilter({"x": secret}, "allow")

    for value in (around + secret + around, {around + secret: 1}, (around + secret).encode(), {"a": (json.dumps(secret),)}):
        with pytest.raises(Refused):
            guard.seal(value)


def test_a_declared_secret_is_known_without_the_newline_of_its_file() -> None:
    refused(lambda: SecretFilter({"file": f"{TOKEN}\n"}).seal([TOKEN]), "$[0]")


@pytest.mark.parametrize("value", [20240506, Decimal("20240506.5"), {"at": 20240506}])
def test_a_number_may_spell_a_secret_too(value: object) -> None:
    with pytest.raises(Refused) as caught:
        SecretFilter({"pin": "20240506"}).seal(value)
    assert "20240506" not in str(caught.value)


def test_a_date_may_spell_a_secret_too() -> None:
    born = date(2024, 5, 6)
    error = refused(lambda: SecretFilter({"born": str(born)}).seal({"at": [born]}), "$.at[0]", str(born))

    assert "'born'" in str(error)


def test_a_secret_that_only_the_record_shows_is_refused_as_a_whole() -> None:
    odd = "[1,2"

    refused(lambda: SecretFilter({"odd": odd}).seal({"a": [1, 2]}), "$", odd)


@pytest.mark.parametrize(
    ("secret", "value", "path"),
    [
        (TOKEN, {TOKEN: object()}, "$.*"),
        ("S3CRcanary", {"a": {"S3CRcanary": [object()]}}, "$.a.*[0]"),
        ("abc.def", {"abc": {"def": object()}}, "$"),
        ("Strange", {"a": type("Strange", (), {})()}, "$.a"),
    ],
)
def test_the_codec_s_own_refusal_shows_no_secret_key(secret: str, value: object, path: str) -> None:
    with pytest.raises(ValueRefused) as caught:
        SecretFilter({"x": secret}).seal(value)

    assert caught.value.code == "value_refused"
    assert str(caught.value).startswith(f"{path}: ")
    assert secret not in str(caught.value) + str(caught.value.record()) + "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


def test_the_codec_s_own_refusal_shows_no_credential_key() -> None:
    refused(lambda: SecretFilter().seal({AWS: object()}), "$.*", AWS, code="value_refused")
    refused(lambda: SecretFilter(None, "allow").seal({AWS: object()}), "$.*", AWS, code="value_refused")


@pytest.mark.parametrize(
    ("value", "path", "kind"),
    [
        ({"url": [URL]}, "$.url[0]", "password in a URL"),
        ({AWS: 1}, "$.*", "AWS access key id"),
        ({"a": {AWS: {"b": AWS}}}, "$.a.*", "AWS access key id"),
        ({"a": {AWS}}, "$.a[*]", "AWS access key id"),
        ({"a": b"\xff\x00 " + AWS.encode()}, "$.a", "AWS access key id"),
        ({"h": {"Authorization": "Bearer abc12345"}}, "$.h.Authorization", "authorization header"),
        ({"h": {"authorization": "Basic dXNlcjpwMQ=="}}, "$.h.authorization", "authorization header"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n", "$", "private key"),
    ],
)
def test_a_credential_s_shape_is_refused_by_kind(value: object, path: str, kind: str) -> None:
    error = refused(lambda: SecretFilter().seal(value), path, *HIDDEN)

    assert f"({kind};" in str(error)
    assert error.details["shape"] == kind


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"url": [URL, 1, None]}, {"url": ["https://oauth2:***@localhost:1/x.git", 1, None]}),
        ({f"k {AWS}": (AWS, {"a": AWS})}, {"k ***": ("***", {"a": "***"})}),
        ({"s": frozenset({AWS, "b"}), "d": date(2024, 1, 1)}, {"s": frozenset({"***", "b"}), "d": date(2024, 1, 1)}),
        ({"b": b"\xff " + AWS.encode() + b"\n\x00"}, {"b": b"\xff ***\n\x00"}),
        ({"h": {"Authorization": "Bearer abc12345"}, "n": 2**70}, {"h": {"Authorization": "Bearer ***"}, "n": 2**70}),
        ({"$tuple": AWS}, {"$tuple": "***"}),
        (f"first {AWS}, then {URL}", "first ***, then https://oauth2:***@localhost:1/x.git"),
    ],
)
def test_a_masked_value_keeps_its_shape_and_is_what_is_stored_and_handed_on(value: object, expected: object) -> None:
    sealed = SecretFilter(None, "mask").seal(value)

    assert sealed == seal(expected)
    assert SecretFilter().seal(sealed.data) == sealed


def test_two_keys_that_masking_makes_one_are_refused() -> None:
    refused(lambda: SecretFilter(None, "mask").seal({"a": {AWS: 1, AWS.replace("7", "8"): 2}}), "$.a.*")


def test_a_masked_value_is_still_bounded() -> None:
    refused(lambda: SecretFilter(None, "mask").seal(["http://a:b@c"], bytes_max=16), "$[0]", code="value_too_large")


@pytest.mark.parametrize("value", [{"url": [URL]}, {AWS: AWS}, b"x " + AWS.encode()])
def test_an_allowed_shape_is_stored_as_it_is(value: Any) -> None:
    assert SecretFilter(None, "allow").seal(value) == seal(value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        {"path": "a/b.py", "size": 1234, "sha256": "f" * 64},
        {"url": "https://example.org/a", "note": "task-1, risk-averse"},
        [b"bytes", (1, 2), {"x"}],
        {"a": {"Authorization": "basic authentication", "authorization": "none"}},
        {"token 1234-authorization": b"x"},
    ],
)
def test_what_holds_no_secret_passes_as_the_codec_made_it(value: object) -> None:
    for guard in (SecretFilter(), DECLARED, SecretFilter(None, "mask"), SecretFilter(None, "allow")):
        assert guard.seal(value) == seal(value)


def test_a_name_with_a_secret_is_refused() -> None:
    for guard in (SecretFilter({"pw": TOKEN}), SecretFilter({"pw": TOKEN}, "allow"), SecretFilter({"pw": TOKEN}, "mask")):
        error = refused(lambda guard=guard: guard.check_text(f"deploy {TOKEN}", "the request id"), "the request id")  # type: ignore[misc]
        assert "'pw'" in str(error)


def test_a_name_with_a_shape_is_refused_unless_allowed() -> None:
    for guard in (SecretFilter(), SecretFilter(None, "mask")):
        refused(lambda guard=guard: guard.check_text(AWS, "the event name"), "the event name")  # type: ignore[misc]
    SecretFilter(None, "allow").check_text(AWS, "the event name")
    SecretFilter().check_text("deploy", "the event name")


@pytest.mark.parametrize(
    "secrets",
    [
        {"": "long enough"},
        {"a": ""},
        {"a": "qzj"},
        {"a": " qzj \n"},
        {"a": b"bytes"},
        {"a": None},
        {1: "long enough"},
        {"a\nb": "long enough"},
        {"a": "l0nely\ud800"},
        {"a\ud800": "long enough"},
        ["long enough"],
        {"canary": "canary"},
        {"the canary": "canary", "b": "other"},
    ],
)
def test_bad_secrets_are_refused_without_being_shown(secrets: Any) -> None:
    with pytest.raises(Refused) as caught:
        SecretFilter(secrets)

    assert caught.value.code == "bad_option"
    for shown in ("long enough", "canary", "qzj", "l0nely"):
        assert shown not in "".join(traceback.format_exception(caught.value)).replace("canary = ", "")


@pytest.mark.parametrize("mode", ["", "Refuse", "deny", None, True])
def test_an_unknown_mode_is_refused(mode: Any) -> None:
    with pytest.raises(Refused) as caught:
        SecretFilter(None, mode)
    assert caught.value.code == "bad_option"


def test_a_filter_shows_names_and_no_values() -> None:
    assert repr(DECLARED) == "SecretFilter(secrets=['DB_PASSWORD', 'HARD'], on_secret_shape='refuse')"
    assert str(SecretFilter()) == "SecretFilter(secrets=[], on_secret_shape='refuse')"


def test_a_filter_does_not_change() -> None:
    mine = {"a": "first value"}
    guard = SecretFilter(mine)
    mine["a"] = "other value"

    assert guard.seal("other value") == Sealed('"other value"', "other value")
    with pytest.raises(FrozenInstanceError):
        guard.on_secret_shape = "allow"  # type: ignore[misc]
    with pytest.raises(TypeError):
        guard.secrets["a"] = "x"  # type: ignore[index]
