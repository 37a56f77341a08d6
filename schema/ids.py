"""The names by which things are known, and what a legal one looks like.

A wrong one is refused before anything is opened, and the message never repeats it.
"""

from __future__ import annotations

import re

from freehold.schema.errors import Refused
from freehold.schema.limits import (
    NAME_CHARS_MAX,
    PROJECT_CHARS_MAX,
    REQUEST_ID_CHARS_MAX,
    RUN_ID_CHARS_MAX,
    STEP_KEY_CHARS_MAX,
    STOP_CODE_CHARS_MAX,
)

FILE_SUFFIX = ".sqlite"
_RUN_ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{RUN_ID_CHARS_MAX - 1}}}")
_SOCKET = re.compile(r"\.host-[0-9a-f]{16}\.sock")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


class EventId(str):
    """An event's UUIDv7 as text (RFC 9562), e.g. `01939f7e-7c52-7b9a-8f0e-2f6d5f1c2a3b`."""

    __slots__ = ()


class Root(str):
    """The identity of a whole workspace tree: 64 hexadecimal digits."""

    __slots__ = ()


def check_run_id(run_id: object) -> str:
    """Return *run_id* if it is one: a letter or digit, then up to 127 letters, digits, `.`, `_` or `-`."""
    if isinstance(run_id, str) and _RUN_ID.fullmatch(run_id):
        return str.__str__(run_id)  # a subclass may say anything of itself in its own __str__
    raise Refused(
        "a run id is a letter or digit followed by up to 127 letters, digits, '.', '_' or '-'; nothing was created",
        code="bad_run_id",
    )


def check_name(name: object) -> str:
    """Return *name* if an event can carry it: 1 to 256 characters, no control characters, no lone surrogates."""
    return _check_text(name, 1, NAME_CHARS_MAX, "an event name", "bad_name")


def check_request_id(request_id: object) -> str:
    """Return *request_id* if it is one: 1 to 128 characters, no control characters, no lone surrogates."""
    return _check_text(request_id, 1, REQUEST_ID_CHARS_MAX, "a request id", "bad_request_id")


def check_step_key(key: object) -> str:
    """Return *key* if a step can be known by it: 1 to 128 characters, no control characters, no lone surrogates."""
    return _check_text(key, 1, STEP_KEY_CHARS_MAX, "the key of a step", "bad_name")


def check_project(project: object) -> str:
    """Return *project*, a label of at most 256 characters that may be empty."""
    return _check_text(project, 0, PROJECT_CHARS_MAX, "a project", "bad_option")


def is_label(text: object, least: int, most: int) -> bool:
    """Return whether *text*, read from a file, is a label of that many characters: text without control characters."""
    return type(text) is str and least <= len(text) <= most and not _CONTROL.search(text)


def socket_name(random: bytes) -> str:
    """Return the name of a host's socket in its folder, from 8 random bytes. No run id begins with a dot."""
    return f".host-{random[:8].hex()}.sock"


def is_socket_name(name: object) -> bool:
    """Return whether *name*, read from a file or a folder, is that of a host's socket: it leads nowhere else."""
    return type(name) is str and _SOCKET.fullmatch(name) is not None


def check_stop_code(code: object) -> str:
    """Return *code*, the host's own reason to stop: 1 to 64 characters."""
    return _check_text(code, 1, STOP_CODE_CHARS_MAX, "a stop code", "bad_option")


def _check_text(text: object, least: int, most: int, what: str, code: str) -> str:
    if isinstance(text, str):
        text = str.__str__(text)  # a subclass may lie about its length
        if least <= len(text) <= most and not _CONTROL.search(text):
            return text
    found = f"{len(text)} characters" if isinstance(text, str) else type(text).__name__
    raise Refused(
        f"{what} is text of {least} to {most} characters without control characters or lone surrogates, "
        f"not this ({found}); nothing was changed",
        code=code,
    )


def event_id_text(raw: bytes) -> EventId:
    """Return the 16 bytes of a UUID as its 36 characters."""
    digits = raw.hex()
    return EventId(f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}")


def uuid7(ms: int, random: bytes) -> bytes:
    """Return a UUIDv7 (RFC 9562 section 5.7) of 16 bytes from *ms* since 1970 and 10 random bytes."""
    return ms.to_bytes(6, "big") + bytes((0x70 | random[0] & 0x0F, random[1], 0x80 | random[2] & 0x3F)) + random[3:10]
