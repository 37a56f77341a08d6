"""Texts that look like a credential of a well-known kind.

Every pattern begins with letters that stand in it as they are, so a text without them is passed at the speed of a
substring search; every pattern takes time in proportion to the text. What holds for a string holds for the JSON text
that stores it: a pattern that is found in the one is found in the other.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MASK: Final = "***"


class Shape(NamedTuple):
    """A kind of credential, letters that every one holds, and its pattern; group 1 is the part that must not be seen."""

    kind: str
    letters: str
    pattern: re.Pattern[str]


def _token(start: str, rest: str) -> str:
    """Return a pattern for a token that begins a word, also after an escape such as a newline in JSON text."""
    begins = rf"(?:(?<![A-Za-z0-9_-]{start})|(?<=\\[bfnrt]{start})|(?<=\\u00[0-9a-f][0-9a-f]{start}))"
    return f"({start}{begins}{rest})"


_END = "(?![A-Za-z0-9_-])"
_URL_PART = r"[^\s\x00-\x1f/?#@\"'<>\\`]"
_TOKEN68 = r"[A-Za-z0-9._~+/=-]"
_WITH_DIGIT = r"(?=[A-Za-z._~+/=-]*\d)"
_SPACES = r"(?:\s|\\[tnr]|%20|\+){1,4}"
_HEADER = r"uthorization[\s\"'\\:=,]{1,12}"
_KEY_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"

SHAPES: Final = tuple(
    Shape(kind, letters, re.compile(pattern))
    for kind, letters, pattern in (
        ("AWS access key id", "AKIA", _token("AKIA", rf"[A-Z0-9]{{16}}{_END}")),
        ("AWS access key id", "ASIA", _token("ASIA", rf"[A-Z0-9]{{16}}{_END}")),
        ("GitHub token", "gh", _token("gh[pousr]_", r"[A-Za-z0-9]{20,}+")),
        ("GitHub token", "github_pat_", _token("github_pat_", r"[A-Za-z0-9_]{22,}+")),
        ("GitLab token", "glpat-", _token("glpat-", r"[A-Za-z0-9_.-]{20,}+")),
        ("Slack token", "xox", _token("xox[abeprs]-", r"[A-Za-z0-9-]{10,}+")),
        ("Anthropic key", "sk-ant-", _token("sk-ant-", r"[A-Za-z0-9_-]{16,}+")),
        # Words joined by hyphens ("sk-learn-…") are no key: a key has a long piece with a digit in it.
        ("OpenAI key", "sk-", _token("sk-", r"(?=[A-Za-z]*\d)[A-Za-z0-9]{20,}+[A-Za-z0-9_-]*+")),
        ("OpenAI key", "sk-", _token("sk-", r"(?:proj|svcacct|admin|None|or-v1)-(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{20,}+")),
        ("Stripe key", "k_live_", _token("[sr]k_live_", r"[A-Za-z0-9]{16,}+")),
        ("Google API key", "AIza", _token("AIza", rf"[A-Za-z0-9_-]{{35}}{_END}")),
        ("JSON web token", "eyJ", _token("eyJ", r"[A-Za-z0-9_-]{5,}+\.eyJ[A-Za-z0-9_-]{5,}+\.[A-Za-z0-9_-]*+")),
        # Without its end, the rest of the text is taken for the key.
        ("private key", "-----BEGIN ", rf"(-----BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY[A-Z -]{{5,11}}(?:[\s\S]*?{_KEY_END}|[\s\S]*))"),
        (
            "authorization header",
            "uthorization",
            rf"{_HEADER}(?:[Bb]earer|[Tt]oken){_SPACES}({_WITH_DIGIT}{_TOKEN68}{{8,}}+|{_TOKEN68}{{20,}}+)",
        ),
        # The base64 of user and password: a digit or a capital inside the word.
        ("authorization header", "uthorization", rf"{_HEADER}[Bb]asic{_SPACES}((?=[A-Za-z][a-z]*[A-Z0-9])[A-Za-z0-9+/=]{{8,}}+)"),
        ("bearer token", "earer", rf"earer{_SPACES}({_WITH_DIGIT}{_TOKEN68}{{20,}}+)"),
        # Not what was masked already, and not a shell's ${PLACE} for it.
        ("password in a URL", "://", rf"://{_URL_PART}{{0,256}}?:(?!\*+@|\$\{{\w+\}}@)({_URL_PART}{{1,512}}+)@"),
    )
)


def may_hold_shape(text: str) -> bool:
    """Return False if *text* surely holds no shape. For a small text it costs less than a microsecond."""
    # The letters of the table, written out: a loop over it takes twice as long.
    return (
        "sk-" in text
        or "://" in text
        or "eyJ" in text
        or "gh" in text
        or "earer" in text
        or "uthorization" in text
        or "k_live_" in text
        or "AKIA" in text
        or "ASIA" in text
        or "AIza" in text
        or "xox" in text
        or "glpat-" in text
        or "github_pat_" in text
        or "-----BEGIN " in text
    )


def shape_in(text: str) -> str | None:
    """Return the kind of the first shape that is found in *text*."""
    for kind, letters, pattern in SHAPES:
        if letters in text and pattern.search(text):
            return kind
    return None


def masked(text: str) -> str:
    """Return *text* with `***` in place of what must not be seen; user, host and scheme stay readable."""
    for _, letters, pattern in SHAPES:
        if letters in text:
            text = pattern.sub(_mask, text)
    return text


def _mask(match: re.Match[str]) -> str:
    whole, start = match[0], match.start()
    return whole[: match.start(1) - start] + MASK + whole[match.end(1) - start :]
