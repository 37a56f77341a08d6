"""The objects of a run as its owner or a reader hands them out: packed on the way, looked at and unpacked here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from freehold.schema.errors import Refused
from freehold.schema.hashes import ObjectKind
from freehold.schema.index import chunks_beneath
from freehold.schema.limits import PIECES_BYTES_MAX, READ_AHEAD_CHUNKS
from freehold.schema.messages import KeepObjects, Message, ReadObjects
from freehold.schema.roots import Object
from freehold.schema.rows import PackedObject
from freehold.storage.objects import packed, plain


class Pieces:
    """Objects that are asked for by message. What is put waits here, up to a bound, and is sent in one message.

    After its `end` nothing is read or kept any more: Refused (transaction_over).
    """

    def __init__(self, ask: Callable[[Message], Any], *, ahead: bool = False) -> None:
        self._ask = ask
        self._ahead = ahead
        self._waiting: dict[bytes, PackedObject] = {}
        self._bytes = 0
        self.sent: set[bytes] = set()
        """What has gone ahead of its publish."""
        self._over = False
        self._next: tuple[bytes, ...] = ()
        """The chunks that follow the one that was asked for last, as its file's index names them."""
        self._expected: dict[bytes, PackedObject] = {}
        """What was read already and is asked for next."""
        self._follows: bytes | None = None

    def get(self, hash_: bytes, kind: ObjectKind) -> bytes:
        """Return the plain content of a piece. Raises Damaged when it is missing, of another kind, or not what its hash says."""
        self._check()
        row = self._waiting.get(hash_)
        if row is None:
            row = self._read(hash_)
        data = plain(row, hash_, kind)
        if kind is ObjectKind.FILE:
            self._next = chunks_beneath(data)
        return data

    def _read(self, hash_: bytes) -> PackedObject | None:
        """Return a piece; of a file that is read from chunk to chunk, several with one message."""
        if hash_ in self._expected:
            return self._expected.pop(hash_)
        wanted: tuple[bytes, ...] = (hash_,)
        if hash_ in self._next:
            at = self._next.index(hash_)
            # The first chunk comes alone: whoever reads here and there asks for one at a time.
            wanted = self._next[at : at + (READ_AHEAD_CHUNKS if self._follows == hash_ else 1)]
            self._follows = self._next[at + len(wanted)] if at + len(wanted) < len(self._next) else None
        self.expect(wanted)
        return self._expected.pop(hash_, None)

    def expect(self, hashes: Sequence[bytes], /) -> None:
        """Read pieces that are asked for next, with one message; those that were expected before and not asked for are dropped."""
        self._check()
        wanted = tuple(hash_ for hash_ in hashes if hash_ not in self._waiting)
        rows = self._ask(ReadObjects(wanted)) if wanted else ()
        # What is not there is asked for again: it may have come meanwhile.
        self._expected = {row.hash: row for row in rows if row is not None}

    def put(self, piece: Object) -> None:
        """Keep *piece*; with `flush` at the latest it is in the file."""
        self._check()
        if piece.hash in self._waiting or piece.hash in self.sent:
            return
        row = self._waiting[piece.hash] = packed(piece)
        self._bytes += len(row.data)
        if self._bytes >= PIECES_BYTES_MAX:
            self.flush()

    def flush(self) -> None:
        """Send what waits."""
        if not self._waiting:
            return
        rows = tuple(self._waiting.values())
        self._ask(KeepObjects(rows, self._ahead))
        if self._ahead:
            self.sent.update(self._waiting)
        self._waiting.clear()
        self._bytes = 0

    def rest(self) -> tuple[PackedObject, ...]:
        """Take what waits, to be sent with what it belongs to."""
        rows = tuple(self._waiting.values())
        self._waiting.clear()
        self._bytes = 0
        return rows

    def end(self) -> None:
        """Drop what waits, and take nothing more: a file that was left open must not reach into what comes next."""
        self.rest()
        self._over = True

    def _check(self) -> None:
        if self._over:
            raise over()


def over() -> Refused:
    """Return what files say, and their objects, after the end of what they were changed in."""
    return Refused("these files belong to a publish or transaction that is over; nothing was changed", code="transaction_over")
