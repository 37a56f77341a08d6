"""An exception as it is kept: plain data, bounded, with secrets hidden, whatever the exception itself does.

Its own methods are not believed and may raise: a Failure comes out all the same. What is read back is equal to what was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from freehold.schema.errors import CODES, Damaged, Error, ValueRefused, from_record, is_ours
from freehold.schema.foreign import full_name, is_a, is_frame_of_ours, members_of, origin_of, traceback_of, type_name
from freehold.schema.limits import FAILURE_BYTES_MAX, FAILURE_CAUSES_MAX, FAILURE_TEXT_BYTES_MAX, VALUE_BYTES_MAX
from freehold.schema.secrets import SecretFilter
from freehold.schema.values import decode, encode

CUT: Final = "…"
"""Stands where a text was cut."""
_NOTES = "__notes__"
_NAME_BYTES_MAX = 256
_SHORT_BYTES_MAX = 1024
_FRAMES_MAX = 1_000
_OURS = "freehold."
_MEMBERS = ("type", "message", "notes", "traceback", "details", "cause")


class Failure(msgspec.Struct, frozen=True):
    """What was wrong, as the journal tells it.

    `type` is the name of the class with its module (none for Python's own), `traceback` where it was raised, outermost first and
    without this library's own frames, `details` those of its attributes that are plain values, `cause` what it was raised from.
    """

    type: str
    message: str
    notes: tuple[str, ...] = ()
    traceback: str = ""
    details: dict[str, Any] = {}
    cause: Failure | None = None

    def __repr__(self) -> str:
        return f"<Failure {self.type}>"

    @property
    def text(self) -> str:
        """The one text by which it is stored."""
        return encode(_plain(self), bytes_max=VALUE_BYTES_MAX)


def failure_of(error: BaseException, secrets: SecretFilter) -> Failure:
    """Return *error* as it is kept: at most 64 KiB, 8 KiB of each text. Declared secrets are hidden, and shapes unless they are allowed."""
    chain = [error]
    while len(chain) < FAILURE_CAUSES_MAX and (origin := origin_of(chain[-1])) is not None:
        chain.append(origin)
    links = [_link(each, secrets) for each in chain]
    for link, name in _sheddable(links):
        if _fits(links, secrets):
            break
        link[name] = _shed(link[name])
    if not _fits(links, secrets):
        links = [{"type": _cut(secrets.hide_text(_written(type_name(error))), _NAME_BYTES_MAX), "message": "***"}]
    return _chained(links)


def read_failure(text: str) -> Failure:
    """Return the failure that *text* holds. Raises Damaged (malformed_record) if it is none."""
    return _failure(decode(text), FAILURE_CAUSES_MAX)


def error_of(failure: Failure) -> Error | None:
    """Return the error of this library that *failure* was made of, or None if it was another exception."""
    code, details = failure.details.get("code"), failure.details.get("details")
    kind = CODES.get(code) if isinstance(code, str) else None
    if kind is None or failure.type != _OURS + kind.__name__ or not isinstance(details, dict):
        return None
    plain = {name: member for name, member in details.items() if name not in ("self", "message", "code", "executed")}
    return from_record({"code": code, "message": failure.message, "executed": "yes", "details": plain})


def _link(error: BaseException, secrets: SecretFilter) -> dict[str, Any]:
    members = _attempt(lambda: members_of(error), {})
    name = _OURS + type_name(error) if is_ours(error) else _attempt(lambda: full_name(error), type_name(error))
    return {
        "type": _cut(secrets.hide_text(_written(name)), _NAME_BYTES_MAX),
        "message": _cut(secrets.hide_text(_message(error)), FAILURE_TEXT_BYTES_MAX),
        "notes": _notes(members.get(_NOTES), secrets),
        "traceback": _traceback(error, secrets),
        "details": _details(members, secrets),
    }


def _message(error: BaseException) -> str:
    try:
        return _written(str.__str__(str(error)))
    except (KeyboardInterrupt, SystemExit):
        raise  # somebody wants this program to end
    except BaseException as raised:  # noqa: BLE001 - whatever its own method raises, the exception is kept
        return f"(its text cannot be told: {type_name(raised)})"


def _notes(notes: object, secrets: SecretFilter) -> tuple[str, ...]:
    if not is_a(notes, list | tuple):
        return ()
    kept: list[str] = []
    left = FAILURE_TEXT_BYTES_MAX
    each: Iterator[object] = (list if is_a(notes, list) else tuple).__iter__(notes)  # type: ignore[arg-type]
    for note in each:
        if left <= 0:
            kept[-1] = CUT
            break
        if is_a(note, str):
            kept.append(_cut(secrets.hide_text(_written(str.__str__(note))), left))
            left -= len(kept[-1].encode()) + 1
    return tuple(kept)


def _traceback(error: BaseException, secrets: SecretFilter) -> str:
    """Return file, line and function of each frame. Neither what stood in the variables nor the source: both may hold values."""
    lines: list[str] = []
    trace = traceback_of(error)
    while trace is not None:
        if not is_frame_of_ours(trace):
            code = trace.tb_frame.f_code
            lines.append(f'File "{code.co_filename}", line {trace.tb_lineno}, in {code.co_qualname}')
        trace = trace.tb_next
    text = secrets.hide_text(_written("\n".join(lines[-_FRAMES_MAX:])))
    size = len(raw := text.encode())
    if len(lines) <= _FRAMES_MAX and size <= FAILURE_TEXT_BYTES_MAX:
        return text
    # The innermost frames say most.
    last = raw[max(0, size - FAILURE_TEXT_BYTES_MAX + len(CUT.encode()) + 1) :].decode("utf-8", "ignore")
    return f"{CUT}\n{last.partition(chr(10))[2]}"


def _details(members: dict[object, object], secrets: SecretFilter) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    left = FAILURE_TEXT_BYTES_MAX
    for name, member in members.items():
        if not is_a(name, str) or (word := str.__str__(name)) == _NOTES:
            continue
        one = _attempt(partial(secrets.hide, {word: member}, bytes_max=left), None)
        if one is not None and isinstance(one.data, dict):  # what is no plain value, too large, or spells a secret, is left out
            kept |= one.data
            left -= len(one.record.encode())
    return kept


def _attempt(read: Any, otherwise: Any) -> Any:
    try:
        return read()
    except Exception:  # noqa: BLE001 - whatever the members of somebody's exception raise when they are looked at
        return otherwise


def _written(text: str) -> str:
    """Return *text* without lone surrogates, which cannot be written."""
    return text.encode("utf-8", "backslashreplace").decode()


def _cut(text: str, bytes_max: int) -> str:
    raw = text.encode()
    return text if len(raw) <= bytes_max else raw[: max(0, bytes_max - len(CUT.encode()))].decode("utf-8", "ignore") + CUT


def _sheddable(links: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield what may go where all of it is too much: of the deepest cause first, and messages last."""
    for names in (("details", "notes", "traceback"), ("message",)):
        for link in reversed(links):
            for name in names:
                yield link, name


def _shed(member: Any) -> Any:
    if isinstance(member, str):
        return _cut(member, _SHORT_BYTES_MAX)
    return {} if isinstance(member, dict) else ((CUT,) if member else ())


def _fits(links: Sequence[dict[str, Any]], secrets: SecretFilter) -> bool:
    try:
        text = _chained(links).text
    except ValueRefused:
        return False
    # Several texts together may spell what none of them does.
    return len(text.encode()) <= FAILURE_BYTES_MAX and secrets.declared_in_record(text) is None


def _chained(links: Sequence[dict[str, Any]]) -> Failure:
    made: Failure | None = None
    for link in reversed(links):
        made = Failure(**link, cause=made)
    assert made is not None
    return made


def _plain(failure: Failure) -> dict[str, Any]:
    plain: dict[str, Any] = {name: getattr(failure, name) for name in _MEMBERS}
    return plain | {"notes": list(failure.notes), "cause": None if failure.cause is None else _plain(failure.cause)}


def _failure(found: Any, depth: int) -> Failure:
    match found:
        case {"type": str(), "message": str(), "notes": list(notes), "traceback": str(), "details": dict()} if tuple(found) == _MEMBERS:
            cause = found["cause"]
            if all(isinstance(note, str) for note in notes) and (cause is None or depth > 1):
                told = {**found, "notes": tuple(notes), "cause": None if cause is None else _failure(cause, depth - 1)}
                return Failure(**told)
    raise Damaged("a stored failure is malformed; it was left alone", code="malformed_record")
