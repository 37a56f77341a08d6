"""The answer to a request that was carried out before, and the text that a run file keeps of such answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from freehold.schema.values import encode


class Repeated(msgspec.Struct, frozen=True):
    """What a writing turn is answered with that was done before under its request id; *durable*, if the disk has it by now."""

    reply: str
    durable: bool

    def __repr__(self) -> str:
        return "<Repeated>"


def reply_text(record: str, places: Iterable[Sequence[str | int]]) -> str:
    """Return what is stored of an answer: the record of its plain values, and the places in it at which a seq stands for an event."""
    return f"[{record},{encode([list(place) for place in places])}]"
