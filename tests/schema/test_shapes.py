"""Credentials of well-known kinds are seen, and ordinary text is not taken for one."""

from __future__ import annotations

import base64
import json
import string
from hashlib import sha256, sha512
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.schema.shapes import SHAPES, masked, may_hold_shape, shape_in
from freehold.schema.values import encode

RUN = (string.ascii_letters + string.digits) * 5
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK+/CAQ==\n-----END RSA PRIVATE KEY-----"
CREDENTIALS = {
    "AKIAIOSFODNN7EXAMPLE": "AWS access key id",
    "ASIAIOSFODNN7EXAMPLE": "AWS access key id",
    "ghp_" + RUN[:36]: "GitHub token",
    "gho_" + RUN[:36]: "GitHub token",
    "ghs_" + RUN[:36]: "GitHub token",
    "github_pat_" + RUN[:22] + "_" + RUN[:59]: "GitHub token",
    "glpat-" + RUN[:20]: "GitLab token",
    "xoxb-1234567890-" + RUN[:24]: "Slack token",
    "sk-" + RUN[40:88]: "OpenAI key",
    "sk-proj-a_b-" + RUN[50:110]: "OpenAI key",
    "sk-" + sha256(b"x").hexdigest()[:32]: "OpenAI key",
    "sk-ant-api03-" + RUN[:90] + "-_AA": "Anthropic key",
    "sk_live_" + RUN[:24]: "Stripe key",
    "rk_live_" + RUN[:24]: "Stripe key",
    "AIza" + RUN[:35]: "Google API key",
    JWT: "JSON web token",
    PEM: "private key",
    PEM.replace("RSA ", ""): "private key",
    PEM.replace("RSA ", "OPENSSH "): "private key",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nabc\n-----END PGP PRIVATE KEY BLOCK-----": "private key",
}
IN_CONTEXT = {
    'curl -H "Authorization: Bearer tok_ABC123" x': ('curl -H "Authorization: Bearer ***" x', "authorization header"),
    "authorization: Basic dXNlcjpwYXNzd29yZDE=": ("authorization: Basic ***", "authorization header"),
    '{"Authorization": "token abcdefgh1234"}': ('{"Authorization": "token ***"}', "authorization header"),
    f"Bearer {RUN[50:100]} and more": ("Bearer *** and more", "bearer token"),
    "git clone https://oauth2:tok_ABC123@localhost:1/x.git": ("git clone https://oauth2:***@localhost:1/x.git", "password in a URL"),
    "postgres://user:p%40ss@db/x and redis://:pw@h": ("postgres://user:***@db/x and redis://:***@h", "password in a URL"),
    "amqp://u:a:b@h": ("amqp://u:***@h", "password in a URL"),
}
ORDINARY = [
    sha256(b"a").hexdigest(),
    sha512(b"a").hexdigest(),
    f"sha256:{sha256(b'b').hexdigest()}",
    str(UUID(int=2**127 - 5)),
    base64.b64encode(sha512(b"c").digest() * 3).decode(),
    base64.urlsafe_b64encode(sha512(b"d").digest() * 3).decode(),
    "sk-learn",
    "sk-learn-classification-report-2024-05-06-final",
    "scikit-learn risk-averse task-1234567890123456789012345 disk-0123456789abcdef0123456789",
    "usr/share/ghostscript/ghp_notes.txt",
    "https://example.org:8080/a/b@v1?x=1#y",
    "https://user@example.org/x",
    "ssh://git@github.com:22/a.git and mail me@example.org",
    "http://a.b:80, http://c.d",
    "http://[::1]:8080/",
    '{"url":"http://h:80","mail":"x@y"}',
    "https://x:***@localhost/",
    "https://x:${TOKEN}@localhost/",
    "Authorization: Bearer <access_token>",
    "Authorization: Bearer ***",
    "Authorization: Bearer $TOKEN",
    "authorization: token required",
    "the bearer of this letter internationalization-and-localization",
    "xoxo- hugs",
    "eyJhbGciOiJIUzI1NiJ9",
    "AKIA",
    "AKIAIOSFODNN7EXAMPLETOOLONG1",
    "XAKIAIOSFODNN7EXAMPLE",
    "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----",
    "src/freehold/schema/secrets.py::test_a_token",
    "sk_test_" + RUN[:24],
]


@pytest.mark.parametrize(("credential", "kind"), CREDENTIALS.items(), ids=list(CREDENTIALS.values()))
@pytest.mark.parametrize("around", ["{}", "key={} ", "see '{}', please", "line\n{}\nline", "a/{}"])
def test_a_credential_is_seen_and_masked(credential: str, kind: str, around: str) -> None:
    text = around.format(credential)

    assert shape_in(text) == kind
    assert masked(text) == around.format("***")


@pytest.mark.parametrize(("text", "expected"), IN_CONTEXT.items())
def test_only_the_secret_part_is_masked(text: str, expected: tuple[str, str]) -> None:
    assert shape_in(text) == expected[1]
    assert masked(text) == expected[0]
    assert shape_in(masked(text)) is None


@pytest.mark.parametrize("text", [*CREDENTIALS, *IN_CONTEXT])
def test_what_is_seen_in_a_text_is_seen_in_its_record(text: str) -> None:
    for wrapped in (text, f"\x01{text}", f'"\n{text}\t', json.dumps([f"\n{text}"])):
        assert shape_in(wrapped)
        assert may_hold_shape(encode([wrapped]))
        assert shape_in(encode([wrapped]))


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_no_credential(text: str) -> None:
    assert shape_in(text) is None
    assert masked(text) == text
    assert shape_in(encode({text: text})) is None


def test_a_private_key_without_its_end_is_masked_to_the_end_of_the_text() -> None:
    assert masked("a -----BEGIN PRIVATE KEY-----\nMIIE") == "a ***"


def test_every_shape_is_found_by_the_quick_look() -> None:
    for shape in SHAPES:
        assert may_hold_shape(f"xx{shape.letters}xx")


@given(st.binary(min_size=20, max_size=200))
def test_digests_and_base64_raise_no_alarm(content: bytes) -> None:
    for text in (content.hex(), base64.b64encode(content).decode(), base64.urlsafe_b64encode(content).decode()):
        assert shape_in(text) is None


STARTS = (
    "sk- sk-ant- sk-proj- sk-a eyJ eyJaaaaaa :// ://a: ://a:b gh ghp_ xoxb- AKIA AIza a - : eyJa.eyJa. "
    "github_pat_ glpat- k_live_ sk_live_ uthorization:Bearer"
).split()


@pytest.mark.parametrize("part", [*STARTS, "-----BEGIN ", "Authorization: Bearer ", "earer ", "uthorization  "])
def test_the_time_is_in_proportion_to_the_text(part: str) -> None:
    text = part * (300_000 // len(part))

    # Were it the square, this would take hours; the time limit of the tests stops it.
    for whole in (text, f"sk-{text}", f"eyJ{text}", f"://{text}", f"Bearer {text}", f"-----BEGIN PRIVATE KEY-----{text}"):
        assert len(masked(whole)) <= len(whole)
