"""The bytes of a file that is open: what was written waits in memory up to a bound, then as objects. All its handles share it."""

from __future__ import annotations

from freehold.schema.index import count_chunks
from freehold.schema.limits import CHUNK_BYTES, DIRTY_BYTES_MAX
from freehold.storage.content import EMPTY, Chunks, Content
from freehold.storage.edit import chunk_size, edited
from freehold.storage.objects import Objects

_DIRTY_CHUNKS_MAX = DIRTY_BYTES_MAX // CHUNK_BYTES
_ZEROS = bytes(CHUNK_BYTES)


class Era:
    """What was written between two moments at which a file's content was told: taken back together, if at all."""

    __slots__ = ("taken_back",)

    def __init__(self) -> None:
        self.taken_back = False


class FileState:
    """One file that is open, apart from its names, positions and modes: it lives while a handle on it does, whatever happens to its name.

    Used by one thread. Nothing that is done to it is seen outside before a handle's close tells its `content()`.
    """

    def __init__(self, objects: Objects, content: Content | None) -> None:
        """Begin with *content*; None is a file that has not been there before."""
        self.is_new = content is None
        self.handles = 0
        """How many are open; with none it is not to be opened again, since its name may stand for something else by now."""
        self.writers = 0
        """How many of them may write."""
        self.era = Era()
        self._objects = objects
        self._told = EMPTY if content is None else content
        self._begin(self._told)

    def _begin(self, content: Content) -> None:
        self.size = content.size
        self._base = Chunks(self._objects, content)
        # Only so much of the base still counts: what a truncation cut off does not come back when the file grows again.
        self._kept = content.size
        self._dirty: dict[int, bytearray] = {}

    def enter(self, *, writes: bool) -> None:
        """Know that a handle was opened."""
        self.handles += 1
        self.writers += writes

    def leave(self, *, writes: bool) -> None:
        """Know that a handle was closed, after all that it had written was told or taken back."""
        self.handles -= 1
        self.writers -= writes
        if not self.handles:
            self._begin(self._told)  # a closed handle may be kept for long; no chunk is kept with it

    def read_into(self, offset: int, target: memoryview) -> int:
        """Fill *target* from *offset* on as far as the file goes, and return how many bytes that were."""
        end = min(self.size, offset + len(target))
        if end <= offset:
            return 0
        for number in range(offset // CHUNK_BYTES, count_chunks(end)):
            start = number * CHUNK_BYTES
            low, high = max(offset, start), min(end, start + CHUNK_BYTES)
            target[low - offset : high - offset] = memoryview(self._chunk(number))[low - start : high - start]
        return end - offset

    def write(self, offset: int, source: memoryview) -> None:
        """Put *source* at *offset*; between the old end and there, there are zero bytes. Nothing of it is referred to afterwards."""
        end = offset + len(source)
        for number in range(offset // CHUNK_BYTES, count_chunks(end)) if source else ():
            start = number * CHUNK_BYTES
            low, high = max(offset, start), min(end, start + CHUNK_BYTES)
            if high > self.size:
                self._grow(high)
            piece = source[low - offset : high - offset]
            if len(piece) == chunk_size(self.size, number):
                self._dirty[number] = bytearray(piece)
            else:
                if number not in self._dirty:
                    self._dirty[number] = bytearray(self._chunk(number))
                self._dirty[number][low - start : high - start] = piece
            if len(self._dirty) >= _DIRTY_CHUNKS_MAX:
                self.content()

    def truncate(self, size: int) -> None:
        """Cut the file at *size*, or lengthen it by zero bytes."""
        if size >= self.size:
            self._grow(size)
            return
        for number in [number for number in self._dirty if number >= count_chunks(size)]:
            del self._dirty[number]
        self.size = size
        self._kept = min(self._kept, size)
        if (last := count_chunks(size) - 1) in self._dirty:
            del self._dirty[last][chunk_size(size, last) :]

    def content(self) -> Content:
        """Keep what there is as objects and return it; nothing waits in memory afterwards."""
        base = self._base.content
        if self._kept < min(base.size, self.size):
            cut = self._kept
            if cut // CHUNK_BYTES in self._dirty:
                cut -= cut % CHUNK_BYTES
            base = edited(self._objects, base, {}, cut)
        if self._dirty or base.size != self.size:
            base = edited(self._objects, base, self._dirty, self.size)
        if base != self._base.content:
            self._begin(base)
        else:
            self._dirty.clear()
            self._kept = base.size
        return base

    def tell(self, content: Content) -> None:
        """Know that *content* was told to whoever opened the file: from now on this is what a discard goes back to."""
        self._told = content
        self.is_new = False
        self.era = Era()

    def take_back(self) -> None:
        """Be again what was told last, or what was opened."""
        self.era.taken_back = True
        self.era = Era()
        self._begin(self._told)

    def _grow(self, size: int) -> None:
        last = count_chunks(self.size) - 1
        self.size = size
        if (chunk := self._dirty.get(last)) is not None:
            chunk.extend(bytes(chunk_size(size, last) - len(chunk)))

    def _chunk(self, number: int) -> bytes | bytearray:
        """Return a chunk as it is now, of the length that it has now."""
        if (dirty := self._dirty.get(number)) is not None:
            return dirty
        size = chunk_size(self.size, number)
        kept = min(self._kept - number * CHUNK_BYTES, size)
        if kept <= 0:
            return _ZEROS[:size]
        chunk = self._base.at(number)
        return chunk if kept == size == len(chunk) else chunk[:kept].ljust(size, b"\0")
