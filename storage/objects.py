"""Immutable pieces, addressed by their content: adding one that is there already changes nothing."""

from __future__ import annotations

import apsw

from freehold.schema.errors import Damaged
from freehold.schema.limits import OBJECT_BYTES_MAX
from freehold.schema.roots import Object

RAW, ZSTD = 0, 1
_COMPRESS_FROM_BYTES = 256
_INSERT = "INSERT INTO object (hash, kind, size, codec, data) VALUES (?, ?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING RETURNING id"


def put_object(db: apsw.Connection, piece: Object) -> int:
    """Add *piece* unless it is there, and return its row id."""
    codec, data = pack(piece.data)
    row_id = db.execute(_INSERT, (piece.hash, int(piece.kind), len(piece.data), codec, data)).get
    if row_id is None:
        row_id, kind = db.execute("SELECT id, kind FROM object WHERE hash = ?", (piece.hash,)).get
        if kind != piece.kind:
            raise malformed()
    return int(row_id)


def pack(data: bytes) -> tuple[int, bytes]:
    """Return codec and stored bytes; compression stands outside the identity and is used only where it pays."""
    if len(data) >= _COMPRESS_FROM_BYTES:
        import zstandard  # heavy, and most runs never hold anything long

        packed = zstandard.ZstdCompressor(level=1).compress(data)
        if len(packed) < len(data) * 9 // 10:
            return ZSTD, packed
    return RAW, data


def unpack(codec: int, data: bytes, size: int) -> bytes:
    """Return the plain bytes of a stored object.

    Raises Damaged when they are not *size* bytes, cannot be unpacked, or are more than an object can hold.
    """
    if size > OBJECT_BYTES_MAX:
        raise malformed()
    if codec == ZSTD:
        import zstandard

        try:
            # Asked first: a forged frame must not make us allocate more than its row says.
            if zstandard.get_frame_parameters(data).content_size != size:
                raise malformed()
            data = zstandard.ZstdDecompressor().decompress(data)
        except zstandard.ZstdError:
            raise malformed() from None
    if len(data) != size:
        raise malformed()
    return data


def malformed() -> Damaged:
    """Return what is said of an object that is not what its row says."""
    return Damaged("an object's content is not what its row says; the file was left unchanged", code="malformed_record", table="object")
