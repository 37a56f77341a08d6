"""The filter before persistence: no declared secret is ever stored, and what looks like a credential only if told so.

It names declared secrets by their names and shapes by their kinds; no message, no repr shows a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, Never
from urllib.parse import quote, quote_plus

from freehold.schema import jsonpath, values
from freehold.schema.errors import Refused
from freehold.schema.jsonpath import Refusal, Step
from freehold.schema.limits import VALUE_BYTES_MAX
from freehold.schema.shapes import MASK as HIDDEN
from freehold.schema.shapes import masked, may_hold_shape, shape_in
from freehold.schema.values import Sealed, Value

OnSecretShape = Literal["refuse", "mask", "allow"]
SECRET_CHARS_MIN: Final = 4
REFUSE: Final = "refuse"
MASK: Final = "mask"
ALLOW: Final = "allow"
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_HEADER: Final = "authorization"
_BYTES: Final = '{"$bytes":"'


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SecretFilter:
    """Declared secrets by name, and what to do with a credential's shape. Shared freely between threads.

    A declared value is refused wherever it stands: in text, keys and bytes, as it is, or escaped for JSON, a URL or a
    shell. A shape is refused, masked (the masked value is stored and handed on) or allowed. Raises Refused
    (`bad_option`) for a name or a value that is no text, an empty name, a value of fewer than 4 characters.
    """

    secrets: Mapping[str, str] | None = None
    on_secret_shape: OnSecretShape = REFUSE
    _texts: tuple[tuple[str, str], ...] = field(init=False)
    _records: tuple[tuple[str, str], ...] = field(init=False)

    def __post_init__(self) -> None:
        declared = _checked(self.secrets)
        if self.on_secret_shape not in (REFUSE, MASK, ALLOW):
            _refuse_option("on_secret_shape is one of refuse, mask, allow")
        forms = {name: _forms(secret) for name, secret in declared.items()}
        for name in declared:
            # A name is shown in messages.
            if any(text in name for texts in forms.values() for text in texts):
                _refuse_option("the name of a secret holds the value of one")
        put = object.__setattr__
        put(self, "secrets", MappingProxyType(declared))
        put(self, "_texts", tuple((name, text) for name, texts in forms.items() for text in texts))
        records = {(name, values.encode(text)[1:-1]): None for name, texts in forms.items() for text in texts}
        put(self, "_records", tuple(records))

    def __repr__(self) -> str:
        return f"SecretFilter(secrets={list(self.secrets or ())!r}, on_secret_shape={self.on_secret_shape!r})"

    def check_text(self, text: str, what: str) -> None:
        """Refuse (`secret_refused`) a name or key, called *what*, with a declared secret, or a shape unless allowed.

        A masked name would no longer be the name that was given, so "mask" refuses here too.
        """
        if name := _found(self._texts, text):
            _refuse_secret(what, f"the declared secret {name!r}", secret=name)
        if self.on_secret_shape != ALLOW and may_hold_shape(text) and (kind := shape_in(text)):
            _refuse_secret(what, _credential(kind), shape=kind)

    def seal(self, value: object, *, bytes_max: int = VALUE_BYTES_MAX) -> Sealed:
        """Return *value* as it is stored and handed on.

        Raises Refused (`secret_refused`) with the secret's name or the shape's kind and the path; ValueRefused as the
        codec does, its path freed from secrets. Masking makes equal members of a set one.
        """
        try:
            result = values.sealed(value, bytes_max)
            return self._looked_through(result, bytes_max) if self._may_hold(result.record) else result
        except Refusal as refusal:
            error = refusal.error(self._tells)
        # Raised out here, so that it carries no context.
        raise error

    def hide(self, value: object, *, bytes_max: int = VALUE_BYTES_MAX) -> Sealed:
        """Return *value* as it is stored, with `***` in place of what `seal` would refuse: for what must be kept, as a failure.

        Shapes are masked unless they are allowed. Raises ValueRefused as the codec does, its path freed from secrets.
        """
        try:
            result = values.sealed(value, bytes_max)
            if self._may_hold(result.record):
                result = values.sealed(self._hidden(result.data, ()), bytes_max)
            # A secret may be spelled by several members together.
            return values.sealed(HIDDEN, bytes_max) if _found(self._records, result.record) else result
        except Refusal as refusal:
            told = refusal.error(self._tells)
        raise told

    def hide_text(self, text: str) -> str:
        """Return *text* with `***` in place of each declared secret, and of each shape unless they are allowed."""
        for _, form in self._texts_by_length():
            text = text.replace(form, HIDDEN)
        return masked(text) if self.on_secret_shape != ALLOW and may_hold_shape(text) else text

    def declared_in_record(self, record: str) -> str | None:
        """Return the name of a declared secret that the text of a stored value holds."""
        return _found(self._records, record)

    def _texts_by_length(self) -> list[tuple[str, str]]:
        # One secret may be a part of another, whose rest must not stay behind.
        return sorted(self._texts, key=lambda text: -len(text[1]))

    def _hidden(self, data: Value, steps: tuple[Step, ...]) -> Value:
        if isinstance(data, str):
            heading = _heading(steps, data)
            return self.hide_text(heading + data)[len(heading) :]
        if isinstance(data, bytes):
            for _, form in self._texts_by_length():
                data = data.replace(form.encode(), HIDDEN.encode())
            return data if self.on_secret_shape == ALLOW else masked(_as_text(data)).encode("latin-1")
        if isinstance(data, dict):
            return {self.hide_text(key): self._hidden(member, (*steps, key)) for key, member in data.items()}
        if isinstance(data, list | tuple | set | frozenset):
            return type(data)(self._hidden(member, (*steps, None)) for member in data)
        if data is None or isinstance(data, bool) or self._declared_in(values.encode(data)) is None:
            return data
        return HIDDEN

    def _may_hold(self, record: str) -> bool:
        # In bytes, whatever there is stands in base64: they are always looked through.
        shape = self.on_secret_shape != ALLOW and may_hold_shape(record)
        return shape or _BYTES in record or _found(self._records, record) is not None

    def _looked_through(self, result: Sealed, bytes_max: int) -> Sealed:
        record, data = result.record, result.data
        holds_bytes = _BYTES in record
        if name := _found(self._records, record):
            self._refuse_declared(name, data)
        if holds_bytes and self._texts:
            for _, text in _texts_of(data):
                if name := self._declared_in(text):
                    self._refuse_declared(name, data)
        if self.on_secret_shape == ALLOW or not (holds_bytes or shape_in(record)):
            return result
        for steps, text in _texts_of(data):
            if kind := shape_in(_heading(steps, text) + _as_text(text)):
                if self.on_secret_shape == MASK:
                    return values.sealed(self._masked(data, []), bytes_max)
                _refuse_secret(jsonpath.shown(steps, self._tells), _credential(kind), shape=kind)
        return result

    def _refuse_declared(self, name: str, data: Value) -> Never:
        # The record decides; the walk only finds the place, which is the whole value if no single member holds it.
        place: tuple[Step, ...] = ()
        for steps, text in _texts_of(data):
            if self._declared_in(text) == name:
                place = steps
                break
        _refuse_secret(jsonpath.shown(place, self._tells), f"the declared secret {name!r}", secret=name)

    def _declared_in(self, text: str | bytes) -> str | None:
        if isinstance(text, str):
            return _found(self._texts, text)
        return next((name for name, form in self._texts if form.encode() in text), None)

    def _tells(self, text: str) -> bool:
        return _found(self._texts, text) is not None or shape_in(text) is not None

    def _masked(self, data: Value, steps: list[Step]) -> Value:
        if isinstance(data, str):
            heading = _heading(steps, data)
            return masked(heading + data)[len(heading) :]
        if isinstance(data, bytes):
            return masked(_as_text(data)).encode("latin-1")
        if isinstance(data, dict):
            tree: dict[str, Any] = {}
            for key, member in data.items():
                name = masked(key)
                if name in tree:
                    path = jsonpath.shown((*steps, name), self._tells)
                    _refuse_secret(path, "credentials in two keys that cannot be told apart when masked")
                tree[name] = self._masked(member, [*steps, name])
            return tree
        if isinstance(data, list | tuple):
            return type(data)(self._masked(member, [*steps, index]) for index, member in enumerate(data))
        if isinstance(data, set | frozenset):
            return type(data)(self._masked(member, [*steps, None]) for member in data)
        return data


def _checked(secrets: object) -> dict[str, str]:
    if secrets is None:
        return {}
    if not isinstance(secrets, Mapping):
        _refuse_option("secrets is a mapping of names to values")
    declared: dict[str, str] = {}
    for name, secret in secrets.items():
        if not isinstance(name, str) or not name or _CONTROL.search(name):
            _refuse_option("the name of a secret is text that is not empty, without control characters")
        if not isinstance(secret, str) or _SURROGATE.search(secret):
            _refuse_option("a secret is text")
        if len(secret.strip()) < SECRET_CHARS_MIN:
            _refuse_option(f"a secret has at least {SECRET_CHARS_MIN} characters")
        declared[str(name)] = str(secret)
    return declared


def _forms(secret: str) -> tuple[str, ...]:
    """Return the texts by which a secret is known: as it is, and as JSON, a URL or a shell command writes it."""
    # A secret read from a file often ends with a newline that its users leave out.
    secret = secret.strip()
    forms = (
        secret,
        *(_escaped(secret, times, ascii_only=ascii_only) for times in (1, 2) for ascii_only in (False, True)),
        _escaped(secret, 1, ascii_only=True).replace("/", r"\/"),
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        secret.replace("'", "'\"'\"'"),
        secret.replace("'", r"'\''"),
    )
    return tuple(dict.fromkeys(forms))


def _escaped(text: str, times: int, *, ascii_only: bool) -> str:
    import json  # only who declares secrets needs it

    for _ in range(times):
        text = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
    return text


def _found(forms: tuple[tuple[str, str], ...], text: str) -> str | None:
    for name, form in forms:
        if form in text:
            return name
    return None


def _heading(steps: Sequence[Step], text: str | bytes) -> str:
    # {"Authorization": "Bearer …"} is the header that it spells, but a key is not its own heading.
    key = steps[-1] if steps else None
    return "Authorization: " if isinstance(key, str) and key is not text and key.lower().endswith(_HEADER) else ""


def _as_text(text: str | bytes) -> str:
    # One character a byte, so that a credential in a binary is found and the rest comes back as it was.
    return text if isinstance(text, str) else text.decode("latin-1")


def _texts_of(data: Value, steps: tuple[Step, ...] = ()) -> Iterator[tuple[tuple[Step, ...], str | bytes]]:
    """Yield all that can be read in a value, keys included, with the way to it."""
    if isinstance(data, str | bytes):
        yield steps, data
    elif isinstance(data, dict):
        for key, member in data.items():
            yield (*steps, key), key
            yield from _texts_of(member, (*steps, key))
    elif isinstance(data, list | tuple):
        for index, member in enumerate(data):
            yield from _texts_of(member, (*steps, index))
    elif isinstance(data, set | frozenset):
        for member in data:
            yield from _texts_of(member, (*steps, None))
    elif data is not None:
        # A number or a date may spell a secret too.
        yield steps, values.encode(data)


def _refuse_secret(place: str, what: str, **details: Any) -> Never:
    raise Refused(f"{place}: holds {what}; nothing was changed", code="secret_refused", path=place, **details)


def _credential(kind: str) -> str:
    return f"what looks like a credential ({kind}; if it is none, on_secret_shape='allow' lets it pass)"


def _refuse_option(rule: str) -> Never:
    raise Refused(f"{rule}; nothing was opened", code="bad_option")
