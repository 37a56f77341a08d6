"""A block that is published beside a living owner in another process makes the very root that the owner would have made, or none."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from caller import Owner, owner
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import freehold
from freehold import Effect, PathRefused, Refused
from freehold.actors.remote import Remote
from freehold.files import Files
from freehold.schema.hashes import ObjectKind, object_hash
from freehold.schema.messages import KeepObjects, Message, PublishOn, ReadRoot
from freehold.schema.roots import make_object
from freehold.schema.rows import PackedObject
from freehold.schema.secrets import SecretFilter
from freehold.staged import Staging
from freehold.storage.objects import packed, plain
from freehold.storage.path import resolve

Edit = Callable[[Files], object]

NAMES = ["a", "b", "c", "B", "long name.txt", "ä", *(f"n{number:03}" for number in range(0, 100, 13))]
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
sizes = st.sampled_from([0, 1, 128, 129, 9_000, 70_000, 200_000])
contents = st.builds(lambda byte, size: bytes([byte]) * size, st.integers(0, 255), sizes)
edits = st.one_of(
    *[st.builds(lambda path, content: lambda files: write(files, path, content), paths, contents)] * 4,
    st.builds(lambda path: lambda files: files.mkdir(path, parents=True), paths),
    st.builds(lambda path: lambda files: files.remove(path), paths),
    st.builds(lambda path: lambda files: files.rmtree(path), paths),
    st.builds(lambda one, other: lambda files: files.rename(one, other), paths, paths),
    st.builds(lambda one, other: lambda files: files.copy(one, other), paths, paths),
    st.builds(lambda path, mode: lambda files: files.chmod(path, mode), paths, st.sampled_from([0o600, 0o755])),
    st.builds(lambda path: lambda files: files.symlink(path, "a/b"), paths),
)
lists = st.lists(edits, min_size=1, max_size=6)  # no more: each copy of a directory into itself doubles it


def write(files: Files, path: str, content: bytes) -> None:
    """Write a file, and make the directory for it."""
    files.mkdir(path.rpartition("/")[0] or ".", parents=True, exist_ok=True)
    files.write_bytes(path, content)


def start(files: Files) -> None:
    """Make a directory of several nodes, and a large file, and nothing else."""
    for name in list(files.iterdir()):
        gone = files.rmtree if files.is_dir(name) and not files.is_symlink(name) else files.remove
        gone(name)
    for number in range(100):
        files.write_bytes(f"n{number:03}", b"x")
    files.mkdir("a/b", parents=True)
    files.write_bytes("a/b/c", bytes(range(256)) * 1000)


def make(changes: list[Edit]) -> Callable[[Files], None]:
    """Return what makes these changes, as far as they can be made."""

    def work(files: Files) -> None:
        for change in changes:
            with suppress(OSError, PathRefused):  # it cannot be made here; the next one is tried
                change(files)

    return work


class Elsewhere:
    """An owner in another process, and the line to it."""

    def __init__(self, root: Path, owner: Owner) -> None:
        self.owner = owner
        self.remote = Remote(resolve(root, "a"), timeout=30.0)
        self._home = str(root)

    def publish(self, work: Callable[[Files], object], ask: Callable[[Message], Any] | None = None) -> Effect[None]:
        """Publish a block by messages."""

        def again(_answer: object) -> Any:
            raise AssertionError("no request is repeated")

        with Staging(ask or self.remote.ask, None, again, "p", SecretFilter(), self._home, None) as files:
            work(files)
        return files.effect

    def root(self) -> bytes:
        """Return the root that is current."""
        found: bytes = self.remote.ask(ReadRoot())
        return found


@contextmanager
def elsewhere(root: Path) -> Iterator[Elsewhere]:
    with owner(root) as process:
        found = Elsewhere(root, process)
        try:
            yield found
            process.do("run.verify()")
        finally:
            found.remote.close()
        process.end()


def test_whatever_is_changed_leads_to_the_root_that_its_owner_would_have_made(tmp_path: Path) -> None:
    with elsewhere(tmp_path / "runs") as there, freehold.open(tmp_path / "twin") as host, host.create("a") as twin:

        @settings(max_examples=30, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
        @given(first=lists, second=lists)
        def publish(first: list[Edit], second: list[Edit]) -> None:
            for work in (start, make(first), make(second)):
                effect, expected = there.publish(work), twin.publish("p", work)
                assert (effect.root, effect.data, list(effect.changes)) == (expected.root, expected.data, list(expected.changes))
                assert there.root().hex() == twin.files.root

        publish()


def test_what_was_changed_on_its_way_is_refused_or_right_and_never_a_damaged_run(tmp_path: Path) -> None:
    told: set[str] = set()
    with elsewhere(tmp_path / "runs") as there:

        @settings(max_examples=60, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
        @given(changes=lists, dice=st.integers(0, 2**32))
        def publish(changes: list[Edit], dice: int) -> None:
            there.publish(start)
            before = there.root()
            forger = Forger(there.remote.ask, random.Random(dice))
            try:
                there.publish(make(changes), forger.ask)
            except Refused as refusal:
                told.add(refusal.code)
                assert there.root() == before
            else:
                there.owner.do("run.verify()")

        publish()
    assert "malformed_frame" in told
    assert told <= {"malformed_frame"}


class Forger:
    """Holds back the pieces that are sent ahead, and sends them, one of them changed or left out, with the publish."""

    def __init__(self, ask: Callable[[Message], Any], dice: random.Random) -> None:
        self._ask = ask
        self._dice = dice
        self._held: dict[bytes, PackedObject] = {}

    def ask(self, message: Message) -> Any:
        """Take the place of the owner."""
        if isinstance(message, KeepObjects):
            self._held |= {row.hash: row for row in message.objects}
            return None
        if isinstance(message, PublishOn) and message.root is not None:
            root = self._forged(message.root)
            for row in self._held.values():  # each alone: one that is refused keeps none of the others back
                with suppress(Refused):
                    self._ask(KeepObjects((row,), ahead=True))
            message = msgspec.structs.replace(message, root=root)
        return self._ask(message)

    def _forged(self, root: bytes) -> bytes:
        """Change one piece, and what names it up to the root; return the root then."""
        data = {hash_: plain(row, hash_, ObjectKind(row.kind)) for hash_, row in self._held.items()}
        forged: dict[bytes, PackedObject] = {}
        which = self._dice.choice([None, *sorted(data)])
        if which is None:
            return self._changed(ObjectKind.ROOT, root)
        if self._dice.random() < 0.2:
            del self._held[which]
            return root
        todo = [(which, self._changed(ObjectKind(self._held[which].kind), data[which]))]
        while todo:
            old, changed = todo.pop()
            kind = ObjectKind(self._held.pop(old).kind)
            new = object_hash(kind, changed)
            forged[new] = packed(make_object(kind, changed))
            root = root.replace(old, new)
            # Each once: what was changed may name by now what stands above it.
            waiting = {hash_ for hash_, _ in todo}
            todo = [(hash_, raw.replace(old, new)) for hash_, raw in todo]
            todo += [(hash_, data[hash_].replace(old, new)) for hash_ in self._held.keys() - waiting if old in data[hash_]]
        self._held |= forged
        return root

    def _changed(self, kind: ObjectKind, data: bytes) -> bytes:
        if kind is ObjectKind.CHUNK:
            return self._dice.choice([data[:-1], data + b"x", b"y" + data[1:]])
        members = msgspec.msgpack.decode(data)
        self._change(members)
        return msgspec.msgpack.encode(members)

    def _change(self, members: list[Any]) -> None:
        """Change one member, at whatever depth."""
        place = self._dice.randrange(max(1, len(members)))
        member = members[place] if members else None
        if isinstance(member, list) and member and self._dice.random() < 0.8:
            self._change(member)
        elif isinstance(member, list) and members and self._dice.random() < 0.5:
            members.insert(place, member)
        elif members and self._dice.random() < 0.5:
            members[place] = self._other(member)
        elif members:
            del members[place]

    def _other(self, member: Any) -> Any:
        if isinstance(member, int):
            return max(0, member + self._dice.choice([-1, 1, 100]))
        if isinstance(member, str):
            return self._dice.choice([member + "x", member.upper(), "CON", "a", ""])
        if isinstance(member, bytes):
            return self._dice.choice([bytes(32), member[:-1], *sorted(self._held)])
        return []
