"""A tree is what its entries make it, whatever was done to get there, and an edit reads and writes no more than it must."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterable, Iterator, Mapping

import independent_tree
import pytest
from counted import Counted, counted, folder, forged, plain, reachable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from freehold.schema import nodes as schema_nodes
from freehold.schema.errors import Damaged, PathRefused
from freehold.schema.hashes import cut
from freehold.schema.limits import CUT_BELOW, PATH_DEPTH_MAX, READ_AHEAD_NODES, TREE_BYTES_MAX
from freehold.schema.nodes import Directory, Entry, File, Link, Totals, totals
from freehold.schema.roots import EMPTY_TREE
from freehold.storage import windows
from freehold.storage.nodes import Nodes
from freehold.storage.trees import build, edit, find, measure, walk

HASH = bytes(range(32))


@pytest.fixture
def objects() -> Iterator[Counted]:
    with counted() as objects:
        yield objects


def flat(count: int) -> dict[str, Entry]:
    dice = random.Random(7)
    return {name: File(name, 0o644, 4096, dice.randbytes(32)) for name in (f"{dice.getrandbits(64):016x}.txt" for _ in range(count))}


def test_an_empty_directory_is_the_empty_tree(objects: Counted) -> None:
    tree = build(objects, [])

    assert tree == EMPTY_TREE.hash
    assert list(walk(objects, tree)) == []
    assert find(objects, tree, "a") is None
    assert measure(objects, tree) == Totals(0, 0, 0)


@pytest.mark.parametrize("count", [1, 64, 65, 129, 500, 5000])
def test_what_was_built_is_found_and_walked_in_order(objects: Counted, count: int) -> None:
    entries = flat(count)
    tree = build(objects, entries.values())

    assert list(walk(objects, tree)) == [entries[name] for name in sorted(entries)]
    assert all(find(Nodes.over(objects), tree, name) == entries[name] for name in list(entries)[:200])
    assert all(find(objects, tree, name) is None for name in ("", "0", "z", next(iter(entries)) + "x"))
    assert measure(objects, tree) == totals(entries.values())


def test_the_order_in_which_entries_are_given_is_nothing(objects: Counted) -> None:
    entries = list(flat(300).values())

    assert build(objects, entries) == build(objects, reversed(entries))


GOLDEN = {
    0: "65010ba1df5f6ad9e8709e08dfb9507b3c1a62edad8e26e8db20add920be7657",
    1: "93c667f0c2bef494b6814b25b3115077dda12478e8176c203856284e0b36252c",
    64: "06af2bc6c4de564b198ab03ad862d5dc7e2d4a5460bc74be9048708be6f3c3e0",
    65: "6b69d8f7e805884b701b88141ff25907a94a586b59836832e55f58d6c5339d7d",
    100: "b53f3b6e878e2f1740efaa1f7df2c580535ba65637555c2cf3c6b5b0ad043631",
    129: "f1f628fdf4655805298a26bbeef586413ac1bf88c820f44cfe968771e7bc6d10",
    3000: "cb8264c2203da2b862d18a7784a21d4169c71a8a3ef1d8ddb7d6ef7f55640524",
}
GOLDEN_FOLDER = "d13e13eab6e9f2d371ae8b26eb77d059515d07e3cbc1fab092a220a3a2227a84"


@pytest.mark.parametrize("count", GOLDEN)
def test_golden_trees_stay_as_they_are(objects: Counted, count: int) -> None:
    names = [f"{number:05}" for number in range(count)]
    theirs: dict[bytes, bytes] = {}

    assert build(objects, map(plain, names)).hex() == GOLDEN[count]
    assert independent_tree.tree([independent_tree.file(name, b"") for name in names], theirs.__setitem__).hex() == GOLDEN[count]
    assert {piece.hash: piece.data for piece in objects.written} == theirs


def test_a_golden_folder_stays_as_it_is(objects: Counted) -> None:
    tree = folder(objects, {"a": b"hi", "d": {"e": {}, "f": b"x" * 128}, "l": "../a"})

    inner = [independent_tree.directory("e", [], print), independent_tree.file("f", b"x" * 128)]
    theirs = [independent_tree.file("a", b"hi"), independent_tree.directory("d", inner, print), [2, "l", "../a"]]
    assert independent_tree.tree(theirs, print).hex() == tree.hex() == GOLDEN_FOLDER


@pytest.mark.parametrize("start", ["", "0", "8", "80", "f", "g"])
def test_a_walk_begins_where_it_is_told(objects: Counted, start: str) -> None:
    entries = flat(700)
    tree = build(objects, entries.values())

    assert [entry.name for entry in walk(objects, tree, start)] == sorted(name for name in entries if name >= start)
    a_name = sorted(entries)[300]
    assert next(walk(objects, tree, a_name)).name == a_name


def test_a_walk_reads_as_it_goes(objects: Counted) -> None:
    tree = build(objects, flat(5000).values())
    objects.forget()
    steps = walk(objects, tree, "8")
    next(steps)

    assert len(objects.read) == 3


def test_an_edit_is_what_a_build_of_the_same_entries_is(objects: Counted) -> None:
    entries = flat(1000)
    tree = build(objects, entries.values())
    changes: dict[str, Entry | None] = dict.fromkeys(list(entries)[:300])
    changes |= {"a": plain("a", b"new"), "d": Directory("d", 0o755, HASH, 3, 9, 2), "l": Link("l", "a"), "never": None}

    edited, held = edit(objects, tree, changes)

    left = [entry for name, entry in {**entries, **changes}.items() if entry is not None]
    assert edited == build(objects, left)
    assert held == measure(objects, edited) == totals(left)


def test_an_edit_that_changes_nothing_reads_a_way_down_and_writes_nothing(objects: Counted) -> None:
    entries = flat(1000)
    tree = build(objects, entries.values())
    objects.forget()
    name = next(iter(entries))

    for changes in ({}, {name: entries[name]}, {"never": None}):
        assert edit(objects, tree, changes) == (tree, totals(entries.values()))
    assert objects.written == []
    assert len(objects.read) <= 3 * 3


def test_what_was_removed_and_made_again_gives_the_old_tree(objects: Counted) -> None:
    entries = flat(1000)
    tree = build(objects, entries.values())
    some = dict(list(entries.items())[100:900])

    without, _ = edit(objects, tree, dict.fromkeys(some))
    again, _ = edit(objects, without, some)

    assert without != tree
    assert again == tree


@pytest.mark.parametrize("left", [0, 1, 63, 64, 65, 200])
def test_removing_takes_levels_away(objects: Counted, left: int) -> None:
    entries = flat(5000)
    tree = build(objects, entries.values())
    kept = dict(list(entries.items())[:left])

    edited, held = edit(objects, tree, dict.fromkeys(entries.keys() - kept.keys()))

    assert edited == build(objects, kept.values())
    assert held.entries == left


@pytest.mark.parametrize("more", [0, 1])
def test_a_level_that_became_one_node_of_more_than_64_is_the_top(objects: Counted, more: int) -> None:
    numbers = [f"{number:05}" for number in range(2000)]
    names = [name for name in numbers if cut(0, name) >= CUT_BELOW]
    end = next(name for name in numbers if cut(0, name) < CUT_BELOW)
    tree = build(objects, [plain(name) for name in (*names[:100], end)])
    objects.forget()

    changes: dict[str, Entry | None] = {name: plain(name) for name in names[100 : 100 + more]}
    edited, held = edit(objects, tree, changes | {end: None})

    assert [piece.hash for piece in objects.written] == [edited]
    assert held.entries == 100 + more
    assert (Nodes(objects).top(tree).level, Nodes(objects).top(edited).level) == (1, 0)


@pytest.mark.parametrize("one_of", [32, 2**33])
@pytest.mark.parametrize("step", [1, -1])
def test_names_that_only_ever_come_at_one_end_give_what_a_build_gives(
    objects: Counted, monkeypatch: pytest.MonkeyPatch, one_of: int, step: int
) -> None:
    for module in (schema_nodes, windows):
        monkeypatch.setattr(module, "CUT_BELOW", 2**32 // one_of)
    nodes = Nodes(objects)
    tree, entries = build(nodes, []), []
    for number in range(700)[::step]:
        entries.append(plain(f"{number:05}"))
        tree, _ = edit(nodes, tree, {entries[-1].name: entries[-1]})
        if number % 10 == 0:
            assert tree == build(nodes, entries)


def test_a_replacement_writes_one_node_of_each_level(objects: Counted) -> None:
    entries = flat(5000)
    tree = build(objects, entries.values())
    for name in list(entries)[:50]:
        objects.forget()
        edited, _ = edit(objects, tree, {name: plain(name, b"other")})

        assert len(objects.written) == len(objects.read) == 3
        assert {piece.hash for piece in objects.written} <= reachable(objects, edited)


def test_an_insertion_or_a_removal_writes_only_what_is_new_and_reads_few_neighbours(objects: Counted) -> None:
    entries = flat(5000)
    tree = build(objects, entries.values())
    old = reachable(objects, tree)
    reads = []
    for number, name in enumerate(list(entries)[:60]):
        objects.forget()
        changes: dict[str, Entry | None] = {name: None} if number % 2 else {name + "x": plain(name + "x")}
        edited, _ = edit(objects, tree, changes)

        reads.append(len(objects.read))
        assert len(objects.written) <= 8
        assert {piece.hash for piece in objects.written} == reachable(objects, edited) - old
    assert max(reads) <= 10


def test_a_small_directory_reads_its_neighbours_when_it_may_become_one_node(objects: Counted) -> None:
    entries = flat(66)
    tree = build(objects, entries.values())
    names = list(entries)
    for name in names:
        tree, _ = edit(objects, tree, {name: None})
        del entries[name]
        assert tree == build(objects, entries.values())


NUMBERS = st.integers(0, 1200)
EDITS = st.lists(
    st.tuples(
        st.lists(NUMBERS, max_size=6) | st.tuples(NUMBERS, st.integers(1, 200)).map(lambda at: list(range(at[0], sum(at)))),
        st.integers(0, 3),
    ),
    max_size=12,
)


def numbered(numbers: Iterable[int], value: int) -> dict[str, Entry | None]:
    """Return edits: no value removes."""
    return {(name := f"n{number:05}"): plain(name, mode=value) if value else None for number in numbers}


def apply(entries: dict[str, Entry], changes: Mapping[str, Entry | None]) -> None:
    for name, entry in changes.items():
        if entry is None:
            entries.pop(name, None)
        else:
            entries[name] = entry


@pytest.mark.parametrize("one_of", [4, 32, 400, 2**33])
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(begin=st.sets(NUMBERS, max_size=700), edits=EDITS)
def test_any_edits_in_any_order_give_what_a_build_gives(
    monkeypatch: pytest.MonkeyPatch, one_of: int, begin: set[int], edits: list[tuple[list[int], int]]
) -> None:
    # With fewer natural ends the second rule, which cuts what is too large, is at work everywhere.
    for module in (schema_nodes, windows):
        monkeypatch.setattr(module, "CUT_BELOW", 2**32 // one_of)
    with counted() as objects:
        entries: dict[str, Entry] = {name: entry for name, entry in numbered(begin, 1).items() if entry is not None}
        tree = build(objects, entries.values())
        for numbers, value in edits:
            changes = numbered(numbers, value)
            old = reachable(objects, tree)
            objects.forget()
            tree, held = edit(objects, tree, changes)
            written = {piece.hash for piece in objects.written}
            apply(entries, changes)

            assert tree == build(objects, entries.values())
            assert held == totals(entries.values())
            assert written >= reachable(objects, tree) - old
            assert written <= reachable(objects, tree)


@pytest.mark.prove
def test_thousands_of_edits_give_what_a_build_gives(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    dice = random.Random(seed)
    for one_of in (4, 32, 400, 3000, 2**33) * 20:
        for module in (schema_nodes, windows):
            monkeypatch.setattr(module, "CUT_BELOW", 2**32 // one_of)
        with counted() as objects:
            span = dice.choice([100, 500, 3000])
            entries: dict[str, Entry] = {
                entry.name: entry for entry in (plain(f"n{dice.randrange(span):05}") for _ in range(dice.choice([0, 70, 130, 1500])))
            }
            tree = build(objects, entries.values())
            for _ in range(25):
                count = dice.choice([1, 1, 2, 10, 60, 300])
                first = dice.randrange(span)
                numbers = range(first, first + count) if dice.random() < 0.2 else [dice.randrange(span) for _ in range(count)]
                changes = {name: entry for number in numbers for name, entry in numbered([number], dice.choice([0, 0, 1, 2])).items()}
                tree, _ = edit(objects, tree, changes)
                apply(entries, changes)
                assert tree == build(objects, entries.values())
                assert list(walk(objects, tree)) == [entries[name] for name in sorted(entries)]


class Twin(RuleBasedStateMachine):
    """A directory beside a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = counted()
        self.objects = self.opened.__enter__()
        self.nodes = Nodes(self.objects, bytes_max=20_000)
        self.entries: dict[str, Entry] = {}
        self.past: list[tuple[bytes, dict[str, Entry]]] = []

    @initialize(count=st.sampled_from([0, 60, 70, 400]))
    def begin(self, count: int) -> None:
        self.entries = {f"n{number * 3:05}": plain(f"n{number * 3:05}") for number in range(count)}
        self.tree = build(self.nodes, self.entries.values())

    @rule(numbers=st.lists(NUMBERS, min_size=1, max_size=5), value=st.integers(0, 7))
    def change_some(self, numbers: list[int], value: int) -> None:
        self.change(numbered(numbers, value))

    @rule(first=NUMBERS, count=st.integers(1, 300), value=st.integers(0, 1))
    def change_a_row(self, first: int, count: int, value: int) -> None:
        self.change(numbered(range(first, first + count), value))

    @rule()
    def remember(self) -> None:
        self.past.append((self.tree, dict(self.entries)))

    @rule(dice=st.randoms(use_true_random=False))
    def go_back(self, dice: random.Random) -> None:
        if self.past:
            tree, entries = dice.choice(self.past)
            self.change({name: entries.get(name) for name in self.entries | entries})
            assert self.tree == tree

    @rule()
    def forget(self) -> None:
        self.nodes.forget()

    @rule(number=NUMBERS)
    def look(self, number: int) -> None:
        name = f"n{number:05}"
        assert find(self.nodes, self.tree, name) == self.entries.get(name)
        assert next(walk(self.nodes, self.tree, name), None) == next((self.entries[at] for at in sorted(self.entries) if at >= name), None)

    def change(self, changes: Mapping[str, Entry | None]) -> None:
        self.tree, held = edit(self.nodes, self.tree, changes)
        apply(self.entries, changes)
        assert held == totals(self.entries.values())

    @invariant()
    def is_the_dictionary(self) -> None:
        if hasattr(self, "tree"):
            assert list(walk(self.nodes, self.tree)) == [self.entries[name] for name in sorted(self.entries)]
            assert self.tree == build(self.objects, self.entries.values())

    def teardown(self) -> None:
        self.opened.__exit__(None, None, None)


Twin.TestCase.settings = settings(max_examples=25, stateful_step_count=15)
TestTwin = Twin.TestCase


def test_names_that_were_chosen_so_that_none_is_a_natural_end_cost_a_replacement_nothing(objects: Counted) -> None:
    chosen = [name for name in (f"{number:06}" for number in range(6000)) if cut(0, name) >= CUT_BELOW]
    tree = build(objects, map(plain, chosen))
    objects.forget()
    edit(objects, tree, {chosen[2000]: plain(chosen[2000], b"x")})

    assert len(objects.read) == len(objects.written) == 3


def test_a_directory_that_would_be_too_deep_is_refused(objects: Counted) -> None:
    with pytest.raises(PathRefused, match="at most 256 names"):
        edit(objects, build(objects, []), {"d": Directory("d", 0o755, HASH, 300, 0, PATH_DEPTH_MAX)})
    objects.forget()
    with pytest.raises(PathRefused):
        build(objects, [Directory("d", 0o755, HASH, 300, 0, PATH_DEPTH_MAX)])

    assert objects.written == []
    assert edit(objects, build(objects, []), {"d": Directory("d", 0o755, HASH, 300, 0, PATH_DEPTH_MAX - 1)})[1].depth == PATH_DEPTH_MAX


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (File("a", 0, TREE_BYTES_MAX, HASH), File("b", 0, 200, HASH)),
        (Directory("a", 0o755, HASH, TREE_BYTES_MAX // 2, 0, 9), Directory("b", 0o755, HASH, TREE_BYTES_MAX // 2, 0, 9)),
    ],
)
def test_what_could_not_be_counted_is_refused(objects: Counted, one: Entry, other: Entry) -> None:
    tree = build(objects, [one])
    objects.forget()
    with pytest.raises(OSError) as raised:
        edit(objects, tree, {other.name: other})

    assert raised.value.errno == errno.EFBIG
    assert objects.written == []


def test_a_name_that_is_not_after_the_one_before_it_is_damage(objects: Counted) -> None:
    one, other = forged(objects, 0, [plain("a"), plain("m")]), forged(objects, 0, [plain("m"), plain("z")])
    top = forged(objects, 1, [one, other])

    with pytest.raises(Damaged) as raised:
        list(walk(objects, top.child))
    assert raised.value.details == {"rule": "tree"}


def test_a_walk_says_which_leaves_come_next_a_few_at_a_time(objects: Counted) -> None:
    entries = flat(2000)
    tree = build(objects, entries.values())
    objects.forget()

    assert list(walk(objects, tree)) == sorted(entries.values(), key=lambda entry: entry.name)
    expected = [hash_ for several in objects.expected for hash_ in several]
    assert expected == [hash_ for hash_ in objects.read if hash_ in expected]
    assert len(expected) > 20
    assert 1 < max(map(len, objects.expected)) <= READ_AHEAD_NODES


def test_a_tree_with_a_node_that_is_missing_is_damage(objects: Counted) -> None:
    entries = flat(500)
    tree = build(objects, entries.values())
    hole = Nodes(objects).top(tree).items[3]
    assert not isinstance(hole, File | Directory | Link)
    objects._stored._db.execute("DELETE FROM object WHERE hash = ?", (hole.child,))
    objects.forget()

    with pytest.raises(Damaged):
        list(walk(objects, tree))
    with pytest.raises(Damaged):
        find(objects, tree, hole.name)
    with pytest.raises(Damaged):
        edit(objects, tree, {hole.name: None})
    assert objects.written == []
