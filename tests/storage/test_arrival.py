"""What comes to be published is whole, or nothing of it is: each thing that can be wrong with a tree, sent as another process would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from counted import Counted, Folder, counted, entry, folder, forged, plain
from misshapen import CRAFTED, HASH
from published import astray, contents, whole

import freehold
from freehold import Host, Refused, Run
from freehold.pieces import Pieces
from freehold.schema.errors import Damaged
from freehold.schema.hashes import ObjectKind
from freehold.schema.index import make_index
from freehold.schema.limits import CHUNK_BYTES, PATH_DEPTH_MAX
from freehold.schema.messages import KeepObjects, PublishOn, ReadRoot
from freehold.schema.nodes import Directory, Entry, File, Inner, Totals, decode
from freehold.schema.roots import EMPTY_TREE, Object, make_object, make_root, tree_of
from freehold.storage import arrival
from freehold.storage.content import write
from freehold.storage.difference import changes
from freehold.storage.journal import publish_record
from freehold.storage.objects import packed
from freehold.storage.trees import build, edit, find, measure, walk

LARGE = bytes(range(256)) * 1000  # four chunks
FLAT = [plain(f"n{number:05}", b"x") for number in range(300)]


class Sender:
    """Another process: it has the run's files, makes what it likes of them, and sends it."""

    def __init__(self, run: Run, objects: Counted) -> None:
        self.run = run
        self.objects = objects
        self.tree = EMPTY_TREE.hash

    def send(self, without: frozenset[bytes] = frozenset()) -> None:
        """Send what was made since the last time, but for some of it."""
        rows = {piece.hash: packed(piece) for piece in self.objects.written if piece.hash not in without}
        self.objects.forget()
        if rows:
            self.run._ask(KeepObjects(tuple(rows.values()), ahead=True))

    def publish(self, tree: bytes, held: Totals | None = None, without: frozenset[bytes] = frozenset()) -> Any:
        """Publish a tree that was made here."""
        root = make_root(tree, *(measure(self.objects, tree) if held is None else held))
        self.send(without)
        self.name(root)
        self.tree = tree

    def name(self, root: Object) -> None:
        """Publish a root, whatever is there of it."""
        base = bytes.fromhex(self.run.files.root)
        self.run._ask(PublishOn("sent", publish_record(self.count(base, root)), base, root.data))

    def count(self, base: bytes, root: Object) -> int:
        """Return how many changes lead to a root; one where that cannot be told, because it is not whole."""
        pieces = Pieces(self.run._ask)
        try:
            return len(changes(pieces, tree_of(pieces.get(base, ObjectKind.ROOT)), tree_of(root.data)))
        except Damaged:
            return 1

    def put(self, change: Folder, gone: tuple[str, ...] = ()) -> bytes:
        """Return the tree that these entries at the top make of the one that was published last."""
        entries: dict[str, Entry | None] = {name: entry(self.objects, name, what) for name, what in change.items()}
        return edit(self.objects, self.tree, entries | dict.fromkeys(gone))[0]

    def file(self, name: str, content: bytes) -> File:
        """Return a file, and keep its content."""
        kept = write(self.objects, content)
        return File(name, 0o644, kept.size, kept.where)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path, timeout=60, secrets={"pass": "hunter22"}) as host:
        yield host


@pytest.fixture
def sender(host: Host) -> Iterator[Sender]:
    """A sender to a run that has a file, a link, a directory in a directory, a large file and a large directory."""
    with counted() as objects, host.create("a") as run:
        sender = Sender(run, objects)
        flat = build(objects, FLAT)
        inside: Folder = {"e": {"g": b"4", "large": sender.file("large", LARGE)}, "f": b"3"}
        more: Folder = {"flat": Directory("flat", 0o755, flat, *measure(objects, flat)), "d": inside}
        sender.publish(folder(objects, {"a": b"1", "link": "a", **more}))
        yield sender


def refused(sender: Sender, call: Callable[[], Any], code: str = "malformed_frame") -> None:
    """Show that *call* is refused, that nothing but what lies ahead was changed, and that the run goes on."""
    run = sender.run
    before, events, said = run.files.root, run.info.events, contents(run.files)
    with pytest.raises(Refused) as caught:
        call()
    assert (caught.value.code, caught.value.executed) == (code, "no")
    assert "hunter22" not in str(caught.value.record())
    assert (run.files.root, run.info.events, contents(run.files)) == (before, events, said)
    run.publish("goes on", lambda files: files.write_text("after", "x"))
    run.verify()


# What is right


def test_what_was_published_from_elsewhere_is_all_there_and_no_longer_listed_as_ahead(sender: Sender) -> None:
    found = contents(sender.run.files)
    assert (found["d/e/large"], found["link"], len(found)) == (LARGE, ">a", 8 + len(FLAT))
    assert astray(sender.run) == 0
    sender.run.verify()


RIGHT: dict[str, Callable[[Sender], bytes]] = {
    "a file more": lambda sender: sender.put({"new": sender.file("new", LARGE[::-1])}),
    "nothing is left": lambda _sender: EMPTY_TREE.hash,
    "a file for a directory": lambda sender: sender.put({"d": b"1"}),
    "a directory for a file": lambda sender: sender.put({"a": {"b": {"c": b"1"}}}),
    "a name in another case": lambda sender: sender.put({"A": b"1"}, gone=("a",)),
    "an empty directory": lambda sender: sender.put({"none": {}}),
    "a directory moved": lambda sender: sender.put({"moved": msgspec.structs.replace(there(sender, "flat"), name="moved")}, ("flat",)),
    "a mode": lambda sender: sender.put({"flat": msgspec.structs.replace(there(sender, "flat"), mode=0o700)}),
    "one of many more": lambda sender: sender.put({"flat": many(sender, {"n00007x": plain("n00007x")})}),
    "few of many left": lambda sender: sender.put({"flat": many(sender, {each.name: None for each in FLAT[20:]})}),
    "a longer file": lambda sender: sender.put({"large": sender.file("large", LARGE + LARGE)}),
    "what doubles": lambda sender: doubled(sender, 40),
    "as deep as can be": lambda sender: sender.put({"t": deep(sender, ["x"] * (PATH_DEPTH_MAX - 1))}),
    "as long as can be": lambda sender: sender.put({"t": deep(sender, ["x" * 255] * 15 + ["y" * 254])}),
}


def there(sender: Sender, name: str) -> Any:
    return find(sender.objects, sender.tree, name)


def many(sender: Sender, changes: dict[str, Any]) -> Directory:
    tree, held = edit(sender.objects, there(sender, "flat").tree, changes)
    return Directory("flat", 0o755, tree, *held)


def deep(sender: Sender, names: list[str]) -> Folder:
    content: Any = b"1"
    for name in reversed(names):
        content = {name: entry(sender.objects, name, content)}
    assert isinstance(content, dict)
    return content


def doubled(sender: Sender, times: int) -> bytes:
    tree = sender.tree
    for _ in range(times):
        both = [Directory(name, 0o755, tree, *measure(sender.objects, tree)) for name in ("one", "two")]
        tree = build(sender.objects, both)
    return tree


@pytest.mark.parametrize("name", RIGHT)
def test_a_whole_tree_is_taken(sender: Sender, name: str) -> None:
    tree = RIGHT[name](sender)
    sender.publish(tree)

    root = sender.run._ask(ReadRoot())
    assert root == make_root(tree, *measure(sender.objects, tree)).hash
    if name != "what doubles":
        assert astray(sender.run) == 0
    sender.run.verify()


def test_a_root_that_was_there_before_is_taken_again(sender: Sender) -> None:
    first = sender.tree
    sender.publish(sender.put({"new": sender.file("new", LARGE[::-1])}, gone=("d", "flat")))
    sender.publish(first)

    assert sender.run.files.root == make_root(first, *measure(sender.objects, first)).hash.hex()
    sender.run.verify()


# What is wrong


def changed(entry: Entry, **members: Any) -> Entry:
    return msgspec.structs.replace(entry, **members)


def beneath(sender: Sender, **members: Any) -> bytes:
    """Return a tree in which a new directory says something else of itself."""
    return sender.put({"new": changed(entry(sender.objects, "new", {"x": b"1", "e": {"y": b"22"}}), **members)})


def forged_file(sender: Sender, **members: Any) -> bytes:
    return sender.put({"new": changed(sender.file("new", LARGE[::-1]), **members)})


def piece(sender: Sender, made: Object) -> bytes:
    sender.objects.put(made)
    return made.hash


def node_as_chunk(sender: Sender, node: bytes) -> bytes:
    return sender.put({"new": File("new", 0o644, len(sender.objects.get(node, ObjectKind.TREE)), node)})


def index_of(sender: Sender, sizes: list[int], size: int) -> bytes:
    """Return a tree with a file of *size*, whose chunks are of these sizes."""
    chunks = [piece(sender, make_object(ObjectKind.CHUNK, bytes(each))) for each in sizes]
    return sender.put({"new": File("new", 0o644, size, piece(sender, make_index(0, size, chunks)))})


def lower(sender: Sender) -> Directory:
    """Return a directory whose node stands over a part of another one, with the totals of that part."""
    flat = build(sender.objects, [plain(f"m{number:06}") for number in range(30_000)])
    sender.publish(sender.put({"huge": Directory("huge", 0o755, flat, *measure(sender.objects, flat))}))
    top = decode(sender.objects.get(flat, ObjectKind.TREE))
    first = next(inner for inner in top.items if isinstance(inner, Inner) and is_only_a_part(sender.objects, inner.child))
    return Directory("new", 0o755, first.child, first.entries, first.size, first.depth)


def is_only_a_part(objects: Counted, node: bytes) -> bool:
    several = len(decode(objects.get(node, ObjectKind.TREE)).items) > 1
    return several and build(objects, list(walk(objects, node))) != node


def far(sender: Sender) -> bytes:
    """Return a tree in which a deep directory that is there has moved to where its paths are too long, beneath another deep one."""
    sender.publish(sender.put({"t": deep(sender, ["x" * 250] * 8), "u": deep(sender, ["y" * 250] * 8)}))
    content: Any = {"z" * 80: changed(there(sender, "t"), name="z" * 80)}
    for name in ["y" * 250] * 8:
        content = {name: content}
    return sender.put({"u": content}, gone=("t",))


WRONG: dict[str, Callable[[Sender], bytes]] = {
    "a directory that is missing": lambda sender: sender.put({"new": Directory("new", 0o755, HASH, 1, 0, 1)}),
    "a chunk that is missing": lambda sender: sender.put({"new": File("new", 0o644, 500, HASH)}),
    "an index that is missing": lambda sender: sender.put({"new": File("new", 0o644, 500_000, HASH)}),
    "a chunk beneath an index that is missing": lambda sender: sender.put(
        {"new": File("new", 0o644, CHUNK_BYTES + 1, piece(sender, make_index(0, CHUNK_BYTES + 1, [HASH, HASH])))}
    ),
    "a file that is longer than its chunk": lambda sender: sender.put({"a": changed(sender.file("a", LARGE[:9000]), size=9001)}),
    "a file that is longer than its index": lambda sender: forged_file(sender, size=len(LARGE) + 1),
    "a file of as many chunks that is shorter": lambda sender: forged_file(sender, size=len(LARGE) - 1),
    "a file that is an index's first chunk": lambda sender: forged_file(sender, size=9000),
    "a file that is larger than any": lambda sender: forged_file(sender, size=2**62),
    "an index over short chunks": lambda sender: index_of(sender, [CHUNK_BYTES - 1, 1], CHUNK_BYTES + 1),
    "an index over a last chunk that is too long": lambda sender: index_of(sender, [CHUNK_BYTES, 2], CHUNK_BYTES + 1),
    "a directory for a chunk": lambda sender: node_as_chunk(sender, there(sender, "flat").tree),
    "a directory for an index": lambda sender: sender.put({"new": File("new", 0o644, 500_000, there(sender, "d").tree)}),
    "a directory with other entries": lambda sender: beneath(sender, entries=4),
    "a directory with other bytes": lambda sender: beneath(sender, size=4),
    "a directory with another depth": lambda sender: beneath(sender, depth=1),
    "a directory that is there with other bytes": lambda sender: sender.put({"flat": changed(there(sender, "flat"), size=7)}),
    "one that is there, moved, with other bytes": lambda sender: sender.put({"d2": changed(there(sender, "d"), name="d2", size=7)}),
    "a large one for its name and another's totals": lambda sender: sender.put({"flat": changed(many(sender, {"x": plain("x")}), size=7)}),
    "a lower node of a directory that is there": lambda sender: sender.put({"new": lower(sender)}),
    "a name that no path has": lambda sender: sender.put({"CON": b"1"}),
    "a name with a colon": lambda sender: sender.put({"new": {"a:b": b"1"}}),
    "a name in another normal form": lambda sender: sender.put({"d": {"e\u0301": b"1"}}),
    "two new names that are one": lambda sender: sender.put({"new": {"Straße": b"1", "STRASSE": b"2"}}),
    "a new name that is one with one that is there": lambda sender: sender.put({"A": b"1"}),
    "a path that is too long": lambda sender: sender.put({"t": deep(sender, ["x" * 255] * 15 + ["y" * 255])}),
    "a path that is too long where a directory has come": far,
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_whole_is_refused_and_nothing_was_changed(sender: Sender, name: str) -> None:
    tree = WRONG[name](sender)

    refused(sender, lambda: sender.publish(tree))


@pytest.mark.parametrize("where", ["at the top", "in a directory", "for one that is there"])
@pytest.mark.parametrize("make", CRAFTED, ids=lambda make: make.__name__)
def test_a_directory_that_no_entries_make_is_refused(sender: Sender, make: Callable[[Counted], Inner], where: str) -> None:
    inner = make(sender.objects)
    held = Totals(inner.entries, inner.size, inner.depth)
    name = "new" if where == "in a directory" else "flat"
    tree = inner.child if where == "at the top" else sender.put({name: Directory(name, 0o755, inner.child, *held)})

    refused(sender, lambda: sender.publish(tree, held if where == "at the top" else None))


def test_what_is_too_deep_is_refused(sender: Sender) -> None:
    inner = forged(sender.objects, 0, [plain("x")])
    for _ in range(PATH_DEPTH_MAX):
        inner = forged(sender.objects, 0, [Directory("x", 0o755, inner.child, inner.entries, inner.size, inner.depth)])

    refused(sender, lambda: sender.publish(inner.child, Totals(inner.entries, inner.size, inner.depth)))


def test_each_piece_of_a_publish_is_missed(host: Host, sender: Sender) -> None:
    tree = sender.put({"new": {"in": {"large": sender.file("large", LARGE[::-1])}}})
    root = make_root(tree, *measure(sender.objects, tree))
    pieces = [packed(each) for each in every_piece(sender.objects, root)]
    assert len(pieces) > 15
    for gone in pieces:
        with host.create(f"without {gone.hash.hex()}".replace(" ", "-")) as run:
            other = Sender(run, sender.objects)
            run._ask(KeepObjects(tuple(each for each in pieces if each is not gone), ahead=True))
            with pytest.raises(Refused) as caught:
                other.name(root)
            assert (caught.value.code, run.info.events) == ("malformed_frame", 1)
            run._ask(KeepObjects((gone,), ahead=True))
            other.name(root)
            assert astray(run) == 0


def every_piece(objects: Counted, root: Object) -> list[Object]:
    found = []
    for hash_ in whole(objects, root.data):
        for kind in ObjectKind:
            with suppress(Damaged):  # it is of another kind
                found.append(make_object(kind, objects.get(hash_, kind)))
    return found


def test_a_root_says_what_its_tree_holds(sender: Sender) -> None:
    tree = sender.put({"new": b"1"})
    held = measure(sender.objects, tree)
    for wrong in (held._replace(entries=1), held._replace(size=0), held._replace(depth=held.depth + 1)):
        refused(sender, lambda wrong=wrong: sender.publish(tree, wrong))  # type: ignore[misc]


def test_a_root_of_another_profile_is_refused(sender: Sender) -> None:
    root = msgspec.msgpack.encode([1, sender.tree, *measure(sender.objects, sender.tree), 1])

    refused(sender, lambda: sender.name(make_object(ObjectKind.ROOT, root)))


SECRETS: dict[str, Callable[[Sender], bytes]] = {
    "a name": lambda sender: sender.put({"d": {"hunter22": b"1"}}),
    "two names": lambda sender: sender.put({"new": {"my-hunter22": {}}}),
    "a link that is new": lambda sender: sender.put({"new": "to/hunter22"}),
    "a link that was there": lambda sender: sender.put({"link": "hunter22"}),
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_of_the_owners_host_does_not_come_in(sender: Sender, name: str) -> None:
    tree = SECRETS[name](sender)

    refused(sender, lambda: sender.publish(tree), "secret_refused")


# What its record says


@pytest.mark.parametrize("said", [0, 2, 10**18])
def test_a_publish_that_counts_other_changes_than_lead_to_its_root_is_refused(
    sender: Sender, said: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = sender.put({"new": b"1"})
    monkeypatch.setattr(Sender, "count", lambda *_: said)
    with pytest.raises(Refused) as caught:
        sender.publish(tree)
    assert caught.value.code == "malformed_frame"
    monkeypatch.undo()
    sender.publish(tree)
    sender.run.verify()


# What it costs


def test_it_costs_what_is_new(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    really = arrival._Read.get
    folders = {f"folder {number}": {f"file {each}": bytes([number]) for each in range(50)} for number in range(50)}
    sender.publish(sender.put({"many": folders}))
    many = folder(sender.objects, {**folders, "folder 7": {**folders["folder 7"], "one": b"more"}})
    tree = sender.put({"many": Directory("many", 0o755, many, *measure(sender.objects, many))})

    def get(self: Any, hash_: bytes, kind: ObjectKind) -> bytes:
        read.append(hash_)
        return really(self, hash_, kind)

    monkeypatch.setattr(arrival._Read, "get", get)
    sender.publish(tree)

    assert len(read) <= 2 * 5
    read.clear()
    sender.publish(sender.put({"other": changed(there(sender, "many"), name="other")}, gone=("many",)))
    assert len(read) <= 8
    sender.run.verify()
