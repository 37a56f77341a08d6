"""One owner or any number of readers an inode, and the readers share one descriptor."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Thread

import pytest

from freehold.schema.errors import OwnedElsewhere
from freehold.storage import platform
from freehold.storage.platform import Inode
from freehold.storage.registry import REGISTRY, OwnedHere, Registry


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "file"
    file.touch()
    return file


@pytest.fixture
def inode(file: Path) -> Inode:
    return platform.inode_of(file.stat())


def opener(file: Path) -> int:
    return os.open(file, os.O_RDONLY)


def test_a_second_owner_is_told_this_process(registry: Registry, inode: Inode) -> None:
    registry.own(inode, "first")
    with pytest.raises(OwnedElsewhere) as raised:
        registry.own(inode, "second")

    assert raised.value.details == {"pid": os.getpid(), "shared": False}
    assert registry.owner_of(inode) == "first"


def test_an_inode_is_held_while_it_is_owned_or_read(registry: Registry, inode: Inode, file: Path) -> None:
    assert not registry.holds(inode)
    registry.own(inode, "owner")
    assert registry.holds(inode)
    registry.release(inode)
    assert not registry.holds(inode)
    registry.enter(inode, lambda: opener(file))
    assert registry.holds(inode)
    registry.leave(inode)
    assert not registry.holds(inode)


def test_a_reader_of_an_owned_file_is_given_its_owner(registry: Registry, inode: Inode, file: Path) -> None:
    owner = object()
    registry.own(inode, owner)
    with pytest.raises(OwnedHere) as raised:
        registry.enter(inode, lambda: opener(file))
    assert raised.value.owner is owner

    registry.release(inode)
    registry.enter(inode, lambda: opener(file))
    registry.leave(inode)
    assert registry.owner_of(inode) is None


def test_an_owner_is_refused_while_a_reader_reads_and_told_to_wait(registry: Registry, inode: Inode, file: Path) -> None:
    registry.enter(inode, lambda: opener(file))
    with pytest.raises(OwnedElsewhere) as raised:
        registry.own(inode, None)
    assert raised.value.details["shared"] is True

    registry.leave(inode)
    registry.own(inode, None)
    registry.release(inode)


def test_readers_who_follow_each_other_do_not_keep_an_owner_out(registry: Registry, inode: Inode, file: Path) -> None:
    registry.enter(inode, lambda: opener(file))
    with pytest.raises(OwnedElsewhere):
        registry.own(inode, "owner")
    with pytest.raises(OwnedHere) as raised:
        registry.enter(inode, lambda: opener(file))
    assert raised.value.owner is None  # there is nobody to ask yet

    registry.leave(inode)
    registry.own(inode, "owner")
    registry.release(inode)


def test_who_meets_a_creation_or_a_deletion_is_told_to_wait(registry: Registry, inode: Inode) -> None:
    registry.own(inode, None)
    with pytest.raises(OwnedElsewhere) as raised:
        registry.own(inode, "other")
    assert raised.value.details == {"pid": os.getpid(), "shared": True}

    registry.hand_over(inode, "creator")
    with pytest.raises(OwnedElsewhere) as raised:
        registry.own(inode, "other")
    assert raised.value.details == {"pid": os.getpid(), "shared": False}
    assert registry.owner_of(inode) == "creator"


@pytest.mark.timeout(10)  # a lock that its own thread cannot take again is waited for without end
def test_a_collection_may_call_in_again_while_the_registry_is_used(registry: Registry, inode: Inode, file: Path) -> None:
    def collect() -> int:
        registry.own((0, 0), "forgotten")
        registry.release((0, 0))
        return opener(file)

    os.fstat(registry.enter(inode, collect))
    registry.leave(inode)
    assert registry._places == {}


def test_readers_share_one_descriptor_and_the_last_one_closes_it(registry: Registry, inode: Inode, file: Path) -> None:
    fd = registry.enter(inode, lambda: opener(file))
    assert registry.enter(inode, lambda: opener(file)) == fd
    registry.leave(inode)
    os.fstat(fd)

    registry.leave(inode)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_the_shared_lock_is_held_as_long_as_anybody_shares(registry: Registry, inode: Inode, file: Path) -> None:
    other = opener(file)
    for _ in range(2):
        registry.enter(inode, lambda: opener(file))
        assert registry.share(inode)
    registry.unshare(inode)
    assert not platform.lock_exclusive(other)

    # One reader is still there, but does not share any more.
    registry.unshare(inode)
    assert platform.lock_exclusive(other)
    assert not registry.share(inode)
    registry.leave(inode)
    registry.leave(inode)
    os.close(other)


def test_a_reader_that_cannot_open_leaves_no_place_behind(registry: Registry, inode: Inode, file: Path) -> None:
    def fail() -> int:
        raise PermissionError

    with pytest.raises(PermissionError):
        registry.enter(inode, fail)

    registry.own(inode, None)
    registry.release(inode)


def test_of_racing_threads_one_owns(registry: Registry, inode: Inode) -> None:
    barrier = Barrier(8)

    def race(number: int) -> int | None:
        barrier.wait(10)
        try:
            registry.own(inode, number)
        except OwnedElsewhere:
            return None
        return number

    with ThreadPoolExecutor(8) as threads:
        winners = [number for number in threads.map(race, range(8)) if number is not None]

    assert winners == [registry.owner_of(inode)]


@pytest.mark.timeout(10)  # the parent's own lock is never given back in a child
def test_a_forked_child_owns_and_reads_nothing_even_if_the_lock_was_held(registry: Registry, inode: Inode, file: Path) -> None:
    registry.own((0, 0), "parent")
    fd = registry.enter(inode, lambda: opener(file))
    holder = Thread(target=registry._lock.acquire, daemon=True)
    holder.start()
    holder.join()
    copy = os.dup(fd)  # stands for the parent's own descriptor, which a child's close does not touch

    registry.forked()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)

    assert registry.owner_of((0, 0)) is None
    registry.own(inode, "child")
    os.fstat(copy)
    os.close(copy)


def test_the_registry_of_this_process_hears_of_a_fork() -> None:
    REGISTRY.own((0, 0), "parent")
    child = os.fork()
    if child == 0:
        os._exit(REGISTRY.holds((0, 0)))
    REGISTRY.release((0, 0))

    assert os.waitpid(child, 0)[1] == 0
