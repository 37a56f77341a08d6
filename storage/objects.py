"""Immutable pieces, addressed by their content: adding one that is there already changes nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any, Protocol

import apsw

from freehold.schema.errors import Damaged
from freehold.schema.hashes import ObjectKind, object_hash
from freehold.schema.limits import OBJECT_BYTES_MAX
from freehold.schema.roots import EMPTY_TREE, Object
from freehold.schema.rows import PackedObject
from freehold.storage import platform

RAW, ZSTD = 0, 1
_COMPRESS_FROM_BYTES = 256
_PACKERS: deque[Any] = deque(maxlen=8)
_UNPACKERS: deque[Any] = deque(maxlen=8)
"""Those that nobody uses just now; one that has failed does not come back."""
_INSERT = "INSERT INTO object (hash, kind, size, codec, data) VALUES (?, ?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING"


class Objects(Protocol):
    """Where pieces are kept: a file's own table, or whatever stands before it."""

    def get(self, hash_: bytes, kind: ObjectKind) -> bytes:
        """Return the plain content of a piece. Raises Damaged when it is missing, of another kind, or not what its hash says."""

    def put(self, piece: Object, /) -> None:
        """Keep *piece*; one that is there already changes nothing."""

    def expect(self, hashes: Sequence[bytes], /) -> None:
        """Be told which pieces are asked for next: where asking takes a message, all of them come with one."""


class StoredObjects:
    """The pieces of one file, over any connection; keeping one needs its owner's open transaction."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def get(self, hash_: bytes, kind: ObjectKind) -> bytes:
        """Return the plain content of a piece; see `Objects`."""
        return plain(read_packed(self._db, (hash_,))[0], hash_, kind)

    def put(self, piece: Object) -> None:
        """Keep *piece*; see `Objects`."""
        put_object(self._db, piece)

    def expect(self, hashes: Sequence[bytes], /) -> None:
        """Do nothing: each is as near as all of them."""


class NoObjects:
    """Where nothing is kept but what every run has: the empty directory."""

    def get(self, hash_: bytes, kind: ObjectKind) -> bytes:
        """Return the empty directory; nothing else is there."""
        if (hash_, kind) != (EMPTY_TREE.hash, EMPTY_TREE.kind):
            raise missing()
        return EMPTY_TREE.data

    def put(self, _piece: Object, /) -> None:
        """Keep nothing: there is no file to keep it in."""
        raise missing()

    def expect(self, hashes: Sequence[bytes], /) -> None:
        """Do nothing: nothing is there."""


def put_object(db: apsw.Connection, piece: Object) -> int:
    """Add *piece* unless it is there, and return its row id."""
    return put_packed(db, packed(piece))[0]


def put_packed(db: apsw.Connection, row: PackedObject) -> tuple[int, bool]:
    """Add a packed object unless it is there; return its row id, and whether it is new.

    Raises Damaged when one of another kind has its hash.
    """
    before = db.total_changes()
    db.execute(_INSERT, row)
    if db.total_changes() != before:
        return db.last_insert_rowid(), True
    row_id, kind = db.execute("SELECT id, kind FROM object WHERE hash = ?", (row.hash,)).get
    if kind != row.kind:
        raise malformed()
    return int(row_id), False


def read_packed(db: apsw.Connection, hashes: Iterable[bytes]) -> list[PackedObject | None]:
    """Return the objects of these hashes as they are stored, None in place of one that is not there."""
    rows = (db.execute("SELECT hash, kind, size, codec, data FROM object WHERE hash = ?", (each,)).get for each in hashes)
    return [None if row is None else PackedObject(*row) for row in rows]


def packed(piece: Object) -> PackedObject:
    """Return *piece* as it is stored."""
    codec, data = pack(piece.data)
    return PackedObject(piece.hash, int(piece.kind), len(piece.data), codec, data)


def plain(row: PackedObject | None, hash_: bytes, kind: ObjectKind) -> bytes:
    """Return the content of a stored object. Raises Damaged when it is missing, of another kind, or not what its hash says."""
    if row is None:
        raise missing()
    data = unpack(row.codec, row.data, row.size)
    if row.kind != kind or object_hash(kind, data) != hash_:
        raise malformed()
    return data


def pack(data: bytes) -> tuple[int, bytes]:
    """Return codec and stored bytes; compression stands outside the identity and is used only where it pays."""
    if len(data) >= _COMPRESS_FROM_BYTES:
        # One that is at work belongs to its thread alone; making one takes longer than to pack something small.
        packer = _spare(_PACKERS) or _zstandard().ZstdCompressor(level=1)
        packed = packer.compress(data)
        _PACKERS.append(packer)
        if len(packed) < len(data) * 9 // 10:
            return ZSTD, packed
    return RAW, data


def unpack(codec: int, data: bytes, size: int) -> bytes:
    """Return the plain bytes of a stored object.

    Raises Damaged when they are not *size* bytes, not one zstd frame and nothing else, or more than an object can hold.
    """
    if size > OBJECT_BYTES_MAX:
        raise malformed()
    if codec == ZSTD:
        zstandard = _zstandard()
        try:
            if data[:4] != zstandard.FRAME_HEADER:  # one to be passed by would be no content at all
                raise malformed()
            # Asked first: a forged frame must not make us allocate more than its row says.
            if zstandard.get_frame_parameters(data).content_size != size:
                raise malformed()
            unpacker = _spare(_UNPACKERS) or zstandard.ZstdDecompressor()
            data = unpacker.decompress(data, allow_extra_data=False)
            _UNPACKERS.append(unpacker)
        except zstandard.ZstdError:
            raise malformed() from None
    if len(data) != size:
        raise malformed()
    return data


def _spare(pool: deque[Any]) -> Any:
    """Take one that nobody uses, or return None."""
    try:
        return pool.pop()
    except IndexError:
        return None


def missing() -> Damaged:
    """Return what is said of an object that others name and that is not there."""
    return Damaged("an object that others name is missing; the file was left unchanged", rule="object")


def _zstandard() -> ModuleType:
    """Return the module, which is imported late: it is heavy, and most runs never hold anything long."""
    try:
        import zstandard
    except (OSError, ImportError) as error:
        raise platform.no_descriptors(error if isinstance(error, OSError) else None) or error from None
    return zstandard


def malformed() -> Damaged:
    """Return what is said of an object that is not what its row says."""
    return Damaged("an object's content is not what its row says; the file was left unchanged", code="malformed_record", table="object")
