"""`python -m benchmarks.shapes`: what directory nodes look like, and what one change of a directory reads and writes.

Counts, not times: they are the same on every machine. The tables of docs/FORMAT.md come from here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count

from freehold.schema.hashes import ObjectKind, cut
from freehold.schema.limits import CUT_BELOW
from freehold.schema.nodes import Directory, Entry, File, decode, encode
from freehold.schema.roots import Object
from freehold.storage.objects import pack
from freehold.storage.trees import build, edit

SEED = 20261130
TIMES = 1_000
"""How often each change is made, each time to the same tree."""


class Counting:
    """Objects in memory, with the bytes that a file would take for those that are new."""

    def __init__(self) -> None:
        self.objects: dict[bytes, bytes] = {}
        self.reads = 0
        self.new: dict[bytes, int] = {}

    def get(self, hash_: bytes, kind: ObjectKind) -> bytes:  # noqa: ARG002 - the hash says it
        """Return a piece's content."""
        self.reads += 1
        return self.objects[hash_]

    def put(self, piece: Object) -> None:
        """Keep a piece."""
        if piece.hash not in self.objects:
            self.objects[piece.hash] = piece.data
            self.new[piece.hash] = len(pack(piece.data)[1])

    def expect(self, hashes: Sequence[bytes], /) -> None:
        """Do nothing."""

    def undo(self) -> None:
        """Forget what is new, and count from nothing."""
        for hash_ in self.new:
            del self.objects[hash_]
        self.reads, self.new = 0, {}

    def settle(self) -> None:
        """Keep what is new, and count from nothing."""
        self.reads, self.new = 0, {}


def main() -> None:
    """Print the tables."""
    dice = random.Random(SEED)
    print(_row("directory", "nodes", "entries a node: mean / p99 / most", "bytes a node: mean / p99 / most"))
    for size in (10_000, 100_000):
        shape(f"{size:,} random names", [file(name, dice) for name in random_names(size, dice)])
    shape("10,000 names, none a natural end", [file(name, dice) for name in unnatural(10_000)])
    shape("1,000 names, each a natural end", [file(name, dice) for name in natural(1_000)])
    shape("600 names, draws ascending", [file(name, dice) for name in ascending(600)])
    shape("128 links of the greatest length", [], longest=True)
    print()
    print(
        _row("directory", "change", "nodes written: mean / p95 / most", "bytes stored: mean / p95 / most", "nodes read: mean / p95 / most")
    )
    for size in (10_000, 100_000):
        flat(f"{size:,} in one", sorted(random_names(size, dice)), dice)
    nested(dice)
    flat("10,000, none a natural end", unnatural(10_000), dice)
    chain(dice)


def random_names(size: int, dice: random.Random) -> list[str]:
    """Return names as programs make them."""
    return [f"{dice.getrandbits(48):012x}.json" for _ in range(size)]


def unnatural(size: int) -> list[str]:
    """Return names of which none ends its node, as somebody would choose them."""
    return _first(size, (name for name in (f"{number:08}.json" for number in count()) if cut(0, name) >= CUT_BELOW))


def natural(size: int) -> list[str]:
    """Return names of which each ends its node."""
    return _first(size, (name for name in (f"{number:08}.json" for number in count()) if cut(0, name) < CUT_BELOW))


def ascending(size: int) -> list[str]:
    """Return names whose draws are in their own order, and none a natural end."""
    span = (2**32 - CUT_BELOW) // size
    return [
        _first(1, (name for name in (f"{number:04}.{nonce}" for nonce in count()) if 0 <= cut(0, name) - CUT_BELOW - number * span < span))[
            0
        ]
        for number in range(size)
    ]


def file(name: str, dice: random.Random) -> File:
    """Return a file of one chunk."""
    return File(name, 0o644, 4096, dice.randbytes(32))


def shape(title: str, entries: Sequence[Entry], *, longest: bool = False) -> None:
    """Print what the leaves of a directory look like."""
    sizes: list[tuple[int, int]] = []
    if longest:
        sizes.append((128, 128 * (3 + 255 + 3 + 4095 + 2) + 5))
    else:
        objects = Counting()
        build(objects, entries)
        nodes = [decode(raw) for raw in objects.objects.values()]
        sizes = [(len(node.items), len(encode(node.level, node.items))) for node in nodes if node.level == 0]
    print(_row(title, f"{len(sizes):,}", _spread([size for size, _ in sizes], 99), _spread([size for _, size in sizes], 99)))


def flat(title: str, names: Sequence[str], dice: random.Random) -> None:
    """Print what changes of one large directory cost."""
    objects = Counting()
    tree = build(objects, [file(name, dice) for name in names])
    objects.settle()
    made: dict[str, Callable[[], dict[str, Entry | None]]] = {
        "replace one": lambda: {(name := dice.choice(names)): file(name, dice)},
        "insert one": lambda: {(name := f"{dice.choice(names)[:-5]}{dice.randrange(10**6)}.json"): file(name, dice)},
        "remove one": lambda: {dice.choice(names): None},
    }
    for change, make in made.items():
        cost(title, change, objects, lambda make=make: edit(objects, tree, make()))  # type: ignore[misc]


def nested(dice: random.Random) -> None:
    """Print what changes of a hundred directories of a hundred files each cost, up to the top."""
    objects = Counting()
    names = sorted(random_names(100, dice))
    within = {f"folder-{number:03}": build(objects, [file(name, dice) for name in names]) for number in range(100)}
    tree = build(objects, [Directory(name, 0o755, beneath, 100, 409_600, 1) for name, beneath in within.items()])
    objects.settle()

    def change(*, is_new: bool) -> None:
        above, name = dice.choice(list(within)), dice.choice(names) + ("x" if is_new else "")
        beneath, held = edit(objects, within[above], {name: file(name, dice)})
        edit(objects, tree, {above: Directory(above, 0o755, beneath, *held)})

    cost("100 in each of 100", "replace one", objects, lambda: change(is_new=False))
    cost("100 in each of 100", "insert one", objects, lambda: change(is_new=True))


def chain(dice: random.Random) -> None:
    """Print what removing one name costs that parts two nodes whose draws ascend: what can be the worst."""
    objects = Counting()
    names = ascending(256)
    last = _first(1, (name for name in (f"0127.{nonce}" for nonce in count()) if cut(0, name) < CUT_BELOW))[0]
    names[127] = last
    tree = build(objects, [file(name, dice) for name in names])
    objects.settle()
    cost("256, draws ascending, one natural end in the middle", "remove that", objects, lambda: edit(objects, tree, {last: None}), times=1)


def cost(title: str, change: str, objects: Counting, make: Callable[[], object], *, times: int = TIMES) -> None:
    """Make a change many times, each time to the same tree, and print what it took."""
    written, stored, read = [], [], []
    for _ in range(times):
        make()
        written.append(len(objects.new))
        stored.append(sum(objects.new.values()))
        read.append(objects.reads)
        objects.undo()
    print(_row(title, change, _spread(written, 95), _spread(stored, 95), _spread(read, 95)))


def _spread(numbers: Iterable[int], percent: int) -> str:
    ordered = sorted(numbers)
    mean = sum(ordered) / len(ordered)
    return f"{mean:,.{1 if mean < 100 else 0}f} / {ordered[(len(ordered) - 1) * percent // 100]:,} / {ordered[-1]:,}"


def _first(size: int, names: Iterator[str]) -> list[str]:
    return [next(names) for _ in range(size)]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
